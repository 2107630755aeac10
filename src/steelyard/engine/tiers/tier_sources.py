"""Where the runs of an experiment are read from: a run of ours, a folder of ProjectScylla, or CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from steelyard.engine.tiers.tier_runs import TierExperiment, from_files, from_scylla, tier_experiment
from steelyard.errors import Problem
from steelyard.outcomes.readers.scylla import is_scylla
from steelyard.store.journal import StoredRun
from steelyard.store.run_folders import DEFAULT_RUNS_FOLDER, find_run
from steelyard.tiers.results import PairBy


class TierSource(NamedTuple):
    """An experiment as it was found."""

    experiment: TierExperiment
    folder: Path
    pair_by: PairBy = "case"
    """What identifies the same task in two tiers."""
    problems: tuple[Problem, ...] = ()


def stored_source(name: str, *, root: Path = DEFAULT_RUNS_FOLDER) -> TierSource:
    """The experiment in a run, named as for `show`, or in a folder that ProjectScylla wrote."""
    folder = Path(name)
    if is_scylla(folder):
        experiment, problems = from_scylla(folder)
        # there an experiment is the task, and subtests are variants of a tier
        return TierSource(experiment, folder, "experiment", tuple(problems))
    folder = find_run(name, root)
    return TierSource(tier_experiment(StoredRun(folder)), folder)


def csv_source(runs: str, judges: str | None = None, criteria: str | None = None) -> TierSource:
    """The experiment that CSV files hold: a row per run, per judge and per criterion."""
    experiment, problems = from_files(runs, judges, criteria)
    return TierSource(experiment, Path(), problems=tuple(problems))
