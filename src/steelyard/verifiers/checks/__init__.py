"""Judges an answer by the list of checks that its case declares; each check is a test with its own outcome.

In come an answer and tables such as `{contains = "Paris"}`; out comes a finding with one test per check and a weighted score.
What can be decided from the text uses the checks of `response`; code of a check runs in the sandbox, never here.
"""
