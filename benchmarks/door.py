"""What a newcomer waits for: installs the wheel into a fresh environment, and runs the demo there.

    python benchmarks/door.py [--rust]

Prints packages, megabytes and seconds; nothing is asserted. Packages come from the index that pip uses.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def seconds(*command: str | Path, **options: Any) -> float:
    """How long a command takes."""
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rust", action="store_true", help="with the Rust half of the demo, where a toolchain is found"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "venv")
        made = seconds(sys.executable, "-m", "venv", home)
        bare = _megabytes(home)
        pip = (home / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
        installed = seconds(*pip, "install", "--no-compile", str(ROOT))
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
        print(f"packages   {len(frozen.splitlines())}")
        print(f"megabytes  {_megabytes(home) - bare:.0f}")
        print(f"install    {made + installed:.1f} s")
        program, python = home / "bin" / "steelyard", home / "bin" / "python"
        seconds(program, "--help")
        print(f"--help     {seconds(program, '--help'):.2f} s, bare Python {seconds(python, '-c', ''):.2f} s")
        path = os.environ["PATH"] if options.rust else f"{home / 'bin'}:/usr/bin:/bin"
        demo = seconds(program, "demo", "--no-browser", cwd=scratch, env={**os.environ, "PATH": path})
        print(f"demo       {demo:.1f} s")


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"]


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in _files(folder)) / 10**6


if __name__ == "__main__":
    main()
