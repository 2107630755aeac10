"""Cases as people have them: TOML, JSONL, benchmarks, shipped suites, and the formats of plug-ins.

Input: files and folders that users name, which may be wrong in any way. Output: cases, checked and complete, or one
InputError with every problem and its line; also rubrics, experiments and a starter file.
"""

from steelyard.evalsets.loader import RESERVED_RULE_NAMES, EvalSets, is_eval_set_available, load, with_default_checks

__all__ = ["RESERVED_RULE_NAMES", "EvalSets", "is_eval_set_available", "load", "with_default_checks"]
