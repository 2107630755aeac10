"""The cases of a run in bundles, each with the files that its cases name, as they travel to the nodes of a cluster."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.ray.node import surroundings
from steelyard.engine.ray.wire import Bundle, Needs, needs
from steelyard.providers.agent import workspaces
from steelyard.records import Case

if TYPE_CHECKING:
    from steelyard.engine.verifiers import VerifierSet

MAX_BUNDLE_CASES = 64
MAX_BUNDLE_BYTES = 4 << 20


class BundlePlace(NamedTuple):
    """Which bundle a case travels in, and where in it."""

    bundle: int
    place: int


class Bundles:
    """The cases of a run, divided into bundles."""

    def __init__(self, cases: Sequence[Case], verifiers: VerifierSet) -> None:
        self._verifiers = verifiers
        self._cases = [case for case in cases if case.has_verifier]
        self._places = {case.id: place for place, case in enumerate(self._cases)}
        self._starts = list(_starts(self._cases))
        self._surroundings: dict[Needs, tuple[str, ...]] = {}

    def place(self, case: Case) -> BundlePlace:
        """Where a case travels."""
        at = self._places[case.id]
        bundle = bisect_right(self._starts, at) - 1
        return BundlePlace(bundle, at - self._starts[bundle])

    def packed(self, bundle: int) -> bytes:
        """A bundle as it travels; raises InputError when a file that its cases name is gone."""
        start, *rest = self._starts[bundle : bundle + 2]
        return msgspec.json.encode(self.bundle(self._cases[start : rest[0] if rest else None]))

    def bundle(self, cases: Iterable[Case]) -> Bundle:
        """Some cases with the files that they name."""
        made = [_with_absolute_paths(case) for case in cases]
        paths = {path for case in made for path in (case.verify.python, case.expectations.custom_check) if path}
        files = {file for path in paths if (file := path.rpartition(":")[0]).endswith(".py")}
        named = {case.workspace for case in made if case.workspace}
        return Bundle(
            cases=tuple(made),
            surroundings=tuple(map(self._surrounding, made)),
            checks={file: Path(file).read_bytes() for file in sorted(files) if Path(file).is_file()},
            workspaces={workspace: dict(workspaces.workspace_files(workspace)) for workspace in sorted(named)},
        )

    def _surrounding(self, case: Case) -> tuple[str, ...]:
        key = needs(case)
        if key not in self._surroundings:
            self._surroundings[key] = surroundings(self._verifiers.of(case), case)
        return self._surroundings[key]


def _with_absolute_paths(case: Case) -> Case:
    if not case.verify.python_env:
        return case
    return replace(case, verify=replace(case.verify, python_env=str(Path(case.verify.python_env).absolute())))


def _starts(cases: Sequence[Case]) -> Iterator[int]:
    """The places of the first cases of bundles; one with a workspace, which may be large, travels alone."""
    count, size = MAX_BUNDLE_CASES, 0
    for place, case in enumerate(cases):
        own = len(msgspec.json.encode(case))
        if count == MAX_BUNDLE_CASES or size + own > MAX_BUNDLE_BYTES or case.workspace:
            yield place
            count, size = 0, 0
        count, size = MAX_BUNDLE_CASES if case.workspace else count + 1, size + own
