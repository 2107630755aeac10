"""CPU time and memory of reading other tools' files, beside the tools' own readers where these are installed.

python benchmarks/import.py 20000            # samples of each format
python benchmarks/import.py 1000000 --only lm-eval counts
V/bin/python benchmarks/import.py 20000 --theirs inspect --folder F    # with inspect-ai installed, on the files that the first wrote

Files are made by repeating entries that the tools wrote (examples/other-tools). Each reading is a process of its own: its CPU time
without the start of the program, and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

EXAMPLES = Path(__file__).parents[1] / "examples" / "other-tools"
SUMMARIES_AT_ONCE = 1_000
FORMATS = ("inspect", "lm-eval", "counts")


def make(kind: str, count: int, folder: Path) -> Path:
    """A file with this number of samples."""
    if kind == "inspect":
        return make_inspect_log(count, folder / "large.eval")
    if kind == "lm-eval":
        (source,) = (EXAMPLES / "lm-eval" / "better").glob("samples_capitals_*.jsonl")
        lines = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
        path = folder / "samples_large.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(count):
                file.write(json.dumps({**lines[number % len(lines)], "doc_id": number}) + "\n")
        return path
    path = folder / "counts.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("case,n,correct\n")
        file.writelines(f"case-{number},10,{number % 11}\n" for number in range(count))
    return path


def make_inspect_log(count: int, path: Path) -> Path:
    """An archive whose samples and summaries are those of a real log under other ids, packed as Inspect packs them."""
    from steelyard.outcomes.readers.inspect_archive import InspectArchive

    source = EXAMPLES / "inspect" / "better.eval"
    with zipfile.ZipFile(source) as old, source.open("rb") as raw, zipfile.ZipFile(path, "w") as new:
        log = InspectArchive(old, raw)
        samples = [json.loads(bytes(log.unpacked(member))) for member in log.samples.values()]
        summaries = json.loads(bytes(log.unpacked(log.named["summaries.json"])))

        def write(name: str, content: str) -> None:
            new.writestr(name, content, compress_type=zipfile.ZIP_DEFLATED, compresslevel=1)

        # everything but the id and the epoch, which come first, is encoded once
        ends = [[_without_key(entry) for entry in entries] for entries in (samples, summaries)]
        all_summaries: list[str] = []
        piece: list[str] = []
        for number in range(count):
            case, epoch = f"s{number // 3}", number % 3 + 1
            sample, summary = (f'{{"id":"{case}","epoch":{epoch},{each[number % len(each)]}' for each in ends)
            write(f"samples/{case}_epoch_{epoch}.json", sample)
            piece.append(summary)
            if len(piece) == SUMMARIES_AT_ONCE or number == count - 1:
                write(f"_journal/summaries/{number // SUMMARIES_AT_ONCE + 1}.json", f"[{','.join(piece)}]")
                all_summaries += piece
                piece = []
        write("summaries.json", f"[{','.join(all_summaries)}]")
        for name in ("_journal/start.json", "header.json"):
            new.writestr(name, bytes(log.unpacked(log.named[name])))
    return path


def _without_key(entry: dict[str, object]) -> str:
    """An entry in JSON without its id and epoch, and without the brace before them."""
    rest = {key: value for key, value in entry.items() if key not in ("id", "epoch")}
    return json.dumps(rest, separators=(",", ":"))[1:]


def read_ours(kind: str, path: Path) -> None:
    """What gate and compare do with a file of this kind."""
    from steelyard.engine.results.recordings import recorded_side

    start = time.process_time()
    side = recorded_side(str(path))
    found = sum(trials.attempts if kind != "counts" else 1 for model in side.models.values() for trials in model)
    print(json.dumps([found, time.process_time() - start]))


def read_theirs(kind: str, path: Path) -> None:
    """What the tool itself does to get at the outcomes."""
    start = time.process_time()
    if kind == "inspect":
        from inspect_ai.log import read_eval_log  # type: ignore[import-not-found,unused-ignore]

        start = time.process_time()
        found = len(read_eval_log(str(path)).samples)
    else:
        import pandas as pd

        start = time.process_time()
        found = len(pd.read_json(path, lines=True) if kind == "lm-eval" else pd.read_csv(path))
    print(json.dumps([found, time.process_time() - start]))


def measured(*arguments: str) -> str:
    """One reading in a process of its own, as a row."""
    program = (
        "import resource, subprocess, sys; ran = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL);"
        "print(ran.stdout.decode().strip(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, sys.executable, __file__, *arguments],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    outcome, _, kilobytes = said.rpartition(" ")
    if not outcome:
        return "not installed"
    found, seconds = json.loads(outcome)
    return f"{seconds:8.2f} CPU s {seconds / max(found, 1) * 1e6:8.1f} us a sample {int(kilobytes) >> 10:6} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--only", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--theirs", choices=FORMATS, help="only the tool's own reader, on files in --folder")
    parser.add_argument("--folder", type=Path, help="where the files are kept; a temporary folder otherwise")
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        whose, kind, path = options.read
        (read_ours if whose == "ours" else read_theirs)(kind, Path(path))
        return
    names = {"inspect": "large.eval", "lm-eval": "samples_large.jsonl", "counts": "counts.csv"}
    if options.theirs:
        path = options.folder / names[options.theirs]
        print(f"{options.theirs:8} theirs {measured('--read', 'theirs', options.theirs, str(path))}")
        return
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        for kind in options.only:
            path = make(kind, options.count, folder)
            print(f"{kind:8} {options.count:9,} samples, {path.stat().st_size >> 20:,} MB", flush=True)
            for whose in ("ours", "theirs"):
                print(f"{kind:8} {whose:6} {measured('--read', whose, kind, str(path))}", flush=True)


if __name__ == "__main__":
    main()
