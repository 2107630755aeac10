"""The list for Perl.

In: the text of an answer and what its case names. Out: the first thing that is not on the list, or nothing.
`script` reads an answer, `meaning` what it shares with its tests, and `values` how many values its functions give.
"""
