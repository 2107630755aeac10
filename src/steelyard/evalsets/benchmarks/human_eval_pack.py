"""Problems of HumanEvalPack and HumanEval-X in JavaScript, Java, C++ and Go as cases."""

from __future__ import annotations

import re
from typing import Any

from steelyard.errors import InputError
from steelyard.languages.table import Language, languages_of

THROWING_ASSERT = "\nconsole.assert = (holds, ...said) => { if (!holds) throw new Error(['assertion failed', ...said].join(': ')); };\n"
"""An assertion of console only prints that it does not hold."""
DROPPED_KEYS = frozenset(
    {
        *("prompt", "declaration", "canonical_solution", "buggy_solution", "test"),
        *("import", "test_setup", "example_test", "signature", "docstring", "instruction", "entry_point", "task_id"),
    }
)
GO_IMPORT = re.compile(r'^\s*(?:import\s+)?"([\w./-]+)"[ \t]*\n', re.MULTILINE)


def human_eval_pack_table(row: dict[str, Any]) -> dict[str, Any] | None:
    """A problem in one of these languages under the names of our cases; None for any other row."""
    task = row.get("task_id")
    language = languages_of("human_eval_pack").get(task.partition("/")[0]) if isinstance(task, str) else None
    if language is None or not {"prompt", "declaration", "test"} <= row.keys() or "verify" in row:
        return None
    texts = {key: row.get(key, "") for key in ("prompt", "declaration", "test", "import", "test_setup")}
    solutions = {key: row[key] for key in ("canonical_solution", "buggy_solution") if row.get(key)}
    if not all(isinstance(text, str) for text in (*texts.values(), *solutions.values())):
        raise InputError("its prompt, declaration, solutions and test are not texts")
    head = _head(texts)
    case = {
        "id": task,
        "language": language.fence,
        "prompt": f"Complete this {language.name} function. Answer with one code block that holds the whole "
        f"{'class' if language.fence == 'java' else 'function'}, with the imports and helpers it needs, and without tests."
        f"\n\n```{language.fence}\n{texts['prompt'].strip()}\n```\n",
        "timeout_secs": language.timeout_secs,
        "follows_reference": True,
        "verify": _verify(language, texts, "".join((head, *solutions.values()))),
        "metadata": {key: value for key, value in row.items() if key not in DROPPED_KEYS},
    }
    for key, name in (("canonical_solution", "reference"), ("buggy_solution", "counterexample")):
        if key in solutions:
            case[name] = f"```{language.fence}\n{head}{solutions[key].rstrip()}\n```"
    return case


def _head(texts: dict[str, str]) -> str:
    """What a solution continues: the prompt, because helpers may stand only there; the declaration, where the prompt does not have it."""
    prompt, declaration = texts["prompt"], texts["declaration"]
    if "".join(declaration.strip().rpartition("\n")[2].split()) in "".join(prompt.split()):
        return f"{prompt.strip()}\n"
    if texts["import"].strip() and "import" not in declaration:
        return f"{texts['import'].strip()}\n\n{declaration}"
    return declaration


def _verify(language: Language, texts: dict[str, str], program: str) -> dict[str, Any]:
    test = texts["test"]
    if language.fence == "js":
        test = THROWING_ASSERT + test
    elif language.fence == "go":
        test = _go_tests(texts["test_setup"] or 'package main\n\nimport (\n    "testing"\n)\n', test)
    return language.verify(test, prompt=f"{texts['declaration']}\n{texts['prompt']}", program=program)


def _go_tests(setup: str, test: str) -> str:
    """The tests with their imports, without what only the answer imports: Go refuses an import that is not used."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if re.search(rf"\b{re.escape(found[1].rpartition('/')[2])}\.", test) else ""

    return f"{GO_IMPORT.sub(kept, setup).strip()}\n\n{test}"
