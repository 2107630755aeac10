"""Judges Rust answers by compiling them, asking clippy and running their tests.

In come the code and the tests of a case; out comes a finding with diagnostics and one result for each test.
Compilers and tests run in the sandbox alone; answers of one case are compiled together.
"""
