"""What is known of each programming language, as data.

In come the tests of a public benchmark in one language. Out goes how a case verifies an answer with them: the files, the commands, what the
tests need of the machine, and how their end is told.
"""
