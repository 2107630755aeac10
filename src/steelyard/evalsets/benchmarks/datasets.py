"""Rows of datasets as cases: questions with choices, with one right answer or with several, under the names of their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from steelyard.errors import InputError
from steelyard.text import short_quote

PROMPT_COLUMNS = ("problem", "query", "instruction")
"""Other names of the question column, if a row has none of the usual ones."""
USUAL_PROMPT_COLUMNS = ("prompt", "input", "question", "messages")
ANSWER_COLUMNS = ("answer", "answers", "expected_output", "expected_answer", "gold", "answerKey")
VERIFICATION_COLUMNS = ("verify", "checks", "expect", "expected_response", "test", "tests", "entry_point")
CHOICE_COLUMNS = ("choices", "options")
WORKED_ANSWER = re.compile(r"####\s*([-+]?[\d,]*\.?\d+)\s*$")
"""How GSM8K ends its worked answers."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MULTIPLE_CHOICE_PROMPT = (
    "Answer the following multiple choice question. The last line of your response should be of the form "
    "'ANSWER: LETTER', where LETTER is one of {letters}.\n\n{question}\n\n{choices}"
)
CONTEST_COLUMNS = (
    *("input_output", "public_tests", "private_tests", "generated_tests", "public_test_cases", "private_test_cases"),
    *("starter_code", "solutions", "question_content", "question_id", "question_title", "problem_id"),
    *("instruct_prompt", "complete_prompt", "base_input", "plus_input", "assertion", "code_prompt", "stop_tokens"),
    *("declaration", "example_test", "test_setup", "import", "language", "metadata", "difficulty", "context", "model"),
)
DATASET_COLUMNS = (
    *(*PROMPT_COLUMNS, *USUAL_PROMPT_COLUMNS, *ANSWER_COLUMNS, *VERIFICATION_COLUMNS, *CHOICE_COLUMNS),
    *("target", "ideal", *CONTEST_COLUMNS),
)
"""All names of columns that some reader here looks for."""
COLUMN_PAIR = re.compile(r"[A-Za-z_]\w*=[^=,#\0]+(?:,[A-Za-z_]\w*=[^=,#\0]+)*")


def column_map(text: str) -> dict[str, str]:
    """Our names and those of the columns, as `--map` has them.

    >>> column_map("prompt=question,target=answers.text")
    {'prompt': 'question', 'target': 'answers.text'}
    """
    if not COLUMN_PAIR.fullmatch(text):
        raise InputError(f"--map {short_quote(text)}: write it as prompt=question,target=answer")
    return dict(pair.split("=", 1) for pair in text.split(","))


def with_columns(row: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """A row with the columns under the names that the user gives them; a dot leads into a table."""
    found = dict(row)
    for ours, theirs in columns.items():
        name, *inner = theirs.split(".")
        if name not in row:
            known = ", ".join(map(str, row))[:200]
            raise InputError(f"no column {short_quote(name)} for {ours}; the row has {known}")
        value: Any = row[name]
        for key in inner:
            if not isinstance(value, dict) or key not in value:
                raise InputError(f"no {short_quote(theirs)} for {ours} in this row")
            value = value[key]
        found.pop(name, None)
        found[ours] = value
    return found


def dataset_table(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a dataset under the names of our cases; any other row as it is."""
    row = _with_question(row)
    choices_column = next((name for name in CHOICE_COLUMNS if name in row), None)
    question_column = next((name for name in USUAL_PROMPT_COLUMNS if name in row), None)
    if question_column is None or any(name in row for name in VERIFICATION_COLUMNS):
        return row
    answer_column = next((name for name in ("target", "ideal", *ANSWER_COLUMNS) if name in row), None)
    if answer_column is None:
        return row
    rest = {key: value for key, value in row.items() if key not in (question_column, answer_column, choices_column)}
    question, answer = row[question_column], row[answer_column]
    if choices_column is not None and isinstance(question, str):
        return rest | _multiple_choice(question, row[choices_column], answer)
    if answer_column in ("target", "ideal") and not isinstance(answer, list):
        return row
    context = rest.pop("context", None) if answer_column == "answers" else None
    if isinstance(context, str) and isinstance(question, str):
        question = f"{context}\n\n{question}"
    return {question_column: question, **rest, **_right_answer(answer)}


def _with_question(row: dict[str, Any]) -> dict[str, Any]:
    if any(name in row for name in USUAL_PROMPT_COLUMNS):
        return row
    name = next((name for name in PROMPT_COLUMNS if isinstance(row.get(name), str)), None)
    if name is None:
        return row
    return {"prompt": row[name], **{key: value for key, value in row.items() if key != name}}


def _right_answer(answer: Any) -> dict[str, Any]:
    """How a reply is compared with the right answer of a row."""
    if isinstance(answer, dict) and isinstance(answer.get("text"), list):
        answer = answer["text"]
    if isinstance(answer, bool):
        answer = "true" if answer else "false"
    if isinstance(answer, int | float):
        return {"checks": [{"type": "number", "value": answer, "which": "last"}]}
    if isinstance(answer, list):
        texts = list(dict.fromkeys(str(one) for one in answer if str(one).strip()))
        if not texts:
            raise InputError("no right answer in this row")
        return {"checks": [{"contains_any": texts}]} if len(texts) > 1 else {"target": texts[0]}
    if not isinstance(answer, str):
        raise InputError("its answer is not a text, a number or a list of them")
    if match := WORKED_ANSWER.search(answer):
        value = json.loads(_plain_number(match[1]))
        return {"checks": [{"type": "number", "value": value, "which": "last"}], "reference": answer}
    return {"target": answer}


def _plain_number(text: str) -> str:
    plain = text.replace(",", "").removeprefix("+")
    sign, digits = ("-", plain[1:]) if plain.startswith("-") else ("", plain)
    whole, point, part = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{part}"


def _multiple_choice(question: str, given: Any, answer: Any) -> dict[str, Any]:
    """A question with choices: the letters of the right ones are asked for."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            raise InputError("its choices are not a list") from None
    labels: list[Any] = list(LETTERS)
    if isinstance(given, dict):
        labels, given = given.get("label", labels), given.get("text")
    if not isinstance(given, list) or not 1 < len(given) <= len(LETTERS) or not isinstance(labels, list):
        raise InputError(f"its choices are not a list of 2 to {len(LETTERS)} texts")
    texts = [str(choice) for choice in given]
    right = sorted({_letter(one, texts, labels) for one in (answer if isinstance(answer, list) else [answer])})
    letters = LETTERS[: len(texts)]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(letters, texts, strict=True))
    prompt = MULTIPLE_CHOICE_PROMPT.format(letters=",".join(letters), question=question, choices=listed)
    pattern = r"(?i)ANSWER\s*:\s*\**\s*" + r"\s*,?\s*".join(right) + r"(?:[^A-Za-z,]|$)"
    return {"prompt": prompt, "checks": [{"regex": pattern}], "reference": f"ANSWER: {','.join(right)}"}


def _letter(answer: Any, texts: list[str], labels: list[Any]) -> str:
    """The letter of a choice that is named by its number from 0, its label, its letter or its text."""
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(texts):
        return LETTERS[answer]
    if isinstance(answer, str):
        if answer in labels[: len(texts)]:
            return LETTERS[labels.index(answer)]
        if answer in texts:
            return LETTERS[texts.index(answer)]
        if answer.strip().upper() in LETTERS[: len(texts)] and len(answer.strip()) == 1:
            return answer.strip().upper()
        if answer.strip().isdigit() and int(answer) < len(texts):
            return LETTERS[int(answer)]
    raise InputError(f"the answer {short_quote(str(answer))} is not one of the choices")
