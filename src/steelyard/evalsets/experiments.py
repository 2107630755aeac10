"""Experiments as people write them: cases, the tiers they are put under, and who judges."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard import evalsets
from steelyard.errors import InputError, Problem, did_you_mean
from steelyard.evalsets import rubrics
from steelyard.evalsets.companions import CompanionFiles, rendered_prompt, system_error_reason
from steelyard.evalsets.schema import (
    Draft,
    KeyPath,
    ProblemCollector,
    TooManyProblemsError,
    dotted_key_path,
    record_from_draft,
)
from steelyard.evalsets.toml import TomlLineIndex
from steelyard.records import (
    Case,
    ContentPart,
    Escalation,
    EvalSetFile,
    Experiment,
    InheritingTier,
    Message,
    MessageRole,
    Panel,
    Record,
    Rule,
    Tier,
    digest,
    extended_tier,
    is_secret,
)
from steelyard.text import printable, short_quote
from steelyard.tiers.escalation import panel_escalation
from steelyard.tiers.rubrics import default_rubric

MAX_EXPERIMENT_FILE_BYTES = 10 << 20
EXPERIMENT_TABLE_NAMES = ("experiment", "judging", "tiers")
AGENT_ONLY_TIER_KEYS = ("files", "environment", "timeout_secs")
"""Keys of a tier that mean nothing to a model that is only asked."""
TRIAL_PROMPT_SENTINEL = "\ufdd0prompt\ufdd0"
"""A placeholder for a case's prompt when a template is tried; no template contains it."""


class ExperimentHeader(Record, frozen=True, kw_only=True):
    """The table [experiment]."""

    id: str
    cases: tuple[str, ...]
    """Eval sets, from where the file stands; `suite:NAME` is one too."""
    name: str = ""
    runs: int = 10
    """Attempts at each case under each tier."""
    budget_usd: float | None = None
    """The most that may be spent, judges included."""
    parameters: dict[str, Any] = {}
    """Sent with each request of every tier."""
    seed: int | None = None
    pass_weight: float = 0.5
    impl_weight: float = 0.5


class JudgingTable(Record, frozen=True, kw_only=True):
    """The table [judging]."""

    judges: tuple[str, ...]
    rubric: str = ""
    """A file in TOML, YAML or JSON; the ten default categories when left out."""
    repeats: int = 1
    parameters: dict[str, Any] = {}
    allow_self: bool = False
    ask_first: int | None = None
    """Judges that are asked about every answer; all when left out."""
    unsure_within: float | None = None
    check_share: float | None = None


class TierTable(Tier, frozen=True, kw_only=True):
    """A table [[tiers]]."""

    extends: str | tuple[str, ...] = ""
    """The tier that provides settings which this one lacks; of several, the best one after they were run;
    parameters, files and environment are joined."""

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of the tiers that it may extend."""
        given = (self.extends,) if isinstance(self.extends, str) else self.extends
        return tuple(name for name in given if name)


class LoadedExperiment(NamedTuple):
    """An experiment with everything it refers to."""

    experiment: Experiment
    header: ExperimentHeader
    panel: Panel | None
    cases: Sequence[Case]
    files: tuple[EvalSetFile, ...]
    """The experiment's file first, then those of its eval sets."""
    problems: tuple[Problem, ...]
    """Warnings only; what is wrong is raised."""
    rules: tuple[Rule, ...] = ()
    rule: str = ""
    """The rules of the eval sets, and the one to score by, if they name one."""
    trials: tuple[Tier, ...] = ()
    """Every tier that inherits a winner, as it is with each of those that it may extend."""


def is_experiment(path: Path) -> bool:
    """Whether a file is an experiment rather than an eval set."""
    if path.suffix != ".toml" or not path.is_file():
        return False
    try:
        return "experiment" in tomllib.loads(_text(_content(path), path))
    except (InputError, ValueError, RecursionError):
        return False


def load(path: str | Path) -> LoadedExperiment:
    """The experiment in a file; raises one InputError with everything that is wrong with it."""
    problems = ProblemCollector()
    try:
        return _load(Path(path), problems)
    except TooManyProblemsError:
        raise InputError(problems.errors) from None


BUDGET_KEY_PATTERN = re.compile(
    r"budget|(max|limit).*(cost|usd|dollar|spend)|(cost|usd|dollar|spend).*(max|limit|cap)", re.IGNORECASE
)
"""How people call a limit on what is spent."""
TIER_BUDGET_KEYS = frozenset({"budget_usd", "case_budget_usd", "attempt_budget_usd"})
AGENT_TOOL_KEYS = ("tools", "allowed_tools", "disallowed_tools")
"""What people write to limit an agent's tools, which only the agent itself can do."""


def _check_budgets(document: dict[str, Any], path: Path, lines: TomlLineIndex, problems: ProblemCollector) -> None:
    """Name every budget that would not be kept: one that is only warned of would be overspent."""
    tiers = document.get("tiers")
    tables: list[tuple[KeyPath, Any]] = [((), document), (("experiment",), document.get("experiment"))]
    tables += [(("judging",), document.get("judging"))]
    tables += [(("tiers", number), table) for number, table in enumerate(tiers if isinstance(tiers, list) else ())]
    for keys, table in tables:
        for key in table if isinstance(table, dict) else ():
            kept = {"budget_usd"} if keys == ("experiment",) else TIER_BUDGET_KEYS if keys[:1] == ("tiers",) else set()
            if BUDGET_KEY_PATTERN.search(key) and key not in kept:
                place = dotted_key_path((*keys, key))
                problems.error(
                    str(path),
                    lines.of((*keys, key)),
                    f"{place} is not a budget that is enforced; write budget_usd under [experiment], which applies to all tiers, "
                    "budget_usd, case_budget_usd or attempt_budget_usd in a tier, or give --max-cost",
                )


def _load(path: Path, problems: ProblemCollector) -> LoadedExperiment:
    raw = _content(path)
    text = _text(raw, path)
    lines = TomlLineIndex()
    lines.scan(text)
    document = _document(text, path, lines)
    for key in document:
        if key not in EXPERIMENT_TABLE_NAMES:
            problems.unknown(str(path), lines.of((key,)), key, EXPERIMENT_TABLE_NAMES)
    _check_budgets(document, path, lines, problems)
    reading = _ExperimentFileReader(path, lines, problems, CompanionFiles(), [])
    header = reading.table(ExperimentHeader, document.get("experiment"), "experiment", "id and cases")
    panel = reading.panel(document["judging"]) if "judging" in document else None
    tiers, inheriting, trials = reading.tiers(document.get("tiers"))
    if header and not problems.errors:
        reading.check(header, [*tiers, *trials], panel)
    loaded: evalsets.EvalSets | None = None
    if header:
        try:
            loaded = evalsets.load([_resolved_path(path, given) for given in header.cases])
        except InputError as error:
            problems.errors.extend(problem for problem in error.problems if problem.fatal)
    if loaded and not problems.errors:
        places = {table["name"]: number for number, table in enumerate(document["tiers"])}
        reading.try_out([*tiers, *trials], places, loaded.cases)
    if problems.errors or header is None or loaded is None:
        raise InputError([*problems.errors, *problems.warnings()])
    experiment = Experiment(
        id=header.id,
        name=header.name,
        tiers=tuple(tiers),
        inheriting=tuple(inheriting),
        pass_weight=header.pass_weight,
        impl_weight=header.impl_weight,
        budget_usd=header.budget_usd,
    )
    # wherever a run is resumed, its agents are beside this file
    own = EvalSetFile(path=printable(str(path.absolute())), digest=digest(raw))
    warned = (*loaded.problems, *reading.odd, *problems.warnings())
    return LoadedExperiment(
        experiment, header, panel, loaded.cases, (own, *loaded.files), warned, loaded.rules, loaded.rule, tuple(trials)
    )


def case_under_tier(tier: Tier, case: Case) -> Case:
    """A case as a tier puts it: its last message of the user's within the tier's template."""
    if not tier.prompt:
        return case
    messages = list(case.messages)
    last = max((number for number, message in enumerate(messages) if message.role == MessageRole.USER), default=None)
    if last is None:
        raise InputError(f"case {short_quote(case.id)} has no message of the user's to put into it")
    filled = rendered_prompt(tier.prompt, {"prompt": messages[last].text, "case": case.id, "tier": tier.name})
    assert isinstance(filled, str)  # noqa: S101  text was given, so text comes back
    if isinstance(case.prompt, str):
        return replace(case, prompt=filled)
    files = tuple(part for part in messages[last].parts if part.type != "text")
    content = (ContentPart(type="text", text=filled), *files) if files else filled
    messages[last] = Message(role=MessageRole.USER, content=content)
    return replace(case, prompt=tuple(messages))


def _resolved_path(path: Path, given: str) -> str:
    return given if given.startswith("suite:") else str(path.absolute().parent / given)


def _content(path: Path) -> bytes:
    try:
        if not path.is_file() or path.stat().st_size > MAX_EXPERIMENT_FILE_BYTES:
            raise InputError(
                f"{printable(str(path))}: not a file of at most {MAX_EXPERIMENT_FILE_BYTES >> 20} MB; name an experiment in TOML"
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{printable(str(path))}: cannot be read: {system_error_reason(error)}") from None


def _text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError([Problem(str(path), line, "not UTF-8 text; save the file as UTF-8")]) from None


def _document(text: str, path: Path, lines: TomlLineIndex) -> dict[str, Any]:
    if lines.too_deep:
        raise InputError([Problem(str(path), lines.too_deep, "a key has too many parts; nest less deeply")])
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{printable(str(path))}: not TOML: {error}") from None


class _ExperimentFileReader(NamedTuple):
    """One file being read."""

    path: Path
    lines: TomlLineIndex
    problems: ProblemCollector
    companions: CompanionFiles
    odd: list[Problem]
    """What is odd about other files that this one names."""

    def wrong(self, what: str, *keys: str | int) -> None:
        self.problems.error(str(self.path), self.lines.of(keys), what)

    def table(self, kind: Any, table: Any, name: str, needs: str) -> Any:
        if not isinstance(table, dict):
            self.wrong(f"no [{name}] table; write one with {needs}", name)
            return None
        return record_from_draft(
            kind, Draft(table, str(self.path), f"[{name}]", partial(self._line, (name,))), self.problems
        )

    def _line(self, above: KeyPath, keys: KeyPath) -> int:
        return self.lines.of((*above, *keys))

    def panel(self, table: Any) -> Panel | None:
        judging = self.table(JudgingTable, table, "judging", "judges")
        if judging is None:
            return None
        if not judging.judges:
            self.wrong("[judging]: no judges; name at least one, such as openai/gpt-5-mini", "judging", "judges")
        if judging.repeats < 1:
            self.wrong("[judging]: repeats must be 1 or more", "judging", "repeats")
        rubric = default_rubric()
        if judging.rubric:
            try:
                rubric, _, odd = rubrics.load(_resolved_path(self.path, judging.rubric))
                self.odd.extend(odd)
            except InputError as error:
                self.problems.errors.extend(problem for problem in error.problems if problem.fatal)
        return Panel(
            judges=judging.judges,
            rubric=msgspec.to_builtins(rubric),
            digest=rubric.digest,
            repeats=judging.repeats,
            parameters=judging.parameters,
            allow_self=judging.allow_self,
            escalation=self._escalation(judging),
        )

    def _escalation(self, judging: JudgingTable) -> Escalation | None:
        try:
            return panel_escalation(len(judging.judges), judging.ask_first, judging.unsure_within, judging.check_share)
        except InputError as error:
            self.wrong(f"[judging]: {error}", "judging", "ask_first")
            return None

    def tiers(self, tables: Any) -> tuple[list[Tier], list[InheritingTier], list[Tier]]:
        """The tiers, those that inherit the best of others, and how each of these may be."""
        if not isinstance(tables, list) or not tables:
            self.wrong("no tiers; write each as a [[tiers]] table", "tiers")
            return [], [], []
        # one that inherits stands here as it is with the first that it may extend
        found: dict[str, Tier] = {}
        inheriting: dict[str, InheritingTier] = {}
        trials: list[Tier] = []
        for number, table in enumerate(tables):
            name = table.get("name") if isinstance(table, dict) else None
            subject = f"tier {short_quote(name)}" if isinstance(name, str) else f"tier {number + 1}"
            if not isinstance(table, dict):
                self.wrong(f"{subject} is not a [[tiers]] table", "tiers", number)
                continue
            written = record_from_draft(
                TierTable, Draft(table, str(self.path), subject, partial(self._line, ("tiers", number))), self.problems
            )
            if written is None:
                continue
            if not written.name or len(written.name) > 80 or not written.name.isprintable() or written.name in found:
                self.wrong(
                    f"{subject}: a name has 1 to 80 characters, and no other tier has it", "tiers", number, "name"
                )
                continue
            unknown = next((base for base in written.bases if base not in found), None)
            if unknown is not None:
                known = did_you_mean(unknown[:80], found) if found else "it is the first"
                self.wrong(
                    f"{subject} extends {short_quote(unknown)}, which is not defined above it ({known})",
                    "tiers",
                    number,
                )
                continue
            completed = self._with_each_base(written, table, found, number, subject)
            found[written.name] = completed[0]
            if len(written.bases) > 1 or any(base in inheriting for base in written.bases):
                own = self._complete(written, table, None, number, subject, is_part=True)
                inheriting[written.name] = InheritingTier(own=own, given=tuple(table), extends=written.bases)
                trials += completed
        tiers = [tier for name, tier in found.items() if name not in inheriting]
        return tiers, list(inheriting.values()), trials

    def _with_each_base(
        self, written: TierTable, table: dict[str, Any], found: Mapping[str, Tier], number: int, subject: str
    ) -> list[Tier]:
        """The tier combined with each one that it may extend, up to the first invalid combination."""
        completed: list[Tier] = []
        for base in written.bases or ("",):
            before = len(self.problems.errors)
            completed.append(self._complete(written, table, found.get(base), number, subject))
            if len(self.problems.errors) > before:
                break
        return completed

    def _complete(
        self,
        written: TierTable,
        table: dict[str, Any],
        base: Tier | None,
        number: int,
        subject: str,
        *,
        is_part: bool = False,
    ) -> Tier:
        """The tier with what it takes over and what its files hold; `is_part` leaves out what only a whole one must have."""
        texts: dict[str, str] = {
            name: self._read(getattr(written, name), subject, ("tiers", number, name))
            for name in ("system", "prompt")
            if name in table
        }
        files = {
            place: self._read(content, subject, ("tiers", number, "files", place))
            for place, content in written.files.items()
        }
        fields = {name: getattr(written, name) for name in Tier.__struct_fields__ if name in table}
        values: dict[str, Any] = {**fields, **texts, "files": files}
        own = Tier(**values)
        tier = own if base is None else extended_tier(base, own, table)
        if is_part:
            return own
        if not tier.model and not tier.agent:
            self.wrong(f"{subject}: nothing to ask; give it a model or an agent", "tiers", number)
        if not 0 < tier.timeout_secs < math.inf:
            self.wrong(f"{subject}: timeout_secs must be a number of seconds above 0", "tiers", number, "timeout_secs")
        self._check_limits(tier, table, number, subject)
        for name in AGENT_ONLY_TIER_KEYS if not tier.agent else ("parameters",):
            if name in table:
                reason = "an agent is not sent them" if tier.agent else "it is for agents, and this tier has none"
                odd = Problem(
                    printable(str(self.path)),
                    self.lines.of(("tiers", number, name)),
                    f"{subject}: {name} has no effect: {reason}",
                    fatal=False,
                )
                if odd not in self.odd:
                    self.odd.append(odd)
        for name in written.environment:
            if is_secret(name, written.environment[name]):
                self.wrong(
                    f"{subject}: environment.{name} would be stored with the run; set it in your own environment, "
                    "which agents are given too",
                    *("tiers", number, "environment", name),
                )
        return tier

    def _check_limits(self, tier: Tier, table: dict[str, Any], number: int, subject: str) -> None:
        """Name every limit that would not be kept."""
        for name in sorted(TIER_BUDGET_KEYS):
            dollars = getattr(tier, name)
            if dollars is not None and not 0 < dollars < math.inf:
                self.wrong(f"{subject}: {name} must be a number of dollars above 0", "tiers", number, name)
        whole = tier.budget_usd is not None or tier.case_budget_usd is not None
        if tier.agent and whole and tier.attempt_budget_usd is None:
            what = "an agent's budget also needs attempt_budget_usd, because no other limit ends an attempt"
            self.wrong(f"{subject}: {what}", "tiers", number)
        if not tier.agent and tier.attempt_budget_usd is not None:
            what = "attempt_budget_usd is for agents; limit what a model may write by max_tokens in parameters"
            self.wrong(f"{subject}: {what}", "tiers", number, "attempt_budget_usd")
        if not tier.agent and "max_turns" in table:
            what = "max_turns of a tier is for agents; a case with tools has a max_turns of its own"
            self.wrong(f"{subject}: {what}", "tiers", number, "max_turns")
        for name in AGENT_TOOL_KEYS:
            if name in table:
                what = f"{name} cannot be enforced here; set it on the agent's command line or in its environment"
                self.wrong(f"{subject}: {what}", "tiers", number, name)

    def _read(self, value: str, subject: str, keys: KeyPath) -> str:
        if not value.startswith("file://"):
            return value
        try:
            return self.companions.text(self.path.absolute().parent / value.removeprefix("file://"))
        except InputError as error:
            self.wrong(f"{subject}: {error}", *keys)
            return ""

    def try_out(self, tiers: list[Tier], places: Mapping[str, int], cases: Sequence[Case]) -> None:
        """Fill in every tier's template: one that cannot be, or that leaves the case out, is found out now."""
        for tier in tiers:
            if not tier.prompt:
                continue
            number = places[tier.name]
            try:
                for case in cases:
                    case_under_tier(tier, case)
                is_asked = TRIAL_PROMPT_SENTINEL in str(
                    rendered_prompt(tier.prompt, {"prompt": TRIAL_PROMPT_SENTINEL, "case": "", "tier": tier.name})
                )
            except InputError as error:
                self.wrong(f"tier {short_quote(tier.name)}: prompt: {error}", "tiers", number, "prompt")
                continue
            if not is_asked:
                what = "the case's own prompt is not in it; write {{prompt}} where it belongs"
                self.wrong(f"tier {short_quote(tier.name)}: prompt: {what}", "tiers", number, "prompt")

    def check(self, header: ExperimentHeader, tiers: list[Tier], panel: Panel | None) -> None:
        """Problems that no single table shows."""
        if header.runs < 1:
            self.wrong("[experiment]: runs must be 1 or more", "experiment", "runs")
        if not header.cases:
            self.wrong("[experiment]: no cases; name at least one eval set", "experiment", "cases")
        weights = header.pass_weight, header.impl_weight
        if not (all(0 <= weight < math.inf for weight in weights) and sum(weights) > 0):
            self.wrong("[experiment]: weights are numbers from 0 up, and one must be above 0", "experiment")
        if header.budget_usd is not None and not 0 < header.budget_usd < math.inf:
            self.wrong("[experiment]: budget_usd must be a number of dollars above 0", "experiment", "budget_usd")
        for judge in panel.judges if panel and not panel.allow_self else ():
            own = [tier.name for tier in tiers if is_same_model(tier.model, judge)]
            if own:
                self.wrong(
                    f"[judging]: {short_quote(judge)} would judge its own answers in {', '.join(own)}; "
                    "name another judge, or set allow_self = true",
                    "judging",
                    "judges",
                )


def is_same_model(model: str, judge: str) -> bool:
    """Whether two names are the same model: the part after the provider decides, because several providers may serve it."""
    return bool(model) and _bare_model_name(model) == _bare_model_name(judge)


def _bare_model_name(model: str) -> str:
    """The model's own name.

    >>> _bare_model_name("openai:gpt-4o"), _bare_model_name("openrouter/openai/GPT-4o"), _bare_model_name("ollama/llama3:8b")
    ('gpt-4o', 'gpt-4o', 'llama3:8b')
    """
    places = [place for sign in ":/" if (place := model.find(sign)) >= 0]
    return (model[min(places) + 1 :] if places else model).rpartition("/")[2].casefold()
