"""Tests that are compiled before the first test process starts: all of them start at once, and each would compile every file."""

from __future__ import annotations

import compileall
import os
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite  # pytest has no public way to write what it compiles

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src"


def compile_all(config: pytest.Config) -> None:
    """Compile what test processes will import, by as many processes as there are processors."""
    files = sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")])
    parts = os.cpu_count() or 1
    children = []
    for part in range(parts):
        if not (child := os.fork()):
            # a file that cannot be compiled is told by the test process that imports it
            try:
                for file in files[part::parts]:
                    _compile(file, config)
                for folder in sorted(path for path in (SOURCES, *SOURCES.rglob("*/")) if path.is_dir())[part::parts]:
                    compileall.compile_dir(folder, maxlevels=0, quiet=2)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _compile(file: Path, config: pytest.Config) -> None:
    state = config.stash[rewrite.assertstate_key]
    folder = rewrite.get_cache_dir(file)
    kept = folder / (file.name[:-3] + rewrite.PYC_TAIL)
    if sys.dont_write_bytecode or rewrite._read_pyc(file, kept) is not None or not rewrite.try_makedirs(folder):
        return
    source, code = rewrite._rewrite_test(file, config)
    rewrite._write_pyc(state, code, source, kept)
