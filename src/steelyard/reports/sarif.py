"""Messages of compilers and linters about code that failed, as SARIF 2.1.0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from steelyard.analysis.summary import AttemptText, RunResults
from steelyard.records import Case, Diagnostic, DiagnosticLevel, Span, digest
from steelyard.reports.figures import model_label
from steelyard.text import counted, escaped_json, line, plain

MAX_SARIF_RESULTS = 5_000
"""Results that are written: GitHub takes more and shows no more."""

MAX_SARIF_MESSAGE_CHARACTERS = 2_000
"""Characters of a message."""

MAX_SARIF_LOCATIONS = 100
"""Places of one result, of which GitHub shows no more."""

MAX_SARIF_CODE_CHARACTERS = 2_000_000
"""The maximum number of characters of included code; further code is left out, and a note says so."""

SarifLevel = Literal["error", "warning", "note"]
SARIF_LEVELS: Mapping[str, SarifLevel] = {DiagnosticLevel.ERROR: "error", DiagnosticLevel.WARNING: "warning"}
"""The levels of SARIF; any other level becomes a note."""
SARIF_LEVEL_ORDER: tuple[SarifLevel, ...] = ("error", "warning", "note")

SOURCE_SUFFIX_BY_LANGUAGE: Mapping[str, str] = {
    "c": ".c",
    "c++": ".cpp",
    "cpp": ".cpp",
    "go": ".go",
    "java": ".java",
    "javascript": ".js",
    "python": ".py",
    "rust": ".rs",
    "typescript": ".ts",
}


class AttemptDiagnostic(NamedTuple):
    """One diagnostic of one attempt."""

    tried: AttemptText
    diagnostic: Diagnostic
    rule: str
    level: SarifLevel


def report(results: RunResults) -> str:
    """One SARIF run with a result for every diagnostic of an attempt that is not correct, errors first.

    The code is not in the repository, so its address is made up, `CASE/MODEL-ATTEMPT.rs`, and it goes along as the
    contents of that artifact. Format: OASIS, Static Analysis Results Interchange Format version 2.1.0 (2020).
    """
    shown, found = _first_diagnostics(attempt_diagnostics(results.attempts))
    worst: dict[str, str] = {}
    for remark in shown:
        worst.setdefault(remark.rule, remark.level)
    order = {rule: place for place, rule in enumerate(sorted(worst))}
    version = results.info.versions.get("steelyard")
    driver: dict[str, Any] = {"name": "steelyard", "rules": [_rule(rule, worst[rule]) for rule in order]}
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if found > MAX_SARIF_RESULTS:
        text = f"{counted(found, 'diagnostic')} were found, and the first {MAX_SARIF_RESULTS:,} are here, errors before warnings"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    whole = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver | ({"version": version} if version else {})},
                # what stands before the last slash is what GitHub keeps apart from other uploads
                "automationDetails": {"id": f"steelyard/{results.info.id}"},
                "invocations": [invocation],
                "columnKind": "unicodeCodePoints",
                "artifacts": _artifacts(shown),
                "results": list(_results(shown, order)),
            }
        ],
    }
    return escaped_json(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()) + "\n"


def _first_diagnostics(diagnostics: Iterable[AttemptDiagnostic]) -> tuple[list[AttemptDiagnostic], int]:
    """The diagnostics that are shown, errors first, and how many there are in all; no others are kept."""
    found = 0
    kept: dict[str, list[AttemptDiagnostic]] = {level: [] for level in SARIF_LEVEL_ORDER}
    for remark in diagnostics:
        found += 1
        if len(kept[remark.level]) < MAX_SARIF_RESULTS:
            kept[remark.level].append(remark)
    return [remark for level in SARIF_LEVEL_ORDER for remark in kept[level]][:MAX_SARIF_RESULTS], found


def attempt_diagnostics(attempts: Iterable[AttemptText]) -> Iterator[AttemptDiagnostic]:
    """The messages about attempts that are not correct."""
    for tried in attempts:
        if tried.verdict is None or tried.correct is not False:
            continue
        for diagnostic in tried.verdict.found.diagnostics:
            level = SARIF_LEVELS.get(diagnostic.level, "note")
            yield AttemptDiagnostic(tried, diagnostic, line(diagnostic.code or "", 100) or f"uncoded-{level}", level)


def artifact_uri(case: Case, *parts: str) -> str:
    """A relative address below that of the case; no part of it leads up or away.

    >>> artifact_uri(Case(id="a b", prompt=""), "openai/gpt-5-1.rs"), artifact_uri(Case(id="../x", prompt=""), "/etc")
    ('a%20b/openai/gpt-5-1.rs', '_../x/etc')
    """
    pieces = [piece for part in (case.id, *parts) for piece in re.split(r"[/\\]", plain(part)) if piece]
    # a colon in the first piece would make it a scheme, so it is quoted like everything else
    return "/".join(quote(f"_{piece}" if piece in (".", "..") else piece, safe="") for piece in pieces)


def _span_file_uri(remark: AttemptDiagnostic, span: Span | None) -> str:
    """The address of the file that a span is in: one of the case's own, otherwise the answer."""
    case, tried = remark.tried.case, remark.tried
    if span is not None and (span.file in case.verify.files or span.file == "tests.rs"):
        return artifact_uri(case, span.file)
    return _answer_uri(tried)


def _answer_uri(tried: AttemptText) -> str:
    suffix = PurePath(tried.case.verify.answer).suffix or SOURCE_SUFFIX_BY_LANGUAGE.get(tried.case.language, ".txt")
    return artifact_uri(tried.case, f"{model_label(tried.model, tried.tier)}-{tried.number}{suffix}")


def _rule(rule: str, level: str) -> dict[str, Any]:
    uncoded = rule.startswith("uncoded-")
    about = f"{level} without a code" if uncoded else f"{level} {rule}"
    described = {
        "id": rule,
        "shortDescription": {"text": about},
        "fullDescription": {"text": f"{about} of a compiler or linter, in code that a model wrote"},
        "help": {"text": "The code was written by a model to solve the case; see the message."},
        "defaultConfiguration": {"level": level},
    }
    explained = _rule_help_uri(rule)
    return described | {"helpUri": explained} if explained else described


def _rule_help_uri(rule: str) -> str | None:
    """Where Rust explains its codes."""
    if re.fullmatch(r"E\d{4}", rule):
        return f"https://doc.rust-lang.org/error_codes/{rule}.html"
    if lint := re.fullmatch(r"clippy::([a-z0-9_]+)", rule):
        return f"https://rust-lang.github.io/rust-clippy/stable/index.html#{lint[1]}"
    return None


def _artifacts(shown: Iterable[AttemptDiagnostic]) -> list[dict[str, Any]]:
    """The code that the results are about, once each."""
    artifacts: dict[str, dict[str, Any]] = {}
    room = MAX_SARIF_CODE_CHARACTERS
    for remark in shown:
        uri = _answer_uri(remark.tried)
        if uri in artifacts:
            continue
        artifacts[uri] = {"location": {"uri": uri}}
        code = remark.tried.verdict.found.code if remark.tried.verdict else None
        if code and len(code) <= room:
            room -= len(code)
            artifacts[uri]["contents"] = {"text": code}
    return list(artifacts.values())


def _results(shown: Iterable[AttemptDiagnostic], order: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    seen: Counter[tuple[str, str]] = Counter()
    for remark in shown:
        tried, diagnostic = remark.tried, remark.diagnostic
        model = model_label(tried.model, tried.tier)
        spans: Sequence[Span | None] = diagnostic.spans or (None,)
        place = digest(remark.rule, diagnostic.message, spans[0].text if spans[0] else None)
        uri = _span_file_uri(remark, spans[0])
        seen[uri, place] += 1
        result = {
            "ruleId": remark.rule,
            "ruleIndex": order[remark.rule],
            "level": remark.level,
            "message": {"text": _message(diagnostic)},
            "locations": [_location(remark, spans[0])],
            "partialFingerprints": {
                # GitHub's own name for what stays when lines move; the number distinguishes equal ones in a file
                "primaryLocationLineHash": f"{place}:{seen[uri, place]}",
                "steelyard/v1": digest(tried.case.id, model, place),
            },
            "properties": {"case": plain(tried.case.id), "model": plain(model), "attempt": tried.number},
        }
        others = [_location(remark, span) for span in spans[1:MAX_SARIF_LOCATIONS]]
        yield result | {"relatedLocations": others} if others else result


def _message(diagnostic: Diagnostic) -> str:
    text = plain(diagnostic.message)
    short = text if len(text) <= MAX_SARIF_MESSAGE_CHARACTERS else text[: MAX_SARIF_MESSAGE_CHARACTERS - 1] + "…"
    # a viewer makes links of [text](address), and the text is a model's
    return short.replace("](", "] (").strip() or diagnostic.level or "no message"


def _location(remark: AttemptDiagnostic, span: Span | None) -> dict[str, Any]:
    tried = remark.tried
    physical: dict[str, Any] = {"artifactLocation": {"uri": _span_file_uri(remark, span)}, "region": _region(span)}
    model = model_label(tried.model, tried.tier)
    logical = {
        "name": line(tried.case.id),
        "fullyQualifiedName": line(f"{tried.case.id} / {model} / attempt {tried.number}"),
        "kind": "case",
    }
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _region(span: Span | None) -> dict[str, Any]:
    """Where in the file; a place that cannot be is moved to the nearest that can, and an unknown one to line 1."""
    if span is None:
        return {"startLine": 1}
    first, begin = _bounded_position(span.line_start), _bounded_position(span.column_start)
    last, end = max(first, _bounded_position(span.line_end)), _bounded_position(span.column_end)
    region = {
        "startLine": first,
        "startColumn": begin,
        "endLine": last,
        "endColumn": max(begin, end) if last == first else end,
    }
    return region | {"snippet": {"text": plain(span.text)}} if span.text else region


def _bounded_position(number: int) -> int:
    # what a compiler prints about #line can be anything; readers count in 32 bits
    return min(max(1, number), 2**31 - 1)
