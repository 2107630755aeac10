"""The suites that come with steelyard, as data.

In comes a name such as `suite:injection`; out comes the text of an eval set, read from a file or generated.
Generated cases are the same on every machine for the same length and seed.
"""
