"""Finds out what an answer is worth, by running or reading it: one folder for each kind of verifier.

In come a case, an answer and a sandbox; out comes a `Finding`: tests, diagnostics, a label and a reason.
A verifier runs what it was given only inside the sandbox, and never decides what a finding is worth.
"""
