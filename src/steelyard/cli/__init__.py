"""The command line, and the pytest plug-in.

Comes in: arguments, settings and the environment. Goes out: printed results and an exit code.
It only translates: what decides lives in the engine, where a notebook can reach it.
"""
