"""Judgments of the replies of a run, owed until every judge has given one that can be used."""

from __future__ import annotations

import asyncio
import math
import secrets
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import msgspec

from steelyard.engine.pace import Budget, CircuitBreaker, ConcurrencyLimiter, max_request_tokens
from steelyard.engine.plan import CompactKeySet
from steelyard.engine.plugin_guard import ask_provider
from steelyard.engine.pool import run_concurrently
from steelyard.engine.steps import BodyKeeper, RetryPolicy, ask
from steelyard.engine.tiers.escalation import JudgingPlan
from steelyard.errors import ProviderError
from steelyard.protocols import Delivery, OfferedModel, Provider, RateLimitHeadroom
from steelyard.providers.prices import Prices
from steelyard.providers.prompt_cache import prompt_cache_savings
from steelyard.records import Answer, Attempt, Case, Cost, Failure, Judgment, Message, MessageRole, Panel, Reply, digest
from steelyard.store.files import now
from steelyard.store.journal import Journal, StoredRun
from steelyard.text import counted
from steelyard.tiers.rubrics import Rubric, panel_rubric
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment, repair_request
from steelyard.verifiers.judge.prompt import messages, quoted_length
from steelyard.verifiers.judge.prompt import schema as judgment_schema

AnyNumber = TypeVar("AnyNumber", int, float)

HASH_DIGITS = 16
"""Digits of a digest by which attempts are told apart where many are held: 64 bits."""
MAX_JUDGE_REPAIR_REQUESTS = 2
"""How often a judge is asked to repair its answer before that is a failure."""
MAX_MISSING_JUDGMENT_SHARE = 0.05
"""The share of a judge's judgments that may be missing, as for cases."""
SCHEMA_PARAMETER = "response_format"
"""The parameter that holds a server to a schema."""


class JudgeConnection(NamedTuple):
    """A judge, and how it is reached."""

    name: str
    provider: Provider
    pace: ConcurrencyLimiter
    breaker: CircuitBreaker


class JudgeDialogue(NamedTuple):
    """The result of asking one judge about one reply."""

    answers: tuple[Answer, ...]
    """All of them are paid for; the last counts."""
    unusable: str
    """Why the last cannot be used, if so."""
    failure: str
    """Why the judge could not be asked, or not again."""

    @property
    def is_given_up(self) -> bool:
        """Whether the judge has used up its corrections."""
        return len(self.answers) > MAX_JUDGE_REPAIR_REQUESTS and bool(self.unusable)


class _PromptSharing(NamedTuple):
    """What a question to a judge has in common with others."""

    times: int
    """How often the whole is asked."""
    shared: int
    """How many characters of it others begin with."""


class SchemaFallback:
    """A judge's provider that sends a schema for the answer, until its server says that it does not support one."""

    def __init__(self, provider: Provider, rubric: Rubric) -> None:
        self.endpoint = provider.endpoint
        self.at_once = provider.at_once
        self._provider = provider
        schema = {"name": "judgment", "schema": judgment_schema(rubric)}
        self._schema = {"type": "json_schema", "json_schema": schema}
        self._is_supported = True

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        if self._is_supported:
            parameters = {SCHEMA_PARAMETER: self._schema, **attempt.parameters}
            try:
                with_schema = msgspec.structs.replace(attempt, parameters=parameters)
                return await ask_provider(self._provider, with_schema, delivery)
            except ProviderError as error:
                if SCHEMA_PARAMETER not in error.parameters:
                    raise
                self._is_supported = False
        return await ask_provider(self._provider, attempt, delivery)

    def headroom(self) -> RateLimitHeadroom | None:
        return self._provider.headroom()

    def available(self, case: str) -> int | None:
        return self._provider.available(case)

    async def offers(self) -> list[OfferedModel]:
        return await self._provider.offers()

    async def close(self) -> None:
        await self._provider.close()


class WantedJudgment(NamedTuple):
    """A judgment that the plan requires."""

    reply: Reply
    judge: str
    repeat: int
    is_given: bool


def owed_judgments(
    stored: StoredRun, panel: Panel, judge: str, cases: Container[str], plan: JudgingPlan | None = None
) -> Iterator[tuple[Reply, str, int]]:
    """The replies that a judge must still rate: the last one of every attempt, where the plan requires it."""
    for wanted in wanted_judgments(stored, panel, judge, cases, plan):
        if not wanted.is_given:
            yield wanted[:3]


def wanted_judgments(
    stored: StoredRun, panel: Panel, judge: str, cases: Container[str], plan: JudgingPlan | None = None
) -> Iterator[WantedJudgment]:
    """The judgments of a judge that the plan requires, given or not: of the last reply of every attempt.

    Of a hundred thousand replies only hashes are held, and the texts are read again.
    """
    given = CompactKeySet()
    judgments: list[Judgment] = []
    attempts = array("Q")
    for fact in stored.facts():
        if isinstance(fact, Judgment):
            if not fact.unusable:
                given.add(fact.key)
            if plan is None and panel.escalation is not None:
                judgments.append(fact)
        elif isinstance(fact, Reply):
            attempts.append(int(digest(fact.case, fact.model, fact.tier, fact.number)[:HASH_DIGITS], 16))
    is_last = _last_of_each(attempts)
    plan = plan or JudgingPlan(panel, judgments)
    replies = (fact for fact in stored.facts() if isinstance(fact, Reply))
    # replies that come while the others are judged are not theirs
    for fact, counts in zip(replies, is_last, strict=False):
        if counts and fact.case in cases and plan.is_wanted(fact.key, judge):
            for repeat in range(1, panel.repeats + 1):
                is_given = judgment_key(fact, panel, judge, repeat) in given
                yield WantedJudgment(fact, judge, repeat, is_given)


def _last_of_each(hashes: array[int]) -> bytes:
    """For each place 1 if no later one has the same hash, otherwise 0."""
    import numpy as np

    _, from_end = np.unique(np.array(hashes, np.uint64)[::-1], return_index=True)
    is_last = np.zeros(len(hashes), np.uint8)
    is_last[len(hashes) - 1 - from_end] = 1
    return is_last.tobytes()


class JudgeRequests:
    """Requests to judges, each of which fits the budget, is retried, and is counted."""

    def __init__(
        self,
        budget: Budget,
        prices: Prices,
        persistence: RetryPolicy,
        keep_body: BodyKeeper,
        parameters: Mapping[str, Any] = {},
    ) -> None:
        self._budget = budget
        self._prices = prices
        self._persistence = persistence
        self._keep_body = keep_body
        self._parameters = dict(parameters)
        self._secret = secrets.token_hex(16)
        """What delimiters are made of: new in every session, so that no answer can contain one."""

    def savings(self, judge: str, answer: Answer) -> float:
        """What the provider's cache of prompts saved on an answer of a judge, in US dollars."""
        return prompt_cache_savings(self._prices, judge, answer)

    def limiter(self, at_once: int) -> ConcurrencyLimiter:
        """What keeps requests to one endpoint from being too many."""
        return ConcurrencyLimiter(at_once, max_wait=self._persistence.max_wait)

    def breaker(self) -> CircuitBreaker:
        """What gives up a judge that does not answer."""
        return CircuitBreaker(self._persistence.max_wait)

    async def dialogue(
        self,
        judge: JudgeConnection,
        rubric: Rubric,
        reply: Reply,
        task: str,
        text: str,
        on_answer: Callable[[Answer, str], None] | None = None,
        times: int = 1,
        has_other_rubrics: bool = False,
    ) -> JudgeDialogue:
        """Ask a judge about a reply until its answer is usable, at most twice more.

        `on_answer` gets each answer as it arrives, with the reason if it is unusable. `times` is how often the judge
        is asked the same. All questions about one reply begin with the same text, so that providers can cache it.
        """
        # only a judge of this reply has seen it
        system, *conversation = messages(rubric, task, text, digest(self._secret, reply.key))
        shared = quoted_length(conversation[0]) if has_other_rubrics else 0
        sharing = _PromptSharing(times, shared)
        answers: list[Answer] = []
        reason = failure = ""
        while len(answers) <= MAX_JUDGE_REPAIR_REQUESTS:
            fact = await self._ask(judge, reply, system.text, conversation, sharing)
            if fact is None:
                break
            if isinstance(fact, Failure):
                failure = fact.message
                break
            answers.append(fact.answer)
            found = judgment(fact.answer.text, rubric)
            reason = found.reason if isinstance(found, UnusableJudgeReply) else ""
            if on_answer is not None:
                on_answer(fact.answer, reason)
            if not reason:
                break
            conversation += [
                Message(role=MessageRole.ASSISTANT, content=fact.answer.text or "(nothing)"),
                repair_request(reason),
            ]
        return JudgeDialogue(tuple(answers), reason, failure)

    async def _ask(
        self,
        judge: JudgeConnection,
        reply: Reply,
        system: str,
        conversation: list[Message],
        sharing: _PromptSharing,
    ) -> Reply | Failure | None:
        case = Case(id=reply.case, prompt=tuple(conversation))
        attempt = Attempt(
            case=case,
            model=judge.name,
            parameters=self._parameters,
            system=system,
            number=reply.number,
            samples=sharing.times,
            shared_characters=sharing.shared,
        )
        most = self._prices.bound(judge.name, *max_request_tokens(attempt)) or 0.0
        if not await self._budget.reserve(most):
            return None
        fact = await ask(
            attempt, judge.provider, judge.pace, judge.breaker, self._persistence, self._prices, self._keep_body
        )
        answer = fact.answer if isinstance(fact, Reply) else None
        self._budget.settle(most, 0 if answer is None else most if answer.cost is None else answer.cost.usd)
        return fact


class JudgeRunner:
    """Asks every judge about every reply, as often as the panel says."""

    def __init__(
        self,
        journal: Journal,
        panel: Panel,
        judges: Mapping[str, Provider],
        cases: Mapping[str, Case],
        *,
        budget: Budget,
        prices: Prices,
        persistence: RetryPolicy,
        at_once: int | None,
        on_counted: Callable[[Judgment | Failure], None],
    ) -> None:
        self._journal = journal
        self._panel = panel
        self._rubric = panel_rubric(panel)
        self._judges = {judge: SchemaFallback(provider, self._rubric) for judge, provider in judges.items()}
        self._cases = cases
        self._budget = budget
        self._requests = JudgeRequests(budget, prices, persistence, journal.keep_response, panel.parameters)
        self._at_once = at_once
        self._counted = on_counted
        self._failures: dict[str, str] = {}
        """Why each judge failed last."""
        self._breakers = {judge: self._requests.breaker() for judge in judges}
        facts = journal.facts() if panel.escalation is not None else ()
        self._plan = JudgingPlan(panel, (fact for fact in facts if isinstance(fact, Judgment)))

    def owed(self) -> int:
        """The number of missing judgments, as far as the judges are known."""
        return sum(1 for judge in self._judges for _ in self._wanted(judge))

    def _wanted(self, judge: str) -> Iterator[tuple[Reply, str, int]]:
        return owed_judgments(self._journal, self._panel, judge, self._cases, self._plan)

    async def carry_out(self, on_planned: Callable[[int], None]) -> tuple[str, ...]:
        """Ask for every missing judgment; returns why some are still missing.

        `on_planned` gets the number of planned judgments whenever it becomes known.
        """
        # what the first judges say decides about which answers the others are asked
        for judges in filter(None, (self._panel.first_judges, self._panel.other_judges)):
            on_planned(self.owed())
            endpoints: dict[str, list[str]] = {}
            for judge in judges:
                if judge in self._judges:
                    endpoints.setdefault(self._judges[judge].endpoint, []).append(judge)
            async with asyncio.TaskGroup() as asking:
                for at_endpoint in endpoints.values():
                    asking.create_task(self._ask_endpoint(at_endpoint))
        given_up = [f"judge {judge} {breaker.outcome}" for judge, breaker in self._breakers.items() if breaker.broken]
        return (*given_up, *self._missing())

    def _missing(self) -> Iterator[str]:
        """Why the judgments do not decide, for each judge that was asked about all replies."""
        for judge in filter(self._goes_on, self._judges):
            wanted = Counter(
                each.is_given for each in wanted_judgments(self._journal, self._panel, judge, self._cases, self._plan)
            )
            planned, missing = wanted.total(), wanted[False]
            if missing > MAX_MISSING_JUDGMENT_SHARE * planned:
                yield (
                    f"judge {judge} gave no usable answer for {missing} of {counted(planned, 'judgment')}, "
                    f"the last because {self._failures.get(judge, 'it was not asked')}"
                )

    async def _ask_endpoint(self, judges: list[str]) -> None:
        at_once = min(self._judges[judge].at_once for judge in judges)
        at_once = min(at_once, self._at_once or at_once)
        pace = self._requests.limiter(at_once)

        async def do(wanted: list[tuple[Reply, str, int]]) -> None:
            # one after the other, so that a provider that caches prompts has this one in its cache the second time
            for reply, judge, repeat in wanted:
                if self._goes_on(judge):
                    await self._judge(reply, judge, repeat, pace)

        every = (wanted for judge in judges for wanted in self._wanted(judge) if self._goes_on(judge))
        by_reply = (list(group) for _, group in groupby(every, lambda wanted: (wanted[0].key, wanted[1])))
        await run_concurrently(by_reply, do, at_once)

    def _goes_on(self, judge: str) -> bool:
        return not self._breakers[judge].broken and not self._budget.exhausted

    async def _judge(self, reply: Reply, judge: str, repeat: int, pace: ConcurrencyLimiter) -> None:
        """Ask until the answer can be used, and store the judgment."""
        task = "\n\n".join(message.text for message in self._cases[reply.case].messages)
        asked = JudgeConnection(judge, self._judges[judge], pace, self._breakers[judge])
        repeats = self._panel.repeats
        came = await self._requests.dialogue(asked, self._rubric, reply, task, reply.answer.text, times=repeats)
        if came.failure:
            self._fail(reply, judge, "could not be asked", came.failure)
        if came.answers:
            # also when none of them can be used: they are paid for
            key = judgment_key(reply, self._panel, judge, repeat)
            self._store(stored_judgment(key, reply, judge, self._panel.digest, came.answers, came.unusable, repeat))
        if came.is_given_up:
            self._fail(reply, judge, "gave no usable judgment", came.unusable)

    def _fail(self, reply: Reply, judge: str, what: str, why: str) -> None:
        self._failures[judge] = why[:300]
        failure = Failure(
            key=reply.key,
            at=now(),
            case=reply.case,
            model=reply.model,
            tier=reply.tier,
            number=reply.number,
            stage="judge",
            message=f"{judge} {what}: {why}"[:1000],
        )
        self._store(failure)

    def _store(self, fact: Judgment | Failure) -> None:
        self._journal.append(fact)
        if isinstance(fact, Judgment):
            self._plan.count(fact)
        self._counted(fact)


def max_judging_tokens(attempt: Attempt, panel: Panel) -> tuple[int, int]:
    """Input and output tokens that judging one answer can come to at most, if the judge needs no second try."""
    rubric = panel_rubric(panel)
    _, longest = max_request_tokens(attempt)
    task = "\n\n".join(message.text for message in attempt.messages)
    # a token rarely has more than four letters
    asked = messages(rubric, task, "x" * (4 * longest), "0" * 16)
    judged = Attempt(case=Case(id="", prompt=asked), model="", parameters=panel.parameters)
    return max_request_tokens(judged)


def stored_judgment(
    key: str, reply: Reply, judge: str, rubric_digest: str, answers: Sequence[Answer], unusable: str, repeat: int = 1
) -> Judgment:
    """What a judge was paid for, as the journal has it."""
    return Judgment(
        key=key,
        at=now(),
        case=reply.case,
        model=reply.model,
        tier=reply.tier,
        number=reply.number,
        ask=reply.key,
        judge=judge,
        repeat=repeat,
        rubric=rubric_digest,
        answer=_combined_answer(answers),
        requests=len(answers),
        unusable=unusable,
    )


def judgment_key(reply: Reply, panel: Panel, judge: str, repeat: int) -> str:
    """The identity of one judge's judgment of one reply by one rubric."""
    return digest(reply.key, panel.digest, panel.parameters, judge, repeat)


def _combined_answer(answers: Sequence[Answer]) -> Answer:
    """The last answer, with what all of them took."""
    costs = [answer.cost for answer in answers]
    known = [cost for cost in costs if cost is not None]
    return msgspec.structs.replace(
        answers[-1],
        input_tokens=_sum(answer.input_tokens for answer in answers),
        output_tokens=_sum(answer.output_tokens for answer in answers),
        cached_tokens=_sum_of_known(answer.cached_tokens for answer in answers),
        cache_write_tokens=_sum_of_known(answer.cache_write_tokens for answer in answers),
        cost=Cost(usd=math.fsum(cost.usd for cost in known), source=known[-1].source, date=known[-1].date)
        if len(known) == len(costs)
        else None,
        latency=_sum(answer.latency for answer in answers),
    )


def _sum(numbers: Iterator[AnyNumber | None]) -> AnyNumber | None:
    """What they add up to; None if one of them is not known."""
    every = list(numbers)
    known = [number for number in every if number is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(every) else None


def _sum_of_known(numbers: Iterator[int | None]) -> int | None:
    """What the known ones add up to; None if none is known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
