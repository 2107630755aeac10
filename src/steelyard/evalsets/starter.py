"""An eval set to start from."""

from __future__ import annotations


def starter() -> str:
    """A commented TOML eval set with two cases; it loads as it is."""
    return STARTER_EVAL_SET


STARTER_EVAL_SET = '''\
# An eval set: questions, each with the way to verify its answer.
#   steelyard validate FILE     proves that every reference passes and every counterexample fails
#   steelyard run FILE -m PROVIDER/MODEL
[eval_set]
id = "starter"
name = "My first eval set"
description = "Two small Python functions."
default_language = "python"
default_timeout_secs = 10

[[cases]]
id = "count-vowels"
name = "Count the vowels"
tags = ["strings", "easy"]
prompt = """
Write a Python function `count_vowels(text)` that returns how many letters of `text` are vowels: a, e, i, o or u,
small or capital. Answer with one Python code block.
"""
# an answer that must pass, and a plausible one that must fail
reference = """
def count_vowels(text):
    return sum(letter in "aeiou" for letter in text.lower())
"""
counterexample = """
def count_vowels(text):
    return sum(letter in "aeiou" for letter in text)
"""

[cases.expectations]
# the source of the tests, not a path
test_file = """
assert count_vowels("banana") == 3
assert count_vowels("") == 0
assert count_vowels("ECHO") == 2
"""
expected_functions = ["count_vowels"]

[[cases]]
id = "running-total"
name = "Running total of a list"
tags = ["lists", "easy"]
prompt = """
Write a Python function `running_total(numbers)` that returns a new list whose n-th element is the sum of the first n
numbers. The list that was passed in must not change. Answer with one Python code block.
"""
reference = """
def running_total(numbers):
    total, totals = 0, []
    for number in numbers:
        total += number
        totals.append(total)
    return totals
"""
counterexample = """
def running_total(numbers):
    for i in range(1, len(numbers)):
        numbers[i] += numbers[i - 1]
    return numbers
"""

[cases.expectations]
test_file = """
assert running_total([1, 2, 3]) == [1, 3, 6]
assert running_total([]) == []
given = [5, -5, 2]
assert running_total(given) == [5, 0, 2]
assert given == [5, -5, 2]
"""
expected_functions = ["running_total"]

# A prompt can come from a file beside this one, and have {{name}} filled in from vars. Where tests do not fit, a
# function of yours judges the answer: score(text) or score(text, case) returns a bool, a number from 0 to 1, or a dict
# with pass, score and reason.
#
# [[cases]]
# id = "greeting"
# name = "A polite greeting"
# prompt = "file://prompts/greeting.md"
# vars = { name = "Ada" }
# verify = { python = "checks.py:score" }
'''
