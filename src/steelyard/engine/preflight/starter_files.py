"""The files of a new folder of evals, for what is there: a key, a server on this machine, or recorded replies."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from steelyard.engine.preflight.forecast import forecast, forecast_text
from steelyard.engine.preflight.starting_point import StartingPoint, starting_point
from steelyard.errors import InputError, SteelyardError
from steelyard.evalsets import load, starter

FIRST_SAMPLES = 5
"""Attempts per case of a first run that asks a model."""


class StarterFolder(NamedTuple):
    """What was written, and what to do with it."""

    written: tuple[Path, ...]
    asks: str
    """What a first run asks, why, and what that costs at most."""
    next_commands: tuple[str, ...]
    with_key: str = ""
    """The command for somebody who gets a key later."""


def write_starter(folder: Path, environment: Mapping[str, str]) -> StarterFolder:
    """Write an eval set and settings; raises an InputError, and writes nothing, if one of the files exists."""
    found = starting_point(environment)
    evals = Path("evals", "starter.toml" if found else "python-basics.toml")
    model = found.model if found else "replay:recordings/python-basics.jsonl.gz"
    files = {
        Path("evals", "starter.toml"): starter.starter().encode(),
        Path("steelyard.toml"): starter.starter_settings(model, found.base_url if found else "").encode(),
        Path("eval-set.schema.json"): starter.SCHEMA_FILE.read_bytes(),
    }
    if not found:
        recording = starter.DEMO_FOLDER / "python-basics.jsonl.gz"
        files[evals] = (starter.DEMO_FOLDER / "python-basics.toml").read_bytes()
        files[Path("recordings", recording.name)] = recording.read_bytes()
    standing = [str(folder / path) for path in files if (folder / path).exists()]
    if standing:
        raise InputError(
            f"{', '.join(standing)}: already exists; nothing was written; name another folder, such as: steelyard init more"
        )
    for path, content in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        except OSError as error:
            raise InputError(f"{folder / path}: {error.strerror}") from None
    enter = [] if folder.absolute() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    samples = f" --samples {FIRST_SAMPLES}" if found else ""
    return StarterFolder(
        tuple(folder / path for path in files),
        _first_run(found, folder / evals),
        (*enter, f"steelyard validate {evals}", f"steelyard run {evals}{samples}"),
        "" if found else "OPENAI_API_KEY=... steelyard run evals/starter.toml -m openai/gpt-5-mini",
    )


def _first_run(found: StartingPoint | None, evals: Path) -> str:
    """What a first run asks, why, and what that costs at most."""
    if found is None:
        return "nobody and costs nothing: no key and no server with a model was found, so it verifies recorded replies"
    if found.is_local:
        return f"{found.model} on this machine, because {found.found}, and costs nothing"
    try:
        cases = load([evals]).cases
        planned = forecast(
            cases, models=[found.model], samples=FIRST_SAMPLES, k=(1,), parameters={}, system="", base_url=""
        )
    except SteelyardError as error:
        return f"{found.model}, because {found.found}; what that costs is not known: {error}"
    return f"a model, because {found.found}: {forecast_text(planned).rstrip()}"
