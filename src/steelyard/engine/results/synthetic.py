"""Synthetic outcomes with known rates, to check that the estimates recover them."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from steelyard.errors import InputError, Problem
from steelyard.records import Record
from steelyard.store.files import AtomicFiles, explain_write_errors
from steelyard.text import printable, short_quote

SYNTHETIC_PROBLEMS_FILE, SYNTHETIC_TRUTH_FILE, SYNTHETIC_MANIFEST_FILE = (
    "problems.csv",
    "synthetic_truth.csv",
    "synthetic.json",
)
DEFAULT_SYNTHETIC_RATES: Mapping[str, float] = MappingProxyType({"gemini": 0.75, "chatgpt4.1": 0.6, "baseline": 0.3})
"""The models where the user names none; their rates are synthetic, like their outcomes."""
RATE_STEPS = 100
"""Rates are whole hundredths."""
RATE_SPREAD = 4
"""Rates are spread as Beta(4m, 4(1-m)) around their mean m: some problems are easy and some nearly hopeless."""
MAX_SYNTHETIC_PROBLEMS, MAX_SYNTHETIC_SAMPLES = 10_000_000, 1_000_000
"""More than a test needs, and as much as memory holds."""
MAX_SYNTHETIC_MODEL_NAME_BYTES = 200
"""Bytes of a model's name: a file system takes 255 for a file's."""


class SyntheticOutcomes(NamedTuple):
    """The synthetic outcomes and their files."""

    rates: Mapping[str, tuple[float, ...]]
    """By model: how likely one attempt at each problem is to succeed."""
    written: tuple[Path, ...]

    def pass_at(self, model: str, k: int) -> float:
        """The true pass@k: the mean over the problems of the chance that one of k attempts succeeds."""
        rates = self.rates[model]
        return sum(1 - (1 - rate) ** k for rate in rates) / len(rates)


class _SyntheticManifest(Record, frozen=True, kw_only=True):
    """The digests of the files that we wrote into a folder, by name."""

    files: dict[str, str]
    writing: dict[str, str] = {}
    """What is about to take its place; not empty only while that happens, or where it was cut off."""


def synthesize(
    folder: Path,
    *,
    problems: int = 100,
    samples: int = 10,
    models: Mapping[str, float] = DEFAULT_SYNTHETIC_RATES,
    seed: int = 0,
    oids: Sequence[str] | None = None,
) -> SyntheticOutcomes:
    """Write problems and each model's outcomes; the same arguments give the same bytes on every machine.

    Every model's rates average the rate it was given, to the nearest hundredth of one problem; a problem that is hard
    for one model is hard for all. With `oids` the outcomes are those of problems that are there already, and no
    problems are written. A file that is not as we wrote it stops everything before anything is written.
    """
    if wrong := list(_argument_problems(problems, samples, models, oids)):
        raise InputError(wrong)
    names = dict.fromkeys(oids) if oids is not None else {_oid(number): None for number in range(1, problems + 1)}
    rates = {model: _rates(len(names), rate, seed) for model, rate in models.items()}
    files: dict[str, Iterable[str]] = {}
    if oids is None:
        files[SYNTHETIC_PROBLEMS_FILE] = _problem_lines(problems)
    for model in models:
        files[f"{model}_synthetic_fixes.csv"] = _fixes_lines(model, names, rates[model], samples, seed)
    files[SYNTHETIC_TRUTH_FILE] = _truth_lines(names, rates)
    ours = unchanged_files(folder)
    if foreign := [
        name for name in (*files, SYNTHETIC_MANIFEST_FILE) if os.path.lexists(folder / name) and name not in ours
    ]:
        what = "not as `steelyard synth` wrote it, so it stays; move it away or choose another folder"
        raise InputError(Problem(printable(str(folder / name)), 0, what) for name in foreign)
    with explain_write_errors(folder), AtomicFiles() as fresh:
        folder.mkdir(parents=True, exist_ok=True)
        digests = {name: fresh.write_and_digest(folder / name, lines) for name, lines in files.items()}
        ours.pop(SYNTHETIC_MANIFEST_FILE, None)
        # a file that takes its place must be known as ours even if we are killed before the next one does
        _write_manifest(folder, _SyntheticManifest(files=ours, writing=digests))
        fresh.finish()
        _write_manifest(folder, _SyntheticManifest(files=ours | digests))
    return SyntheticOutcomes(rates=rates, written=tuple(folder / name for name in (*files, SYNTHETIC_MANIFEST_FILE)))


MAX_MANIFEST_BYTES = 16 << 20


def unchanged_files(folder: Path) -> dict[str, str]:
    """The files of a folder that are as `synthesize` wrote them, each with its digest; empty if it never wrote."""
    found = _digest(folder / SYNTHETIC_MANIFEST_FILE)
    if found is None:
        return {}
    try:
        with (folder / SYNTHETIC_MANIFEST_FILE).open("rb") as file:
            # a longer file is not our manifest, and its first part is not JSON
            manifest = msgspec.json.decode(file.read(MAX_MANIFEST_BYTES), type=_SyntheticManifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    ours = {SYNTHETIC_MANIFEST_FILE: found}
    for name in {**manifest.files, **manifest.writing}:
        if Path(name).name != name or not name.isprintable():
            continue
        digest = _digest(folder / name)
        if digest is not None and digest in (manifest.files.get(name), manifest.writing.get(name)):
            ours[name] = digest
    return ours


def _argument_problems(
    problems: int, samples: int, models: Mapping[str, float], oids: Sequence[str] | None
) -> Iterator[Problem]:
    if (problems if oids is None else len(oids)) < 1:
        yield Problem("", 0, "problems: there must be at least one")
    if problems > MAX_SYNTHETIC_PROBLEMS:
        yield Problem("", 0, f"problems: expected at most {MAX_SYNTHETIC_PROBLEMS:,}, got {problems:,}")
    if not 1 <= samples <= MAX_SYNTHETIC_SAMPLES:
        limit = "at least 1" if samples < 1 else f"at most {MAX_SYNTHETIC_SAMPLES:,}"
        yield Problem("", 0, f"samples: expected {limit}, got {samples:,}")
    if not models:
        yield Problem("", 0, "models: there must be at least one, such as strong=0.8")
    seen: dict[str, str] = {}
    for model, rate in models.items():
        where = f"model {short_quote(model)}"
        if model.startswith(".") or model.strip() != model or not model or not model.isprintable() or "/" in model:
            yield Problem(
                where, 0, "it names a file, so it cannot be empty, hidden, or contain slashes or control characters"
            )
        elif len(model.encode()) > MAX_SYNTHETIC_MODEL_NAME_BYTES:
            yield Problem(where, 0, f"names a file, so it cannot be longer than {MAX_SYNTHETIC_MODEL_NAME_BYTES} bytes")
        # some file systems take them for one
        elif (twin := seen.setdefault(model.casefold(), model)) != model:
            yield Problem(where, 0, f"names the same file as {short_quote(twin)}")
        if not 0 <= rate <= 1:
            yield Problem(where, 0, f"its rate must be between 0 and 1, got {rate}")


def _filename(number: int) -> str:
    return f"module-{number}/main.tf"


def _oid(number: int) -> str:
    line = number % 97 + 1
    identity = f"{_filename(number)}|{line}|{line + number % 7}"
    return hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()[:12]


def _random_stream(seed: int, purpose: str) -> random.Random:
    """Uniform numbers for one purpose: adding or removing a model does not change the numbers of the others."""
    start = int.from_bytes(hashlib.sha256(f"{seed} {purpose}".encode()).digest(), "big")
    return random.Random(start)  # noqa: S311  made-up outcomes are no secret


def _rates(problems: int, mean: float, seed: int) -> tuple[float, ...]:
    """A rate for each problem, in whole steps, whose mean is as given to the nearest step of one problem.

    The share of one colour in a Pólya urn tends to a Beta distribution (Eggenberger and Pólya 1923, "Über die
    Statistik verketteter Vorgänge", ZAMM 3:279-289), and drawing from it takes nothing but sums, products and
    comparisons, which are the same on every machine. Every model sees the same draws: that is what makes a problem
    hard for all.
    """
    draw = _random_stream(seed, "difficulty").random
    counts = []
    for _ in range(problems):
        passes = 0
        for step in range(RATE_STEPS):
            passes += draw() * (RATE_SPREAD + step) < RATE_SPREAD * mean + passes
        counts.append(passes)
    short = round(mean * RATE_STEPS * problems) - sum(counts)
    change = 1 if short > 0 else -1
    while short:
        for place, count in enumerate(counts):
            if short and 0 <= count + change <= RATE_STEPS:
                counts[place] += change
                short -= change
    return tuple(count / RATE_STEPS for count in counts)


def _csv_line(*cells: str | int | float | None) -> str:
    """One line of a CSV file; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _problem_lines(problems: int) -> Iterator[str]:
    yield _csv_line("oid", "filename")
    for number in range(1, problems + 1):
        yield _csv_line(_oid(number), _filename(number))


def _fixes_lines(model: str, oids: Iterable[str], rates: Iterable[float], samples: int, seed: int) -> Iterator[str]:
    draw = _random_stream(seed, f"outcomes of {model}").random
    yield _csv_line("oid", "iteration_id", "plausible_fix")
    for oid, rate in zip(oids, rates, strict=True):
        cell = _csv_line(oid).removesuffix("\n")
        yield "".join(f"{cell},{number},{draw() < rate}\n" for number in range(1, samples + 1))


def _truth_lines(oids: Iterable[str], rates: Mapping[str, Iterable[float]]) -> Iterator[str]:
    yield _csv_line("LLM", "oid", "rate")
    for model, own in rates.items():
        for oid, rate in zip(oids, own, strict=True):
            yield _csv_line(model, oid, rate)


def _write_manifest(folder: Path, manifest: _SyntheticManifest) -> None:
    text = msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=2).decode() + "\n"
    with AtomicFiles() as fresh:
        fresh.write(folder / SYNTHETIC_MANIFEST_FILE, [text])
        fresh.finish()


def _digest(path: Path) -> str | None:
    """The digest of a plain file; None for anything else, including a link to one."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
