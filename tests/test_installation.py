"""How many packages and megabytes a plain installation brings at most."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
MOST_PACKAGES = 26
"""Apart from steelyard itself."""
MOST_MEGABYTES = 180


def plain_installation() -> dict[str, Distribution]:
    """Every distribution that steelyard needs here without any extra, by its name."""
    found: dict[str, Distribution] = {}
    waiting = [("steelyard", frozenset[str]())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = distribution(name)
        for line in found[name].requires or ():
            needed = Requirement(line)
            chosen = ({"extra": extra} for extra in (extras or {""}))
            if needed.marker is None or any(needed.marker.evaluate(each) for each in chosen):
                waiting.append((needed.name.lower().replace("_", "-"), frozenset(needed.extras)))
    return found


def test_a_plain_installation_has_few_packages_and_is_small() -> None:
    packages = plain_installation()
    shown = re.search(r"has (\d+) packages in (\d+) MB", (ROOT / "README.md").read_text("utf-8"))
    assert shown is not None
    # another Python or processor needs a package more or less
    assert abs(int(shown[1]) - len(packages)) <= 2, "run benchmarks/door.py --update"
    del packages["steelyard"]
    assert len(packages) <= MOST_PACKAGES, sorted(packages)
    files = (file for each in packages.values() for file in each.files or () if not file.name.endswith(".pyc"))
    size = sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    assert size <= MOST_MEGABYTES * 10**6, f"{size / 10**6:.0f} MB"
    assert int(shown[2]) == pytest.approx(size / 10**6, rel=0.15), "run benchmarks/door.py --update"
    assert len(packages) > 10
    assert size > 10**8, "sizes are not known here"
    assert not {"scipy", "pydantic", "pandas", "pyarrow"} & packages.keys()
