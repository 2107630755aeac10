"""Assertions of promptfoo as checks of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from steelyard.errors import InputError

NUMBER_ABOVE_ZERO = 5e-324
"""A script that returns a number holds when it is above 0, unless the assertion has a threshold."""
DEFAULT_SIMILARITY = 0.75
DEFAULT_G_EVAL_SCORE = 0.7
GRADED_TYPES = ("llm-rubric", "model-graded-closedqa", "g-eval", "factuality", "model-graded-factuality")
FACTUALITY_RUBRIC = "Judge the facts alone. The answer contradicts no fact of this reference answer:"
"""promptfoo accepts answers that say less or more than the reference, and refuses those that disagree with it."""
CSV_ASSERTION = re.compile(r"^(not-)?([a-z][a-z0-9-]*)(?:\((\d+(?:\.\d+)?)\))?(?:\s*:(.*))?$", re.DOTALL)
CSV_SCRIPT_PREFIXES = {"javascript:": "javascript", "fn:": "javascript", "eval:": "javascript", "python:": "python"}
CSV_RUBRIC_PREFIXES = ("grade:", "llm-rubric:")

Check = dict[str, Any]


class LeftOutError(Exception):
    """An assertion that has no equal here; the text says which kind, and what to do."""


def assertion_checks(assertion: Any, schema_of: Callable[[str], Any]) -> Iterator[Check]:
    """The checks that implement one assertion; `schema_of` reads a file of data."""
    if not isinstance(assertion, dict) or not isinstance(assertion.get("type"), str):
        raise InputError("an assertion is not a table with a type")
    kind = assertion["type"]
    if kind == "assert-set":
        yield from _set_checks(assertion, schema_of)
        return
    is_negated = kind.startswith("not-")
    base = kind.removeprefix("not-").partition(":")[0]
    if base not in _CHECKS:
        raise LeftOutError(
            f"assertions of the type {kind}: {_WAYS_OUT.get(base, 'write a python or javascript assertion instead')}"
        )
    if assertion.get("transform") or assertion.get("contextTransform"):
        raise LeftOutError("assertions with a transform: do the same in a python or javascript assertion")
    check = _CHECKS[base](assertion, schema_of)
    weight = assertion.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InputError(f"the weight of an assertion {kind} is not a number")
    yield {**check, **({"not": True} if is_negated else {}), **({"weight": weight} if weight != 1 else {})}


def is_graded(assertion: Any) -> bool:
    """Whether a judge decides about an assertion."""
    kind = str(assertion.get("type", "")) if isinstance(assertion, dict) else ""
    return kind.removeprefix("not-") in GRADED_TYPES


def has_plain_value(kind: Any) -> bool:
    """Whether replies are compared with the value itself; code and schemas name their files themselves.

    >>> has_plain_value("not-equals"), has_plain_value("python"), has_plain_value("moderation")
    (True, False, False)
    """
    found = _CHECKS.get(kind.removeprefix("not-").partition(":")[0]) if isinstance(kind, str) else None
    return found is not None and found not in (_script, _is_json, _contains_json)


def _set_checks(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Iterator[Check]:
    """The checks of a set; they weigh together what the set weighs."""
    if assertion.get("threshold") is not None:
        raise LeftOutError("assertions of the type assert-set with a threshold: give the test a threshold instead")
    inner = [check for one in assertion.get("assert") or [] for check in assertion_checks(one, schema_of)]
    total = sum(check.get("weight", 1) for check in inner)
    for check in inner:
        share = assertion.get("weight", 1) * check.get("weight", 1) / total if total else 0
        yield {**check, "weight": share}


def assertion_from_text(text: str) -> dict[str, Any]:
    """The assertion in a cell of a table, such as `contains: Paris`; what names no type is compared as it is.

    >>> assertion_from_text("not-contains: sorry"), assertion_from_text("similar(0.8): hi")["threshold"]
    ({'type': 'not-contains', 'value': 'sorry'}, 0.8)
    """
    for prefix, language in CSV_SCRIPT_PREFIXES.items():
        if text.startswith(prefix):
            return {"type": language, "value": text.removeprefix(prefix).strip()}
    for prefix in CSV_RUBRIC_PREFIXES:
        if text.startswith(prefix):
            return {"type": "llm-rubric", "value": text.removeprefix(prefix).strip()}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    match = CSV_ASSERTION.match(text)
    if match is None or (match[2] not in _CHECKS and match[2] not in _WAYS_OUT):
        return {"type": "equals", "value": text}
    value = match[4].strip() if match[4] is not None else None
    found: dict[str, Any] = {"type": f"{match[1] or ''}{match[2]}"}
    if value:
        found["value"] = value
    if match[3]:
        found["threshold"] = float(match[3])
    return found


def _text(assertion: dict[str, Any]) -> str:
    value = assertion.get("value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number_text(value)
    if not isinstance(value, str) or not value:
        raise InputError(f"an assertion {assertion['type']} has no text as its value")
    return value


def _number_text(value: float) -> str:
    """A number with all its digits, as JavaScript writes it.

    >>> _number_text(3.14159265), _number_text(1234567.0), _number_text(0.00001)
    ('3.14159265', '1234567', '0.00001')
    """
    if isinstance(value, int) or not 1e-6 <= abs(value) < 1e21:  # beyond, JavaScript writes an exponent
        return "0" if value == 0 else re.sub(r"(e[+-])0", r"\1", str(value))
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _texts(assertion: dict[str, Any]) -> list[str]:
    value = assertion.get("value")
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not value:
        raise InputError(f"an assertion {assertion['type']} has no list as its value")
    return [_text({**assertion, "value": one}) for one in value]


def _threshold(assertion: dict[str, Any], default: float | None = None) -> float:
    value = assertion.get("threshold", default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"an assertion {assertion['type']} has no number as its threshold")
    return value


def _equals(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:  # noqa: ARG001  all are called alike
    value = assertion.get("value")
    return {"equals": value if isinstance(value, dict | list) or value == "" else _text(assertion)}


def _schema(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Any:
    """The schema of an assertion; None if it has none."""
    value = assertion.get("value")
    if isinstance(value, str) and value.strip():
        value = schema_of(value)
    return value or None


def _is_json(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:
    schema = _schema(assertion, schema_of)
    return {"json": True} if schema is None else {"json_schema": schema}


def _contains_json(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:
    schema = _schema(assertion, schema_of)
    return {"contains_json": True if schema is None else schema}


def _script(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:  # noqa: ARG001  all are called alike
    language = assertion["type"].removeprefix("not-")
    value = _text(assertion)
    options = {"fails_on_error": True, "at_least": _threshold(assertion, NUMBER_ABOVE_ZERO)}
    if assertion.get("config"):
        raise LeftOutError(f"assertions of the type {language} with a config: put its values into the code")
    if not value.startswith("file://"):
        code = value if language == "python" else _javascript_body(value)
        return {f"{language}_code": code, **options}
    name = value.removeprefix("file://")
    if language == "python":
        return {"python": name if ".py:" in name else f"{name}:get_assert", **options}
    if not re.search(r"\.c?js(:\w+)?$", name):
        raise LeftOutError(
            "javascript assertions in a module or in TypeScript: write them as a CommonJS file, .js or .cjs"
        )
    return {"javascript": name, **options}


def _javascript_body(code: str) -> str:
    """One line is an expression; several are the body of a function."""
    code = code.rstrip()
    if "\n" in code:
        return code
    line = re.sub(r";+\s*$", "", code.strip())
    if re.match(r"(const|let|var)\s", line):
        before, semicolon, last = line.rpartition(";")
        return f"{before}; return {last.strip()}" if semicolon and last.strip() else line
    return f"return {line}"


def _similar(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:  # noqa: ARG001  all are called alike
    if ":" in assertion["type"] and not assertion["type"].endswith(":cosine"):
        raise LeftOutError(f"assertions of the type {assertion['type']}: use similar, which compares by the cosine")
    value = assertion.get("value")
    texts = _texts(assertion) if isinstance(value, list) else [_text(assertion)]
    return {"similar": texts[0] if len(texts) == 1 else texts, "at_least": _threshold(assertion, DEFAULT_SIMILARITY)}


def _rubric(assertion: dict[str, Any], schema_of: Callable[[str], Any]) -> Check:  # noqa: ARG001  all are called alike
    """What a judge looks for; who judges is named on the command line, as models are."""
    if assertion.get("rubricPrompt"):
        raise LeftOutError(f"assertions of the type {assertion['type']} with a rubricPrompt: put it into the value")
    value = assertion.get("value")
    if value in (None, ""):
        raise LeftOutError(f"assertions of the type {assertion['type']} without a value: write what a judge looks for")
    text = json.dumps(value) if isinstance(value, dict | list) and value else _text(assertion)
    return {"rubric": text, **({"at_least": _threshold(assertion)} if assertion.get("threshold") else {})}


_CHECKS: dict[str, Callable[[dict[str, Any], Callable[[str], Any]], Check]] = {
    "equals": _equals,
    "contains": lambda one, _: {"contains": _text(one)},
    "icontains": lambda one, _: {"contains": _text(one), "ignore_case": True},
    "contains-any": lambda one, _: {"contains_any": _texts(one)},
    "icontains-any": lambda one, _: {"contains_any": _texts(one), "ignore_case": True},
    "contains-all": lambda one, _: {"contains": _texts(one)},
    "icontains-all": lambda one, _: {"contains": _texts(one), "ignore_case": True},
    "regex": lambda one, _: {"regex": _text(one)},
    "starts-with": lambda one, _: {"starts_with": _text(one)},
    "is-json": _is_json,
    "contains-json": _contains_json,
    "python": _script,
    "javascript": _script,
    "latency": lambda one, _: {"latency_below": _threshold(one) / 1000},
    "cost": lambda one, _: {"cost_below": _threshold(one)},
    "similar": _similar,
    "llm-rubric": _rubric,
    "model-graded-closedqa": _rubric,
    "g-eval": lambda one, files: {"at_least": DEFAULT_G_EVAL_SCORE, **_rubric(one, files)},
    "factuality": lambda one, _: {"rubric": f"{FACTUALITY_RUBRIC} {_text(one)}"},
    "model-graded-factuality": lambda one, _: {"rubric": f"{FACTUALITY_RUBRIC} {_text(one)}"},
}
_WAYS_OUT = {
    **dict.fromkeys(
        ("answer-relevance", "context-faithfulness", "context-recall", "context-relevance"),
        "write an llm-rubric instead",
    ),
    **dict.fromkeys(("select-best", "max-score"), "compare models with: steelyard compare"),
    **dict.fromkeys(
        ("moderation", "classifier", "guardrails", "is-refusal", "levenshtein", "rouge-n", "bleu", "gleu", "meteor"),
        "write a python or javascript assertion instead",
    ),
    **dict.fromkeys(
        ("perplexity", "perplexity-score", "webhook", "finish-reason", "is-valid-openai-tools-call"),
        "leave it to promptfoo",
    ),
}
"""What to do about types that users often have."""
