"""Finds the code in a reply: blocks, patches, and how they fit the stub that the model was asked to complete.

In come the text of a reply and what the case asked for; out comes the code to judge, or why there is none.
Nothing is run here, and reading ends for every text.
"""
