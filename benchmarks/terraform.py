"""How many repairs of a Terraform module are validated in a second, and how many by someone who shares nothing.

    python benchmarks/terraform.py [--repairs 24] [--level LEVEL]

The module calls two local modules. Every fourth repair equals an earlier one, as recorded repairs do. The naive way copies
the module, runs init and validate for each repair, in no sandbox; ours validates versions in warm copies, in a sandbox.
Both are right about every repair, and two are under way at a time. Needs a Terraform or OpenTofu; STEELYARD_TERRAFORM
names it where it is not on PATH.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from steelyard.engine.pool import run_concurrently
from steelyard.errors import VerifierError
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS, strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.terraform.copies import ModuleCopyPool
from steelyard.verifiers.terraform.program import TERRAFORM_ENVIRONMENT, find_terraform
from steelyard.verifiers.terraform.tree import read_module_snapshot

AT_ONCE = 2
BAR = 2.0
"""How many times as many repairs as the naive way."""
CALL = 'module "{name}" {{\n  source = "./modules/{name}"\n  size   = var.size\n}}\n'
MODULE = 'variable "size" {\n  type = number\n}\n\noutput "size" {\n  value = var.size\n}\n'
FILES = {
    "main.tf": 'variable "size" {\n  default = 3\n}\n\n' + "".join(CALL.format(name=name) for name in ("net", "disk")),
    "outputs.tf": 'output "net" {\n  value = module.net.sise\n}\n',
    "modules/net/main.tf": MODULE,
    "modules/disk/main.tf": MODULE,
}


def repairs(count: int) -> list[tuple[str, bool]]:
    """New texts for outputs.tf, and whether each is right."""
    found = []
    for number in range(count):
        again = number - 1 if number % 4 == 3 else number
        name = "size" if again % 2 else f"size{again}"
        found.append((f"# attempt {again}\n" + FILES["outputs.tf"].replace("sise", name), bool(again % 2)))
    return found


def written(root: Path) -> Path:
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def naive(count: int) -> None:
    """Copy, init and validate for each repair, in no sandbox."""
    asked = find_terraform()
    environment = {"PATH": os.environ["PATH"], **TERRAFORM_ENVIRONMENT}

    def judge(attempt: tuple[str, bool]) -> None:
        text, is_right = attempt
        with tempfile.TemporaryDirectory() as place:
            copy = shutil.copytree(root, Path(place, "module"))
            (copy / "outputs.tf").write_text(text)
            init = [asked.path, "init", "-backend=false", "-input=false", "-no-color"]
            subprocess.run(init, cwd=copy, env={**environment, "HOME": place}, check=True, capture_output=True)
            validate = [asked.path, "validate", "-json", "-no-color"]
            ran = subprocess.run(
                validate, cwd=copy, env={**environment, "HOME": place}, check=False, capture_output=True
            )
            assert msgspec.json.decode(ran.stdout.removeprefix(b"o:"))["valid"] == is_right

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        root = written(Path(folder))
        list(pool.map(judge, repairs(count)))


def steelyard(count: int) -> None:
    """Warm copies in a sandbox, and equal repairs validated once."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_steelyard(written(Path(folder)), count))


async def _steelyard(root: Path, count: int) -> None:
    named = os.environ.get("STEELYARD_BENCHMARK_LEVEL")
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(named)] if named else strongest_isolation())
    copies = ModuleCopyPool(read_module_snapshot(root), sandbox, find_terraform())

    async def judge(attempt: tuple[str, bool]) -> None:
        text, is_right = attempt
        assert (await copies.validated({"outputs.tf": text})).output.valid == is_right

    await run_concurrently(iter(repairs(count)), judge, AT_ONCE)
    await copies.close()
    await sandbox.close()


CONTESTANTS: dict[str, Callable[[int], None]] = {"naive": naive, "steelyard": steelyard}


def cost(name: str, count: int) -> tuple[float, float]:
    """CPU and wall seconds of a contestant, in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, __file__, "--contestant", name, "--repairs", str(count)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repairs", type=int, default=24, help="repairs to validate (default: 24)")
    parser.add_argument("--level", help="the level of containment (default: the strongest)")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        CONTESTANTS[options.contestant](options.repairs)
        return
    if options.level:
        os.environ["STEELYARD_BENCHMARK_LEVEL"] = options.level
    try:
        asked = find_terraform()
    except VerifierError as error:
        print(error)
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, {asked.version}, {options.repairs} repairs of one module\n")
    print(f"{'':62}{'CPU s':>8}{'wall s':>8}{'per CPU s':>11}")
    found = {}
    for name, contestant in CONTESTANTS.items():
        found[name], wall = cost(name, options.repairs)
        each = options.repairs / found[name]
        print(f"  {contestant.__doc__ or '':<60}{found[name]:>8.1f}{wall:>8.1f}{each:>11.2f}", flush=True)
    print(f"\n  ratio of attempts per CPU second: {found['naive'] / found['steelyard']:.2f} (bar {BAR})")


if __name__ == "__main__":
    main()
