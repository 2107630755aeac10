"""Rust programs are linked whatever linkers a machine has, and a broken linker is never an answer's fault."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.rust.linker import Linker, _linkers, link_problem
from steelyard.verifiers.rust.toolchain import toolchain
from support.studies import with_slow
from support.toolchains import needs

pytestmark = needs("rustc")

TREE = Path(__file__).parents[3]
DEMO = ("run", "examples/rust-basics.toml", "--models", "replay:examples/recordings/rust-basics.jsonl.gz")
WITHOUT_FAST_LINKERS = """
touch "$1/empty" && for program in mold ld.mold lld ld.lld; do for folder in /usr/local/bin /usr/bin /bin; do
[ -e $folder/$program ] && mount --bind "$1/empty" "$(readlink -f $folder/$program)"; done; done
"""
"""Hides the fast linkers."""
OWN_LLD_BY_DEFAULT = """
mount --bind "$2/bin/rustc" "$2/bin/rustdoc" && cat > "$1/rustc" <<END
#!/bin/sh
export RUSTC_BOOTSTRAP=1
exec $2/bin/rustdoc "\\$@" -Zunstable-options -Clinker-features=+lld -Clink-self-contained=+linker
END
chmod 755 "$1/rustc" && mount --bind "$1/rustc" "$2/bin/rustc" || exit 9
"""
"""Makes the compiler link as it does on x86_64, with its own lld; another program lends it a second name."""
BROKEN_CC = """
printf '#!/bin/sh\\necho internal error: Killed >&2\\nexit 4\\n' > "$1/cc" && chmod 755 "$1/cc" &&
mount --bind "$1/cc" "$(readlink -f /usr/bin/cc)" || exit 9
"""
privately = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root can lay files over others in a private namespace"
)


def steelyard(changes: str, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command on a machine that was changed for it alone."""
    cache = f'export XDG_CACHE_HOME="$1/cache"; export PATH="{toolchain().sysroot}/bin:$PATH"; shift 2; exec "$@"'
    enclosed = ["unshare", "--mount", "/bin/sh", "-c", f"{changes}\n{cache}", "sh", str(tmp_path), toolchain().sysroot]
    return subprocess.run(
        [*enclosed, sys.executable, "-m", "steelyard.cli", *command, "--output", str(tmp_path / "run")],
        cwd=TREE,
        capture_output=True,
        text=True,
        check=False,
    )


def problem(linker: Linker) -> str:
    async def tried() -> str:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        try:
            return await link_problem(linker, toolchain(), sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(tried())


@pytest.mark.parametrize("name", sorted({each.name for each in _linkers(toolchain())}))
def test_every_linker_that_is_here_works_in_the_sandbox(name: str) -> None:
    # which of its options a compiler knows, and needs, depends on its version
    assert any(not problem(each) for each in _linkers(toolchain()) if each.name == name)


def test_a_linker_that_is_not_here_is_noticed() -> None:
    assert "nowhere" in problem(Linker("nowhere", ("-C", "link-arg=-fuse-ld=nowhere")))


@privately
@pytest.mark.parametrize(
    ("options", "correct"),
    # some attempts at some cases: every program is linked in the same way
    with_slow([(("-n", "2", "--limit", "5"), ["1/10", "4/10"])], [(("-n", "3"), ["2/48", "11/48"])]),
)
def test_the_demo_gives_its_numbers_without_a_fast_linker_and_with_the_default_of_x86_64(
    options: tuple[str, ...], correct: list[str], tmp_path: Path
) -> None:
    ran = steelyard(WITHOUT_FAST_LINKERS + OWN_LLD_BY_DEFAULT, tmp_path, *DEMO, *options)
    rows = {line[:14].strip(): line[14:].split() for line in ran.stdout.splitlines() if line[:14].strip()}
    assert ran.returncode == 0, ran.stderr
    assert rows["correct"] == correct, ran.stdout


@privately
def test_a_broken_linker_is_a_failure_of_ours(tmp_path: Path) -> None:
    ran = steelyard(BROKEN_CC, tmp_path, *DEMO, "--limit", "2")
    assert ran.returncode == 3, ran.stdout
    assert "does not compile" not in ran.stdout
    said = " ".join(ran.stdout.split())
    assert "no linker for Rust works in the sandbox (" in said
    assert "linking with `cc` failed: exit status: 4 internal error: Killed" in said


@privately
def test_a_compiler_that_takes_no_unstable_options_is_an_outage_and_no_answers_fault(tmp_path: Path) -> None:
    refuses = OWN_LLD_BY_DEFAULT.replace("export RUSTC_BOOTSTRAP=1", "unset RUSTC_BOOTSTRAP").replace(
        " -Zunstable-options -Clinker-features=+lld -Clink-self-contained=+linker", ""
    )
    ran = steelyard(refuses, tmp_path, *DEMO, "--case", "first-repeat", "-n", "1")
    assert "takes no options that are not stable" in " ".join(ran.stdout.split()), ran.stdout + ran.stderr
    assert ran.returncode not in (0, 1), ran.stdout
