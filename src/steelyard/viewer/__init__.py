"""Runs in a browser: pages, and a read-only HTTP API for programs.

The folder of runs and requests come in; HTML and JSON go out, and nothing is ever written to a run.
Everything is read as untrusted text, and what is expensive to compute is cached until the run changes.
"""
