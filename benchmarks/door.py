"""What a newcomer waits for: installs the wheel where nothing but Python is, and runs the demo there.

    python benchmarks/door.py [--suite trixie] [--keep FOLDER] [--update] [--rust]

Prints packages, megabytes and seconds; seconds are never asserted. With --suite it happens in a chroot of that Debian release, which
debootstrap makes (as root, on Linux), without a network; otherwise in a fresh environment on this machine. Packages are downloaded before
the clock starts, from the index that pip uses. --update writes the numbers into README.md.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
README_PATTERN = re.compile(r"A plain installation has \d+ packages.*?\n\n", re.DOTALL)
INSIDE = """
import json, os, resource, subprocess, sys, time
from pathlib import Path

def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

def seconds(*command, **options):
    began, used = time.monotonic(), processor_time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    return time.monotonic() - began, processor_time() - used

def files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"]

def megabytes(folder):
    return sum(path.stat().st_size for path in files(folder)) / 10**6

home, found = Path("home").absolute(), {}
found["venv"] = seconds(sys.executable, "-m", "venv", home)
bare = megabytes(home)
pip = (home / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
found["install"] = seconds(*pip, "install", "--no-index", "--find-links", "wheels", "steelyard")
frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
found["packages"] = len(frozen.splitlines())
found["megabytes"] = megabytes(home) - bare
program, python = home / "bin" / "steelyard", home / "bin" / "python"
seconds(program, "--help")
found["help"], found["bare"] = seconds(program, "--help"), seconds(python, "-c", "")
path = os.environ["PATH"] if "--rust" in sys.argv else f"{home / 'bin'}:/usr/bin:/bin"
found["demo"] = seconds(program, "demo", "--no-browser", env={**os.environ, "PATH": path})
print(json.dumps(found))
"""
"""Carried out by the Python that is there, which needs nothing else."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="", help="a release of Debian, such as trixie, with nothing but its Python")
    parser.add_argument("--keep", type=Path, help="keep the chroot in this folder for the next time")
    parser.add_argument("--update", action="store_true", help="write the numbers into README.md")
    parser.add_argument(
        "--rust", action="store_true", help="with the Rust half of the demo, where a toolchain is found"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.suite:
            found = measured_in_debian(options.suite, options.keep or Path(scratch))
        else:
            download(Path(scratch), "")
            command = [sys.executable, "-c", INSIDE, *(["--rust"] if options.rust else [])]
            found = json.loads(subprocess.check_output(command, cwd=scratch, text=True).splitlines()[-1])
    print(f"packages   {found['packages']}")
    print(f"megabytes  {found['megabytes']:.0f}")
    for what in ("venv", "install", "help", "bare", "demo"):
        wall, used = found[what]
        print(f"{what:<9}  {wall:.2f} s, {used:.2f} s of processor time")
    if options.update:
        readme = ROOT / "README.md"
        readme.write_text(
            README_PATTERN.sub(sentence(found, options.suite) + "\n\n", readme.read_text("utf-8")), "utf-8"
        )


def sentence(found: dict[str, Any], suite: str) -> str:
    """The numbers as README.md has them; processor time, because other work on the machine does not change it."""
    where = f"Debian {suite} with nothing but Python" if suite else platform.platform()
    half = ", without its Rust half" if suite else ""
    return (
        f"A plain installation has {found['packages']} packages in {found['megabytes']:.0f} MB. In {where}\n"
        f"({platform.machine()}) it took {found['install'][1]:.0f} s of processor time, and the demo {found['demo'][1]:.0f} s{half} (`benchmarks/door.py`)."
    )


def download(place: Path, version: str) -> None:
    """Put the wheel of this checkout and all that it needs into a folder."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    wheels = place / "wheels"
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", wheels, ROOT], check=True)
    (wheel,) = wheels.iterdir()
    other = ["--python-version", version] if version else []
    subprocess.run([*pip, "download", "--only-binary", ":all:", *other, "--dest", wheels, wheel], check=True)


def measured_in_debian(suite: str, kept: Path) -> dict[str, Any]:
    """The same in a chroot, which has no network."""
    release = release_tool()
    root = release.chroot(suite, kept, "")
    version = release.call("chroot", root, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    place = root / "tmp" / "door"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    download(place, version)
    (place / "inside.py").write_text(INSIDE, "utf-8")
    inside = f"mount -t proc proc '{root}/proc'; exec chroot '{root}' sh -c 'cd /tmp/door; exec python3 inside.py'"
    bare = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", inside]
    printed = subprocess.check_output(command, env=bare, text=True)
    shutil.rmtree(place)
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def release_tool() -> ModuleType:
    """`tools/release`, which makes the chroots."""
    loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "tools" / "release"))
    spec = importlib.util.spec_from_loader("release", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
