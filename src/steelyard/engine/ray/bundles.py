"""Cases on their way to the nodes of a cluster: some at a time, under the digest of what is sent."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.engine.ray.node import surroundings
from steelyard.engine.ray.wire import Bundle, Needs, WorkspaceFile, needs
from steelyard.providers.agent import workspaces
from steelyard.records import Case, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.engine.verifiers import VerifierSet

TOGETHER = 64
"""Cases that travel together."""
TOGETHER_BYTES = 4 << 20
"""How long those may be altogether."""
KEPT = 128
"""Bundles that stay in the object store of the cluster."""


class Place(NamedTuple):
    """Where a case is to be found."""

    bundle: int
    within: int


class Packed(NamedTuple):
    """A bundle as it travels."""

    name: str
    content: bytes


class Bundles:
    """Which case travels in which bundle, and which of them are in the object store."""

    def __init__(self, cases: Sequence[Case], verifying: VerifierSet) -> None:
        self._verifying = verifying
        self._cases = [case for case in cases if not case.by_judges]
        self._places = {case.id: place for place, case in enumerate(self._cases)}
        self._starts = list(_starts(self._cases))
        self._surroundings: dict[Needs, tuple[str, ...]] = {}
        self.stored: OrderedDict[int, str] = OrderedDict()
        """The digests of those in the object store, those used last at the end."""

    def place(self, case: Case) -> Place:
        """Where a case travels."""
        at = self._places[case.id]
        bundle = bisect_right(self._starts, at) - 1
        return Place(bundle, at - self._starts[bundle])

    def packed(self, bundle: int) -> Packed:
        """A bundle as it is now; raises InputError when something that its cases name is not there any more."""
        start, *rest = self._starts[bundle : bundle + 2]
        content = msgspec.json.encode(self.bundle(self._cases[start : rest[0] if rest else None]))
        return Packed(digest(content), content)

    def bundle(self, cases: Iterable[Case]) -> Bundle:
        """Some cases with what they name on this disk."""
        made = [self._from_anywhere(case) for case in cases]
        paths = {path for case in made for path in (case.verify.python, case.expectations.custom_check) if path}
        files = {file for path in paths if (file := path.rpartition(":")[0]).endswith(".py")}
        named = {case.workspace for case in made if case.workspace}
        return Bundle(
            cases=tuple(made),
            surroundings=tuple(map(self._surrounding, made)),
            checks={file: Path(file).read_bytes() for file in sorted(files) if Path(file).is_file()},
            workspaces={
                workspace: {
                    name: WorkspaceFile(content=file.content, mode=file.mode)
                    for name, file in workspaces.workspace_files(workspace).items()
                }
                for workspace in sorted(named)
            },
        )

    def _from_anywhere(self, case: Case) -> Case:
        """The case with a path that means the same wherever one stands."""
        if not case.verify.python_env:
            return case
        return replace(case, verify=replace(case.verify, python_env=str(Path(case.verify.python_env).absolute())))

    def _surrounding(self, case: Case) -> tuple[str, ...]:
        key = needs(case)
        if key not in self._surroundings:
            self._surroundings[key] = surroundings(self._verifying.of(case), case)
        return self._surroundings[key]


def _starts(cases: Sequence[Case]) -> Iterator[int]:
    """The places of the first cases of bundles; one with a workspace, which may be large, travels alone."""
    count, size = TOGETHER, 0
    for place, case in enumerate(cases):
        own = len(msgspec.json.encode(case))
        if count == TOGETHER or size + own > TOGETHER_BYTES or case.workspace:
            yield place
            count, size = 0, 0
        count, size = TOGETHER if case.workspace else count + 1, size + own
