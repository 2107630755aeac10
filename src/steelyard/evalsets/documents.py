"""Cases in one document of YAML or JSON: a list of them, a config of promptfoo, or a task of ProjectScylla."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steelyard.evalsets.benchmarks.scylla_tasks import is_scylla_task, scylla_task_drafts
from steelyard.evalsets.jsonl import MAX_CASE_LIST_BYTES, decoded_json, list_drafts, table_drafts
from steelyard.evalsets.promptfoo.config import config_drafts, is_config
from steelyard.evalsets.schema import ByteSource, Draft, KeyPath, ProblemCollector, source_text
from steelyard.evalsets.yaml import MAX_EVAL_SET_YAML_VALUES, yaml_document

MAX_YAML_EVAL_SET_BYTES = 16 << 20
"""Bytes of a YAML file; its library is slow."""
LIST_KEYS = ("cases", "data", "samples", "examples", "rows", "questions", "eval_examples", "instances")
"""The keys under which documents of one table have their list of cases."""


def yaml_drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of a YAML file."""
    text = source_text(content, MAX_YAML_EVAL_SET_BYTES, path, problems) or ""
    document = yaml_document(text, path, problems, MAX_EVAL_SET_YAML_VALUES) if text.strip() else None
    if document is not None:
        yield from document_drafts(document.value, path, document.line, problems, content)


def json_drafts(content: ByteSource, path: str, problems: ProblemCollector) -> Iterator[Draft]:
    """The cases of a JSON file: a list of them, or one table."""
    raw = content.read(MAX_CASE_LIST_BYTES + 1).removeprefix(b"\xef\xbb\xbf")
    if len(raw) > MAX_CASE_LIST_BYTES:
        problems.error(path, 0, f"larger than {MAX_CASE_LIST_BYTES >> 20} MB; write the cases as JSONL, one per line")
    elif raw.lstrip().startswith(b"["):
        yield from list_drafts(raw, path, problems, content)
    elif raw.strip() and (document := decoded_json(raw, path, 1, problems, Any)) is not None:
        yield from document_drafts(document, path, lambda _: 0, problems, content)


def document_drafts(
    document: Any, path: str, line: Callable[[KeyPath], int], problems: ProblemCollector, content: object = None
) -> Iterator[Draft]:
    """The cases of a document that was read."""
    if isinstance(document, dict) and is_config(document):
        yield from config_drafts(document, path, line, problems)
        return
    if is_scylla_task(document):
        yield from scylla_task_drafts(document, path, line, problems)
        return
    keys: KeyPath = ()
    cases = document
    if isinstance(document, dict):
        key = next((key for key in LIST_KEYS if isinstance(document.get(key), list)), None)
        keys, cases = ((key,), document[key]) if key else ((), None)
    if not isinstance(cases, list):
        problems.error(
            path,
            1,
            "not a list of cases; write [{...}, {...}], a table with a list under cases, or a config of promptfoo with prompts",
        )
        return
    for number, table in enumerate(cases):
        yield from table_drafts(table, path, line((*keys, number)), problems, content)
