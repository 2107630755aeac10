"""Files of rules that users add to ours, named by the environment."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from steelyard.errors import InputError
from steelyard.records import digest
from steelyard.text import printable

RULE_FILES_VARIABLE = "STEELYARD_RESPONSE_RULES"
"""Paths of TOML files, separated as in PATH, with a table `refusals`."""
MAX_RULE_FILE_BYTES = 1 << 20

AnyTables = TypeVar("AnyTables", bound=msgspec.Struct)


@cache
def rule_files() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The files and what they hold; one sentence for a file that cannot be used."""
    return tuple((path, _read(path)) for path in os.environ.get(RULE_FILES_VARIABLE, "").split(os.pathsep) if path)


def _read(path: str) -> dict[str, Any]:
    where = f"{printable(path)} (named by {RULE_FILES_VARIABLE})"
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > MAX_RULE_FILE_BYTES:
            raise InputError(f"{where} is not a file of at most {MAX_RULE_FILE_BYTES >> 20} MB")
        tables = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not TOML: {printable(str(error))[:200]}") from None
    if tables.keys() - {"refusals"}:
        raise InputError(f"{where} may have only the table [refusals]; see docs/classifying.md")
    return tables


def extra_refusal_rules(kind: type[AnyTables]) -> tuple[AnyTables, ...]:
    """What users' files add to our rules for refusals."""
    found = []
    for path, tables in rule_files():
        if "refusals" in tables:
            try:
                found.append(msgspec.convert(tables["refusals"], kind))
            except msgspec.ValidationError as error:
                raise InputError(f"{printable(path)}: refusals: {printable(str(error))[:300]}") from None
    return tuple(found)


def rules_version(version: str) -> str:
    """The version of a verifier, which users' rules are a part of: other rules give other verdicts."""
    files = rule_files()
    return f"{version} with rules {digest([tables for _, tables in files])[:12]}" if files else version
