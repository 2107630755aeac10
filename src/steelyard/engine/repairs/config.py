"""The two files that say which repairs to evaluate: evaluation_config.json and repair_config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from steelyard.engine.repairs.reader import RepairMode
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.records import Record
from steelyard.text import printable, short_quote

DEFAULT_CONFIG_FILE = Path("evaluation_config.json")
REPAIR_CONFIG_DEFAULTS = {"fixes_dir": "llm_responses", "output_dir": "llms_fixes_results"}
"""What repair_config.json means where it names no folders."""
PIPELINE_KEYS = frozenset({"use_parallel", "parallel_workers", "debug_matching", "validation_timeout_seconds", "slurm"})
"""Keys of repair_config.json about how its own pipeline runs."""

Folder = Annotated[str, msgspec.Meta(pattern=r"\A[^\0\ud800-\udfff]+\Z")]
Size = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class EvaluationConfig(Record, frozen=True, kw_only=True):
    """What evaluation_config.json says, or repair_config.json in its own words."""

    fixes_dir: Folder
    """The folder of the fixes, one CSV file per model."""
    output_dir: Folder
    """Where the results go; made when it is not there."""
    clones_dir: Folder = "clones"
    """The repositories that the repairs belong to, each in a folder named after the project; only read."""
    results_dir: Folder | None = None
    """Where `<model>_outcomes.csv` is looked for before output_dir."""
    k_values: Annotated[tuple[Size, ...], msgspec.Meta(min_length=1)] = (1, 5, 10)
    models: tuple[Name, ...] = ()
    """Only files whose name holds one of these, to the letter; empty for all."""
    generate_synthetic_data: bool = False
    """Whether synthetic outcomes are written to fixes_dir first."""
    data_type: Literal["all", "synthetic", "real"] = "all"
    """Whether only files with `synthetic` in their name count, or only those without."""
    problems_dataset: Folder | None = None
    """The list of problems; without it, problems.csv beside the output or the fixes."""
    repair_mode: RepairMode = "auto"
    """Which repairs are judged where a row has both: those of the whole file, or those of a block."""


EXPECTED_VALUES = {
    "fixes_dir": 'the path of a folder, such as "llms_fixes_results"',
    "output_dir": 'the path of a folder, such as "evaluation/data"',
    "clones_dir": 'the path of a folder, such as "clones"',
    "results_dir": "the path of a folder, or null",
    "k_values": "whole numbers from 1 to 1000000000, such as [1, 5, 10]",
    "models": 'parts of file names, such as ["gemini"], or [] for all',
    "generate_synthetic_data": "true or false",
    "data_type": '"all", "synthetic" or "real"',
    "problems_dataset": 'the path of a CSV file, such as "problems/problems.csv"',
    "repair_mode": '"auto", "block" or "file"',
}


MAX_CONFIG_BYTES = 16 << 20
"""Bytes of a configuration that are read at most."""


def read_config(path: Path) -> tuple[EvaluationConfig, list[Problem]]:
    """The config, with warnings about keys that are not known."""
    where = printable(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
        if len(content) > MAX_CONFIG_BYTES:
            raise InputError(f"{where}: larger than {MAX_CONFIG_BYTES >> 20} MB, which is not a configuration file")
        table = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}; name the configuration file with --config") from None
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg} in column {error.colno}"
        raise InputError([Problem(where, error.lineno, what)]) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8: {error.reason} at byte {error.start + 1}") from None
    except (RecursionError, ValueError):
        raise InputError(f"{where}: not a config: nested too deeply, or a number too long") from None
    if not isinstance(table, dict):
        raise InputError(f'{where}: expected an object with "fixes_dir" and "output_dir", or with "responses"')
    table, ignored = _evaluation_table(table)
    known = {field.name: field for field in msgspec.structs.fields(EvaluationConfig)}
    warnings = [
        Problem(where, 0, f"unknown key {short_quote(key)} ({did_you_mean(key[:80], known)})", fatal=False)
        for key in [*table, *ignored]
        if key not in known
    ]
    errors = []
    for name, field in known.items():
        if name not in table:
            if field.required:
                errors.append(Problem(where, 0, f'no "{name}"; expected {EXPECTED_VALUES[name]}'))
            continue
        try:
            msgspec.convert(table[name], field.type)
        except (msgspec.ValidationError, UnicodeEncodeError):
            what = f'"{name}": expected {EXPECTED_VALUES[name]}, got {brief_json(table[name])}'
            errors.append(Problem(where, 0, what))
    if errors:
        raise InputError(errors)
    return msgspec.convert({name: table[name] for name in known if name in table}, EvaluationConfig), warnings


def _evaluation_table(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The config under the names of evaluation_config.json, and the unknown keys."""
    if "fixes_dir" in table or not {"responses", "input_dir"} & table.keys():
        return table, []
    responses = table.get("responses", {})
    if not isinstance(responses, dict):
        return {**table, "fixes_dir": responses}, []
    rest = {key: value for key, value in table.items() if key not in {"responses", "input_dir"} | PIPELINE_KEYS}
    named = {
        key: value for key, value in (("input_dir", table.get("input_dir")), *responses.items()) if value is not None
    }
    found = {**REPAIR_CONFIG_DEFAULTS, **rest}
    found |= {"fixes_dir": named.pop("input_dir")} if "input_dir" in named else {}
    found |= {"models": named.pop("models")} if "models" in named else {}
    return found, list(named)


def brief_json(value: Any) -> str:
    """A value of the config as it is there, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return printable(text if len(text) <= 80 else f"{text[:80]}...")
