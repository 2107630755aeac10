"""Finds the code in a reply: blocks, patches, and how they fit to the stub that was asked to be completed.

In come the text of a reply and what the case asked for; out comes the code to judge, or why there is none.
Nothing is run here, and whatever the text is, reading it comes to an end.
"""
