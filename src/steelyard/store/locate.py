"""Where runs are: the run folder that a user means."""

from __future__ import annotations

from pathlib import Path

from steelyard.errors import InputError
from steelyard.records import RunInfo
from steelyard.store.journal import StoredRun

DEFAULT_RUNS_FOLDER = Path("steelyard-runs")
"""Where runs are kept unless the user says otherwise."""


def runs(root: Path = DEFAULT_RUNS_FOLDER) -> list[StoredRun]:
    """The runs below a folder, oldest first; folders that hold no readable run are passed over."""
    return [stored for stored, _ in _readable_runs(root)]


def _readable_runs(root: Path) -> list[tuple[StoredRun, RunInfo]]:
    """The same with their descriptions."""
    found = []
    for path in root.glob("*/run.json"):
        stored = StoredRun(path.parent)
        if is_hidden(stored.folder):
            continue
        try:
            found.append((stored, stored.info))
        except InputError:
            continue
    return sorted(found, key=lambda entry: (entry[1].started_at, entry[0].folder.name))


def is_hidden(folder: Path) -> bool:
    """Whether a folder is not for people: a run may be under construction in it."""
    return folder.name.startswith(".")


def find_run(name: str, root: Path = DEFAULT_RUNS_FOLDER) -> Path:
    """The run folder a user means: a path, a name below the runs' folder, or `latest`, which no part of a merged run is."""
    if name == "latest":
        found = _readable_runs(root)
        parts = {part.id for _, info in found for part in info.merged}
        whole = [stored.folder for stored, info in found if info.id not in parts]
        if not whole:
            raise InputError(no_runs_message(root))
        return whole[-1]
    try:
        for folder in (Path(name), root / name):
            if (folder / "run.json").is_file():
                return folder
        is_folder = Path(name).is_dir()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    if is_folder:
        raise InputError(f"{name}: not a run folder (it has no run.json)")
    raise InputError(f'no run "{name}" here or under {root}; `steelyard list` shows what there is')


def no_runs_message(root: Path) -> str:
    """What to tell somebody who looks for runs where there are none."""
    return f"{root}: no runs here yet; start one with: steelyard run EVALSET --models PROVIDER/MODEL"
