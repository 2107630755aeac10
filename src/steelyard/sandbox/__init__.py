"""Runs programs that are not trusted, with limits and without access to what is ours.

In come files, a command and limits; out come its exit code, what it printed and the limit that ended it.
`zygote`, `kernel` and `probe` run inside and use the standard library alone.
"""
