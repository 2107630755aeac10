"""Judges answers that are text, by checks that a case declares: text, JSON, CSV, markup, numbers, language, leaks.

In come a reply and a table of checks; out comes one of nine classes with the evidence.
Nothing is run, every check takes time bounded by the length of the reply, and all machines judge alike.
"""
