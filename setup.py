"""What of the package's metadata follows from the tree that it is built from; everything else is in pyproject.toml.

    STEELYARD_URL=https://... python -m build

- The version is the tag `vX.Y.Z` of the commit; between tags it is that of the next release with the number of commits, such
  as 0.2.0.dev7+g1a2b3c4. A tree without git, such as an unpacked source distribution, keeps the version it was made with.
- `STEELYARD_URL` is the address of the project. Links on the package's page and the `$id` of the schema come from it; without
  it there are none.
- The same commit gives the same bytes, whoever builds it, when and where: times come from the commit (SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
SCHEMA = ("steelyard", "evalsets", "shipped", "eval-set.schema.json")
RELEASE_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:rc\d+)?)")


def git(root: Path, *arguments: str) -> str:
    """What git says about a tree; empty where it is no repository of its own."""
    try:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def has_history(root: Path) -> bool:
    """Whether git knows this tree, and not only a folder around it."""
    top = git(root, "rev-parse", "--show-toplevel")
    return bool(top) and Path(top).resolve() == root.resolve()


def built_before(root: Path, field: str) -> list[str]:
    """The values of a field in the metadata that a source distribution carries."""
    try:
        head = (root / "PKG-INFO").read_text("utf-8").partition("\n\n")[0]
    except OSError:
        return []
    return [line.partition(": ")[2] for line in head.splitlines() if line.startswith(f"{field}: ")]


def version(root: Path) -> str:
    """The version of this tree."""
    if has_history(root):
        for tag in git(root, "tag", "--points-at", "HEAD", "--sort=-v:refname").splitlines():
            if released := RELEASE_TAG.fullmatch(tag):
                return released[1]
        last = git(root, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*")
        commits = git(root, "rev-list", "--count", f"{last}..HEAD" if last else "HEAD")
        return f"{next_version(root)}.dev{commits}+g{git(root, 'rev-parse', '--short=7', 'HEAD')}"
    return next(iter(built_before(root, "Version")), f"{next_version(root)}.dev0")


def next_version(root: Path) -> str:
    """The release that is being worked on."""
    with (root / "pyproject.toml").open("rb") as file:
        found: str = tomllib.load(file)["tool"]["steelyard"]["next-version"]
    return found


def project_urls(root: Path, address: str) -> dict[str, str]:
    """The links of the package's page, all below one address."""
    if not address:
        return dict(line.split(", ", 1) for line in built_before(root, "Project-URL"))
    if not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)*/?", address):
        raise SystemExit(f"STEELYARD_URL is an address such as https://host/owner/name, not {address!r}")
    base = address.rstrip("/")
    return {"Homepage": base, "Changelog": f"{base}/blob/main/CHANGELOG.md", "Issues": f"{base}/issues"}


def with_id(schema: str, address: str, released: str) -> str:
    """The schema of eval sets with the address at which this version of it is found."""
    where = f"{address}/raw/v{released}/docs/eval-set.schema.json"
    first, *rest = json.loads(schema).items()
    return json.dumps(dict([first, ("$id", where), *rest]), indent=2, ensure_ascii=False) + "\n"


def build_time(root: Path) -> int:
    """Seconds of the epoch that every file of an archive gets."""
    given = os.environ.get("SOURCE_DATE_EPOCH") or (git(root, "log", "-1", "--format=%ct") if has_history(root) else "")
    return int(given) if given else int((root / "pyproject.toml").stat().st_mtime)


class ReproducibleSdist(sdist):
    """A source distribution whose bytes depend on the files alone."""

    def make_archive(self, base_name: str, format: str, *_: object, base_dir: str = "", **__: object) -> str:  # noqa: A002
        """Write one gzipped tar, sorted, without owners and with one time."""
        if format != "gztar":
            raise SystemExit("source distributions are .tar.gz alone")
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(path for path in Path(base_dir).rglob("*") if path.is_file()):
                member = tarfile.TarInfo(path.as_posix())
                member.size, member.mtime = path.stat().st_size, build_time(ROOT)
                member.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                with path.open("rb") as file:
                    archive.addfile(member, file)
        written = Path(f"{base_name}.tar.gz")
        written.write_bytes(gzip.compress(content.getvalue(), mtime=build_time(ROOT)))
        return str(written)


class PlainModes(build_py):
    """Files of the wheel have the same rights whatever the umask of the one who checked them out."""

    def run(self) -> None:
        """Copy the package, then set the rights."""
        super().run()
        if self.editable_mode:
            return
        for name in self.get_outputs(include_bytecode=False):
            Path(name).chmod(0o644)
        if address := self.distribution.metadata.project_urls.get("Homepage"):
            schema = Path(self.build_lib, *SCHEMA)
            schema.write_text(with_id(schema.read_text("utf-8"), address, version(ROOT)), "utf-8")


if __name__ == "__main__":
    os.umask(0o022)
    os.environ["SOURCE_DATE_EPOCH"] = str(build_time(ROOT))
    setup(
        version=version(ROOT),
        project_urls=project_urls(ROOT, os.environ.get("STEELYARD_URL", "")),
        cmdclass={"sdist": ReproducibleSdist, "build_py": PlainModes},
    )
