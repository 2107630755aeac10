"""Modules of repositories on this disk, each open while repairs of it are verified."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import VerifierError, wrap_exceptions
from steelyard.records import Case, Target, VerifierSettings, digest
from steelyard.text import printable
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.program import TerraformProgram, find_terraform
from steelyard.verifiers.terraform.tree import ModuleSnapshot, read_module_snapshot

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox
    from steelyard.verifiers.terraform.diagnostics import ValidateOutput

REPAIR_RULES_VERSION = 2
"""The version of the rules by which repairs are judged; another number makes every verdict owed again."""
FOLDER_SEPARATOR = "//"
"""Stands between the folder of a module and a file as seen from it, as in the source of a module."""


class TerraformSettings(VerifierSettings, frozen=True, kw_only=True):
    """What a case says to the verifier `terraform`."""

    answer: str = ""
    """The file that the answer is written to; for a module of a repository, its folder and the file as seen from there."""
    files: dict[str, str] = {}
    """Other files by name; for a repair also the file to be repaired."""
    lines: tuple[int, int] | None = None
    """The first and the last line of the file to be repaired that the answer replaces; all when left out."""
    target: Target | None = None
    """The diagnostic that the answer must remove."""
    syntax_only: bool = False
    """Look at the syntax alone, by a library; that is less than validating."""


def module_digest(tree: ModuleSnapshot, program: TerraformProgram) -> str:
    """A digest of all that verdicts on repairs of a module depend on, except the repairs."""
    files = sorted(tree.files.items())
    return digest(
        REPAIR_RULES_VERSION, program.version, tree.folder, files, sorted(tree.packages), sorted(tree.left_out)
    )


def path_in_module(tree: ModuleSnapshot, filename: str) -> str | None:
    """Terraform's name for a file that is named relative to the module or to the repository; None if there is no such file."""
    candidates = (posixpath.normpath(posixpath.join(tree.folder, filename)), posixpath.normpath(filename))
    path = next((path for path in candidates if path in tree.files), None)
    return None if path is None else posixpath.relpath(path, tree.folder)


class DiskModule:
    """A module while repairs of it are verified."""

    def __init__(self, tree: ModuleSnapshot, copies: ModuleCopyPool) -> None:
        self.tree = tree
        self.copies = copies
        self.users = 0
        self._original: asyncio.Task[ValidateOutput | VerifierError] | None = None

    @property
    def is_begun(self) -> bool:
        """Whether Terraform has been asked about the original."""
        return self._original is not None

    async def original(self) -> ValidateOutput:
        """What Terraform says of the module as it is: asked once, even where the answer is an error."""
        if self._original is None:
            self._original = asyncio.create_task(self._validated_original())
        found = await asyncio.shield(self._original)
        if isinstance(found, VerifierError):
            raise found
        return found

    @property
    def is_given_up(self) -> bool:
        """Whether the original is known to be impossible to validate."""
        original = self._original
        return original is not None and original.done() and isinstance(original.result(), VerifierError)

    async def _validated_original(self) -> ValidateOutput | VerifierError:
        try:
            with wrap_exceptions(VerifierError):
                return (await self.copies.validated()).output
        except VerifierError as error:
            return VerifierError(f"the original cannot be validated: {error}")


_ModuleKey = tuple[str, str, float]


class DiskModules:
    """The modules that are open now; replies come module by module, so few are."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._open: dict[_ModuleKey, DiskModule] = {}

    @asynccontextmanager
    async def opened(self, case: Case) -> AsyncIterator[DiskModule]:
        """The module of a case; its copies stay warm until another module is opened."""
        # a repair may name files of its own clone that are not part of the module
        key = case.workspace, case.verify.workspace_digest, case.timeout_secs
        if key not in self._open:
            await self._close([other for other, module in self._open.items() if not module.users])
        module = self._open.get(key) or self._open.setdefault(key, self._read(case))
        module.users += 1
        try:
            yield module
        finally:
            module.users -= 1

    def _read(self, case: Case) -> DiskModule:
        program = find_terraform()
        folder = TerraformSettings.of(case).answer.partition(FOLDER_SEPARATOR)[0]
        tree = read_module_snapshot(Path(case.workspace), folder)
        if module_digest(tree, program) != case.verify.workspace_digest:
            where = printable(f"{case.workspace}{FOLDER_SEPARATOR}{tree.folder}")
            raise VerifierError(
                f"{where}: the module or Terraform changed since the case was made; run steelyard repairs again"
            )
        return DiskModule(tree, ModuleCopyPool(tree, self._sandbox, program, seconds=case.timeout_secs))

    async def close(self) -> None:
        await self._close(list(self._open))

    async def _close(self, keys: list[_ModuleKey]) -> None:
        modules = [self._open.pop(key) for key in keys]
        for module in modules:
            await module.copies.close()
