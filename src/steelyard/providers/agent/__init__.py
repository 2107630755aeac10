"""Programs that work in a copy of a case's workspace.

Input: an attempt whose case has a workspace, and a command line. Output: the changes as a git patch.
The keeper ends the program with everything it started, even when we are killed.
"""
