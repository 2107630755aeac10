"""Judgments of the replies of a run, owed until every judge has given one that can be used."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from steelyard.engine.pace import Budget, CircuitBreaker, ConcurrencyLimiter, max_request_tokens
from steelyard.engine.plugin_guard import ask_provider
from steelyard.engine.pool import run_concurrently
from steelyard.engine.steps import RetryPolicy, ask, now
from steelyard.errors import ProviderError
from steelyard.protocols import Delivery, OfferedModel, Provider, RateLimitHeadroom
from steelyard.providers.prices import Prices
from steelyard.records import Answer, Attempt, Case, Cost, Failure, Judgment, Message, MessageRole, Panel, Reply, digest
from steelyard.store.journal import Journal, StoredRun
from steelyard.text import counted
from steelyard.tiers.rubrics import panel_rubric
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment, repair_request
from steelyard.verifiers.judge.prompt import messages
from steelyard.verifiers.judge.prompt import schema as judgment_schema

AnyNumber = TypeVar("AnyNumber", int, float)

MAX_JUDGE_REPAIR_REQUESTS = 2
"""How often a judge is asked to repair its answer before that is a failure."""
MAX_MISSING_JUDGMENT_SHARE = 0.05
"""The share of a judge's judgments that may be missing, as for cases."""
SCHEMA_PARAMETER = "response_format"
"""The parameter that holds a server to a schema."""


class SchemaFallback:
    """A judge's provider that sends a schema for the answer, until its server says that it does not support one."""

    def __init__(self, provider: Provider, schema: dict[str, Any]) -> None:
        self.endpoint = provider.endpoint
        self.at_once = provider.at_once
        self._provider = provider
        self._schema = schema
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


def owed_judgments(
    stored: StoredRun, panel: Panel, judge: str, cases: Container[str]
) -> Iterator[tuple[Reply, str, int]]:
    """The replies that a judge has yet to be asked about: the last one of every attempt."""
    done = set()
    replies: dict[tuple[str, str, str, int], str] = {}
    for fact in stored.facts():
        if isinstance(fact, Judgment) and not fact.unusable:
            done.add(fact.key)
        elif isinstance(fact, Reply):
            replies[fact.case, fact.model, fact.tier, fact.number] = fact.key
    last = set(replies.values())
    for fact in stored.facts():
        if isinstance(fact, Reply) and fact.key in last and fact.case in cases:
            for repeat in range(1, panel.repeats + 1):
                if judgment_key(fact, panel, judge, repeat) not in done:
                    yield fact, judge, repeat


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
        schema = {"type": "json_schema", "json_schema": {"name": "judgment", "schema": judgment_schema(self._rubric)}}
        self._judges = {judge: SchemaFallback(provider, schema) for judge, provider in judges.items()}
        self._cases = cases
        self._budget = budget
        self._prices = prices
        self._persistence = persistence
        self._at_once = at_once
        self._counted = on_counted
        self._failures: dict[str, str] = {}
        """Why each judge failed last."""
        self._breakers = {judge: CircuitBreaker(persistence.max_wait) for judge in judges}

    def owed(self) -> int:
        """How many judgments are missing."""
        return sum(1 for judge in self._judges for _ in self._wanted(judge))

    def _wanted(self, judge: str) -> Iterator[tuple[Reply, str, int]]:
        return owed_judgments(self._journal, self._panel, judge, self._cases)

    async def carry_out(self) -> tuple[str, ...]:
        """Ask for every missing judgment; returns why some are still missing."""
        endpoints: dict[str, list[str]] = {}
        for judge, provider in self._judges.items():
            endpoints.setdefault(provider.endpoint, []).append(judge)
        async with asyncio.TaskGroup() as asking:
            for judges in endpoints.values():
                asking.create_task(self._ask_endpoint(judges))
        given_up = [f"judge {judge} {breaker.outcome}" for judge, breaker in self._breakers.items() if breaker.broken]
        return (*given_up, *self._missing())

    def _missing(self) -> Iterator[str]:
        """Why the judgments do not tell, for each judge that was asked about all replies."""
        replies = {
            (fact.case, fact.model, fact.tier, fact.number) for fact in self._journal.facts() if isinstance(fact, Reply)
        }
        planned = len(replies) * self._panel.repeats
        for judge in self._judges:
            missing = sum(1 for _ in self._wanted(judge))
            if self._goes_on(judge) and missing > MAX_MISSING_JUDGMENT_SHARE * planned:
                yield (
                    f"judge {judge} gave no usable answer for {missing} of {counted(planned, 'judgment')}, "
                    f"the last because {self._failures.get(judge, 'it was not asked')}"
                )

    async def _ask_endpoint(self, judges: list[str]) -> None:
        at_once = min(self._judges[judge].at_once for judge in judges)
        at_once = min(at_once, self._at_once or at_once)
        pace = ConcurrencyLimiter(at_once, max_wait=self._persistence.max_wait)

        async def do(wanted: tuple[Reply, str, int]) -> None:
            await self._judge(*wanted, pace)

        every = (wanted for judge in judges for wanted in self._wanted(judge))
        await run_concurrently((one for one in every if self._goes_on(one[1])), do, at_once)

    def _goes_on(self, judge: str) -> bool:
        return not self._breakers[judge].broken and not self._budget.exhausted

    async def _judge(self, reply: Reply, judge: str, repeat: int, pace: ConcurrencyLimiter) -> None:
        """Ask until the answer can be used, and store the judgment."""
        task = "\n\n".join(message.text for message in self._cases[reply.case].messages)
        # new each time, so the author of the answer cannot have known it
        system, *conversation = messages(self._rubric, task, reply.answer.text, secrets.token_hex(16))
        answers: list[Answer] = []
        reason = ""
        while len(answers) <= MAX_JUDGE_REPAIR_REQUESTS:
            fact = await self._ask_judge(reply, judge, system.text, conversation, pace)
            if fact is None:
                break
            if isinstance(fact, Failure):
                self._fail(reply, judge, "could not be asked", fact.message)
                break
            answers.append(fact.answer)
            found = judgment(fact.answer.text, self._rubric)
            reason = found.reason if isinstance(found, UnusableJudgeReply) else ""
            if not reason:
                break
            conversation += [
                Message(role=MessageRole.ASSISTANT, content=fact.answer.text or "(nothing)"),
                repair_request(reason),
            ]
        if answers:
            # also when none of them can be used: they are paid for
            self._write(reply, judge, repeat, answers, reason)
        if len(answers) > MAX_JUDGE_REPAIR_REQUESTS and reason:
            self._fail(reply, judge, "gave no usable judgment", reason)

    async def _ask_judge(
        self, reply: Reply, judge: str, system: str, conversation: list[Message], pace: ConcurrencyLimiter
    ) -> Reply | Failure | None:
        case = Case(id=reply.case, prompt=tuple(conversation))
        parameters = self._panel.parameters
        attempt = Attempt(case=case, model=judge, parameters=parameters, system=system, number=reply.number)
        most = self._prices.bound(judge, *max_request_tokens(attempt)) or 0.0
        if not await self._budget.reserve(most):
            return None
        fact = await ask(
            attempt,
            self._judges[judge],
            pace,
            self._breakers[judge],
            self._persistence,
            self._prices,
            self._journal.keep_response,
        )
        answer = fact.answer if isinstance(fact, Reply) else None
        self._budget.settle(most, 0 if answer is None else most if answer.cost is None else answer.cost.usd)
        return fact

    def _write(self, reply: Reply, judge: str, repeat: int, answers: list[Answer], reason: str) -> None:
        made = Judgment(
            key=judgment_key(reply, self._panel, judge, repeat),
            at=now(),
            case=reply.case,
            model=reply.model,
            tier=reply.tier,
            number=reply.number,
            ask=reply.key,
            judge=judge,
            repeat=repeat,
            rubric=self._panel.digest,
            answer=_combined_answer(answers),
            requests=len(answers),
            unusable=reason,
        )
        self._store(made)

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


def judgment_key(reply: Reply, panel: Panel, judge: str, repeat: int) -> str:
    """The identity of one judge's judgment of one reply by one rubric."""
    return digest(reply.key, panel.digest, panel.parameters, judge, repeat)


def _combined_answer(answers: list[Answer]) -> Answer:
    """The last answer, with what all of them took."""
    costs = [answer.cost for answer in answers]
    known = [cost for cost in costs if cost is not None]
    return msgspec.structs.replace(
        answers[-1],
        input_tokens=_sum(answer.input_tokens for answer in answers),
        output_tokens=_sum(answer.output_tokens for answer in answers),
        cost=Cost(usd=math.fsum(cost.usd for cost in known), source=known[-1].source, date=known[-1].date)
        if len(known) == len(costs)
        else None,
        latency=_sum(answer.latency for answer in answers),
    )


def _sum(numbers: Iterator[AnyNumber | None]) -> AnyNumber | None:
    """What they add up to; None where one of them is not known."""
    every = list(numbers)
    known = [number for number in every if number is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(every) else None
