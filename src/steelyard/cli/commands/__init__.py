"""The commands by subject: each module holds the options of its commands and the call that each makes.

Comes in: parsed options. Goes out: printed results and an exit code.
Modules of ours are imported in the function that needs them, so that `--help` starts fast.
"""
