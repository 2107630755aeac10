"""What a person reads in a terminal about one attempt: what was asked, what came back, and what was found out about it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from steelyard.analysis.attempt_texts import AttemptText
from steelyard.records import Answer, Diagnostic, Finding, MessageRole
from steelyard.reports.figures import (
    attempt_failure_reason,
    evidence_text,
    missing_reason,
    model_label,
    outcome,
    price,
    response_class,
    seconds,
    tests_passed,
)
from steelyard.reports.terminal import OUTCOME_STYLES, TerminalPage
from steelyard.reports.traces import call_text, turn_texts
from steelyard.text import counted, line
from steelyard.tiers.rubrics import JudgingResult

MAX_SHOWN_TOOL_CHARACTERS = 4_000
"""Maximum characters of the arguments or the result of a call on a terminal; the journal and pages have all."""


def attempt_text(tried: AttemptText, judged: Iterable[JudgingResult] = (), *, width: int, color: bool) -> str:
    """All about one attempt: what was asked, what came back, what was found out about it, and what judges say."""
    page = TerminalPage(width, color)
    state = outcome(tried)
    score = "" if tried.score is None else f", score {tried.score:.3f}"
    page.say(
        Text(f"{line(tried.case.id)} · {line(model_label(tried.model, tried.tier))} · attempt {tried.number}", "bold")
    )
    page.fit(
        Text.assemble(
            (state, OUTCOME_STYLES[state]),
            score,
            f": {attempt_failure_reason(tried)}" if attempt_failure_reason(tried) else "",
        )
    )
    for message in tried.case.messages:
        page.section("Prompt" if message.role == MessageRole.USER else f"Prompt ({line(message.role)})", message.text)
    if tried.reply is not None:
        _put_answer(page, tried.reply.answer)
    if tried.verdict is None:
        page.section("Missing", ": ".join(missing_reason(tried)))
    elif primary := response_class(tried):
        page.head(f"Classification  {line(primary)}")
        for evidence in tried.verdict.found.evidence:
            page.verbatim(evidence_text(evidence), indent="  ")
    else:
        _put_finding(page, tried, tried.verdict.found)
    for each in judged:
        _put_judgment(page, each)
    facts = _attempt_facts(tried)
    if facts:
        page.head("Numbers")
    for name, value in facts:
        page.say(Text(f"  {name:<18} {line(value)}"))
    return page.text()


def _put_answer(page: TerminalPage, answer: Answer) -> None:
    for turn in turn_texts(answer, MAX_SHOWN_TOOL_CHARACTERS):
        page.section(turn.head, turn.body)
    if answer.reasoning and not answer.turns:
        page.section("Reasoning", answer.reasoning)
    if answer.transcript:
        page.section("Transcript", answer.transcript)
    page.section("Reply", answer.text, nothing="(only tool calls)" if answer.tool_calls else "(empty)")
    if answer.tool_calls:
        page.section("Tool calls", "\n".join(call_text(call, MAX_SHOWN_TOOL_CHARACTERS) for call in answer.tool_calls))
    for number, choice in enumerate(answer.other_choices, 2):
        page.section(f"Choice {number}, not an attempt", choice, nothing="(empty)")


def _put_finding(page: TerminalPage, tried: AttemptText, found: Finding) -> None:
    """What running the code of a reply showed."""
    if found.code and tried.reply is not None and found.code.strip() == tried.reply.answer.text.strip():
        page.head("Code  the whole reply")
    else:
        page.section("Code", found.code or "", nothing="(none found in the reply)")
    if found.missing:
        page.section("Not defined", ", ".join(found.missing))
    page.head(f"Tests  {tests_passed(tried)}" if found.tests else "Tests  none were run")
    for test in found.tests:
        result = (f"{line(test.outcome):<7}", OUTCOME_STYLES.get(test.outcome, ""))
        page.fit(Text.assemble("  ", result, f"  {line(test.name)}"))
        if test.message:
            page.verbatim(test.message, indent="      ")
    if found.output:
        page.section("Output", found.output)
    if found.diagnostics:
        page.head("Diagnostics")
    for diagnostic in found.diagnostics:
        page.verbatim(_diagnostic_text(diagnostic), indent="  ")


def _attempt_facts(tried: AttemptText) -> list[tuple[str, str]]:
    """The numbers of an attempt by their names."""
    facts = _answer_facts(tried.reply.answer) if tried.reply else []
    if tried.reply and tried.reply.cached_from:
        facts.append(("from the cache", f"run {tried.reply.cached_from[0]}"))
    if tried.verdict is None:
        return facts
    found = tried.verdict.found
    if not response_class(tried):
        facts += [("compiling", seconds(found.compile_seconds)), ("testing", seconds(found.test_seconds))]
        facts.append(("lint warnings", "-" if found.warnings is None else str(found.warnings)))
        facts.append(("sandbox", " · ".join(filter(None, (found.isolation, found.trust))) or "-"))
    if found.controls:
        facts.append(("controls", counted(found.controls, "false test")))
    if found.flag:
        facts.append(("flag", found.flag))
    if found.watched is not None:
        facts.append(("plain run", "looked at it, too" if found.watched else "has not looked at it"))
    if found.note:
        facts.append(("note", found.note))
    if tried.verdict.node:
        facts.append(("verified on", tried.verdict.node))
    if tried.verdict.shared_from:
        facts.append(("verdict", f"shared with an identical answer, ask key {tried.verdict.shared_from}"))
    if found.rechecked:
        facts.append(("verified again", f"{found.rechecked}x, {found.disagreed}x with another outcome"))
    return facts


def _answer_facts(answer: Answer) -> list[tuple[str, str]]:
    facts = [("finish", answer.finish), ("cost", price(answer.cost))]
    if answer.turns:
        facts.append(("turns", f"{len(answer.turns)}, {counted(len(answer.all_tool_calls), 'tool call')}"))
    if answer.note:
        facts.append(("note", answer.note))
    if answer.exit_code is not None:
        facts.append(("exit code", str(answer.exit_code)))
    tokens = (
        ("input tokens", answer.input_tokens, True),
        ("of them cached", answer.cached_tokens, False),
        ("output tokens", answer.output_tokens, True),
        ("of them reasoning", answer.reasoning_tokens, False),
    )
    facts += [
        (name, "-" if count is None else f"{count:,}") for name, count, always in tokens if always or count is not None
    ]
    if answer.recorded_at:
        facts.append(("recorded at", answer.recorded_at))
    if answer.first_token is not None:
        facts.append(("first token", seconds(answer.first_token)))
    return [*facts, ("latency", "unknown" if answer.latency is None else seconds(answer.latency))]


def _put_judgment(page: TerminalPage, result: JudgingResult) -> None:
    """One judge's marks with their reasons; a judge without a judgment says why."""
    judge = f"Judge  {line(result.judge)}{f', asked again ({result.repeat})' if result.repeat > 1 else ''}"
    if result.judgment is None:
        page.head(f"{judge}  no judgment")
        page.verbatim(result.unusable, indent="  ")
        return
    score, passed = result.judgment.score, result.judgment.passed
    word = "" if passed is None else ", passes" if passed else ", does not pass"
    page.head(f"{judge}  {'nothing applies' if score is None else f'{score:.3f}'}{word}")
    for name, marks in result.judgment.categories.items():
        given = "N/A" if marks.score is None else f"{marks.score:.2f}"
        reasons = [marks.reason, *(f"{item}: {mark.reason}" for item, mark in marks.items.items() if mark.reason)]
        page.verbatim(
            ": ".join(filter(None, (f"{given:>4}  {line(name)}", "; ".join(filter(None, reasons))))), indent="  "
        )
    if result.judgment.reasoning:
        page.verbatim(result.judgment.reasoning, indent="  ")


def _diagnostic_text(diagnostic: Diagnostic) -> str:
    code = f"[{diagnostic.code}]" if diagnostic.code else ""
    places = "".join(f"\n  at {span.file}:{span.line_start}:{span.column_start}" for span in diagnostic.spans)
    return f"{diagnostic.level}{code}: {diagnostic.message}{places}"
