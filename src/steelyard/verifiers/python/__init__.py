"""Judges Python answers by their tests, which run apart from the answer.

In come the code and the tests of a case; out comes a finding with one result for each test.
`candidate`, `referee`, `inside` and `wire` run inside the sandbox and use the standard library alone.
"""
