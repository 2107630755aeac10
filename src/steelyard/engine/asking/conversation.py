"""Replies that take several requests: tools are called for the model, and a model may play the user.

Every turn is stored before the next one is asked for, so that a kill loses nothing that was paid for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.engine.asking.tool_runner import are_called, tool_results
from steelyard.engine.options import RunOptions
from steelyard.engine.pace import CircuitBreaker, ConcurrencyLimiter
from steelyard.engine.preflight.connect import connect
from steelyard.engine.steps import failure
from steelyard.errors import InputError, ProviderError
from steelyard.protocols import Provider
from steelyard.records import (
    TOKEN_COUNT_FIELDS,
    Answer,
    Attempt,
    Case,
    Cost,
    Failure,
    Finish,
    Message,
    MessageRole,
    Reply,
    SimulatedUser,
    ToolCall,
    Turn,
)
from steelyard.store.files import now
from steelyard.store.journal import Journal
from steelyard.store.responses import StoredTurn, stored_turn, unfinished_conversations


class AskedModel(NamedTuple):
    """Whom to ask, how fast, and until when."""

    # in the order in which `ask` takes them
    provider: Provider
    pace: ConcurrencyLimiter
    breaker: CircuitBreaker


class UserModels:
    """Whom to ask for the messages of simulated users."""

    def __init__(self, cases: Sequence[Case], means: RunOptions) -> None:
        self._names = {case.user.model for case in cases if case.user is not None}
        self._means = means
        self._asked: dict[str, tuple[str, AskedModel]] = {}

    @property
    def connected(self) -> list[Provider]:
        """The providers that were needed so far."""
        return [asked.provider for _, asked in self._asked.values()]

    def connect_all(self) -> dict[str, Provider]:
        """A provider for each of them by its full name; raises an InputError where one cannot be asked."""
        return dict(self._connected(name) for name in sorted(self._names))

    def asked(self, model: str) -> tuple[str, AskedModel]:
        """The full name of one of them, and whom to ask for it."""
        if model not in self._asked:
            name, provider = self._connected(model)
            at_once = min(provider.at_once, self._means.parallelism or provider.at_once)
            max_wait = self._means.settings.max_wait_secs
            pace = ConcurrencyLimiter(at_once, max_wait=max_wait)
            self._asked[model] = name, AskedModel(provider, pace, CircuitBreaker(max_wait))
        return self._asked[model]

    def _connected(self, model: str) -> tuple[str, Provider]:
        found = list(connect([model], self._means).items())
        if len(found) != 1:
            raise InputError(f'"{model}" stands for {len(found)} models; a simulated user is played by one')
        return found[0]


FINAL_FINISHES = frozenset((Finish.LENGTH, Finish.REFUSAL, Finish.TIMEOUT))
"""The finish reasons of an answer that end a conversation."""
USER_INSTRUCTIONS = """\
You play the user of an assistant; you are not the assistant. Stay in your part, write only what this user would write, and write \
one message at a time. When the user has what they want, or would give up, write {stop} and nothing else.

Your part:
{script}"""
USER_QUESTION = """\
The conversation so far:

{transcript}

Write your next message as the user, or {stop} if the conversation is over."""


FactKeeper = Callable[[Reply | Failure], None]
"""Stores the result of a request before anything else is done with it."""
PaidAsk = Callable[[Attempt, AskedModel, FactKeeper], Awaitable[Reply | Failure | None]]
"""Asks within the budgets, and stores what came; None if nothing was asked."""


class TurnAttempt(Attempt, frozen=True, kw_only=True):
    """An attempt in the middle of its conversation; it has the key of the whole attempt."""

    said: tuple[Message, ...] = ()
    """All messages, those of the case included; empty if nothing else has been said."""
    ask_key: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.said or super().messages

    @property
    def key(self) -> str:
        return self.ask_key

    @property
    def asked(self) -> str:
        return ""


class NextStep(Enum):
    """What a conversation needs next."""

    MODEL = "the model is asked"
    TOOLS = "tools are called"
    USER = "the user is asked"
    END = "it is over"


def next_step(case: Case, turns: Sequence[Turn]) -> NextStep:
    """What a conversation needs after these turns."""
    if not turns:
        return NextStep.MODEL
    last = turns[-1]
    users = [turn for turn in turns if turn.role == "user"] if case.user is not None else []
    has_turns_left = len(turns) - len(users) < case.turn_limit
    if last.role == "user":
        is_over = case.user is None or case.user.stop in last.text
        return NextStep.MODEL if has_turns_left and not is_over else NextStep.END
    if last.finish in FINAL_FINISHES:
        return NextStep.END
    if last.tool_calls:
        if not has_turns_left or not are_called(case, last.tool_calls):
            return NextStep.END
        return NextStep.MODEL if last.results else NextStep.TOOLS
    has_user = case.user is not None and len(users) < case.user.max_turns
    return NextStep.USER if has_user and has_turns_left else NextStep.END


class Conversations:
    """The conversations of one session, those included that an earlier one began."""

    def __init__(self, journal: Journal, replied: Container[str], users: UserModels) -> None:
        self._journal, self._users = journal, users
        self._unfinished: dict[str, list[StoredTurn]] = unfinished_conversations(journal.folder, replied)
        self._spent_by_key: defaultdict[str, float] = defaultdict(float)
        for key, turns in self._unfinished.items():
            self._spent_by_key[key] = sum(stored.turn.cost.usd for stored in turns if stored.turn.cost)

    @property
    def unfinished_usd(self) -> float:
        """The cost of turns in conversations that have no reply yet."""
        return sum(self._spent_by_key.values())

    def spent(self) -> Iterator[tuple[str, str, float]]:
        """The cost of turns in conversations that have no reply yet, each with its tier and its case."""
        for turns in self._unfinished.values():
            for stored in turns:
                if stored.turn.cost is not None:
                    yield stored.tier, stored.case, stored.turn.cost.usd

    async def carry_out(self, attempt: Attempt, asked: AskedModel, paid: PaidAsk) -> Reply | Failure | None:
        """The reply that a conversation ends in, stored; or why it is missing."""
        key, case = attempt.key, attempt.case
        turns = [stored.turn for stored in self._unfinished.pop(key, ())]
        said, told = [*attempt.messages], 0
        if turns and turns[-1].role == "user" and not turns[-1].text:
            turns.pop()
        while (step := next_step(case, turns)) is not NextStep.END:
            if step is NextStep.TOOLS:
                try:
                    turns[-1] = replace(turns[-1], results=await tool_results(case, turns[-1].tool_calls))
                except ProviderError as error:
                    fact = failure(attempt, error)
                    self._journal.append(fact)
                    return fact
                self._journal.keep_turn(stored_turn(attempt, key, len(turns) - 1, turns[-1]))
                continue
            if step is NextStep.MODEL:
                # nothing is added to a turn once its successor is asked for
                said += (message for turn in turns[told:] for message in turn_messages(turn))
                told = len(turns)
                seat, turn_attempt = asked, model_attempt(attempt, tuple(said), key)
            elif case.user is not None:
                name, seat = self._users.asked(case.user.model)
                turn_attempt = user_attempt(attempt, replace(case.user, model=name), turns, key)
            outcome = await paid(turn_attempt, seat, self._keeper(attempt, key, turns, step))
            if not isinstance(outcome, Reply):
                return outcome
            if step is NextStep.USER and not turns[-1].text:
                fact = failure(attempt, ProviderError(f"{turn_attempt.model}, which plays the user, wrote nothing"))
                self._journal.append(fact)
                return fact
        reply = Reply(
            key=key,
            at=now(),
            case=case.id,
            model=attempt.model,
            tier=attempt.tier,
            number=attempt.number,
            asked=attempt.asked,
            answer=conversation_answer(case, turns),
        )
        # nothing may come between an answer and its line in the journal: it is paid for
        self._journal.append(reply)
        self._spent_by_key.pop(key, None)
        return reply

    def _keeper(self, attempt: Attempt, key: str, turns: list[Turn], step: NextStep) -> FactKeeper:
        def keep(fact: Reply | Failure) -> None:
            if isinstance(fact, Failure):
                said_by = f"{fact.model}, which plays the user: " if step is NextStep.USER else ""
                self._journal.append(replace(fact, model=attempt.model, message=f"{said_by}{fact.message}"[:1000]))
                return
            turn = turn_of(fact, len(turns))
            if step is NextStep.USER:
                turn = replace(turn, role="user", model=fact.model, text=turn.text.strip(), tool_calls=(), native=())
            self._journal.keep_turn(stored_turn(attempt, key, len(turns), turn))
            turns.append(turn)
            self._spent_by_key[key] += turn.cost.usd if turn.cost else 0.0

        return keep


def model_attempt(attempt: Attempt, said: tuple[Message, ...], key: str) -> TurnAttempt:
    """The next request to the model that is tested, with all messages so far."""
    return TurnAttempt(
        case=attempt.case,
        model=attempt.model,
        parameters=attempt.parameters,
        system=attempt.system,
        tier=attempt.tier,
        number=attempt.number,
        # what is said so far is sent again with the next turn
        samples=max(attempt.samples, 2),
        tools=attempt.tools,
        said=said,
        ask_key=key,
    )


def user_attempt(attempt: Attempt, user: SimulatedUser, turns: Sequence[Turn], key: str) -> TurnAttempt:
    """The next request to the model that plays the user."""
    said = [("You" if m.role == MessageRole.USER else "The assistant", m.text) for m in attempt.case.messages]
    said = [(who, text) for (who, text), m in zip(said, attempt.case.messages, strict=True) if m.role != "system"]
    said += [("You" if turn.role == "user" else "The assistant", turn.text) for turn in turns if turn.text]
    transcript = "\n\n".join(f"{who}:\n{text}" for who, text in said)
    return TurnAttempt(
        case=Case(id=attempt.case.id, prompt=USER_QUESTION.format(transcript=transcript, stop=user.stop)),
        model=user.model,
        parameters=user.parameters,
        system=USER_INSTRUCTIONS.format(script=user.script, stop=user.stop),
        tier=attempt.tier,
        number=attempt.number,
        ask_key=key,
    )


def turn_messages(turn: Turn) -> Iterator[Message]:
    """The messages that a turn adds to the conversation."""
    if turn.role == "user":
        yield Message(role=MessageRole.USER, content=turn.text)
        return
    yield Message(
        role=MessageRole.ASSISTANT,
        content=turn.text,
        tool_calls=turn.tool_calls if turn.results else (),
        native=turn.native,
    )
    for result in turn.results:
        yield Message(
            role=MessageRole.TOOL, content=result.content, tool_call_id=result.call_id, is_error=result.is_error
        )


def turn_of(reply: Reply, index: int) -> Turn:
    """A reply as a turn; a call without an id gets one, by which its result is known."""
    answer = reply.answer
    calls = answer.tool_calls
    if not all(call.id for call in calls):
        calls = tuple(
            call if call.id else ToolCall(name=call.name, arguments=call.arguments, id=f"call_{index}_{place}")
            for place, call in enumerate(calls)
        )
    return Turn(
        at=reply.at,
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=calls,
        finish=answer.finish,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_tokens=answer.cached_tokens,
        cache_write_tokens=answer.cache_write_tokens,
        cache_write_1h_tokens=answer.cache_write_1h_tokens,
        reasoning_tokens=answer.reasoning_tokens,
        cost=answer.cost,
        latency=answer.latency,
        first_token=answer.first_token,
        request_id=answer.request_id,
        native=answer.native,
        note=answer.note,
    )


def conversation_answer(case: Case, turns: Sequence[Turn]) -> Answer:
    """The answer that a conversation ends in: the last words of the model, and what all turns took."""
    own = [turn for turn in turns if turn.role == "assistant"]
    last = own[-1]
    is_cut = bool(last.tool_calls) and len(own) >= case.turn_limit and are_called(case, last.tool_calls)
    seconds = [turn.seconds for turn in own]
    answer = Answer(
        text=last.text,
        finish=Finish.MAX_TURNS if is_cut and last.finish not in FINAL_FINISHES else last.finish,
        reasoning=last.reasoning,
        cost=total_cost(turns),
        latency=None if None in seconds else sum(filter(None, seconds)),
        first_token=own[0].first_token,
        request_id=last.request_id,
        tool_calls=last.tool_calls if not last.results else (),
        turns=tuple(replace(turn, native=()) if turn.native else turn for turn in turns),
        note="; ".join(dict.fromkeys(turn.note for turn in own if turn.note)),
    )
    counts = {name: total_tokens(own, name) for name in TOKEN_COUNT_FIELDS}
    return replace(answer, **{name: count for name, count in counts.items() if count is not None})


def total_tokens(turns: Iterable[Turn], name: str) -> int | None:
    """Tokens of one kind in all turns of the model; None if a turn does not report them."""
    counts: list[int | None] = [getattr(turn, name) for turn in turns]
    known = [count for count in counts if count is not None]
    is_known = len(known) == len(counts) if name in ("input_tokens", "output_tokens") else bool(known)
    return sum(known) if is_known else None


def total_cost(turns: Sequence[Turn]) -> Cost | None:
    """What all turns cost, those of a simulated user included; None if one is unknown."""
    costs = [turn.cost for turn in turns]
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return None
    sources = dict.fromkeys(cost.source for cost in known)
    return Cost(usd=sum(cost.usd for cost in known), source=", ".join(sources), date=max(cost.date for cost in known))
