"""Verifying and counting on the machines of a Ray cluster.

In come the cases and replies of a run, or files of attempts; out go verdicts and counts, the same as on this machine.
Ray places the work, bounds it and retries it. See docs/design/ray.md.
"""
