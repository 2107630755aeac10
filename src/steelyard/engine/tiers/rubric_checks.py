"""Judgments for the checks of cases that are rubrics: each is paid for once, and stored before it counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from steelyard.engine.tiers.judging import JudgeConnection, JudgeRequests, SchemaFallback, stored_judgment
from steelyard.errors import VerifierError
from steelyard.records import Answer, Judgment, Reply, digest
from steelyard.text import counted
from steelyard.tiers.escalation import EscalatedAnswer, escalation_effects, is_drawn, together
from steelyard.verifiers.checks.rubric import RubricCheck, rubric_check, rubric_tables
from steelyard.verifiers.judge.answer import UnusableJudgeReply, judgment
from steelyard.verifiers.response.judged import CheckTable

if TYPE_CHECKING:
    from steelyard.engine.pace import CircuitBreaker, ConcurrencyLimiter
    from steelyard.protocols import Provider
    from steelyard.records import Escalation
    from steelyard.store.journal import Journal
    from steelyard.tiers.rubrics import Rubric, RubricScore


class RubricJudging:
    """The judges of a run's rubrics; without a connection to one, what it said earlier still counts."""

    def __init__(
        self,
        journal: Journal,
        judges: Mapping[str, Provider],
        requests: JudgeRequests,
        at_once: int | None,
        on_judgment: Callable[[Judgment], None],
    ) -> None:
        self._journal = journal
        self._judges = judges
        self._requests = requests
        self._at_once = at_once
        self._on_judgment = on_judgment
        self._breakers: dict[str, CircuitBreaker] = {}
        self._paces: dict[str, ConcurrencyLimiter] = {}
        self._providers: dict[tuple[str, str], SchemaFallback] = {}
        """By judge and rubric: most servers get the schema of the answer."""
        self._failures: dict[str, str] = {}
        """Why a judgment is missing, by its key: a judgment that used up its tries is not tried again."""
        self._texts: dict[str, str] = {}
        """What judges said, by the keys of the judgments."""
        self._costs: list[float | None] = []
        """What each judgment cost, where that is known."""
        self._saved = 0.0
        """What caches of prompts saved on them."""
        self._with_several_rubrics = {case.id for case in journal.cases if len(rubric_tables(case)) > 1}
        """Cases about whose answers a judge is asked several times, so that it pays to cache the answer."""
        for fact in journal.facts():
            if isinstance(fact, Judgment):
                self._count(fact)

    def about(self, reply: Reply) -> JudgesOfReply:
        """The judges, as far as they are asked about one reply."""
        return JudgesOfReply(self, reply)

    def _count(self, fact: Judgment) -> None:
        self._costs.append(fact.answer.cost.usd if fact.answer.cost else None)
        self._saved += self._requests.savings(fact.judge, fact.answer)
        if not fact.unusable:
            self._texts[fact.key] = fact.answer.text

    def conclusion(self, say: Callable[[str], None] | None) -> tuple[str, ...]:
        """Which judges were given up, and why, in sentences; `say` is called with the cost of all judges so far."""
        known = [cost for cost in self._costs if cost is not None]
        if say is not None and known:
            at_least = "at least " if len(known) < len(self._costs) else ""
            judgments = counted(len(self._costs), "judgment")
            saved = f"; prompt caching saved ${self._saved:.4f} more" if round(self._saved, 4) else ""
            say(
                f"the judges of this run cost {at_least}${math.fsum(known):.4f} for {judgments}, beside its models{saved}"
            )
        if say is not None:
            for sentence in self._escalation_sentences():
                say(sentence)
        return tuple(f"judge {judge} {breaker.outcome}" for judge, breaker in self._breakers.items() if breaker.broken)

    def _escalation_sentences(self) -> Iterator[str]:
        """What the first judges of a rubric decided alone, and what would change if all were asked."""
        for effect in escalation_effects(self._escalated_answers()):
            whole = effect.pass_rate_if_all_asked
            rates = ""
            if effect.pass_rate is not None and whole is not None and whole.low is not None and whole.high is not None:
                rates = (
                    f"; the judges who were asked pass {effect.pass_rate:.1%}, all together would pass between "
                    f"{whole.low:.1%} and {whole.high:.1%} (95%)"
                )
            yield (
                f"the first judges alone decided about {effect.alone:,} of {counted(effect.answers, 'judged reply', 'judged replies')}; "
                f"of {effect.checked:,} checked by chance all judges decide {effect.overruled:,} differently{rates}"
            )

    def _escalated_answers(self) -> Iterator[EscalatedAnswer]:
        tables = {case.id: rubric_tables(case) for case in self._journal.cases}
        checks = {name: [rubric_check(CheckTable(each, "checks")) for each in of] for name, of in tables.items() if of}
        wanted = {name: [each for each in of if each.escalation] for name, of in checks.items()}
        if not any(wanted.values()):
            return
        replies = (fact for fact in self._journal.facts() if isinstance(fact, Reply))
        for reply in replies:
            for check in wanted.get(reply.case, ()):
                if (found := self._escalated(reply, check)) is not None:
                    yield found

    def _escalated(self, reply: Reply, check: RubricCheck) -> EscalatedAnswer | None:
        """One reply by one rubric, from what is stored; None where a judge who is asked has said nothing of use."""
        said = {}
        for judge in check.judges:
            text = self._texts.get(_judgment_key(reply, check.rubric, judge))
            found = None if text is None else judgment(text, check.rubric)
            if found is not None and not isinstance(found, UnusableJudgeReply):
                said[judge] = check.opinion(judge, found)
        first = [said[judge] for judge in check.first_judges if judge in said]
        if check.escalation is None or len(first) < len(check.first_judges):
            return None
        is_clear, is_whole = not check.is_unsure(first), len(said) == len(check.judges)
        is_checked = is_clear and is_drawn(reply.key, check.rubric.digest, check.escalation)
        if not is_whole and (is_checked or not is_clear):
            return None
        whole = together(said.values()) if is_whole else None
        return EscalatedAnswer("", True, together(first), whole, is_checked)

    async def score(self, reply: Reply, judge: str, rubric: Rubric, task: str, text: str) -> RubricScore:
        """What a judge says of a reply; VerifierError where it said nothing that can be used."""
        key = _judgment_key(reply, rubric, judge)
        if key not in self._texts:
            if key not in self._failures:
                self._failures[key] = await self._ask(key, reply, judge, rubric, task, text)
            if self._failures[key]:
                raise VerifierError(self._failures[key])
        found = judgment(self._texts[key], rubric)
        if isinstance(found, UnusableJudgeReply):
            raise VerifierError(f"judge {judge} gave no usable judgment: {found.reason}")
        return found

    async def _ask(self, key: str, reply: Reply, judge: str, rubric: Rubric, task: str, text: str) -> str:
        """Make sure that a judgment is stored; returns the reason if that fails."""
        provider = self._judges.get(judge)
        if provider is None:
            return f"judge {judge} was never asked about this reply by this rubric; ask it with: steelyard resume RUN"

        def keep(answer: Answer, unusable: str) -> None:
            # nothing may come between an answer and its line in the journal: it is paid for
            fact = stored_judgment(key, reply, judge, rubric.digest, [answer], unusable)
            self._journal.append(fact)
            self._count(fact)
            self._on_judgment(fact)

        asked = self._connection(judge, provider, rubric)
        several = reply.case in self._with_several_rubrics
        came = await self._requests.dialogue(asked, rubric, reply, task, text, keep, has_other_rubrics=several)
        if came.answers and not came.unusable:
            return ""
        if came.failure:
            return f"judge {judge} could not be asked: {came.failure}"
        if came.is_given_up:
            return f"judge {judge} gave no usable judgment: {came.unusable}"
        why = asked.breaker.outcome if asked.breaker.broken else "was not asked: the budget does not cover it"
        return f"judge {judge} {why}"

    def _connection(self, judge: str, provider: Provider, rubric: Rubric) -> JudgeConnection:
        if provider.endpoint not in self._paces:
            at_once = min(provider.at_once, self._at_once or provider.at_once)
            self._paces[provider.endpoint] = self._requests.limiter(at_once)
        if judge not in self._breakers:
            self._breakers[judge] = self._requests.breaker()
        evaluation = rubric.categories[0].items[0].evaluation
        fallback = self._providers.setdefault((judge, evaluation), SchemaFallback(provider, rubric))
        return JudgeConnection(judge, fallback, self._paces[provider.endpoint], self._breakers[judge])


def _judgment_key(reply: Reply, rubric: Rubric, judge: str) -> str:
    return digest(reply.key, rubric.digest, {}, judge, 1)


class JudgesOfReply(NamedTuple):
    """The judges of a run, bound to one reply."""

    judging: RubricJudging
    reply: Reply

    async def score(self, judge: str, rubric: Rubric, task: str, text: str) -> RubricScore:
        return await self.judging.score(self.reply, judge, rubric, task, text)

    def is_drawn(self, rubric: Rubric, escalation: Escalation) -> bool:
        return is_drawn(self.reply.key, rubric.digest, escalation)
