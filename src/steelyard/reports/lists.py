"""Lists for people, spreadsheets and programs: runs, models, suites, cases, standings, and the health of a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from steelyard.analysis.counts import Standing, Standings
from steelyard.analysis.estimates import Estimate
from steelyard.analysis.judge_bias import JudgePreferences
from steelyard.analysis.judged_rates import JudgedRates
from steelyard.analysis.suites import RecordedSuites
from steelyard.errors import ExitCode
from steelyard.records import Case, Price, Record, RecordedClaim
from steelyard.reports.figures import dollars, money, points, rate, seconds
from steelyard.reports.tables import CsvValue, bullets, code, csv_text, json_report, markdown_table
from steelyard.reports.terminal import COLUMN_GAP, TerminalPage, put_grid, put_judged
from steelyard.text import counted, line

UNFOLDED_PAGE_COLUMNS = 10_000
"""Columns of a page that must not be folded."""


class ContainmentLevel(Record, frozen=True, kw_only=True):
    """One level of containment, tried out here."""

    name: str
    held: dict[str, bool]
    """What is claimed of the level in words, and whether a probe failed to break it; empty when the machine does not support it."""
    problem: str
    """Why the machine does not support it; empty when it does."""
    holds: bool
    """Whether replies run at this level by default."""


class AttemptLimit(Record, frozen=True, kw_only=True):
    """What one attempt may use up."""

    name: str
    most: str


class ToolStatus(Record, frozen=True, kw_only=True):
    """A program that verifiers can use."""

    name: str
    purpose: str
    version: str
    """Empty when it was not found, or did not say."""
    path: str
    problem: str
    """Why it is of no use here; empty when it is."""
    remedy: str
    """How to get it; empty when it is there."""


class RegisteredPlugin(Record, frozen=True, kw_only=True):
    """A part that another distribution registers."""

    kind: str
    """The seam, such as `verifiers`."""
    name: str
    distribution: str
    """Its name and version."""
    problem: str = ""
    """Why it cannot be loaded; empty when it can."""


class MachineHealth(Record, frozen=True, kw_only=True):
    """All that `steelyard doctor` finds out."""

    system: str
    root: bool
    level: str
    """The level that code runs at unless the user says otherwise; empty when none holds."""
    levels: tuple[ContainmentLevel, ...]
    """From the strongest to the weakest."""
    limits: tuple[AttemptLimit, ...]
    tools: tuple[ToolStatus, ...]
    advice: tuple[str, ...]
    """What is worth knowing or doing about this machine."""
    plugins: tuple[RegisteredPlugin, ...] = ()
    """Other people's parts, by kind and name."""

    @property
    def exit_code(self) -> ExitCode:
        """How a command ends that shows this: whether generated code can be contained here."""
        return ExitCode.OK if self.level else ExitCode.CANNOT_TELL


def standings_markdown(standings: Standings) -> str:
    """The same as a table in GitHub's Markdown, with notes below it."""
    head, rows = standings_rows(standings)
    parts = [markdown_table(head, ([code(row[0]), *row[1:]] for row in rows))]
    if not standings.conclusive:
        parts.append("**Cannot tell**: more than 5% of the cases of some model have no outcome.")
    if standings.notes:
        parts.append(bullets(standings.notes))
    return "\n\n".join(parts) + "\n"


def table_csv(standings: Standings, *, brief: bool = False) -> str:
    """LLM and pass@k as numbers, then, unless in brief, their intervals and what they rest on.

    What cannot be estimated is empty.
    """
    ends = [f"pass@{k} {end}" for k in standings.k for end in ("low", "high")]
    rest = [] if brief else [*ends, "problems", "attempts", "correct", "unscored"]
    rows = []
    for model in standings.models:
        estimates = [model.pass_at[k] for k in standings.k]
        row: list[CsvValue] = [model.model, *(estimate.value for estimate in estimates)]
        if not brief:
            row += [end for estimate in estimates for end in (estimate.low, estimate.high)]
            row += [model.cases, model.attempts, model.correct, len(model.unscored)]
        rows.append(row)
    return csv_text(["LLM", *(f"pass@{k}" for k in standings.k), *rest], rows)


def levels_csv(levels: Mapping[str, Standings]) -> str:
    """The same for several levels of success, one below the other; the first column says which."""
    head = ""
    rows = []
    for level, standings in levels.items():
        head, *lines = table_csv(standings).splitlines()
        rows += [f"{level},{line}" for line in lines]
    return "\n".join([f"level,{head}", *rows, ""])


STANDINGS_FORMATS: dict[str, Callable[[Standings], str]] = {
    "json": json_report,
    "csv": table_csv,
    "markdown": standings_markdown,
}


def standings_rows(standings: Standings) -> tuple[list[str], list[list[str]]]:
    """The head and the rows that a person reads; a star marks a pass@k that rests on fewer cases than there are."""
    models = standings.models
    starred = {k for k in standings.k if any(_is_thin(model, model.pass_at[k], standings) for model in models)}
    decides = any(model.on == "score" for model in models)
    with_score = any(model.score for model in models) and not decides
    head = ["LLM", *["mean score"] * decides, *(f"pass@{k}{'*' if k in starred else ''}" for k in standings.k)]
    with_cost = any(model.cost_of_pass for model in models)
    head += ["score"] * with_score + ["cost of pass"] * with_cost + ["problems", "attempts"]
    rows = []
    for model in models:
        first = [points(model.score) if model.score else "-"] * decides
        row = [line(model.model), *first, *(points(model.pass_at[k]) for k in standings.k)]
        row += [points(model.score) if model.score else "-"] * with_score
        row += [dollars(model.cost_of_pass) if model.cost_of_pass else "unknown"] * with_cost
        row += [f"{model.cases:,}", f"{model.attempts:,}"]
        rows.append(row)
    return head, rows


def _is_thin(model: Standing, estimate: Estimate, standings: Standings) -> bool:
    """Whether it rests on fewer cases than have an outcome."""
    counted = model.cases if standings.missing == "zero" else model.cases - len(model.unscored)
    return estimate.value is not None and estimate.cases < counted


def judged_text(rates: JudgedRates, *, width: int) -> str:
    """What judges and people say together, alone."""
    page = TerminalPage(width, color=False)
    put_judged(page, rates)
    return page.text()


def _put_rows(page: TerminalPage, head: Sequence[str], rows: Sequence[Sequence[str]], *, nothing: str) -> None:
    if not rows:
        page.say(Text(nothing))
        return
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold")
    for name in head:
        # a name or a number that is broken in two cannot be copied; only the last column may wrap
        table.add_column(name, no_wrap=name != head[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    page.say(table)


def standings_text(standings: Standings, *, color: bool) -> str:
    """Where models stand, a row per model; as wide as it must be, because a number must not be cut."""
    page = TerminalPage(UNFOLDED_PAGE_COLUMNS, color)
    head, rows = standings_rows(standings)
    _put_rows(page, head, rows, nothing="no outcomes")
    if not standings.conclusive:
        page.say()
        page.say(Text("Cannot tell: more than 5% of the cases of some model have no outcome.", style="bold yellow"))
    return page.text()


def rows_text(columns: Sequence[str], rows: Sequence[Sequence[str]], *, color: bool) -> str:
    """A table of any values, each on one line."""
    page = TerminalPage(UNFOLDED_PAGE_COLUMNS, color)
    head = [line(column) for column in columns]
    _put_rows(page, head, [[line(cell, 80) for cell in row] for row in rows], nothing="  ".join(head))
    return page.text()


def claims_text(claims: Sequence[RecordedClaim], *, color: bool) -> str:
    """What a tool published about its attempts, beside what the attempts give."""
    rows = [[claim.about, claim.they, claim.we, f"{claim.differs:,}" if claim.differs else "same"] for claim in claims]
    return rows_text(["figure", "they say", "we say", "differ"], rows, color=color)


def preferences_text(found: Sequence[JudgePreferences], *, color: bool) -> str:
    """What judges of pairs prefer, a row each, and whether they favour a place."""
    first, second = (line(found[0].a, 30), line(found[0].b, 30)) if found else ("a", "b")
    head = ["judge", "pairs", f"{first} better", f"{second} better", "tie", "unusable", f"{first} preferred"]
    rows = [
        [
            each.judge,
            f"{each.pairs:,}",
            *(f"{count:,}" for count in (each.a_wins, each.b_wins, each.ties, each.unusable)),
            rate(each.preferred),
        ]
        for each in found
    ]
    sentences = [
        f"  {line(each.judge)}: the order alone decided {each.position.first + each.position.second:,} of {counted(each.pairs, 'pair')}"
        f" ({each.position.first:,} for the first answer, {each.position.second:,} for the second; p {each.position.p:.2g})\n"
        for each in found
        if each.pairs
    ]
    return rows_text(head, rows, color=color) + ("\n" + "".join(sentences) if sentences else "")


def suites_text(cases: Sequence[Case], *, color: bool) -> str:
    """The suites that some cases belong to, a row each."""
    page = TerminalPage(UNFOLDED_PAGE_COLUMNS, color)
    counts = Counter(case.suite for case in cases if case.suite)
    tags = {suite: Counter(tag for case in cases if case.suite == suite for tag in case.tags) for suite in counts}
    rows = [
        (line(f"suite:{suite}"), f"{count:,}", line(", ".join(tag for tag, _ in tags[suite].most_common(8))))
        for suite, count in sorted(counts.items())
    ]
    _put_rows(page, ("suite", "cases", "most frequent tags"), rows, nothing="no suites")
    return page.text()


MAX_DISAGREEMENTS_SHOWN = 50
"""Disagreements that are printed; JSON has all of them."""


def recorded_suites_text(found: Sequence[RecordedSuites], *, width: int, color: bool) -> str:
    """Recorded responses, run by run: what their authors say, and what we say where we can."""
    page = TerminalPage(width, color)
    for one in found:
        page.say(Text(line(f"{one.model} in {one.run}"), style="bold"))
        ours = {suite.suite: suite for suite in one.we.suites} if one.we else {}
        rows = [
            (line(they.suite or "-"), f"{they.attempts:,}", rate(they.score))
            + ((f"{ours[they.suite].attempts:,}", rate(ours[they.suite].score)) if one.we else ())
            for they in one.they.suites
        ]
        judged = (f"{sum(suite.attempts for suite in one.we.suites):,}", rate(one.we.overall)) if one.we else ()
        rows.append(
            ("overall", f"{sum(suite.attempts for suite in one.they.suites):,}", rate(one.they.overall), *judged)
        )
        _put_rows(
            page, ("suite", "classified", "they say", *(("judged", "we say") if one.we else ())), rows, nothing=""
        )
        latency = "unknown" if one.latency_p50 is None else f"{seconds(one.latency_p50)}, {seconds(one.latency_p95)}"
        page.say(Text(f"latency p50, p95  {latency}"))
        if one.unclassified:
            page.say(Text(f"! {counted(one.unclassified, 'response has', 'responses have')} no recorded class"))
        if one.contradictions:
            what = counted(one.contradictions, "recorded accuracy is", "recorded accuracies are")
            page.say(Text(f"! {what} not that of the recorded class"))
        if one.we:
            agree = one.compared - len(one.disagreements)
            page.say(Text(f"we agree on {agree:,} of {counted(one.compared, 'response')}"))
        for each in one.disagreements[:MAX_DISAGREEMENTS_SHOWN]:
            page.bullet(line(each.case), Text(line(f"they say {each.they}, we say {each.we}: {each.why}")))
        if (more := len(one.disagreements) - MAX_DISAGREEMENTS_SHOWN) > 0:
            page.say(Text(f"  and {more:,} more; --format json has all of them"))
        page.say()
    return page.text().rstrip("\n") + "\n"


def cases_text(cases: Sequence[Case], *, color: bool) -> str:
    """Some cases, a row each."""
    page = TerminalPage(UNFOLDED_PAGE_COLUMNS, color)
    rows = [(line(case.id), line(case.name), line(", ".join(case.tags))) for case in cases]
    _put_rows(page, ("case", "name", "tags"), rows, nothing="no cases")
    return page.text()


def available_models_text(offers: Sequence[tuple[str, str, str, Price | None]], *, width: int, color: bool) -> str:
    """The available models: provider, model, detail, and price per million tokens."""
    page = TerminalPage(width, color)
    rows = [
        (
            line(f"{provider}/{model}") if model else line(provider),
            f"{money(price.input)} in, {money(price.output)} out" if price else ("price unknown" if model else "-"),
            line(detail),
        )
        for provider, model, detail, price in offers
    ]
    _put_rows(page, ("model", "per million tokens", ""), rows, nothing="no models")
    return page.text()


def health_text(health: MachineHealth, *, width: int, color: bool) -> str:
    """What is enforced on a machine, which toolchains it has, and how to get the others."""
    page = TerminalPage(width, color)
    page.say(Text(f"{line(health.system)}, {'as root' if health.root else 'as an ordinary user'}", style="bold"))
    if health.level:
        page.head(f"Generated code runs at level {health.level}")
    else:
        page.head("No level holds: generated code is not run")
    shown = next((level for level in health.levels if level.held and health.level in ("", level.name)), None)
    for claim, held in shown.held.items() if shown else ():
        page.say(Text.assemble("  ", ("yes", "green") if held else ("no ", "red"), f"  {claim}"))
    page.head("Limits of one attempt")
    put_grid(page, [(limit.name, limit.most) for limit in health.limits])
    page.head("Levels, the strongest first")
    put_grid(page, [(level.name, _level_status(level, health.level)) for level in health.levels])
    page.head("Toolchains")
    put_grid(
        page, [(tool.name, tool.version or _missing_tool_status(tool), _tool_purpose(tool)) for tool in health.tools]
    )
    if health.plugins:
        page.head("Plug-ins")
        put_grid(page, [(part.kind, part.name, part.distribution, line(part.problem)) for part in health.plugins])
    if health.advice:
        page.head("Worth knowing")
    for advice in health.advice:
        page.bullet("!", Text(line(advice), style="yellow"))
    return page.text()


def _level_status(level: ContainmentLevel, used: str) -> str:
    if not level.held:
        return line(level.problem)
    broken = [claim for claim, held in level.held.items() if not held]
    word = "holds" if level.holds else "does not hold"
    return word + (", in use" if level.name == used else "") + (f"; not true: {', '.join(broken)}" if broken else "")


def _missing_tool_status(tool: ToolStatus) -> str:
    return "unusable" if tool.path else "not found"


def _tool_purpose(tool: ToolStatus) -> str:
    ways = [tool.problem] if tool.path and tool.problem else []
    ways += [f"get it by {tool.remedy}"] if tool.remedy else []
    return line(f"{tool.purpose}: {'; '.join(ways)}" if ways else tool.purpose)
