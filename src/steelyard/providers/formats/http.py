"""Any product behind a URL: a body with blanks to fill, and the path to the answer in what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.errors import FilteredInput, InputError, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import as_dict
from steelyard.providers.faults import FINISH_REASON_KEYS, FaultKind, block_reason, finish_kind, settled_finish
from steelyard.providers.formats.base import NAMED_OPTIONS
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint
from steelyard.records import Answer, Attempt, MessageRole
from steelyard.secret_texts import Secret


class HttpProvider:
    """One product behind one URL."""

    at_once = MAX_REQUESTS_PER_ENDPOINT

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        if not (settings.base_url and settings.body and settings.answer):
            raise InputError(
                f'provider "{model}": an http provider needs base_url, body and answer in the settings file, '
                'such as body = \'{"q": "{{prompt}}"}\' and answer = "result.text"'
            )
        try:
            self._body = msgspec.json.decode(settings.body)
        except msgspec.MsgspecError as error:
            raise InputError(f'provider "{model}": body is not JSON: {error}') from None
        headers = {**settings.headers}
        if settings.api_key and "authorization" not in {name.lower() for name in headers}:
            headers["authorization"] = Secret(f"Bearer {settings.api_key}")
        self._model = model
        self._path = settings.answer.split(".")
        self._http = HttpEndpoint(settings.base_url, headers, secrets=(settings.api_key, *settings.headers.values()))
        self.endpoint = self._http.url

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        message_texts = [message.text for message in attempt.messages if message.role != MessageRole.SYSTEM]
        blanks = {
            **attempt.parameters,
            "prompt": message_texts[-1] if message_texts else "",
            "system": "\n\n".join(message.text for message in attempt.messages if message.role == MessageRole.SYSTEM),
            "messages": attempt.messages,
            "model": self._model,
        }
        sent = filled_template(self._body, blanks)
        exchange = await self._http.exchange("POST", "", sent, delivery)
        body = self._http.answer_value(exchange)
        self._http.check_errors(sent, body)
        if blocked := block_reason(body):
            raise FilteredInput(f"{self.endpoint}: the prompt was blocked: {blocked}")
        found, passed = self._walk(body)
        self._http.check_errors(sent, *passed)
        text = found if isinstance(found, str) else "" if found is None else msgspec.json.encode(found).decode()
        reasons = (table.get(name) for table in passed for name in FINISH_REASON_KEYS)
        reason = next((reason for reason in reasons if reason), None)
        if found is None and finish_kind(reason) is FaultKind.UNKNOWN:
            raise Unavailable(f'{self.endpoint}: the response has no "{".".join(self._path)}"')
        finish, note = settled_finish(reason or "stop", has_content=bool(text), where=self.endpoint)
        return Answer(
            text=text,
            finish=finish,
            latency=exchange.seconds,
            request_id=exchange.headers.get("x-request-id", ""),
            note=note,
        )

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        """Why these parameters cannot be sent; empty if the body has a place for them."""
        written = msgspec.json.encode(self._body).decode()
        lacking = [name for name in NAMED_OPTIONS if name in parameters and name not in written]
        return f"has no place for {lacking[0]} in its body; write {{{{{lacking[0]}}}}} there" if lacking else ""

    def _walk(self, body: Any) -> tuple[Any, list[dict[str, Any]]]:
        """What is at the path, None where nothing is, and the objects on the way, the nearest first."""
        found, passed = body, [as_dict(body)]
        for step in self._path:
            try:
                found = found[int(step)] if isinstance(found, list) else found[step]
            except (KeyError, IndexError, ValueError, TypeError):
                return None, passed
            passed.insert(0, as_dict(found))
        return found, passed

    def headroom(self) -> RateLimitHeadroom | None:
        return self._http.headroom

    def available(self, case: str) -> None:  # noqa: ARG002  a live product answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return [OfferedModel(self._model, self.endpoint)]

    async def close(self) -> None:
        await self._http.close()


def filled_template(template: Any, blanks: dict[str, Any]) -> Any:
    """A JSON value with its `{{name}}` filled in; a blank that is a whole string keeps the value's own type.

    >>> filled_template({"q": "{{prompt}}", "t": "{{temperature}}", "note": "from {{model}}"},
    ...        {"prompt": "hi", "temperature": 0.5, "model": "m"})
    {'q': 'hi', 't': 0.5, 'note': 'from m'}
    """
    if isinstance(template, dict):
        return {name: filled_template(value, blanks) for name, value in template.items()}
    if isinstance(template, list):
        return [filled_template(value, blanks) for value in template]
    if not isinstance(template, str):
        return template
    whole = template.removeprefix("{{").removesuffix("}}").strip()
    if whole in blanks and template.startswith("{{"):
        return blanks[whole]
    # one pass from left to right, so that a prompt which holds {{model}} is not filled in again
    first, *others = template.split("{{")
    for piece in others:
        name, closed, rest = piece.partition("}}")
        known = closed and name.strip() in blanks
        first += f"{blanks[name.strip()]}{rest}" if known else f"{{{{{piece}"
    return first


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A product behind a URL, asked for one model."""
    return {model: HttpProvider(model, settings)}
