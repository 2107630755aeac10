"""Reads the configs of promptfoo: every prompt with every test is a case, and its assertions are the case's checks.

In comes a config as plain data, YAML or JSON; out come drafts of cases. Files that it names are read, never run, and only below its
folder. What has no equivalent here is counted and reported once per file.
"""
