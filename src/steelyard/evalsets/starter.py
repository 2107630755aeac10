"""An eval set and settings to start from, and those of the demo."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import InputError

SCHEMA_FILE = Path(__file__).with_name("shipped") / "eval-set.schema.json"
"""What an editor checks an eval set against."""
DEMO_FOLDER = Path(__file__).with_name("shipped") / "demo"
"""Eval sets, each with recorded replies of two small open models to all of its cases."""


def starter() -> str:
    """A commented TOML eval set with two cases; it loads as it is."""
    return STARTER_EVAL_SET


def starter_settings(model: str = "", base_url: str = "") -> str:
    """A commented settings file to begin with; it names the model that is asked, and the address of a server of yours."""
    text = STARTER_SETTINGS
    if model:
        text = text.replace(SETTINGS_MODELS, f"models = {quoted(model)}")
    if base_url:
        text = text.replace(SETTINGS_SERVER, SETTINGS_SERVER.replace("# ", "").replace(SETTINGS_URL, quoted(base_url)))
    return text


def quoted(text: str) -> str:
    """Text as a string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


SETTINGS_MODELS = '# models = "openai/gpt-5-mini,anthropic/claude-sonnet-4-5"'
SETTINGS_URL = '"http://127.0.0.1:8080/v1"'
SETTINGS_SERVER = f'# [providers.local]\n# type = "openai"\n# base_url = {SETTINGS_URL}\n'


def write_demo(name: str, folder: Path) -> tuple[Path, Path]:
    """Put an eval set of the demo and its recorded replies into a folder; returns both paths.

    Raises an InputError if another file has one of the names.
    """
    written = []
    for source in (DEMO_FOLDER / f"{name}.toml", DEMO_FOLDER / f"{name}.jsonl.gz"):
        path, content = folder / source.name, source.read_bytes()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(content)
            elif path.read_bytes() != content:
                raise InputError(f"{path}: not the file of the demo; move it, or name another folder")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        written.append(path)
    return written[0], written[1]


STARTER_EVAL_SET = '''\
#:schema ../eval-set.schema.json
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

STARTER_SETTINGS = """\
# steelyard's settings. Every key is optional; so is the file.
# Any option of the command line can stand here by its name, such as:
# samples = 10
# pass_k = "1,5"

# The models a bare `steelyard run EVALSET` asks:
# models = "openai/gpt-5-mini,anthropic/claude-sonnet-4-5"

max_retries = 3         # how often a request is repeated when the server did not answer
retry_delay_ms = 1000   # the first pause; it doubles, with some chance in it
deadline_secs = 600     # how long one request may take
# parallelism = 16      # never more requests at once than this; by itself the pace adapts

# Keys come from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...) and go only to the address that they belong to.
# A server of your own; no key is sent to it but the one that you name beside its address:
# [providers.local]
# type = "openai"
# base_url = "http://127.0.0.1:8080/v1"
# api_key = "${LOCAL_API_KEY}"    # leave this out where the server needs no key
# ... then ask it as local/NAME-OF-THE-MODEL

# Any product behind a URL:
# [providers.product]
# type = "http"
# base_url = "https://example.com/answer"
# headers = { x-team = "evals" }
# api_key = "${PRODUCT_KEY}"
# body = '{"question": "{{prompt}}"}'
# answer = "result.text"

# A program that works in a folder, contained; ask it as agent:fixer:
# [agents.fixer]
# command = "python3 fixer.py --model gpt-5-mini"
# hosts = ["api.openai.com"]        # all of the network that it reaches
# keys = ["OPENAI_API_KEY"]         # all of your environment that it gets
# folders = ["~/fixer"]             # what it can read, in addition to the system and its own script
# writable_folders = ["~/.cache/fixer"]

# How suites of responses are scored beside the plain rule:
# [suites]
# penalties = { refusal = 0.25 }    # what a failure costs, from 0 to 1; others cost 1
# weights = { injection = 2 }       # others weigh 1
# latency_target = 2                # seconds within which a reply loses nothing
# latency_limit = 30                # seconds after which it is worth nothing

# Prices per million tokens, where the built-in list has none or another:
# [prices."local/NAME-OF-THE-MODEL"]
# input = 0.10
# output = 0.40
"""
