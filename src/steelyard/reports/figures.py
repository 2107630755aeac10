"""The words and numbers that reports share, made harmless and readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steelyard.analysis.cheats import cheats_text
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.hard_cases import HardCase
from steelyard.analysis.measure import ComparedMeasure
from steelyard.analysis.suites import classify_response
from steelyard.analysis.summary import AttemptText, CaseSummary, Flag, ModelSummary, Summary
from steelyard.records import FLAG_BESIDE_TESTS, FLAG_CHANGED_TESTS, Cost, Evidence, Spending
from steelyard.text import MAX_REASON_LINE_CHARACTERS, SCANNED_CHARACTERS_PER_SHOWN, counted, line

# Numbers look the same in every report.


def rate(estimate: Estimate) -> str:
    """A share with its interval.

    >>> rate(Estimate(value=8 / 11, low=0.4, high=0.914))
    '72.7% [40.0, 91.4]'
    """
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} [{estimate.low * 100:.1f}, {estimate.high * 100:.1f}]"


def points(estimate: Estimate) -> str:
    """A mean score with its interval, in the units of thresholds.

    >>> points(Estimate(value=0.8125, low=0.7, high=0.9))
    '0.812 [0.700, 0.900]'
    """
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def money(usd: float) -> str:
    """US dollars, with four significant digits where a cent is too coarse.

    >>> money(12.345), money(0.774), money(0.00012345), money(0)
    ('$12.35', '$0.774', '$0.0001234', '$0.00')
    """
    if usd >= 1 or usd == 0:
        return f"${usd:,.2f}"
    if usd >= 0.01:
        return f"${usd:.3f}"
    exponent = int(f"{usd:.3e}".partition("e")[2])
    return f"${usd:.{3 - exponent}f}"


def dollars(estimate: Estimate) -> str:
    """A price with its interval, whose upper end may be open.

    >>> dollars(Estimate(value=0.774, low=0.497, high=1.567)), dollars(Estimate(value=None, infinite=True, low=1.9315))
    ('$0.774 [0.497, 1.57]', '∞ (at least $1.93)')
    """
    low, high = ("" if end is None else money(end)[1:] for end in (estimate.low, estimate.high))
    if estimate.infinite:
        return f"∞ (at least ${low})" if low else "∞"
    if estimate.value is None:
        return "-"
    return f"{money(estimate.value)} [{low}, {high or '∞'}]" if low else money(estimate.value)


def quality(on: ComparedMeasure, estimate: Estimate) -> str:
    """The figure that decides, with its interval: a share of passes, or a mean score."""
    return points(estimate) if on == "score" else rate(estimate)


def price(cost: Cost | None) -> str:
    """What one reply cost: unknown is not free."""
    return "unknown" if cost is None else money(cost.usd)


def seconds(value: float | None) -> str:
    """A span of time."""
    return "-" if value is None else f"{value:.2f} s"


def mean_seconds(estimate: Estimate) -> str:
    """A mean span of time with its interval.

    >>> mean_seconds(Estimate(value=22.087, low=20, high=24.5)), mean_seconds(Estimate(value=3))
    ('22.09 s [20.00, 24.50]', '3.00 s')
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "unknown" if estimate.value is None else seconds(estimate.value)
    return f"{seconds(estimate.value)} [{estimate.low:.2f}, {estimate.high:.2f}]"


def model_label(model: str, tier: str) -> str:
    """A model under its tier: the name of a column in every report.

    >>> model_label("openai/gpt-5", ""), model_label("openai/gpt-5", "T1")
    ('openai/gpt-5', 'openai/gpt-5 (T1)')
    """
    return f"{model} ({tier})" if tier else model


# What every format says about a model and an attempt.


class MetricRow(NamedTuple):
    """One row of the table of models."""

    name: str
    cells: tuple[str, ...]
    """One per model, in order."""
    notes: tuple[tuple[str, str], ...] = ()
    """The models whose estimate rests on fewer cases or attempts than there are, and on how many; the name then ends in `*`."""


def metric_rows(models: Sequence[ModelSummary]) -> list[MetricRow]:
    """All that is known of some models, a row per figure; rows that only matter when something happened come last."""
    scores = [model.score for model in models]
    decides = any(model.on == "score" for model in models)
    name = "mean score, which decides" if decides else "mean score"
    score_row = _estimate_row(name, models, scores, tuple(map(points, scores)), _thin_flags(models, scores))
    rows = [
        MetricRow("cases", tuple(f"{model.cases:,}" for model in models)),
        MetricRow("attempts", tuple(f"{model.attempts:,}" for model in models)),
        *([score_row] if decides else []),
        MetricRow("correct", tuple(f"{model.correct:,}/{model.attempts:,}" for model in models)),
        MetricRow("solved cases", tuple(f"{model.solved:,}/{model.cases:,}" for model in models)),
    ]
    for k in sorted({k for model in models for k in model.pass_at}):
        nothing = Estimate(value=None)
        estimates = [model.pass_at.get(k, nothing) for model in models]
        thin = [estimate.cases < model.cases for model, estimate in zip(models, estimates, strict=True)]
        rows.append(_estimate_row(f"pass@{k}", models, estimates, tuple(map(rate, estimates)), thin))
    rows += _levels(models)
    rows += [] if decides else [score_row]
    for name, shares in (
        ("compiled", [model.compile_rate for model in models]),
        ("tests passed", [model.test_pass_rate for model in models]),
        ("lint score", [model.lint for model in models]),
    ):
        if name != "lint score" or any(share.value is not None for share in shares):
            rows.append(_estimate_row(name, models, shares, tuple(map(rate, shares)), _thin_flags(models, shares)))
    if any(model.flaky for model in models):
        rows.append(MetricRow("flaky cases", tuple(f"{model.flaky:,}/{model.cases:,}" for model in models)))
    rows += [
        MetricRow("tokens", tuple(map(_tokens, models))),
        MetricRow("cost", tuple(map(_cost, models))),
        MetricRow("cost of pass", tuple(map(_cost_of_pass, models))),
        MetricRow("mean latency", tuple(mean_seconds(model.latency) for model in models)),
        MetricRow("p50, p95", tuple(map(_latency_percentiles, models))),
        MetricRow("missing", tuple(map(_missing, models))),
    ]
    if any(model.truncated for model in models):
        rows.append(MetricRow("cut off", tuple(f"{model.truncated:,}" for model in models)))
    if any(model.empty for model in models):
        rows.append(MetricRow("empty", tuple(f"{model.empty:,}" for model in models)))
    if any(model.timed_out for model in models):
        rows.append(MetricRow("out of time", tuple(f"{model.timed_out:,}" for model in models)))
    if any(model.tampered for model in models):
        rows.append(MetricRow("tampered", tuple(f"{model.tampered:,}" for model in models)))
    for flag in _flags(models):
        rows.append(MetricRow(line(flag), tuple(f"{model.flagged.get(flag, 0):,}" for model in models)))
    if any(model.rechecked for model in models):
        rows.append(MetricRow("disagreed", tuple(map(_disagreed, models))))
    return rows


def _thin_flags(models: Sequence[ModelSummary], estimates: Sequence[Estimate]) -> list[bool]:
    # where nothing is compiled or tested there is no estimate to be thin
    return [
        estimate.cases > 0 and (estimate.cases < model.cases or estimate.attempts < model.attempts)
        for model, estimate in zip(models, estimates, strict=True)
    ]


def _estimate_row(
    name: str,
    models: Sequence[ModelSummary],
    estimates: Sequence[Estimate],
    cells: tuple[str, ...],
    thin: Sequence[bool],
) -> MetricRow:
    if not any(thin):
        return MetricRow(name, cells)
    notes = tuple(
        (model_label(model.model, model.tier), _rests_on(model, estimate))
        for model, estimate, few in zip(models, estimates, thin, strict=True)
        if few
    )
    return MetricRow(f"{name}*", cells, notes)


def _rests_on(model: ModelSummary, estimate: Estimate) -> str:
    if estimate.cases < model.cases:
        return f"{estimate.cases:,}/{model.cases:,} cases"
    return f"{estimate.attempts:,}/{model.attempts:,} attempts"


def _tokens(model: ModelSummary) -> str:
    # every reply has tokens: a provider that reports none did not count them
    return f"{total:,}" if (total := model.input_tokens + model.output_tokens) else "unknown"


def _latency_percentiles(model: ModelSummary) -> str:
    return "unknown" if model.latency_p50 is None else f"{seconds(model.latency_p50)}, {seconds(model.latency_p95)}"


def _cost(model: ModelSummary) -> str:
    if model.cost_usd is None:
        return "unknown"
    return f"at least {money(model.cost_usd)}" if model.unpriced else money(model.cost_usd)


def _cost_of_pass(model: ModelSummary) -> str:
    price = model.cost_of_pass
    return "unknown" if price.value is None and not price.infinite else dollars(price)


def _missing(model: ModelSummary) -> str:
    unscored = f" ({counted(len(model.unscored), 'case')} unscored)" if model.unscored else ""
    return f"{model.missing:,}{unscored}"


def _disagreed(model: ModelSummary) -> str:
    return f"{model.disagreed:,}/{model.rechecked:,} rechecked" if model.rechecked else "-"


def footnotes(rows: Sequence[MetricRow]) -> list[str]:
    """What the starred rows rest on, such as `openai/gpt-5 (47/50 cases): pass@5`."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for note in row.notes:
            names_by_note.setdefault(note, []).append(row.name.rstrip("*"))
    return [f"{line(model)} ({share}): {', '.join(names)}" for (model, share), names in names_by_note.items()]


class FlaggedAttempts(NamedTuple):
    """Attempts to look at for one reason."""

    title: str
    attempts: tuple[tuple[ModelSummary, Flag], ...]
    more: int
    """How many others there are."""


FLAG_TITLES = {
    FLAG_BESIDE_TESTS: "{attempts} only beside their tests: right there, wrong apart from them; read them",
    FLAG_CHANGED_TESTS: "{attempts} passed a test with a false expected value, too; counted as passed: read them",
}
"""What a flag means for a reader."""


def _flags(models: Sequence[ModelSummary]) -> list[str]:
    return sorted({flag for model in models for flag in model.flagged})


def flagged_attempts(models: Sequence[ModelSummary]) -> list[FlaggedAttempts]:
    """What a reader should look at first: forgeries, then verdicts that did not come out the same."""
    found = []
    forged = sum(model.tampered for model in models)
    if forged:
        rest = "its result and counts as failed" if forged == 1 else "their result and count as failed"
        attempts = tuple((model, doubt) for model in models for doubt in model.tampered_attempts)
        found.append(
            FlaggedAttempts(f"{counted(forged, 'attempt')} tried to forge {rest}", attempts, forged - len(attempts))
        )
    for flag in _flags(models):
        count = sum(model.flagged.get(flag, 0) for model in models)
        marked = tuple((model, doubt) for model in models for doubt in model.flagged_attempts if doubt.flag == flag)
        title = FLAG_TITLES.get(flag, f"{{attempts}} to look at: {line(flag)}")
        found.append(FlaggedAttempts(title.format(attempts=counted(count, "attempt")), marked, count - len(marked)))
    disagreed = sum(model.disagreed for model in models)
    if disagreed:
        rechecked = counted(sum(model.rechecked for model in models), "attempt")
        attempts = tuple((model, doubt) for model in models for doubt in model.disagreed_attempts)
        title = f"{disagreed:,} of {rechecked} did not come out the same when verified again"
        found.append(FlaggedAttempts(title, attempts, disagreed - len(attempts)))
    return found


MAX_VERIFICATION_WAYS = 12
"""Ways to verify that are listed: a cluster may have hundreds of nodes."""


STRONG_LEVELS = ("full", "bubblewrap", "")
"""Levels of the sandbox that need no word."""


def verified_text(models: Sequence[ModelSummary]) -> str:
    """How many attempts have a verdict, such as `397 of 400 verified`, and which of them a reader should look at; empty if none was run."""
    ways = [way for model in models for way in model.verified]
    recorded = sum(way.attempts for way in ways if way.trust == "recorded")
    verified = sum(way.attempts for way in ways) - recorded
    if not ways:
        return ""
    missing = sum(model.missing for model in models)
    of = f" of {verified + recorded + missing:,}" if missing else ""
    texts = [f"{verified:,}{of} verified"] if verified else []
    texts += [f"{recorded:,}{of} judged by another tool"] if recorded else []
    weak = sorted({way.isolation for model in models for way in model.verified} - {*STRONG_LEVELS})
    texts += [f"in a weaker sandbox ({', '.join(map(line, weak))})"] if weak else []
    if cheats := _cheats(models):
        texts.append(cheats)
    return "; ".join(texts)


def _cheats(models: Sequence[ModelSummary]) -> str:
    flagged = {flag: sum(model.flagged.get(flag, 0) for model in models) for flag in _flags(models)}
    return cheats_text(sum(model.tampered for model in models), flagged)


def verification_text(models: Sequence[ModelSummary]) -> str:
    """How the attempts were verified, such as `400 isolated, full on node-7`; empty if none was run, and this machine read them."""
    ways: Counter[str] = Counter()
    # a pass of tests that ran beside the answer is weaker evidence, so a reader should know how many there are
    weaker: Counter[str] = Counter()
    for model in models:
        for way in model.verified:
            how = ", ".join(filter(None, (way.trust, way.isolation)))
            name = " on ".join(filter(None, (how or "read", way.node)))
            ways[name] += way.attempts
            weaker[name] += way.correct if way.trust == "in-process" else 0
    entries = sorted(ways.items(), key=lambda item: (-item[1], item[0]))
    texts = [
        f"{count:,} {line(way)}" + (f" ({weaker[way]:,} correct)" if weaker[way] else "")
        for way, count in entries[:MAX_VERIFICATION_WAYS]
    ]
    if rest := entries[MAX_VERIFICATION_WAYS:]:
        texts.append(f"{sum(count for _, count in rest):,} in {len(rest)} other ways or places")
    if separated := sum(model.separated for model in models):
        watched = sum(model.watched for model in models)
        texts.append(f"{watched:,} of {separated:,} compared apart were run plainly, too")
    if cheats := _cheats(models):
        texts.append(cheats)
    if shared := sum(model.shared for model in models):
        texts.append(f"{counted(shared, 'verdict')} shared with an identical answer")
    return "; ".join(texts)


def witness_text(summary: Summary) -> str:
    """How many witnesses passed, such as `20 of 20 passed`; empty if no verdict needed one."""
    counts = summary.witnesses
    return f"{counts.passed:,} of {counts.tried:,} passed" if counts else ""


def spending_text(summary: Summary) -> str:
    """What was saved, and what conversations without a reply cost; empty if there is nothing to report."""
    spending = summary.spending or Spending()
    lost = max(0.0, -spending.prompt_caching_saved_usd)
    amounts = {
        "saved by replies of earlier runs": spending.cache_saved_usd,
        "saved by batches": spending.batch_saved_usd,
        "saved by prompt caching": spending.prompt_caching_saved_usd,
        "lost by prompt caching": lost,
        "spent on conversations without a reply, in no other figure": spending.unfinished_usd,
    }
    return " · ".join(f"{money(usd)} {what}" for what, usd in amounts.items() if usd > 0)


def _levels(models: Sequence[ModelSummary]) -> Iterator[MetricRow]:
    """pass@k at each level of success, except one that says what being correct says."""
    nothing = Estimate(value=None)
    for level in dict.fromkeys(level for model in models for level in model.levels):
        known = [model.levels.get(level, {}) for model in models]
        if all(each in ({}, model.pass_at) for each, model in zip(known, models, strict=True)):
            continue
        for k in sorted({k for each in known for k in each}):
            estimates = [each.get(k, nothing) for each in known]
            thin = [0 < estimate.cases < model.cases for model, estimate in zip(models, estimates, strict=True)]
            yield _estimate_row(f"{line(level)} pass@{k}", models, estimates, tuple(map(rate, estimates)), thin)


def case_figures(case: CaseSummary, *, brief: bool = False) -> str:
    """What is known of one case under one model, in one line; in brief without pass@k.

    >>> case_figures(CaseSummary(case="a", model="m", attempts=10, correct=8, missing=0, score=0.9,
    ...     rate=Estimate(value=0.8, low=0.49, high=0.943), pass_at={1: 0.8, 2: 44 / 45, 20: None}, flake_rate=16 / 45))
    '8/10 correct [49.0, 94.3], pass@2 97.8%, pass@20 -, score 0.900, flake rate 35.6%'
    """
    if not case.attempts:
        return "not judged"
    parts = [f"{case.correct}/{case.attempts} correct{rate(case.rate).partition('%')[2]}"]
    if not brief:
        # pass@1 is the share of correct attempts, which is already there
        sizes = [(k, value) for k, value in sorted(case.pass_at.items()) if k > 1]
        parts += [f"pass@{k} {'-' if value is None else f'{value:.1%}'}" for k, value in sizes]
    parts += [] if case.score is None else [f"score {case.score:.3f}"]
    parts += [f"flake rate {case.flake_rate:.1%}"] if case.flake_rate else []
    return ", ".join(parts)


def hard_case_figures(hard: HardCase, models: int) -> str:
    """How a case went over all models, with the best model's rate beside it; with one model, its own figures."""
    if models == 1:
        return case_figures(hard.best, brief=True)
    best = f"{hard.best.correct}/{hard.best.attempts}{rate(hard.best.rate).partition('%')[2]}"
    return f"{hard.correct}/{hard.attempts} correct, best {model_label(hard.best.model, hard.best.tier)} {best}"


def hard_case_reason(hard: HardCase, models: int) -> str:
    """Why the best of the models that failed did so, and which one that is."""
    if models == 1 or not hard.failed.why:
        return hard.failed.why
    return f"{model_label(hard.failed.model, hard.failed.tier)}: {hard.failed.why}"


def outcome(tried: AttemptText) -> str:
    """`correct`, `wrong`, or `missing` when it is not known which."""
    return "missing" if tried.correct is None else "correct" if tried.correct else "wrong"


def missing_reason(tried: AttemptText) -> tuple[str, str]:
    """The stage of an attempt without a verdict, and the reason."""
    if tried.failure is not None:
        return tried.failure.stage, tried.failure.message
    if tried.reply is None:
        return "ask", "not asked yet"
    return ("judge", "only judges can tell") if tried.case.by_judges else ("verify", "not verified yet")


def attempt_failure_reason(tried: AttemptText) -> str:
    """Why an attempt is not correct, in one line; empty when it is."""
    if tried.verdict is None:
        return line(": ".join(missing_reason(tried)), MAX_REASON_LINE_CHARACTERS)
    found = tried.verdict.found
    if tried.correct:
        return ""
    if found.tampered:
        return line(f"tampered: {found.tampered}", MAX_REASON_LINE_CHARACTERS)
    if (
        found.label
        and found.reason
        and found.label.casefold()
        not in found.reason[: SCANNED_CHARACTERS_PER_SHOWN * MAX_REASON_LINE_CHARACTERS].casefold()
    ):
        return line(f"{found.label}: {found.reason}", MAX_REASON_LINE_CHARACTERS)
    return line(found.reason or found.label, MAX_REASON_LINE_CHARACTERS)


def tests_passed(tried: AttemptText) -> str:
    """Tests passed of those that were run, such as `2/3`."""
    if tried.verdict is None or not tried.verdict.found.tests:
        return "-"
    outcomes = [test.outcome for test in tried.verdict.found.tests if test.outcome != "ignored"]
    return f"{outcomes.count('passed')}/{len(outcomes)}"


def response_class(tried: AttemptText) -> str:
    """The class of a response, such as `refusal`; empty if the case asks for no response or the attempt was not judged."""
    if tried.verdict is None or tried.case.kind != "response":
        return ""
    return classify_response(bool(tried.correct), tried.verdict.found.label)


def evidence_text(evidence: Evidence) -> str:
    r"""Why a response was classified as it was, on one line or on several.

    >>> from steelyard.records import Evidence
    >>> evidence_text(Evidence(rule="expect", what="no JSON", matched="Sure!", position=0, line=1, column=1))
    'expect: no JSON\n  "Sure!" at line 1, column 1'
    """
    lines = [f"{evidence.rule}: {evidence.what}"]
    at = "" if evidence.line is None or evidence.column is None else f"line {evidence.line}, column {evidence.column}"
    if evidence.matched:
        lines.append(f'"{evidence.matched}"{f" at {at}" if at else ""}')
    elif at:
        lines.append(f"at {at}")
    details = [
        ("schema", evidence.schema_path),
        ("value", evidence.value_path),
        ("policy", evidence.policy),
        ("form", evidence.form),
        ("would be right after a repair", ", ".join(evidence.mended)),
    ]
    lines += [f"{name}: {value}" for name, value in details if value]
    return "\n  ".join(lines)
