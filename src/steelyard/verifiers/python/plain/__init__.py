"""What is plain enough to be certain of by its text alone.

In: the source of an answer, or of tests. Out: whether it has nothing but what is listed; anything else gets less trust.
`answers` and `tests` read each of the two, `calls` compares what plain calls return, and `names` has what may be named.
"""
