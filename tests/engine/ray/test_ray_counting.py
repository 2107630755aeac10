"""Counting on a real Ray cluster gives the counts of this machine, prints nothing of Ray's, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from steelyard.engine.ray.counting import MAX_FILES_PER_TASK, grouped
from steelyard.outcomes.parquet_counts import ParquetSource
from support.ray_nodes import RayCluster, gone, needs_ray

MAIN = "import sys; from steelyard.cli.main import main; sys.exit(main(sys.argv[1:]))"
COMMAND = [sys.executable, "-P", "-c", MAIN, "passk"]


def tables(folder: Path, files: int) -> Path:
    """Attempts of two models at fifty cases, some without an outcome, in several files."""
    folder.mkdir()
    for number in range(files):
        duckdb.execute(f"""COPY (
          SELECT 'model ' || (i % 100 // 50) AS model, 'case ' || (i % 50) AS "case",
            if(hash(i, {number}) % 50 = 0, NULL, hash(i, {number}) % 3 = 0) AS correct
          FROM range(3000) AS r(i)) TO '{folder}/it''s {number}.parquet'""")
    return folder


def passk(
    *more: str | Path, environment: Mapping[str, str] | None = None, inside: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--k-values", "1", "10", "--format", "json", "--attempts", *map(str, more)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=inside)


def test_files_are_dealt_to_tasks_and_none_holds_files_of_two_sources() -> None:
    sources = [
        ParquetSource(name, tuple(f"{name}{number}" for number in range(size))) for name, size in (("a", 7), ("b", 3))
    ]
    for tasks in (1, 2, 5, 10, 1000):
        groups = grouped(sources, tasks)
        for source in sources:
            assert tuple(path for group in groups if group.name == source.name for path in group.files) == source.files
    assert max(len(group.files) for group in grouped([ParquetSource("c", ("x",) * 5000)], 1)) == MAX_FILES_PER_TASK


@needs_ray()
@pytest.mark.slow
def test_a_cluster_of_our_own_counts_as_this_machine_does_and_ray_is_not_heard(tmp_path: Path) -> None:
    folder = tables(tmp_path / "table", 3)
    here = passk(folder)
    # what lies where the user stands is nobody's code
    (tmp_path / "msgspec.py").write_text("raise SystemError('not ours')\n")
    there = passk(folder, "--backend", "ray", "--ray-address", "local", inside=tmp_path)
    assert here.returncode == 0, here.stderr
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)


@needs_ray()
@pytest.mark.slow
def test_two_nodes_count_together_name_a_broken_file_and_a_lost_driver_leaves_nothing(tmp_path: Path) -> None:
    folder = tables(tmp_path / "table", 30)
    here = passk(folder)
    with RayCluster() as cluster:
        where = ["--backend", "ray", "--ray-address", cluster.address]
        environment = {name: text for name, text in cluster.environment.items() if name != "CI"}
        there = passk(folder, *where, environment=environment)
        assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)
        (folder / "broken.parquet").write_bytes(b"PAR1")
        broken = passk(folder, *where, environment=environment)
        assert (broken.returncode, broken.stdout) == (2, "")
        assert f"{folder}/broken.parquet: not a Parquet file, or a broken one" in broken.stderr
        assert len(broken.stderr.splitlines()) == 1
        stranger = passk(folder, *where, environment=environment | {"RAY_AUTH_TOKEN": "0" * 32})
        assert (stranger.returncode, stranger.stdout) == (2, "")
        assert "it requires a token: set RAY_AUTH_MODE=token" in stranger.stderr
        for how in (signal.SIGINT, signal.SIGKILL):
            driver = subprocess.Popen(
                [*COMMAND, "--attempts", str(folder), *where], env=environment, stderr=subprocess.PIPE
            )
            while not (busy := set(cluster.workers(0) + cluster.workers(1))):
                assert driver.poll() is None
                time.sleep(0.01)
            os.kill(driver.pid, how)
            driver.communicate(timeout=120)
            assert not gone(busy)
