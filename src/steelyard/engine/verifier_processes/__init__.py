"""Verifying in several processes of this machine, where one event loop could not keep all processors busy.

In come the cases of a run and its replies; out go verdicts, the same as from one process. Each process has an event loop,
verifiers and sandboxes of its own and ends when the run hangs up; one that is lost is replaced, and its replies are verified again.
Replies with the same text need not be verified more than once: `shared_verdicts` does that for every pool.
"""
