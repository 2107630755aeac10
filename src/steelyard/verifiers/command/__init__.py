"""Judges answers in any language by commands of the case: build, test and lint.

In come files of an answer or of a workspace, and commands; out come tests read from what a runner printed.
Commands run in the sandbox alone, and what a runner prints is treated as hostile.
"""
