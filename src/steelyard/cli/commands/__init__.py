"""The commands by subject: each module holds the options of its commands and the call that each makes.

Input: parsed options. Output: printed results and an exit code.
Modules of ours are imported in the function that needs them, so that `--help` starts fast.
"""
