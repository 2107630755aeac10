"""Files of other tools and people's labels, small and sound, and what reads them: to be damaged."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steelyard.engine.results.import_run import import_recordings
from steelyard.engine.results.labels import LabelledRun, export_labels, import_labels
from steelyard.engine.results.recordings import recorded_side, recorded_tallies
from steelyard.store.journal import StoredRun

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "other-tools"
CODE_STATUSES = [{"task_id": "T/0", "solution": "x", "base_status": "pass", "plus_status": "fail", "status": "pass"}]
SMALL_FILES: dict[str, tuple[str, Any]] = {
    "results of human-eval": (
        "gpt_results.jsonl",
        {"task_id": "HumanEval/0", "completion": "  return 1", "result": "passed", "passed": True},
    ),
    "results of EvalPlus": ("m_eval_results.json", {"date": "2026", "hash": "x", "eval": {"T/0": CODE_STATUSES}}),
    "results of BigCodeBench": (
        "m--main--bigcodebench-instruct--vllm-0-1-sanitized_calibrated_eval_results.json",
        {
            "date": "2026",
            "eval": {
                "BigCodeBench/0": [{"task_id": "BigCodeBench/0", "solution": "x", "status": "fail", "details": {}}]
            },
        },
    ),
    "results of LiveCodeBench": (
        "Scenario.codegeneration_2_0.2_eval_all.json",
        [
            {
                "question_title": "t",
                "question_content": "c",
                "platform": "leetcode",
                "question_id": "2777",
                "difficulty": "easy",
                "output_list": ["a", "b"],
                "code_list": ["a", "b"],
                "graded_list": [True, False],
                "metadata": ["{}", "{}"],
            }
        ],
    ),
    "results of MultiPL-E": (
        "HumanEval_0_x.results.json",
        {
            "name": "HumanEval_0_x",
            "language": "rs",
            "prompt": "p",
            "tests": "t",
            "results": [{"program": "fn", "timestamp": 1, "stdout": "", "stderr": "", "exit_code": 0, "status": "OK"}],
        },
    ),
    "totals of SWE-bench": (
        "org__model.run-1.json",
        {
            "total_instances": 4,
            "resolved_instances": 1,
            "resolved_ids": ["a__b-1"],
            "unresolved_ids": ["a__b-2"],
            "empty_patch_ids": ["a__b-3"],
            "error_ids": ["a__b-4"],
            "schema_version": 2,
        },
    ),
    "predictions for SWE-bench": (
        "preds.jsonl",
        {"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": "diff"},
    ),
    "trial of Harbor": (
        "result.json",
        {
            "id": "1",
            "task_name": "hello",
            "trial_name": "hello__x1",
            "task_checksum": "c",
            "agent_info": {"name": "oracle", "version": "1", "model_info": {"name": "m", "provider": "p"}},
            "agent_result": {"n_input_tokens": 5, "n_cache_tokens": None, "n_output_tokens": 2, "cost_usd": 0.5},
            "verifier_result": {"rewards": {"reward": 1.0}},
            "exception_info": None,
            "started_at": "2026-01-01T00:00:00",
        },
    ),
    "rows with scores": (
        "rows.jsonl",
        {
            "input": "1+1",
            "output": "2",
            "expected": "2",
            "scores": {"Exact": 1, "Style": 0.5},
            "metadata": {"model": "m"},
        },
    ),
    "table of counts": ("counts.csv", b"task,n,correct\na,10,3\nb,10,10\n"),
    "JUnit": (
        "suite.xml",
        (
            b'<testsuites><testsuite><testcase classname="t" name="a"/><testcase name="b"><failure message="no"/>'
            b"</testcase></testsuite></testsuites>"
        ),
    ),
}
"""Files that are written here, by kind: a name, and a content."""
LABELS = [
    {"by": "ada", "at": "2026-01-01T00:00:00.000+00:00", "case": "c", "model": "m", "number": 1, "passed": True},
    {"by": "ada", "at": "2026-01-01T00:00:01.000+00:00", "case": "c", "model": "m", "number": 1, "passed": None},
    {"by": "bob", "at": "2026-01-01T00:00:02.000+00:00", "case": "c", "model": "m", "tier": "t", "passed": False},
]


def recorded_files(folder: Path) -> Iterator[tuple[str, bytes, Callable[[bytes], object]]]:
    """A kind, a sound content and what reads it, for the files of each tool that `steelyard import` knows."""
    for kind, (name, content) in SMALL_FILES.items():
        yield (
            kind,
            content if isinstance(content, bytes) else json.dumps(content).encode(),
            _reader(folder / kind / name),
        )
    yield "log of Inspect in JSON", _inspect_log(), _reader(folder / "inspect" / "log.json")
    yield "archive of Inspect", _archive(_inspect_log()), _reader(folder / "archive" / "log.eval")
    read_archive = _reader(folder / "sample" / "log.eval")
    yield "log in an archive of Inspect", _inspect_log(), lambda content: read_archive(_archive(content))
    yield "results of promptfoo", _promptfoo_results(), _reader(folder / "promptfoo" / "results.json")
    database = gzip.decompress((EXAMPLES / "promptfoo" / "promptfoo.db.gz").read_bytes())
    yield "database of promptfoo", database, _reader(folder / "database" / "promptfoo.db")
    (samples,) = (EXAMPLES / "lm-eval" / "better").glob("samples_capitals_*")
    lines = samples.read_bytes().splitlines(keepends=True)
    yield "samples of lm-eval", b"".join(lines[:2]), _reader(folder / "lm-eval" / samples.name)
    yield (
        "test run of DeepEval",
        (EXAMPLES / "deepeval" / "test_run.json").read_bytes(),
        _reader(folder / "deepeval" / "test_run.json"),
    )
    samples, *_ = sorted((EXAMPLES / "every-eval-ever").glob("*_samples.jsonl"))
    lines = samples.read_bytes().splitlines(keepends=True)
    yield "samples of Every Eval Ever", lines[0], _reader(folder / "every" / samples.name)


def label_files(folder: Path, run: Path) -> Iterator[tuple[str, bytes, Callable[[bytes], object]]]:
    """A kind, a sound content and what reads it, for labels of people."""
    copy = folder / "labelled" / run.name
    shutil.copytree(run, copy)
    stored = StoredRun(copy)
    labelled = LabelledRun(stored)
    places = list(labelled.attempts)
    lines = [
        json.dumps(
            label | ({"case": place.case, "model": place.model, "tier": place.tier, "number": place.number})
        ).encode()
        for label, place in zip(LABELS, places * len(LABELS), strict=False)
    ]
    own = copy / "labels-ada.jsonl"

    def journal(content: bytes) -> object:
        own.write_bytes(content)
        return labelled.rates(), export_labels(stored, lambda _: None)

    def table(content: bytes) -> object:
        own.unlink(missing_ok=True)
        path = folder / "labelled" / "labels.csv"
        path.write_bytes(content)
        return import_labels(stored, path, "ada"), labelled.rates()

    first = places[0]
    rows = f"case,passed,model,tier,number,by\n{first.case},yes,{first.model},{first.tier},{first.number},ada\n"
    yield "labels-NAME.jsonl", b"\n".join(lines) + b"\n", journal
    yield "labels in CSV", rows.encode(), table


def _reader(path: Path) -> Callable[[bytes], object]:
    path.parent.mkdir(parents=True, exist_ok=True)

    def read(content: bytes) -> object:
        path.write_bytes(content)
        turn = zlib.crc32(content) % 100
        if turn:
            return recorded_tallies([str(path)]) if turn % 2 else recorded_side(str(path))
        # a whole run takes as long as a hundred readings
        shutil.rmtree(path.parent / "run", ignore_errors=True)
        done = import_recordings([path], output=path.parent / "run", root=path.parent)
        return list(StoredRun(done.folder).facts())

    return read


def _inspect_log() -> bytes:
    log = json.loads((EXAMPLES / "inspect" / "better.json").read_bytes())
    sample = {name: value for name, value in log["samples"][0].items() if name not in ("events", "events_data")}
    return json.dumps({**log, "samples": [sample]}).encode()


def _archive(log: bytes) -> bytes:
    """A log as an archive that is not compressed: its first sample, or whatever stands there, is the only one."""
    head, _, rest = log.partition(b', "samples": [')
    sample, _, _ = rest.partition(b'], "reductions"')
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", head + b"}")
        archive.writestr("samples/1_epoch_1.json", sample)
    return packed.getvalue()


def _promptfoo_results() -> bytes:
    results = json.loads((EXAMPLES / "promptfoo" / "results.json").read_bytes())
    results["results"]["results"] = results["results"]["results"][:2]
    return json.dumps(results).encode()
