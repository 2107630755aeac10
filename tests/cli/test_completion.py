"""Shell completion, tried in real shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.command_line import steelyard
from support.toolchains import unavailable


def completed(place: Path, *words: str) -> list[str]:
    script = steelyard(place, "completion", "bash").stdout
    given = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _steelyard; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", f"{script}{ask}"], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_and_the_options_of_each(tmp_path: Path) -> None:
    assert completed(tmp_path, "steelyard", "re") == ["repairs", "report", "resume"]
    assert completed(tmp_path, "steelyard", "resume", "latest", "--base") == ["--base-url"]
    assert completed(tmp_path, "steelyard", "list", "--base") == []
    assert completed(tmp_path, "steelyard", "completion", "f") == ["fish"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell: str, tmp_path: Path) -> None:
    script = steelyard(tmp_path, "completion", shell).stdout
    assert "steelyard" in script
    assert "base-url" in script
    if not shutil.which(shell):
        unavailable(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0
    if shell == "fish":
        (tmp_path / "steelyard.fish").write_text(script, "utf-8")
        ask = "source steelyard.fish; complete -C 'steelyard re'; complete -C 'steelyard resume latest --base'"
        ran = subprocess.run([shell, "-c", ask], cwd=tmp_path, capture_output=True, text=True)
        assert [line.split()[0] for line in ran.stdout.splitlines()] == ["repairs", "report", "resume", "--base-url"]
