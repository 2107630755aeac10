"""The demo: recorded replies that come with the package, verified here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.command_line import steelyard
from support.toolchains import needs

WITHOUT_RUST = {"PATH": "/nowhere", "HOME": "/nowhere", "DISPLAY": ":0"}


def test_a_demo_verifies_recorded_replies_and_says_what_to_do_next(tmp_path: Path) -> None:
    # in a process of its own: another test of this one may have found a compiler before
    command = [sys.executable, "-m", "steelyard.cli", "demo", "--limit", "4"]
    ran = subprocess.run(command, cwd=tmp_path, env=WITHOUT_RUST, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "$ steelyard run steelyard-demo/python-basics.toml --models replay:steelyard-demo/" in ran.stdout
    assert " verified" in ran.stdout
    assert "The Rust half of the demo is left out: " in ran.stdout
    # no terminal: nothing waits for a browser, although there is a display
    assert ran.stdout.index("Now look") < ran.stdout.index("Now try your own")
    again = steelyard(tmp_path, *ran.stdout.partition("$ steelyard ")[2].splitlines()[0].split(), "--samples", "1")
    assert again.returncode == 0, again.stderr


def test_a_demo_leaves_files_alone_that_are_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "steelyard-demo").mkdir()
    mine = tmp_path / "steelyard-demo" / "python-basics.toml"
    mine.write_text("# mine")
    ran = steelyard(tmp_path, "demo")
    assert (ran.returncode, mine.read_text()) == (2, "# mine")
    assert "not the file of the demo; move it, or name another folder" in ran.stderr


@needs("rustc")
def test_a_demo_has_a_rust_half_where_a_right_answer_compiles(tmp_path: Path) -> None:
    ran = steelyard(tmp_path, "demo", "other", "--limit", "1")
    assert ran.returncode == 0, ran.stderr
    assert "$ steelyard run other/rust-basics.toml" in ran.stdout
    assert "left out" not in ran.stdout
