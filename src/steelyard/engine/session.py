"""One session of a run: it asks for what the run still owes, and verifies it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.engine.asking.batches import NOTHING_HELD, HeldAsks
from steelyard.engine.asking.conversation import AskedModel, Conversations, FactKeeper, UserModels
from steelyard.engine.asking.spending import SpendingTally
from steelyard.engine.options import RunOptions
from steelyard.engine.pace import (
    DEFAULT_MAX_OUTPUT_TOKENS,
    OUTPUT_LIMITS,
    Budget,
    CircuitBreaker,
    ConcurrencyLimiter,
    TierBudgets,
    max_request_tokens,
    reserve_all,
    settle_all,
)
from steelyard.engine.plan import (
    CompactKeySet,
    expected_attempts,
    outstanding_attempts,
    parameters,
    planned_attempts,
    provider_key,
    tier_attempt,
)
from steelyard.engine.pool import run_concurrently
from steelyard.engine.progress import SessionProgress
from steelyard.engine.steps import RetryPolicy, ask, failure, is_verified_again_alone
from steelyard.engine.tiers.judging import JudgeRequests, JudgeRunner
from steelyard.engine.tiers.rubric_checks import RubricJudging
from steelyard.engine.verifiers import VerifierSet, with_python_env
from steelyard.engine.waiting_replies import WaitingReplies
from steelyard.errors import SteelyardError, VerifierError
from steelyard.protocols import Pool, Provider
from steelyard.providers.prices import Prices
from steelyard.records import Attempt, Case, Failure, Judgment, Reply, Tier, Verdict
from steelyard.store.files import now
from steelyard.store.journal import Journal
from steelyard.store.side_files import case_limits, record_case_limits, record_witness_results
from steelyard.store.stored_cases import cases_by_id
from steelyard.verifiers.checks.rubric import rubric_tables

AGENT_GRACE_SECONDS = 120
"""Seconds beyond an agent's time limit in which its provider must have ended it and read what it did."""


class Session:
    """Asks for the replies that are owed, and verifies each while others are still in flight."""

    def __init__(
        self,
        journal: Journal,
        providers: dict[str, Provider] | None,
        means: RunOptions,
        verifying: VerifierSet,
        pool: Pool,
        judges: Mapping[str, Provider] = {},
        held: HeldAsks = NOTHING_HELD,
    ) -> None:
        """`providers` by model, where tiers are compared by tier; `judges` by model.

        Without providers every stored reply is verified again; None leaves the verdicts as they are.
        """
        self._verifies_all = providers is not None and not providers
        self._verifies = providers is not None
        providers = providers or {}
        self._journal = journal
        self._info = journal.info
        self._providers = providers
        self._judges = judges
        self._held = held
        self._means = means
        self._prices = Prices(means.settings.prices)
        self._spending = SpendingTally(self._prices)
        self._persistence = RetryPolicy(
            retries=means.settings.max_retries,
            first_pause=means.settings.retry_delay_ms / 1000,
            deadline=means.settings.deadline_secs,
            max_wait=means.settings.max_wait_secs,
        )
        self._breakers = {model: CircuitBreaker(means.settings.max_wait_secs) for model in providers}
        # as they were written down: what is resumed must not be other than what was begun
        self.cases = with_python_env(journal.cases, means.python_env)
        self._by_id = cases_by_id(self.cases)
        self._unverified_cases = {case.id for case in self.cases if not case.has_verifier}
        self._verifying = verifying
        for limit in reversed(case_limits(journal)):
            # as in earlier sessions; of two that were found at the same time the first one was used
            verifying.limits.learn(limit)
        self._pool = pool
        self._overdue = CompactKeySet()
        """The keys of replies whose code ran out of time while the machine was busy with others, to be tried again alone."""
        self._kept_witnesses = 0
        self._began = now()
        self._survey()

    def _survey(self) -> None:
        """What is done already: keys only, the texts stay on disk."""
        self._replied = CompactKeySet()
        self._judged = CompactKeySet()
        self._withdrawn: set[str] = set()
        """The keys of verdicts that a failure took back."""
        self._verifiable = 0
        """How many of the replies are for a verifier."""
        spent = 0.0
        self._tier_budgets = TierBudgets(self._info.experiment.tiers if self._info.experiment else ())
        # who verifies again wants new verdicts; a pool of others may share none
        recall = None if self._verifies_all else getattr(self._pool, "recall", None)
        for fact in self._journal.facts():
            if recall is not None and self._is_verified(fact.case):
                recall(fact, self._by_id[fact.case])
            if isinstance(fact, Reply):
                self._replied.add(fact.key)
                self._spending.count(fact)
                self._verifiable += self._is_verified(fact.case)
                spent += (cost := self._spent_on(fact))
                self._tier_budgets.count(fact.tier, fact.case, cost)
            elif isinstance(fact, Verdict):
                self._judged.add(fact.key)
                self._withdrawn.discard(fact.key)
            elif isinstance(fact, Failure):
                if fact.key in self._judged:
                    self._withdrawn.add(fact.key)
            elif isinstance(fact, Judgment):
                self._spending.count_judgment(fact)
                spent += fact.answer.cost.usd if fact.answer.cost else 0.0
        self._users = UserModels(self.cases, self._means)
        self._conversations = Conversations(self._journal, self._replied, self._users)
        for tier_name, case, cost in self._conversations.spent():
            spent += cost
            self._tier_budgets.count(tier_name, case, cost)
        self._budget_spent = spent

    def _spent_on(self, reply: Reply) -> float:
        """What a stored reply cost this run; under a budget, one of unknown cost counts as the most it can have cost."""
        if reply.cached_from:
            return 0.0
        if reply.answer.cost is not None:
            return reply.answer.cost.usd
        case = self._by_id.get(reply.case)
        if self._means.max_cost is None or case is None:
            return 0.0
        tier = self._tier(reply.tier)
        if tier is not None:
            asked = tier_attempt(self._info, tier, case, reply.number)
        else:
            chosen = parameters(self._info, case, reply.number)
            asked = Attempt(case=case, model=reply.model, parameters=chosen, system=self._info.system)
        return self._prices.bound(reply.model, *max_request_tokens(asked)) or 0.0

    def _tier(self, name: str) -> Tier | None:
        tiers = self._info.experiment.tiers if self._info.experiment else ()
        return next((tier for tier in tiers if tier.name == name), None)

    def _is_verified(self, case: str) -> bool:
        """Whether answers to this case are for a verifier, and not for judges alone."""
        return self._verifies and case in self._by_id and case not in self._unverified_cases

    @property
    def out_of_budget(self) -> bool:
        """Whether attempts are owed because the budget is spent."""
        return self._budget.exhausted

    async def carry_out(self) -> tuple[str, ...]:
        """Do all that is owed; returns why something is still owed, if it is."""
        self._budget = Budget(self._means.max_cost, self._budget_spent)
        counts = sum(
            expected_attempts(self._info, model, provider, case)
            for model, provider in self._providers.items()
            for case in self.cases
            if case.has_verifier
        )
        asks = max(0, counts - self._verifiable)
        self.progress = SessionProgress(asks + sum(1 for _ in self._unverified()))
        given_up: tuple[str, ...] = ()
        self._verifying.judging = judging = self._rubric_judging()
        try:
            async with asyncio.TaskGroup() as beside:
                ticking = beside.create_task(self._tick())
                async with self._pool.at_work(self._verified):
                    await self._ask_all()
                if self._overdue:
                    async with self._pool.at_work(self._judge, alone=True):
                        await self._try_again()
                given_up = await self._hear_judges()
                ticking.cancel()
        except BaseException:
            # passes that are stored must not outlive the failures of their case because a session ends early
            with suppress(OSError, SteelyardError):
                self._withdraw_unwitnessed()
            raise
        finally:
            for provider in (*self._providers.values(), *self._judges.values(), *self._users.connected):
                await provider.close()
            self._describe_spending()
        self._keep_witnesses()
        self._withdraw_unwitnessed()
        self._show()
        return (*self._still_owed(), *given_up, *(judging.conclusion(self._means.say) if judging else ()))

    def _rubric_judging(self) -> RubricJudging | None:
        """The judges of checks that are rubrics; None without such checks."""
        if not any(map(rubric_tables, self.cases)):
            return None
        requests = JudgeRequests(self._budget, self._prices, self._persistence, self._journal.keep_response)
        at_once = self._means.parallelism or self._means.settings.parallelism
        return RubricJudging(self._journal, self._judges, requests, at_once, self._spending.count_judgment)

    async def _hear_judges(self) -> tuple[str, ...]:
        """Once all replies are there: the judgments that are owed."""
        if self._info.panel is None or not self._judges:
            return ()
        judging = JudgeRunner(
            self._journal,
            self._info.panel,
            {judge: self._judges[judge] for judge in self._info.panel.judges if judge in self._judges},
            self._by_id,
            budget=self._budget,
            prices=self._prices,
            persistence=self._persistence,
            at_once=self._means.parallelism or self._means.settings.parallelism,
            on_counted=self._count_judgment,
        )
        return await judging.carry_out(self._plan_judgments)

    def _plan_judgments(self, owed: int) -> None:
        self.progress.judgments = self.progress.judgments_made + owed

    def _count_judgment(self, fact: Judgment | Failure) -> None:
        if isinstance(fact, Failure):
            self.progress.judgments_failed += 1
            return
        self._spending.count_judgment(fact)
        if not fact.unusable:
            self.progress.judgments_made += 1

    async def _ask_all(self) -> None:
        endpoints: dict[str, dict[str, Provider]] = {}
        for model, provider in self._providers.items():
            endpoints.setdefault(provider.endpoint, {})[model] = provider
        self._waiting = WaitingReplies(self._pool, self._journal, self._by_id)
        async with asyncio.TaskGroup() as feeding:
            feeding.create_task(self._waiting.feed())
            async with asyncio.TaskGroup() as asking:
                asking.create_task(self._requeue())
                for models in endpoints.values():
                    asking.create_task(self._ask_endpoint(models))
            self._waiting.end()

    async def _ask_endpoint(self, providers: dict[str, Provider]) -> None:
        at_once = min(provider.at_once for provider in providers.values())
        at_once = min(at_once, self._means.parallelism or self._means.settings.parallelism or at_once)
        pace = ConcurrencyLimiter(at_once, max_wait=self._persistence.max_wait)

        async def do(attempt: Attempt) -> None:
            place = provider_key(attempt)
            asked = AskedModel(providers[place], pace, self._breakers[place])
            if attempt.case.is_conversation and asked.provider.available(attempt.case.id) is None:
                fact = await self._conversations.carry_out(attempt, asked, self._paid)
            else:
                fact = await self._paid(attempt, asked, self._journal.append)
            # nothing else was written since
            written_at = self._journal.last_place
            if fact is None:
                return
            self.progress.reason = pace.reason
            self.progress.at_once = max(self.progress.at_once, pace.allowed)
            if isinstance(fact, Failure):
                self.progress.failed += 1
                return
            self.progress.replied += 1
            self._spending.count(fact)
            if not self._is_verified(fact.case):
                return
            if asked.provider.available(attempt.case.id) is None:
                self._waiting.add(fact, written_at)
            else:
                # a recording can be read later as well
                await self._pool.put(fact, self._by_id[fact.case])

        await run_concurrently(self._owed(providers), do, at_once)

    async def _paid(self, attempt: Attempt, asked: AskedModel, store: FactKeeper) -> Reply | Failure | None:
        """Ask within the budgets, and store what comes; None if nothing was asked."""
        most = 0.0
        budgets = [self._budget, *self._tier_budgets.of(attempt)]
        if self._means.max_cost is not None or len(budgets) > 1:
            most = self._most(attempt)
            if not await reserve_all(budgets, most):
                return None
        fact = await ask(attempt, *asked, self._persistence_of(attempt), self._prices, self._journal.keep_response)
        if fact is not None:
            # nothing may come between an answer and its line in the journal: it is paid for
            store(fact)
        # an answer of unknown cost may have cost as much as it could
        cost = 0.0 if not isinstance(fact, Reply) else most if fact.answer.cost is None else fact.answer.cost.usd
        settle_all(budgets, most, cost)
        return fact

    def _most(self, attempt: Attempt) -> float:
        """The most that an attempt can cost, as far as that is known."""
        tier = self._tier(attempt.tier)
        if tier is not None and tier.agent:
            return tier.attempt_budget_usd or 0.0
        return self._prices.bound(attempt.model, *max_request_tokens(attempt)) or 0.0

    def _persistence_of(self, attempt: Attempt) -> RetryPolicy:
        """An agent has a time limit of its own, and ends by itself."""
        tier = self._tier(attempt.tier) if attempt.tier else None
        if tier is None or not tier.agent:
            return self._persistence
        return self._persistence._replace(deadline=tier.timeout_secs + AGENT_GRACE_SECONDS)

    def _owed(self, providers: dict[str, Provider]) -> Iterator[Attempt]:
        wanted = (
            attempt
            for attempt in planned_attempts(self._info, self.cases, providers)
            if not self._breakers[provider_key(attempt)].broken
        )
        for attempt in outstanding_attempts(wanted, self._replied):
            if any(budget.exhausted for budget in self._tier_budgets.of(attempt)):
                continue
            if self._held.keys and attempt.key in self._held.keys:
                continue
            if self._budget.exhausted or self._pool.given_up:
                return
            yield attempt

    def _unverified(self) -> Iterator[tuple[Reply, Case]]:
        """Stored replies that need a verdict: those without a current one, or all when nothing is asked."""
        for fact in self._journal.facts():
            if isinstance(fact, Reply) and fact.key in self._replied and self._is_verified(fact.case):
                case = self._by_id[fact.case]
                key = self._verifying.verdict_key(fact.key, case)
                if self._verifies_all or key not in self._judged or key in self._withdrawn:
                    yield fact, case

    async def _requeue(self) -> None:
        for reply, case in self._unverified():
            if self._pool.given_up:
                return
            await self._pool.put(reply, case)

    async def _try_again(self) -> None:
        """Queue the replies that timed out; their texts were left on disk to save memory."""
        for fact in self._journal.facts():
            if isinstance(fact, Reply) and fact.key in self._overdue and not self._pool.given_up:
                await self._pool.put(fact, self._by_id[fact.case])

    def _verified(self, fact: Verdict | Failure, case: Case) -> None:
        if isinstance(fact, Verdict) and is_verified_again_alone(fact.found):
            self._overdue.add(fact.ask)
        else:
            self._judge(fact, case)

    def _judge(self, fact: Verdict | Failure, case: Case) -> None:
        self._journal.append(fact)
        if isinstance(fact, Failure):
            self.progress.failed += 1
        else:
            self.progress.judged += 1
            self.progress.correct += is_correct(case, fact.found)

    def _describe_spending(self) -> None:
        """Write down what was saved, also where a session ends early."""
        spending = self._spending.total(self._conversations.unfinished_usd)
        # a disk that is full or gone has its own sentence
        with suppress(OSError, SteelyardError):
            if spending != (info := self._journal.info).spending:
                self._journal.describe(replace(info, spending=spending))

    def _keep_witnesses(self) -> None:
        """Store the results of witnesses and the limits that were found since the last call."""
        record_case_limits(self._journal.folder, self._verifying.limits.new())
        results = getattr(self._pool, "witness_results", ())  # a pool of others may know none
        if len(results) > self._kept_witnesses:
            record_witness_results(self._journal.folder, results[self._kept_witnesses :])
            self._kept_witnesses = len(results)

    def _withdraw_unwitnessed(self) -> None:
        """Make all verdicts at a case owed again where its witness failed: it must not keep its passes and lose its failures.

        Those of earlier sessions are taken back as well, and those of other nodes unless the witness passed on one of them.
        """
        results = getattr(self._pool, "witness_results", ())
        problems = {(result.case, result.node): result.problem for result in results if result.problem}
        if not problems:
            return
        passed = {result.case for result in results if not result.problem}
        anywhere = {case: problem for (case, _), problem in problems.items() if case not in passed}
        for fact in self._standing_verdicts({case for case, _ in problems}):
            problem = problems.get((fact.case, fact.node)) or anywhere.get(fact.case)
            if problem is None:
                continue
            self._journal.append(failure(fact, VerifierError(problem)))
            self.progress.failed += 1
            if fact.at >= self._began:
                self.progress.judged -= 1
                self.progress.correct -= is_correct(self._by_id[fact.case], fact.found)

    def _standing_verdicts(self, cases: Collection[str]) -> list[Verdict]:
        """The last verdict on each answer to these cases, without those that were taken back."""
        standing: dict[str, Verdict] = {}
        for fact in self._journal.facts():
            if fact.case in cases and isinstance(fact, Verdict):
                standing[fact.ask] = fact
            elif fact.case in cases and isinstance(fact, Failure):
                standing = {ask: verdict for ask, verdict in standing.items() if verdict.key != fact.key}
        return list(standing.values())

    async def _tick(self) -> None:
        """Once a second: what was written reaches the disk, and the progress is shown."""
        while True:
            await asyncio.sleep(1)
            await asyncio.to_thread(self._journal.sync)
            self._journal.check_present()
            self._keep_witnesses()
            self._show()

    def _show(self) -> None:
        self.progress.spent = self._budget.spent
        self.progress.nodes = self._pool.nodes
        running, self.progress.slow = getattr(self._pool, "running", (0, None))
        self.progress.at_once = max(self.progress.at_once, running)
        if self._means.watch is not None:
            self._means.watch(self.progress)

    def _limit_hint(self) -> str:
        """A hint for the case that most of a reservation is for replies without a length limit."""
        if self._info.experiment is not None or any(name in self._info.parameters for name in OUTPUT_LIMITS):
            return ""
        return f": its reply may have {DEFAULT_MAX_OUTPUT_TOKENS:,} tokens; --max-tokens makes it reserve less"

    def _still_owed(self) -> tuple[str, ...]:
        why = [f"{model} {breaker.outcome}" for model, breaker in self._breakers.items() if breaker.broken]
        if self._budget.exhausted:
            why.append(f"the budget of ${self._means.max_cost:g} does not cover another request{self._limit_hint()}")
        why += [*self._tier_budgets.exhausted(), *self._held.reasons]
        if self._pool.given_up:
            why.append(self._pool.given_up)
        return tuple(why)
