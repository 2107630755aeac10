"""Readers of what test runners print: TAP, JUnit XML, libtest, go test and jest.

In comes the output of a test command, which may be hostile, and the name of its format; out come tests, or an error.
Every reader is bounded, and what is cut short, contradicts itself or cannot be read never passes.
"""
