"""Versions of a module are validated by a real Terraform, in copies: the module itself is never touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from steelyard.errors import VerifierError
from steelyard.protocols import ProcessResult
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import SandboxWorkspace, ZygoteSandbox
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.diagnostics import ValidateOutput
from steelyard.verifiers.terraform.program import (
    PLUGIN_FOLDER_VARIABLES,
    TERRAFORM_PROGRAM_VARIABLE,
    TerraformProgram,
    find_terraform,
)
from steelyard.verifiers.terraform.tree import ModuleSnapshot, read_module_snapshot
from support.toolchains import needs_terraform, terraform

Made = TypeVar("Made")
MAIN = """
module "net" {
  source = "../../modules/net"
  size   = 3
}

output "text" {
  value = file("${path.module}/../../shared/text.txt")
}

output "o" {
  value = var.missing
}
"""
FIXED = MAIN.replace("var.missing", "module.net.size")
REPOSITORY = {
    "live/app/main.tf": MAIN,
    "modules/net/main.tf": 'variable "size" {\n  type = number\n}\n\noutput "size" {\n  value = var.size\n}\n',
    "shared/text.txt": "text",
    "unrelated/main.tf": "this is no Terraform",
}
VERSIONS = [
    pytest.param("1.0.3", marks=needs_terraform("1.0.3")),
    pytest.param("0.13.5", marks=[needs_terraform("0.13.5"), pytest.mark.slow]),
]


class Counting(ZygoteSandbox):
    """A sandbox that counts how often Terraform is called, and how many workspaces there are."""

    def __init__(self) -> None:
        super().__init__(strongest_isolation(allow_weak=True))
        self.calls: list[str] = []
        self.workspaces = 0

    @asynccontextmanager
    async def workspace(
        self,
        files: Mapping[str, str | bytes],
        *,
        readable: Sequence[str] = (),
        local_sockets: bool = False,
        descriptor_paths: bool = False,
    ) -> AsyncIterator[Counted]:
        self.workspaces += 1
        async with super().workspace(
            files, readable=readable, local_sockets=local_sockets, descriptor_paths=descriptor_paths
        ) as place:
            yield Counted(place, self)


class Counted(SandboxWorkspace):
    def __init__(self, place: SandboxWorkspace, sandbox: Counting) -> None:
        super().__init__(place._worker)
        self._sandbox = sandbox

    async def run(self, argv: Sequence[str], **more: Any) -> ProcessResult:
        self._sandbox.calls += [word for word in argv if word in ("init", "validate")]
        return await super().run(argv, **more)


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def used(
    tree: ModuleSnapshot, use: Callable[[ModuleCopyPool], Awaitable[Made]], version: str = "1.0.3", **environment: str
) -> tuple[Made, Counting]:
    """What comes of using the copies of a module, and the sandbox they were in."""
    asked: TerraformProgram = find_terraform(
        {TERRAFORM_PROGRAM_VARIABLE: str(terraform(version)), "PATH": "/usr/bin:/bin", **environment}
    )

    async def work() -> tuple[Made, Counting]:
        sandbox = Counting()
        copies = ModuleCopyPool(tree, sandbox, asked)
        try:
            return await use(copies), sandbox
        finally:
            await copies.close()
            await sandbox.close()

    return asyncio.run(work())


def summaries(said: ValidateOutput) -> list[str]:
    return sorted(error.summary for error in said.errors)


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", VERSIONS)
def test_many_versions_share_a_copy_and_the_module_stays_as_it_is(tmp_path: Path, version: str) -> None:
    root = written(tmp_path, REPOSITORY)
    before = state(root)

    async def use(copies: ModuleCopyPool) -> list[ValidateOutput]:
        original = await copies.validated()
        # a file that only one version has must be gone for the next
        with_another = await copies.validated(
            {"main.tf": FIXED, "another.tf": 'output "p" {\n  value = local.nothing\n}\n'}
        )
        fixed = await asyncio.gather(*(copies.validated({"main.tf": FIXED}) for _ in range(3)))
        again = await copies.validated()
        return [one.output for one in (original, with_another, *fixed, again)]

    (original, with_another, *fixed, again), sandbox = used(read_module_snapshot(root, "live/app"), use, version)
    assert summaries(original) == ["Reference to undeclared input variable"]
    assert [(error.file, error.line_start) for error in original.errors] == [("main.tf", 12)]
    assert summaries(with_another) == ["Reference to undeclared local value"]
    assert [said.valid for said in fixed] == [True, True, True]
    assert again == original
    assert (sandbox.calls, sandbox.workspaces) == (["validate"] * 3, 1)
    assert state(root) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_module_that_init_refuses_for_its_syntax_can_be_validated_and_repaired(tmp_path: Path, version: str) -> None:
    broken = FIXED.replace("size   = 3", "size   =\n  speed  = 4")
    root = written(tmp_path, {**REPOSITORY, "live/app/main.tf": broken})

    async def use(copies: ModuleCopyPool) -> tuple[ValidateOutput, ValidateOutput]:
        repaired = await copies.validated({"main.tf": broken.replace("size   =", "size   = 3")})
        return (await copies.validated()).output, repaired.output

    (original, repaired), sandbox = used(read_module_snapshot(root, "live/app"), use, version)
    assert summaries(original) == ["Invalid expression"]
    # which only someone finds who has found the module that is called
    assert summaries(repaired) == ["Unsupported argument"]
    assert sandbox.calls == ["validate", "validate"]


@needs_terraform()
def test_a_provider_or_a_module_that_is_not_here_is_the_modules_lack_or_the_versions_mistake() -> None:
    plain = ModuleSnapshot(".", {"main.tf": b'output "o" {\n  value = 1\n}\n'})
    with_null = 'resource "null_resource" "x" {}\n'
    from_afar = 'module "far" {\n  source = "git::https://example.com/far.git"\n}\n'

    async def use(copies: ModuleCopyPool) -> list[ValidateOutput]:
        return [(await copies.validated({"main.tf": text})).output for text in (with_null, from_afar)]

    (asks_provider, asks_module), _ = used(plain, use)
    assert (summaries(asks_provider), summaries(asks_module)) == (["Could not load plugin"], ["Module not installed"])

    for own, said in ((with_null, "hashicorp/null"), (from_afar, "git::https://example.com/far.git")):
        lacking = ModuleSnapshot(".", {"main.tf": own.encode()})
        with pytest.raises(VerifierError, match=rf"the module needs .*{said}.*; run terraform init -backend=false in"):
            used(lacking, lambda copies: copies.validated())


@needs_terraform()
def test_what_the_version_of_an_unknown_case_lacks_is_nobodys_mistake() -> None:
    unknown = ModuleSnapshot(".", {}, is_complete=False)
    with pytest.raises(VerifierError, match="the module needs providers that are not here"):
        used(unknown, lambda copies: copies.validated({"main.tf": 'resource "null_resource" "x" {}\n'}))


@needs_terraform()
@pytest.mark.slow
def test_providers_are_installed_once_from_the_folder_of_plugins(tmp_path: Path) -> None:
    package = tmp_path / "plugins" / "registry.terraform.io" / "hashicorp" / "null" / "3.0.0" / "linux_amd64"
    plugin = written(package, {"terraform-provider-null_v3.0.0_x5": "#!/bin/sh\necho no plugin\n"})
    (plugin / "terraform-provider-null_v3.0.0_x5").chmod(0o755)
    (tmp_path / "plugins").chmod(0o755)
    own = 'resource "null_resource" "x" {}\n'
    reasons: list[str] = []

    async def use(copies: ModuleCopyPool) -> None:
        for text in (own, f"{own}# again\n", f'{own}resource "random_id" "x" {{}}\n'):
            try:
                summaries((await copies.validated({"main.tf": text})).output)
            except VerifierError as error:
                reasons.append(str(error))
            else:
                reasons.append("")

    _, sandbox = used(
        ModuleSnapshot(".", {"main.tf": own.encode()}), use, **{PLUGIN_FOLDER_VARIABLES[0]: str(tmp_path / "plugins")}
    )
    # it is installed and started, but is no plugin; what is not there at all is asked for by the third version only
    assert [bool(reason) for reason in reasons] == [True, True, False]
    assert "Unrecognized remote plugin message" in reasons[0]
    assert sandbox.calls == ["init", "validate", "validate", "init", "validate"]


@needs_terraform()
def test_a_file_that_was_not_copied_is_no_mistake_of_the_version(tmp_path: Path) -> None:
    root = written(tmp_path, {"main.tf": 'output "o" {\n  value = filemd5("${path.module}/big.bin")\n}\n'})
    (root / "big.bin").write_bytes(bytes(5 << 20))
    with pytest.raises(VerifierError, match=r"big\.bin was not copied"):
        used(read_module_snapshot(root), lambda copies: copies.validated())
