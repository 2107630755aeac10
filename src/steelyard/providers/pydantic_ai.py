"""Any other provider, asked through the library pydantic-ai, which is an extra of ours.

The bodies of its responses are stored before the library reads them, and statuses, errors and chat completions are read as
those of our own adapters are.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from steelyard.errors import InputError, Rejected, StepError, Unavailable
from steelyard.protocols import Delivery, OfferedModel, Provider, ProviderSettings, RateLimitHeadroom
from steelyard.providers.bodies import LenientNumbers, leading_json_value
from steelyard.providers.faults import headroom, provider_error, settled_finish
from steelyard.providers.formats.openai import OpenAIProvider
from steelyard.providers.formats.parts import not_in_format
from steelyard.providers.wire import MAX_REQUESTS_PER_ENDPOINT, HttpEndpoint, HttpExchange
from steelyard.records import Answer, Attempt, Message, MessageRole, ToolCall, is_secret
from steelyard.secret_texts import Environment, HiddenFrames

INSTALL_HINT = 'pip install "steelyard[pydantic-ai]"'
NO_KEY = "no-key"
"""Sent to an address that no key belongs to; the library would take one from the environment."""
SETTING_NAMES = {"stop": "stop_sequences", "reasoning_effort": "thinking"}
"""Parameters that the library calls by another name."""
KNOWN_SETTINGS = frozenset(
    ("max_tokens", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "logit_bias")
)
"""Parameters that the library has a name for; the others are sent as they are, where a format has a place for them."""

_responses: ContextVar[list[Any]] = ContextVar("_responses")
"""The HTTP responses to the request of this task, in order."""


class PydanticAIProvider:
    """One model that pydantic-ai knows how to ask: `PROVIDER:MODEL`."""

    at_once = MAX_REQUESTS_PER_ENDPOINT

    def __init__(self, model: str, settings: ProviderSettings) -> None:
        self._settings = settings
        self._provider_name, parted, self._model_name = model.replace("/", ":", ":" not in model).partition(":")
        if not parted or not self._model_name:
            raise InputError(f'model "{model}": pydantic-ai is asked as pydantic-ai:PROVIDER:MODEL')
        self.endpoint = f"pydantic-ai:{self._provider_name}"
        self._provider_class = _provider_class(self._provider_name)
        takes = inspect.signature(self._provider_class).parameters
        for name in ("base_url", "api_key"):
            if getattr(settings, name) and name not in takes:
                raise InputError(f"{self.endpoint}: takes no {name}; the library has its own way to set it")
        self._model: Any = None
        self._client: Any = None
        self._reader: OpenAIProvider | None = None

    def _open(self) -> OpenAIProvider:
        """Make the library's client; only whoever is asked needs a key."""
        if self._reader is None:
            from pydantic_ai.models import infer_model

            with HiddenFrames():
                provider = self._provider_class(**self._arguments())
                self._model = infer_model(f"{self._provider_name}:{self._model_name}", lambda _: provider)
            self._client = getattr(provider, "_own_http_client", None)
            if self._client is not None:
                self._client.event_hooks["response"].append(_keep_response)
            url = str(provider.base_url)
            self._reader = OpenAIProvider(self._model_name, ProviderSettings(type="openai", base_url=url))
            keys = [value for name, value in Environment().items() if is_secret(name, value)]
            self._reader.http = HttpEndpoint(url, {}, secrets=(self._settings.api_key, *keys))
        return self._reader

    def _arguments(self) -> dict[str, str]:
        given = {name: getattr(self._settings, name) for name in ("base_url", "api_key")}
        if given["base_url"] and not given["api_key"]:
            given["api_key"] = NO_KEY
        return {name: value for name, value in given.items() if value}

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import ModelRequestParameters

        try:
            reader = self._open()
        except UserError as error:
            raise Rejected(f"{self.endpoint}: {_what_is_unset(str(error))}", everyone=True) from None
        messages, settings = _messages(attempt.messages, self.endpoint), _model_settings(attempt.parameters)
        started, came = time.monotonic(), list[Any]()
        token = _responses.set(came)
        response, failure = None, None
        try:
            with HiddenFrames():
                response = await self._model.request(messages, settings, ModelRequestParameters())
        except Exception as error:  # noqa: BLE001  what arrived decides what it means
            failure = error
        finally:
            _responses.reset(token)
            if came and came[-1].is_success:
                delivery.accepted = True
                # stored whatever the library makes of it: it was paid for
                delivery.body = reader.http.without_secrets(came[-1].content)
        if came:
            reader.http.headroom = headroom(came[-1].headers)
            if not came[-1].is_success:
                failure = None  # it quotes the response, which may quote a key
                reader.http.refuse(came[-1], reader.http.without_secrets(came[-1].content), None)
        exchange = HttpExchange(delivery.body, came[-1].headers if came else {}, time.monotonic() - started, delivery)
        return self._answer(reader, exchange, response, failure)

    def _answer(
        self, reader: OpenAIProvider, exchange: HttpExchange, response: Any, failure: Exception | None
    ) -> Answer:
        body = _object(exchange.body)
        if "choices" in body:
            # the library refuses a whole answer where its accounting is odd
            return reader.answer_of(exchange, None)
        reader.http.check_errors(None, body)
        if failure is not None:
            raise self._error(reader, exchange, failure) from failure
        return _library_answer(response, exchange.seconds, self.endpoint)

    def _error(self, reader: OpenAIProvider, exchange: HttpExchange, failure: Exception) -> StepError:
        """What an exception of the library means, where no HTTP status says so."""
        from pydantic_ai.exceptions import ModelAPIError, UserError

        text = reader.http.clean(f"{self.endpoint}: {type(failure).__name__}: {failure}")[:500]
        if exchange.body:
            return Rejected(f"{text}; pydantic-ai cannot read the response, which is in responses.jsonl")
        status = getattr(failure, "status_code", None)
        if isinstance(status, int):
            return provider_error(text, status, getattr(failure, "body", None), parameters=[])
        if isinstance(failure, UserError):
            return Rejected(text, everyone=True)
        return Unavailable(text) if isinstance(failure, ModelAPIError | OSError) else Rejected(text)

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        """Why this model, or with these parameters, cannot be asked; empty if it can."""
        from pydantic_ai.exceptions import UserError

        try:
            self._open()
        except UserError as error:
            return f"cannot be asked: {_what_is_unset(str(error))}"
        return "is asked through pydantic-ai without a format of replies" if "response_format" in parameters else ""

    def headroom(self) -> RateLimitHeadroom | None:
        return self._reader.http.headroom if self._reader else None

    def available(self, case: str) -> None:  # noqa: ARG002  a live model answers anything
        return None

    async def offers(self) -> list[OfferedModel]:
        return []

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        if self._reader is not None:
            await self._reader.close()


async def _keep_response(response: Any) -> None:
    """Read a response to its end before the library sees it."""
    if (came := _responses.get(None)) is not None:
        await response.aread()
        came.append(response)


def _provider_class(name: str) -> Any:
    try:
        from pydantic_ai.providers import infer_provider_class
    except ImportError:
        raise InputError(f"pydantic-ai is not installed; type: {INSTALL_HINT}") from None
    try:
        return infer_provider_class(name)
    except ValueError:
        raise InputError(
            f'pydantic-ai knows no provider "{name[:80]}"; write pydantic-ai:PROVIDER:MODEL, such as pydantic-ai:cohere:command-a'
        ) from None
    except ImportError as error:
        found = re.search(r"`(pip install [^`]+)`", str(error))
        why = f"needs another package; type: {found[1]}" if found else str(error)
        raise InputError(f"pydantic-ai:{name}: {why}") from None


def _what_is_unset(text: str) -> str:
    """What the library misses, in words for the command line; it speaks of Python classes.

    >>> _what_is_unset("Set the `OPENAI_API_KEY` environment variable or pass it via `OpenAIProvider(api_key=...)`")
    'no key; set OPENAI_API_KEY, or api_key in a [providers.NAME] table with type = "pydantic-ai"'
    """
    names = re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`", text)
    if not names:
        return text
    kinds = {"KEY": ("no key", "api_key"), "TOKEN": ("no key", "api_key"), "URL": ("no address", "base_url")}
    missing, setting = kinds.get(names[0].rpartition("_")[2], ("a setting is missing", ""))
    table = f', or {setting} in a [providers.NAME] table with type = "pydantic-ai"' if setting else ""
    return f"{missing}; set {' or '.join(names)}{table}"


def _messages(said: tuple[Message, ...], where: str) -> list[Any]:
    """The messages in the library's classes."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    for part in (part for message in said for part in message.parts if part.type != "text"):
        raise not_in_format(part, where)
    kinds = {MessageRole.SYSTEM: SystemPromptPart, MessageRole.USER: UserPromptPart}
    messages: list[Any] = []
    for message in said:
        if message.role == MessageRole.ASSISTANT:
            messages.append(ModelResponse(parts=[TextPart(content=message.text)]))
        elif message.role not in kinds:
            raise Rejected(f"{where}: this provider takes no message of role {message.role}")
        else:
            messages.append(ModelRequest(parts=[kinds[MessageRole(message.role)](content=message.text)]))
    return messages


def _model_settings(parameters: Mapping[str, Any]) -> Any:
    """The parameters under the library's names; what it does not know goes into the body as it is."""
    # a repeat is ours: it is counted, and waits as the server asks
    settings: dict[str, Any] = {"max_retries": 0}
    further = {}
    for name, value in parameters.items():
        if name in SETTING_NAMES:
            settings[SETTING_NAMES[name]] = [value] if name == "stop" and isinstance(value, str) else value
        elif name in KNOWN_SETTINGS:
            settings[name] = value
        else:
            further[name] = value
    if settings.get("thinking") == "none":
        settings["thinking"] = False
    return settings | ({"extra_body": further} if further else {})


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = leading_json_value(body)[0] if body else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def _library_answer(response: Any, seconds: float, where: str) -> Answer:
    """An answer as the library read it; it writes 0 for what a server does not count."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(
        ToolCall(name=part.tool_name, arguments=part.args_as_json_str(), id=part.tool_call_id)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    reason = (response.provider_details or {}).get("finish_reason") or response.finish_reason
    finish, note = settled_finish(reason, has_content=bool(text or calls), where=where)
    usage, numbers = response.usage, LenientNumbers()
    counts: dict[str, Any] = {
        ours: numbers.tokens(theirs, getattr(usage, theirs, None) or None)
        for ours, theirs in (
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("cached_tokens", "cache_read_tokens"),
            ("cache_write_tokens", "cache_write_tokens"),
            ("reasoning_tokens", "output_reasoning_tokens"),
        )
    }
    return Answer(
        text=text,
        finish=finish,
        reasoning="".join(part.content for part in response.parts if isinstance(part, ThinkingPart)),
        tool_calls=calls,
        latency=seconds,
        request_id=response.provider_response_id or "",
        note="; ".join(filter(None, (note, numbers.note))),
        **counts,
    )


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A model of a provider that pydantic-ai knows."""
    return {model: PydanticAIProvider(model, settings)}
