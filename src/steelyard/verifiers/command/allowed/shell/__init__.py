"""The list for shells.

In: the text of an answer and what its case names. Out: the first thing that is not on the list, or nothing.
`script` reads an answer, `operands` what its commands are given, `numbers` what it takes for arithmetic, and `names` the variables of its tests.
"""
