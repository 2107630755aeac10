"""The command line, and the pytest plug-in.

Input: arguments, settings and the environment. Output: printed results and an exit code.
It only translates: what decides lives in the engine, where a notebook can reach it.
"""
