"""What a run owes, asked in batches: each is submitted once, found again after a kill, and read once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import msgspec

from steelyard.engine.options import RunOptions
from steelyard.engine.pace import max_request_tokens
from steelyard.engine.plan import planned_attempts, provider_key
from steelyard.engine.steps import reply_to
from steelyard.errors import ProviderError, Rejected, StepError, Unavailable, wrap_exceptions
from steelyard.protocols import Provider
from steelyard.providers.batch.api import (
    BatchApi,
    BatchRequest,
    BatchResult,
    BatchState,
    BatchUndecidedError,
    batch_answer,
    batch_request,
    custom_id,
    new_nonce,
)
from steelyard.providers.batch.offered import BATCH_APIS, batch_api_name
from steelyard.providers.bodies import sound_answer
from steelyard.providers.prices import Prices
from steelyard.providers.wire import HttpEndpoint
from steelyard.records import Attempt, Reply
from steelyard.store.files import now
from steelyard.store.journal import Journal
from steelyard.store.side_files import BATCHES_FILE, BatchEvent, StoredBatch, record_batch_event, stored_batches
from steelyard.text import counted

MAX_CHUNK_REQUESTS = 20_000
"""Requests in one batch, also where a provider takes more: results are read as a whole."""
SETTLE_PAUSES = 60
"""Pauses after its submission in which a batch may still appear in its provider's list."""
MAX_POLL_PAUSES = 60
"""Pauses between two looks at a batch at most; a pause is `retry_delay_ms`."""
MAX_SUBMISSIONS = 3
"""How often the same asks are submitted where the provider turns out not to have the batch."""

Found = TypeVar("Found")


class HeldAsks(NamedTuple):
    """What must not be asked now, because a batch may deliver it."""

    keys: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()


NOTHING_HELD = HeldAsks()


class _OpenBatch(NamedTuple):
    """A batch that is followed, with whom to ask about it."""

    stored: StoredBatch
    api: BatchApi
    endpoint: HttpEndpoint
    provider: Provider

    @property
    def nonce(self) -> str:
        return self.stored.begun.nonce

    @property
    def label(self) -> str:
        return f"{self.stored.begun.asked}: batch of {counted(len(self.stored.begun.keys), 'ask')}"


async def run_batches(journal: Journal, providers: Mapping[str, Provider], means: RunOptions) -> HeldAsks:
    """Submit what is owed, where batches are wanted, and wait for all that the run has submitted so far.

    What comes back is in the journal when this returns; what failed or expired there is owed again.
    """
    open_batches = [batch for batch in stored_batches(journal) if not batch.is_settled]
    if not means.batch and not open_batches:
        return NOTHING_HELD
    return await BatchRunner(journal, providers, means).carry_out(open_batches)


class BatchRunner:
    """The batches of one session."""

    def __init__(self, journal: Journal, providers: Mapping[str, Provider], means: RunOptions) -> None:
        self._journal, self._providers, self._means = journal, providers, means
        self._prices = Prices(means.settings.prices)
        self._pause = means.settings.retry_delay_ms / 1000
        self._spent = 0.0
        replied: set[str] = set()
        for fact in journal.facts():
            if isinstance(fact, Reply):
                replied.add(fact.key)
                self._spent += fact.answer.cost.usd if fact.answer.cost and not fact.cached_from else 0.0
        self._owed: dict[str, Attempt] = {
            key: attempt
            for attempt in planned_attempts(journal.info, journal.cases, providers)
            if (key := attempt.key) not in replied
            and providers[provider_key(attempt)].available(attempt.case.id) is None
        }
        self._held: set[str] = set()
        self._reasons: list[str] = []
        self._unresolved: set[str] = set()
        """The nonces of batches whose asks are held."""
        self._told: dict[str, str] = {}

    async def carry_out(self, begun: Sequence[StoredBatch]) -> HeldAsks:
        """Follow what was begun before, submit the rest, and read all of it."""
        followed = [found for batch in begun if (found := await self._reopened(batch)) is not None]
        located = await asyncio.gather(*map(self._located, followed))
        following = [batch for batch in located if batch is not None]
        taken = self._held | {key for batch in following for key in batch.stored.begun.keys}
        if self._means.batch:
            following += await self._submitted(taken)
        await asyncio.gather(*map(self._followed, following))
        return HeldAsks(frozenset(self._held), tuple(self._reasons))

    # ---- before a batch is there

    async def _reopened(self, stored: StoredBatch) -> _OpenBatch | None:
        """A batch of an earlier session, with the endpoint that one of its asks goes to; None if no endpoint can be asked for it."""
        provider = self._providers.get(stored.begun.asked)
        attempt = next((self._owed[key] for key in stored.begun.keys if key in self._owed), None)
        if provider is not None and attempt is None:
            # a kill came between the last reply and the note that the batch is done
            self._note(stored.begun.nonce, "ended")
            return None
        request = None if attempt is None else await self._request(attempt)
        if provider is None or request is None or stored.begun.api not in BATCH_APIS:
            self._hold(stored, "cannot be followed: its provider is no longer configured")
            return None
        return _OpenBatch(stored, BATCH_APIS[stored.begun.api], request.endpoint, provider)

    async def _located(self, batch: _OpenBatch) -> _OpenBatch | None:
        """The batch with its id, by the nonce where no id was noted; None if it was never submitted, or cannot be found now."""
        if batch.stored.batch:
            return batch
        begun = datetime.fromisoformat(batch.stored.begun.at).timestamp()
        looks = 0
        while True:
            # a request that was on its way when we were killed may arrive a little later
            is_last = datetime.now(UTC).timestamp() - begun >= SETTLE_PAUSES * self._pause
            try:
                found = await self._patiently(
                    lambda: batch.api.find(batch.endpoint, batch.nonce, begun, len(batch.stored.begun.keys))
                )
            except BatchUndecidedError:
                found, is_last = None, False
            except ProviderError as error:
                self._hold(batch.stored, f"may have been submitted, and cannot be looked for: {error}")
                return None
            if found is not None:
                self._note(batch.nonce, "submitted", batch=found)
                return batch._replace(stored=batch.stored._replace(batch=found))
            if is_last:
                self._note(batch.nonce, "absent")
                return None
            looks += 1
            await asyncio.sleep(self._poll_pause(looks))

    async def _submitted(self, taken: set[str]) -> list[_OpenBatch]:
        """What is owed and not in a batch yet, in batches; what cannot be submitted is left to single requests."""
        made = []
        for asked, api_name, requests in await self._chunks(taken):
            for _ in range(MAX_SUBMISSIONS):
                batch = await self._submit(asked, api_name, requests)
                if batch is None:
                    break
                located = await self._located(batch)
                if located is not None:
                    made.append(located)
                    break
                if batch.nonce in self._unresolved:
                    break
        return made

    async def _submit(
        self, asked: str, api_name: str, requests: Sequence[tuple[str, BatchRequest]]
    ) -> _OpenBatch | None:
        """One submission, noted before it is sent; None if the provider refused it."""
        keys = tuple(key for key, _ in requests)
        event = BatchEvent(nonce=new_nonce(), at=now(), event="submitting", api=api_name, asked=asked, keys=keys)
        api, endpoint = BATCH_APIS[api_name], requests[0][1].endpoint
        record_batch_event(self._journal.folder, event)
        batch = _OpenBatch(StoredBatch(event), api, endpoint, self._providers[asked])
        try:
            async with asyncio.timeout(self._means.settings.deadline_secs):
                with wrap_exceptions(ProviderError):
                    found = await api.submit(endpoint, event.nonce, [request for _, request in requests])
        except Rejected as error:
            self._note(event.nonce, "absent", note=str(error)[:500])
            self._say(f"{batch.label}: refused, so asked one by one: {error}")
            return None
        except (ProviderError, TimeoutError):
            # it may have arrived: the next search will find out
            return batch
        self._note(event.nonce, "submitted", batch=found)
        self._say(f"{batch.label}: submitted as {found}")
        return batch._replace(stored=batch.stored._replace(batch=found))

    async def _chunks(self, taken: set[str]) -> list[tuple[str, str, list[tuple[str, BatchRequest]]]]:
        """By model the requests of each batch, within the provider's limits and the budget."""
        chunks: list[tuple[str, str, list[tuple[str, BatchRequest]]]] = []
        places: Counter[str] = Counter()
        sizes: dict[str, int] = {}
        tiers = {
            tier.name: tier for tier in (self._journal.info.experiment.tiers if self._journal.info.experiment else ())
        }
        committed = self._spent + sum(self._bound(self._owed[key]) for key in taken if key in self._owed)
        for key, attempt in self._owed.items():
            api_name, asked = batch_api_name(attempt.model), provider_key(attempt)
            tier = tiers.get(attempt.tier)
            has_budget = tier is not None and (tier.budget_usd is not None or tier.case_budget_usd is not None)
            # a conversation may need further turns
            if key in taken or not api_name or has_budget or attempt.tools or attempt.case.is_conversation:
                continue
            request = await self._request(attempt)
            if request is None:
                continue
            committed += self._bound(attempt)
            if self._means.max_cost is not None and committed > self._means.max_cost:
                break
            size, api = len(msgspec.json.encode(request.body)) + 200, BATCH_APIS[api_name]
            current = places[asked] - 1
            is_full = (
                current < 0
                or len(chunks[current][2]) >= min(api.max_requests, MAX_CHUNK_REQUESTS)
                or sizes[asked] + size > api.max_bytes
            )
            if is_full:
                chunks.append((asked, api_name, []))
                places[asked], sizes[asked], current = len(chunks), 0, len(chunks) - 1
            chunks[current][2].append((key, request))
            sizes[asked] += size
        return chunks

    def _bound(self, attempt: Attempt) -> float:
        return self._prices.bound(attempt.model, *max_request_tokens(attempt), is_batch=True) or 0.0

    async def _request(self, attempt: Attempt) -> BatchRequest | None:
        """What would be sent for an attempt; None if it has to be asked by itself."""
        try:
            with wrap_exceptions(ProviderError):
                return await batch_request(self._providers[provider_key(attempt)], attempt)
        except StepError:
            # as a single request it ends in its own failure
            return None

    # ---- while and after a batch is worked on

    async def _followed(self, batch: _OpenBatch) -> None:
        """Wait for a batch, and put its results into the journal."""
        looks = 0
        try:
            while True:
                state = await self._patiently(lambda: batch.api.state(batch.endpoint, batch.stored.batch))
                self._tell(batch, state)
                if state.is_ended:
                    break
                looks += 1
                await asyncio.sleep(self._poll_pause(looks))
            results = await self._patiently(lambda: _all_results(batch, state))
        except ProviderError as error:
            gone = isinstance(error, Rejected)
            hint = (
                f"; where it is gone for good, delete {self._journal.folder / BATCHES_FILE} to ask again"
                if gone
                else ""
            )
            self._hold(batch.stored, f"is not read yet: {error}{hint}")
            return
        stored = [await self._taken(batch, result) for result in results]
        # its results must be on the disk before the list says that it is done
        self._journal.sync()
        self._note(batch.nonce, "ended")
        left = sum(key in self._owed for key in batch.stored.begun.keys)
        why = state.problem or next((problem for problem in stored if problem), "")
        rest = f", {left:,} asked one by one{f': {why}' if why else ''}" if left else ""
        self._say(f"{batch.label}: ended, {len(batch.stored.begun.keys) - left:,} answers{rest}")

    async def _taken(self, batch: _OpenBatch, result: BatchResult) -> str:
        """Put one result into the journal, unless it is there; returns the reason if there is no answer."""
        attempt = self._attempt(batch, result.custom_id)
        if attempt is None:
            return ""
        if result.body is None:
            return result.problem
        self._journal.keep_response(attempt, now(), result.body)
        try:
            with wrap_exceptions(ProviderError):
                returned = await batch_answer(batch.provider, attempt, result.body)
                answer = sound_answer(returned)
        except StepError as error:
            return str(error)
        self._journal.append(reply_to(attempt, answer, self._prices))
        del self._owed[attempt.key]
        return ""

    def _attempt(self, batch: _OpenBatch, name: str) -> Attempt | None:
        """The attempt that a result is for; None if it is for none of the batch, or for one that has its reply."""
        index = name.rpartition("-")[2]
        keys = batch.stored.begun.keys
        if not (index.isdecimal() and len(index) < 9 and int(index) < len(keys)):
            return None
        return self._owed.get(keys[int(index)]) if name == custom_id(batch.nonce, int(index)) else None

    async def _patiently(self, call: Callable[[], Awaitable[Found]]) -> Found:
        """What a call returns, which is tried again while the provider is out of reach, for as long as a wait may last."""
        waited, tries = 0.0, 0
        while True:
            try:
                async with asyncio.timeout(self._means.settings.deadline_secs):
                    return await call()
            except TimeoutError:
                error: ProviderError = Unavailable(f"no answer within {self._means.settings.deadline_secs:g} s")
            except Unavailable as unavailable:
                error = unavailable
            tries += 1
            pause = max(getattr(error, "retry_after", None) or 0.0, self._poll_pause(tries))
            waited += pause
            if waited > self._means.settings.max_wait_secs:
                raise error
            await asyncio.sleep(pause)

    def _poll_pause(self, looks: int) -> float:
        return self._pause * min(MAX_POLL_PAUSES, 1.5 ** min(looks, 20))

    def _hold(self, stored: StoredBatch, why: str) -> None:
        begun = stored.begun
        self._unresolved.add(begun.nonce)
        self._held.update(begun.keys)
        self._reasons.append(f"{begun.asked}: a batch of {counted(len(begun.keys), 'ask')} {why}")

    def _note(self, nonce: str, event: str, *, batch: str = "", note: str = "") -> None:
        record_batch_event(
            self._journal.folder,
            msgspec.convert({"nonce": nonce, "at": now(), "event": event, "batch": batch, "note": note}, BatchEvent),
        )

    def _tell(self, batch: _OpenBatch, state: BatchState) -> None:
        text = f"{state.done:,} of {len(batch.stored.begun.keys):,} done"
        if state.done and self._told.get(f"progress {batch.nonce}") != text:
            self._told[f"progress {batch.nonce}"] = text
            self._say(f"{batch.label}: {text}")

    def _say(self, text: str) -> None:
        if self._means.say is not None:
            self._means.say(text)


async def _all_results(batch: _OpenBatch, state: BatchState) -> list[BatchResult]:
    return [result async for result in batch.api.results(batch.endpoint, state)]
