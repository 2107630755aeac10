"""Versions of one module, each validated once, in private copies that stay warm in between.

`init` is run only where providers are installed from a folder of plugins, and then once in each copy for all versions that
need the same providers. For local modules it is not needed: their places are read from the sources, and are written
to a manifest as `init` would do it. So a module whose very error keeps `init` from working can be validated all the same.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from steelyard.errors import VerifierError
from steelyard.records import digest
from steelyard.verifiers.terraform.program import PLUGIN_FOLDER_VARIABLES
from steelyard.verifiers.terraform.tree import (
    DEPENDENCY_LOCK_FILE,
    MODULES_MANIFEST_FILE,
    InstallRequirements,
    ModuleSnapshot,
    install_requirements,
    short_provider_address,
    version_files,
)

if TYPE_CHECKING:
    from steelyard.protocols import Sandbox, Workspace
    from steelyard.verifiers.terraform.diagnostics import ValidateOutput
    from steelyard.verifiers.terraform.program import TerraformProgram, TimedValidateOutput

COPY_REPOSITORY_FOLDER = "tree"
"""The folder in a workspace that holds the repository."""
COPY_BATCH_FILES = 500
"""Files that are written together."""
LINK_PACKAGES_SCRIPT = 'while [ "$#" -gt 1 ]; do mkdir -p "$(dirname "$1")" && ln -s "$2" "$1" || exit 1; shift 2; done'
RESET_INIT_SCRIPT = f'cd -- "$1" && rm -rf .terraform/providers .terraform/plugins {DEPENDENCY_LOCK_FILE}'
"""Takes back what an `init` for another version installed."""
MISSING_PLUGIN_SUMMARIES = frozenset(
    {
        "Could not load plugin",
        "Could not satisfy plugin requirements",
        "Failed to instantiate provider",
        "Failed to load plugin schemas",
        "Inconsistent dependency lock file",
        "Missing required provider",
        "Plugin did not respond",
        "Plugin error",
        "Required plugins are not installed",
    }
)
"""Messages of validate when a provider kept it from checking: none of these is about the configuration."""
PROVIDER_LINE = re.compile(r'^.*?\bprovider "?(?P<address>(?:[^\s"/]+/)?[\w-]+/[\w-]+).*?$', re.MULTILINE)
"""A line that names a provider by its address."""
MISSING_FILE_DETAIL = re.compile(r"no (?:such )?file ")
MISSING_MODULE_SUMMARIES = frozenset(
    {"Module not installed", "Module source has changed", "Module version requirements have changed"}
)


class ModuleCopyPool:
    """Private copies of a module, as many as are asked for at a time; close them when the module is no longer needed."""

    def __init__(
        self, tree: ModuleSnapshot, sandbox: Sandbox, program: TerraformProgram, *, seconds: float = 60
    ) -> None:
        self._tree = tree
        self._sandbox = sandbox
        self._program = program
        self._seconds = seconds
        self._needed = install_requirements(tree)
        self._idle: list[_ModuleCopy] = []
        self._answers: dict[str, asyncio.Task[TimedValidateOutput]] = {}

    async def validated(self, changed: Mapping[str, str] = {}) -> TimedValidateOutput:
        """What validate says once these files, named as it names them, hold this; a VerifierError when it is not clear.

        A version that was validated before is not validated again.
        """
        key = digest(sorted(changed.items()))
        answer = self._answers.get(key)
        if answer is None or (answer.done() and (answer.cancelled() or answer.exception())):
            answer = self._answers[key] = asyncio.create_task(self._validated(dict(changed)))
        # one caller that stops waiting must not cancel the validation for the others
        return await asyncio.shield(answer)

    async def release(self) -> None:
        """Close the idle copies; results stay cached."""
        while self._idle:
            await self._idle.pop().close()

    async def close(self) -> None:
        """Stop what is running, and close the copies."""
        under_way = [answer for answer in self._answers.values() if not answer.done()]
        for answer in under_way:
            answer.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self.release()

    async def _validated(self, changed: dict[str, str]) -> TimedValidateOutput:
        own = version_files(self._tree, changed)
        needed = install_requirements(self._tree, own)
        copy = self._idle.pop() if self._idle else await _ModuleCopy.made(self._tree, self._sandbox, self._program)
        try:
            answered = await copy.validated(own, needed, self._seconds)
        except BaseException:
            await copy.abandon()
            raise
        self._idle.append(copy)
        self._check(answered.output, needed, copy.problem)
        return answered

    def _check(self, output: ValidateOutput, needed: InstallRequirements, problem: str) -> None:
        """Raise where validate lacked something that is not the version's own mistake."""
        absent = needed.absent & self._needed.absent if self._tree.is_complete else needed.absent
        for diagnosis in output.diagnostics:
            if diagnosis.summary in MISSING_PLUGIN_SUMMARIES and not self._asks_too_much(problem or diagnosis.detail):
                named = sorted({match["address"] for match in PROVIDER_LINE.finditer(diagnosis.detail)})
                reason = problem[:300] or ", ".join(named) or diagnosis.summary
                raise VerifierError(f"the module needs providers that are not here: {reason}; {self._way_out}")
            if diagnosis.summary in MISSING_MODULE_SUMMARIES and absent:
                listed = ", ".join(sorted(absent))
                raise VerifierError(f"the module needs modules from other places: {listed}; {self._way_out}")
            for path in self._tree.left_out if MISSING_FILE_DETAIL.search(diagnosis.detail) else ():
                if posixpath.basename(path) in diagnosis.detail:
                    raise VerifierError(f"{path} was not copied: it is too large, or a link to elsewhere")

    def _asks_too_much(self, complaint: str) -> bool:
        """Whether no missing provider is one of the module's own."""
        missing = {short_provider_address(match["address"]) for match in PROVIDER_LINE.finditer(complaint)}
        return self._tree.is_complete and bool(missing) and missing.isdisjoint(self._needed.providers)

    @property
    def _way_out(self) -> str:
        name = self._program.version.partition(" ")[0]
        if self._sandbox.level not in ("full", "bubblewrap"):
            return f"plugins run only with isolation full or bubblewrap, and here it is {self._sandbox.level}"
        return f"run {name} init -backend=false in its folder once, or name a folder of plugins in {PLUGIN_FOLDER_VARIABLES[0]}"


class _ModuleCopy:
    """One copy of a module in a workspace of its own."""

    def __init__(self, tree: ModuleSnapshot, program: TerraformProgram, place: Workspace, held: AsyncExitStack) -> None:
        self._tree = tree
        self._program = program
        self._place = place
        self._held = held
        self._folder = posixpath.normpath(f"{COPY_REPOSITORY_FOLDER}/{tree.folder}")
        self._own: dict[str, bytes] = {}
        """The files that differ from those of the module itself."""
        self._installed_for: frozenset[str] = frozenset()
        self.problem = ""
        """Why providers could not be installed."""

    @classmethod
    async def made(cls, tree: ModuleSnapshot, sandbox: Sandbox, program: TerraformProgram) -> _ModuleCopy:
        """A copy with everything in it that does not change."""
        async with AsyncExitStack() as held:
            readable = (*program.readable, *sorted(set(tree.packages.values())))
            place = await held.enter_async_context(
                sandbox.workspace(
                    {"home/settings": program.settings},
                    readable=readable,
                    local_sockets=bool(program.plugins or tree.packages),
                )
            )
            copy = cls(tree, program, place, held.pop_all())
        try:
            await copy._fill()
        except BaseException:
            await copy.abandon()
            raise
        return copy

    async def _fill(self) -> None:
        files = list(self._tree.files.items())
        for first in range(0, len(files), COPY_BATCH_FILES):
            await self._place.write(
                {
                    f"{COPY_REPOSITORY_FOLDER}/{path}": content
                    for path, content in files[first : first + COPY_BATCH_FILES]
                }
            )
        if self._tree.packages:
            links = [word for link in self._tree.packages.items() for word in (f"{self._folder}/{link[0]}", link[1])]
            await self._do(LINK_PACKAGES_SCRIPT, *links)

    async def validated(
        self, own: Mapping[str, bytes], needed: InstallRequirements, seconds: float
    ) -> TimedValidateOutput:
        """What validate says of a version that has these files of its own."""
        await self._become({**own, self._tree.path(MODULES_MANIFEST_FILE): needed.manifest})
        if self._program.plugins and not self._tree.packages and needed.settled != self._installed_for:
            await self._do(RESET_INIT_SCRIPT, self._folder)
            lock = self._tree.path(DEPENDENCY_LOCK_FILE)
            await self._place.write(
                {f"{COPY_REPOSITORY_FOLDER}/{lock}": self._tree.files[lock]} if lock in self._tree.files else {}
            )
            self._installed_for = needed.settled
            self.problem = await self._program.init(self._place, self._folder, seconds)
        with_plugins = bool(self._program.plugins or self._tree.packages)
        return await self._program.validate(self._place, self._folder, seconds, with_plugins=with_plugins)

    async def _become(self, wanted: dict[str, bytes]) -> None:
        """Write what this version has of its own, and put back what the last one had."""
        stale = [path for path, content in self._own.items() if wanted.get(path) != content]
        fresh = {path: content for path, content in wanted.items() if self._own.get(path) != content}
        files = self._tree.files
        back = {path: files[path] for path in stale if path not in wanted and path in files}
        replaced = [
            f"{COPY_REPOSITORY_FOLDER}/{path}" for path in {*stale, *fresh} if path in self._own or path in files
        ]
        if replaced:
            # a file that is overwritten is put aside, and a listing of the folder would show it
            await self._do('rm -f -- "$@"', *sorted(replaced))
        await self._place.write(
            {f"{COPY_REPOSITORY_FOLDER}/{path}": content for path, content in {**back, **fresh}.items()}
        )
        self._own = wanted

    async def _do(self, script: str, *arguments: str) -> None:
        outcome = await self._place.run(["/bin/sh", "-c", script, "sh", *arguments])
        if outcome.exit_code or outcome.limit:
            output = outcome.stderr.decode("utf-8", "replace").strip()
            raise VerifierError(f"the copy of the module could not be prepared: {output or outcome.limit}")

    async def close(self) -> None:
        """Close it; its sandbox shows this module alone, so it is not used again."""
        if self._tree.packages:
            await self.abandon()
        else:
            await self._held.aclose()

    async def abandon(self) -> None:
        """Close it in any state; its sandbox is not used again."""
        error = VerifierError("abandoned")
        await self._held.__aexit__(type(error), error, None)
