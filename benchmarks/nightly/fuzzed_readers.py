"""Everything that reads what others wrote, called directly: each reader with small files of its kind, to be damaged."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx2
import msgspec
from benchmarks.nightly.fuzzed_commands import OPTION_COMMANDS, ROOT, is_readable_here
from benchmarks.nightly.fuzzed_datasets import dataset_files
from benchmarks.nightly.fuzzed_recordings import label_files, recorded_files

from steelyard import evalsets, outcomes, settings
from steelyard.cli.main import COMMANDS, command_parser, parse_options
from steelyard.engine.gate.gate import gate_sides
from steelyard.engine.gate.sides import side
from steelyard.engine.repairs.config import read_config
from steelyard.engine.repairs.reader import read_fixes, read_problems
from steelyard.engine.results.read_outcomes import ColumnOverrides, gather
from steelyard.engine.tiers.tier_runs import from_files, tier_experiment, tier_result
from steelyard.evalsets import experiments, rubrics
from steelyard.outcomes.files import OutcomeFile, OutcomeProblemCollector
from steelyard.protocols import Delivery, Provider, ProviderSettings
from steelyard.providers import replay
from steelyard.providers.bodies import sound_answer
from steelyard.providers.formats import anthropic, bedrock, gemini, openai, responses
from steelyard.providers.wire import HttpEndpoint
from steelyard.records import Answer, Attempt, Case
from steelyard.store.journal import StoredRun
from steelyard.store.side_files import gate_looks
from steelyard.tiers.rubrics import RubricScore
from steelyard.verifiers.code.extract import extract
from steelyard.verifiers.judge.answer import judgment, preference
from steelyard.verifiers.response.verifier import ResponseVerifier

MAX_SEED_BYTES = 3000
"""A file that is damaged is at most this long: what is small is read often."""


class Reader(NamedTuple):
    """Something that reads, and what it reads when nothing is wrong."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    """Returns, or raises a SteelyardError."""
    weight: float = 1
    """How often it has its turn."""


def readers(folder: Path) -> list[Reader]:
    """All readers; those of files write them below the folder, which holds the files of the commands."""
    every = [*_file_readers(folder), *_run_readers(folder), *_table_readers(folder), *_text_readers(folder)]
    others = [
        *recorded_files(folder / "damaged" / "recorded"),
        *label_files(folder / "damaged", folder / "runs" / "experiment"),
    ]
    every += [Reader(name, [content], read) for name, content, read in others]
    datasets = dataset_files(folder / "damaged" / "datasets")
    every += [Reader(name, [content], read, weight) for name, content, read, weight in datasets]
    return [reader for reader in every if is_readable_here(reader.name)]


def _file_readers(folder: Path) -> list[Reader]:
    def reader(
        name: str, file: str, read: Callable[[Path], object], seed: Path | bytes = b"", weight: float = 1
    ) -> Reader:
        content = (
            seed if isinstance(seed, bytes) and seed else _small(seed if isinstance(seed, Path) else folder / file)
        )
        return Reader(name, [content], _from_file(folder / "damaged" / file, read), weight)

    def tiers(path: Path) -> object:
        return experiments.load(path)

    def gated(path: Path) -> object:
        return gate_sides(side(str(path)), current)

    current = side(f"{folder / 'runs' / 'whole'}@large")
    (folder / "damaged").mkdir()
    for name in ("cases.toml", "rubric.toml", "rubric.yaml"):
        shutil.copy(folder / name, folder / "damaged")
    shutil.copytree(ROOT / "examples" / "tiers", folder / "damaged" / "tiers")
    shutil.copytree(ROOT / "examples" / "agent", folder / "damaged" / "agent")
    json_rubric = b'{"id": "r", "requirements": [{"id": "a", "description": "x", "weight": 2, "evaluation": "binary"}]}'

    environment = b"# keys\nOPENAI_API_KEY=sk-1\nexport B=\"two words\"\nC='x'\n"
    return [
        reader("eval set in TOML", "evals.toml", _load_cases, folder / "cases.toml"),
        reader("eval set of responses in TOML", "desk.toml", _load_cases, ROOT / "examples" / "support-desk.toml"),
        reader("eval set in JSONL", "capitals.jsonl", _load_cases),
        reader("eval set in JSON", "cases.json", _load_cases),
        reader("experiment", "experiment.toml", tiers, weight=0.5),
        reader(
            "experiment with judges",
            "tiers/judged.toml",
            tiers,
            ROOT / "examples" / "tiers" / "experiment.toml",
            weight=0.3,
        ),
        reader("rubric in TOML", "own_rubric.toml", rubrics.load, folder / "rubric.toml"),
        reader("rubric in YAML", "own_rubric.yaml", rubrics.load, folder / "rubric.yaml", weight=0.2),
        reader("rubric in JSON", "own_rubric.json", rubrics.load, json_rubric),
        reader("settings", "steelyard.toml", lambda path: settings.load(path, {})),
        reader("file of keys", "keys.env", lambda path: settings.read_env_file(path, {}), environment),
        reader("recording", "replies.jsonl", _replay),
        reader("packed recording", "replies.jsonl.gz", _replay, gzip.compress((folder / "replies.jsonl").read_bytes())),
        reader("report in JSON", "report.json", gated, weight=0.2),
        reader(
            "baseline",
            "steelyard-baselines/main.json",
            gated,
            folder / "steelyard-baselines" / "main.json",
        ),
        reader("configuration of repairs", "evaluation_config.json", read_config),
    ]


def _run_readers(folder: Path) -> list[Reader]:
    """Each file of a run folder is damaged in a copy of its own."""

    def reader(name: str, run: str, file: str, read: Callable[[Path], object]) -> Reader:
        copy = folder / "damaged" / name / run
        shutil.copytree(folder / "runs" / run, copy)
        for derived in ("attempts.index", "headline.json", "copy.json"):
            (copy / derived).unlink(missing_ok=True)
        for path in copy.glob("*.jsonl"):
            path.write_bytes(_small(path))
        return Reader(name, [(copy / file).read_bytes()], _from_file(copy / file, lambda path: read(path.parent)))

    def facts(run: Path) -> object:
        stored = StoredRun(run)
        return stored.info, stored.cases, list(stored.facts())

    def summary(run: Path) -> object:
        return side(str(run / "attempts.jsonl")) if run.is_file() else side(f"{run}@large")

    def tiers(run: Path) -> object:
        return tier_result(tier_experiment(StoredRun(run)))

    return [
        reader("journal", "whole", "attempts.jsonl", facts),
        reader("journal, scored", "whole", "attempts.jsonl", summary),
        reader("judged journal, analysed", "experiment", "attempts.jsonl", tiers),
        reader("run.json", "whole", "run.json", facts),
        reader("run.json, scored", "whole", "run.json", summary),
        reader("run.json of an experiment, analysed", "experiment", "run.json", tiers),
        reader("cases.jsonl", "whole", "cases.jsonl", facts),
        reader("looks.jsonl", "whole", "looks.jsonl", gate_looks),
    ]


def _table_readers(folder: Path) -> list[Reader]:
    columns = ColumnOverrides(case="task", model="llm", passed="ok")

    def reader(name: str, file: str, read: Callable[[Path], object], weight: float = 1) -> Reader:
        path = folder / "damaged" / f"table of {name}" / file
        return Reader(name, [_small(folder / file)], _from_file(path, read), weight)

    def table(path: Path) -> object:
        return gather([str(path)], columns=columns)

    def fixes(path: Path) -> object:
        complaints = OutcomeProblemCollector()
        read_fixes(OutcomeFile(0, path), complaints, read_problems(path, complaints))
        return complaints.settled()

    def tiers(path: Path) -> object:
        others = {name: folder / f"small_{name}.csv" for name in ("runs", "judges", "criteria")}
        for name, place in others.items():
            if not place.exists():
                place.write_bytes(_small(folder / f"{name}.csv"))
        others[path.stem] = path
        found, _ = from_files(*map(str, others.values()))
        return tier_result(found)

    results = b'{"task_id": "a/1", "passed": true}\n{"task_id": "a/2", "passed": false, "model": "m"}\n'
    damaged = folder / "damaged"
    return [
        reader("table in CSV", "t.csv", table),
        reader("table in JSONL", "t.jsonl", table),
        reader("table in Parquet", "t.parquet", table, 0.1),
        reader("fixes in CSV", "fixes.csv", lambda path: outcomes.fixes([path])),
        reader("repairs in CSV", "fixes.csv", fixes),
        Reader(
            "results of a benchmark", [results], _from_file(damaged / "r_results.jsonl", lambda p: gather([str(p)]))
        ),
        reader("runs.csv", "runs.csv", tiers, 0.2),
        reader("judges.csv", "judges.csv", tiers, 0.2),
        reader("criteria.csv", "criteria.csv", tiers, 0.2),
    ]


def _text_readers(folder: Path) -> list[Reader]:
    """What comes from models and servers, and what a user types."""
    loop = asyncio.new_event_loop()
    attempt = Attempt(case=Case(id="c", prompt="hi"), model="m")
    served = _Server(loop, attempt)
    rubric = rubrics.load(folder / "rubric.yaml").rubric
    verifier = ResponseVerifier(None)  # type: ignore[arg-type]
    desk = evalsets.load([ROOT / "examples" / "support-desk.toml"]).cases
    parser = command_parser(COMMANDS)

    def judged(content: bytes) -> object:
        text = content.decode("utf-8", "replace")
        return judgment(text, rubric), preference(text)

    def checked(content: bytes) -> object:
        answer = sound_answer(Answer(text=content.decode("utf-8", "surrogateescape")))
        return [loop.run_until_complete(verifier.verify(case, answer)) for case in desk]

    def extracted(content: bytes) -> object:
        text = content.decode("utf-8", "replace")
        return [extract(text, language, defines=["f"]) for language in ("python", "rust", "hcl", "")]

    def parsed(content: bytes) -> object:
        try:
            return parse_options(parser, content.decode("utf-8", "surrogateescape").split("\n"))
        except (SystemExit, argparse.ArgumentError):
            return None

    works = {"reason": "seen", "items": {item: {"reason": "r", "achieved": 1} for item in ("does-it", "nothing-else")}}
    others = {name: {"reason": "r", "score": 0.5} for name in ("small", "tested")}
    marks = {"criteria_scores": {"correct": works, **others}, "reasoning": "r", "score": 0.6, "passed": True}
    assert isinstance(judgment(json.dumps(marks), rubric), RubricScore)
    reply = b"Sure:\n```python\ndef f(x):\n    return x\n```\nand\n```rust\nfn f() {}\n```\n<think>no</think>"
    typed = [command.replace(" ", "\n").encode() for command in OPTION_COMMANDS]
    return [
        Reader("responses in OpenAI's format", OPENAI_RESPONSES, served.reader(openai.connect)),
        Reader("responses in Anthropic's format", ANTHROPIC_RESPONSES, served.reader(anthropic.connect)),
        Reader("responses of OpenAI's Responses", OPENAI_RESPONSE_OBJECTS, served.reader(responses.connect)),
        Reader("responses in Gemini's format", GEMINI_RESPONSES, served.reader(gemini.connect)),
        Reader("responses in Bedrock's format", BEDROCK_RESPONSES, served.reader(bedrock.connect)),
        Reader("judge's reply", [json.dumps(marks).encode(), b'{"choice": "A", "reasoning": "r"}'], judged),
        Reader(
            "reply that checks read",
            [b'{"order": 5, "items": [1, 2]}', b"I am sorry, but I cannot.", b"a,b\n1,2\n"],
            checked,
            0.3,
        ),
        Reader("reply with code", [reply], extracted),
        Reader("options", typed, parsed, 0.5),
    ]


class _Server:
    """Providers whose server sends what it is told to, as the text of an HTTP response."""

    def __init__(self, loop: asyncio.AbstractEventLoop, attempt: Attempt) -> None:
        self._loop, self._attempt = loop, attempt
        self._response = httpx2.Response(200)

    def reader(self, connect: Callable[..., dict[str, Provider]]) -> Callable[[bytes], object]:
        given = ProviderSettings(type="openai", base_url="http://127.0.0.1:9/v1", api_key="sk-123456789")
        (provider,) = connect("m", given).values()
        transport = httpx2.MockTransport(lambda _: self._response)
        (endpoint,) = (part for part in vars(provider).values() if isinstance(part, HttpEndpoint))
        endpoint._client = httpx2.AsyncClient(transport=transport)

        def read(content: bytes) -> object:
            head, _, body = content.partition(b"\n\n")
            status, *lines = head.decode("latin-1").split("\n")
            pairs = [line.partition(":")[::2] for line in lines if line.isprintable() and line.isascii()]
            headers = [
                (name.strip(), value.strip()) for name, value in pairs if name.strip().replace("-", "").isalnum()
            ]
            code = int(status) if status.isascii() and status.isdecimal() and len(status) == 3 else 200
            self._response = httpx2.Response(max(200, min(code, 599)), headers=headers, content=body)
            answer = self._loop.run_until_complete(provider.ask(self._attempt, Delivery()))
            provider.headroom()
            return msgspec.json.encode(sound_answer(answer))

        return read


def _response(body: object, status: int = 200, **headers: str) -> bytes:
    lines = [str(status), *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return "\n".join(lines).encode() + b"\n\n" + content


def _events(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


_USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 2,
    "cost": 0.25,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
_CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
_DETAILS = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
OPENAI_RESPONSES = [
    _response(
        {
            "id": "x",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"content": "blue", "reasoning": "hm", "tool_calls": [_CALL]},
                },
                {"index": 1, "finish_reason": "length", "message": {"content": [{"type": "text", "text": "red"}]}},
            ],
            "usage": _USAGE,
        },
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="6m0.5s",
        x_ratelimit_remaining_tokens="12",
        x_ratelimit_reset_tokens="1794800000",
    ),
    _response(
        _events(
            {"choices": [{"index": 0, "delta": {"content": "bl", "tool_calls": [_CALL]}}]},
            {"choices": [{"index": 0, "delta": {"content": "ue"}, "finish_reason": "stop"}], "usage": _USAGE},
        )
    ),
    _response({"error": {"code": 502, "message": "flagged", "metadata": {"raw": "x"}}}, 200),
    _response(
        {"error": {"code": 429, "message": "m", "details": [_DETAILS]}},
        429,
        retry_after="Wed, 21 Oct 2037 07:28:00 GMT",
    ),
    _response({"detail": [{"msg": "no", "type": "t"}]}, 422, retry_after_ms="12"),
    _response(
        {"promptFeedback": {"blockReason": "SAFETY"}},
        200,
        ratelimit_remaining="1",
        ratelimit_reset="2037-01-01T00:00:00Z",
    ),
]
_OUTPUT = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "message", "content": [{"type": "output_text", "text": "blue"}, {"type": "refusal", "refusal": ""}]},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
]
_WHOLE = {"id": "x", "status": "completed", "output": _OUTPUT, "usage": {"input_tokens": 5, "output_tokens": 2}}
OPENAI_RESPONSE_OBJECTS = [
    _response(_WHOLE),
    _response(
        _events(
            {"type": "response.output_item.done", "item": _OUTPUT[1]},
            {"type": "response.completed", "response": {**_WHOLE, "output": []}},
        )
    ),
]
_PARTS = [{"text": "hm", "thought": True}, {"text": "blue"}, {"functionCall": {"name": "look", "args": {"at": 1}}}]
_CANDIDATE = {"index": 0, "content": {"role": "model", "parts": _PARTS}, "finishReason": "STOP"}
_GEMINI_USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 1}
GEMINI_RESPONSES = [
    _response({"candidates": [_CANDIDATE, {**_CANDIDATE, "index": 1}], "usageMetadata": _GEMINI_USAGE}),
    _response(
        _events({"candidates": [{"content": {"parts": _PARTS[:2]}}]}, {"candidates": [{"finishReason": "MAX_TOKENS"}]})
    ),
]
_BLOCKS = [
    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
    {"text": "blue"},
    {"toolUse": {"toolUseId": "c", "name": "look", "input": {"at": 1}}},
]
BEDROCK_RESPONSES = [
    _response(
        {
            "output": {"message": {"role": "assistant", "content": _BLOCKS}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 1},
        }
    )
]
ANTHROPIC_RESPONSES = [
    _response(
        {
            "content": [
                {"type": "text", "text": "blue"},
                {"type": "tool_use", "id": "1", "name": "look", "input": {"a": 1}},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 1},
        },
        anthropic_ratelimit_requests_remaining="0",
        anthropic_ratelimit_requests_reset="2037-01-01T00:00:00Z",
    ),
    _response(
        _events(
            {"type": "message_start", "message": {"usage": {"input_tokens": 5}}},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "delta": {"text": "blue"}},
            {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "look", "input": {}}},
            {"type": "content_block_delta", "delta": {"partial_json": '{"a"'}},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
        )
    ),
    _response({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529, retry_after="3"),
]


def _load_cases(path: Path) -> object:
    return evalsets.load([path])


def _replay(path: Path) -> object:
    """The recording, and the answer to the first case of each model in it."""
    given = ProviderSettings(type="replay")
    found = replay.connect(str(path), given)
    for provider in found.values():
        asyncio.run(provider.close())
    return found


def _from_file(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path.parent.mkdir(parents=True, exist_ok=True)

    def from_bytes(content: bytes) -> object:
        path.write_bytes(content)
        return read(path)

    return from_bytes


def _small(path: Path) -> bytes:
    """The file, or its first lines where it is long."""
    content = path.read_bytes()
    if len(content) <= MAX_SEED_BYTES or b"\0" in content or path.suffix in (".json", ".toml", ".yaml"):
        return content
    return content[: content.rfind(b"\n", 0, MAX_SEED_BYTES) + 1]
