"""Judges Python answers by their tests, which run apart from the answer.

In come the code and the tests of a case; out comes a finding with one result for each test.
What runs inside the sandbox is in `guest`, and uses the standard library alone.
"""
