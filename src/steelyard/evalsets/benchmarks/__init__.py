"""Public code benchmarks in their own formats.

Comes in: the keys of a HumanEval, MBPP or EvalPlus task as published. Goes out: the same task under our keys.
Nothing is run here: the tests stay source code until a verifier takes them.
"""
