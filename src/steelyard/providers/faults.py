"""Whose fault it is when a response holds no answer: what the finish reasons, error objects and statuses of providers mean."""

from __future__ import annotations

import math
import re
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.errors import FilteredInput, ProviderError, Rejected, Unavailable
from steelyard.protocols import RateLimitHeadroom
from steelyard.records import Finish


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks us to wait, if it gives a readable value."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return _seconds_from_now(milliseconds) if milliseconds >= MIN_EPOCH_SECONDS else milliseconds / 1000
    return seconds_until(headers.get("retry-after", ""))


def headroom(headers: Mapping[str, str]) -> RateLimitHeadroom | None:
    """What rate-limit headers leave, in the spellings of OpenAI, Anthropic and the IETF draft."""
    present = {name.lower() for name in headers}
    tightest, tokens, tokens_reset = None, None, 0.0
    for left, reset in (
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ):
        if left not in present:
            continue
        remaining = _number(headers[left])
        seconds = seconds_until(headers.get(reset, ""))
        if remaining is None or seconds is None:
            continue
        if tightest is None or (remaining, -seconds) < (tightest.requests, -tightest.reset):
            tightest = RateLimitHeadroom(int(remaining), seconds)
        if "tokens" in left:
            tokens, tokens_reset = int(remaining), seconds
    return None if tightest is None else tightest._replace(tokens=tokens, tokens_reset=tokens_reset)


def seconds_until(text: str) -> float | None:
    """A moment or a span of time, as servers write them, in seconds from now.

    >>> seconds_until("6m0.5s"), seconds_until("20"), seconds_until("120ms"), seconds_until("soon")
    (360.5, 20.0, 0.12, None)
    """
    if (plain := _number(text)) is not None:
        return _seconds_from_now(plain)
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
    if re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return math.fsum(float(n) * units[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text))
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except (ValueError, TypeError, OverflowError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


MIN_EPOCH_SECONDS = 1e9
"""No server asks for a wait of thirty years: such a number is a Unix timestamp, in seconds or in a fraction of them."""


def _seconds_from_now(number: float) -> float:
    """A number of seconds, or a moment in seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if number < MIN_EPOCH_SECONDS:
        return number
    while number >= 1000 * MIN_EPOCH_SECONDS:
        number /= 1000
    return max(0.0, number - time.time())


def _number(text: str) -> float | None:
    """A number of things that can be waited for; servers also send nan, infinity and words."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


class FaultKind(StrEnum):
    """What something that a provider sends is taken for."""

    ANSWER = "an answer"
    CUT_OFF = "an answer that was cut off, finish `length`"
    TOOL_CALLS = "an answer, finish `tool_calls`"
    REFUSAL = "an answer, finish `refusal`"
    UNKNOWN = "with text an answer with a note, without text an outage"
    OUTAGE = "an outage: retried, then missing"
    FILTERED_INPUT = "class `refusal` in a response suite; elsewhere missing, not retried"
    REJECTED = "missing, not retried"
    REJECTED_FOR_ALL = "missing, not retried; the model is given up after 3 in a row"


class FaultRow(NamedTuple):
    """One row of the table in docs/providers.md."""

    kind: FaultKind
    words: tuple[str, ...]
    who: str


FINISH_REASONS = (
    FaultRow(FaultKind.ANSWER, ("stop",), "OpenAI and all that speak its format, Gemini, Ollama"),
    FaultRow(FaultKind.ANSWER, ("end_turn", "stop_sequence"), "Anthropic, Bedrock"),
    FaultRow(FaultKind.ANSWER, ("complete", "finish", "endoftext"), "Cohere, Bedrock"),
    FaultRow(FaultKind.ANSWER, ("eos", "eos_token", "word", "stop_token"), "Together, TGI, llama.cpp"),
    FaultRow(FaultKind.CUT_OFF, ("length",), "OpenAI and all that speak its format, Ollama"),
    FaultRow(FaultKind.CUT_OFF, ("max_tokens", "max_output_tokens"), "Anthropic, Bedrock, Cohere, Gemini, OpenAI"),
    FaultRow(FaultKind.CUT_OFF, ("model_context_window_exceeded",), "Anthropic, Bedrock"),
    FaultRow(FaultKind.CUT_OFF, ("continuation",), "Gemini"),
    FaultRow(FaultKind.CUT_OFF, ("model_length", "error_limit", "limit"), "Mistral, Cohere, llama.cpp"),
    FaultRow(
        FaultKind.TOOL_CALLS,
        ("tool_calls", "tool_call", "function_call", "tool_use"),
        "OpenAI, Cohere, Anthropic, Bedrock",
    ),
    FaultRow(
        FaultKind.TOOL_CALLS,
        ("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "malformed_tool_use"),
        "Gemini, Bedrock",
    ),
    FaultRow(FaultKind.REFUSAL, ("content_filter",), "OpenAI, Azure, DeepSeek, Gemini in OpenAI's format"),
    FaultRow(FaultKind.REFUSAL, ("refusal",), "Anthropic"),
    FaultRow(FaultKind.REFUSAL, ("content_filtered", "guardrail_intervened"), "Bedrock"),
    FaultRow(
        FaultKind.REFUSAL,
        (
            *("safety", "recitation", "language", "blocklist", "prohibited_content", "spii", "model_armor"),
            *("image_safety", "image_prohibited_content", "image_recitation"),
        ),
        "Gemini, Vertex",
    ),
    FaultRow(FaultKind.REFUSAL, ("error_toxic", "sensitive"), "Cohere, Zhipu"),
    FaultRow(FaultKind.OUTAGE, ("error",), "OpenRouter, Mistral, Cohere, vLLM"),
    FaultRow(FaultKind.OUTAGE, ("abort", "aborted"), "vLLM, SGLang"),
    FaultRow(FaultKind.OUTAGE, ("insufficient_system_resource",), "DeepSeek"),
    FaultRow(FaultKind.OUTAGE, ("load", "unload"), "Ollama"),
    FaultRow(FaultKind.OUTAGE, ("queued", "in_progress", "malformed_model_output"), "OpenAI responses, Bedrock"),
    FaultRow(
        FaultKind.OUTAGE,
        (
            *(
                "cancel",
                "cancelled",
                "canceled",
                "user_cancel",
                "timeout",
                "time_limit",
                "network_error",
                "interrupted",
            ),
            *("failed", "failure", "server_error", "internal_error", "internal_server_error", "overloaded"),
            *("unavailable", "disconnect", "crash", "malformed_response", "pause_turn"),
        ),
        "Cohere, Zhipu, gateways; a paused turn of Anthropic",
    ),
    FaultRow(FaultKind.UNKNOWN, (), "any other word"),
)
"""Why generation ended; case, `-` and a prefix such as `FINISH_REASON_` make no difference."""

_KIND_OF_WORD = {word: row.kind for row in FINISH_REASONS for word in row.words}
_STORED_FINISH = {
    FaultKind.ANSWER: Finish.STOP,
    FaultKind.CUT_OFF: Finish.LENGTH,
    FaultKind.TOOL_CALLS: Finish.TOOL_CALLS,
    FaultKind.REFUSAL: Finish.REFUSAL,
}
MAX_FINISH_CHARACTERS = 80

PASSING_STATUSES = (408, 409, 421, 424, 425, 429, 460, 499)
"""A gateway that lost one of its sides says 421, 460 or 499, and Text Generation Inference 424 where generating failed."""
REFUSING_STATUSES = (401, 402, 403, 404, 405, 407, 410)
"""What hardly depends on the input: keys, credit, addresses, proxies, and models that are gone."""
FILTERED_STATUSES = (400, 403, 422, 451)
FILTERED_CODES = frozenset(
    (
        *("content_filter", "content_filtered", "content_policy_violation", "content_policy", "moderation_blocked"),
        *(
            "responsible_aipolicy_violation",
            "responsible_ai_policy_violation",
            "invalid_prompt",
            "data_inspection_failed",
        ),
        *(
            "safety_check_failed",
            "input_blocked",
            "prompt_blocked",
            "prompt_flagged",
            "moderation",
            "guardrail_intervened",
        ),
    )
)
"""Codes and types of errors that are about what the input says."""
FILTERED_KEYS = frozenset(("content_filter_result", "content_filter_results", "flagged_input", "block_reason"))
"""Keys that only an error about what the input says has."""
QUOTA_CODE = "insufficient_quota"


FINISH_REASON_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "completionReason")
"""Where servers say why the model stopped."""


def names_finish(value: Any) -> bool:
    """Whether a response says anywhere why the model stopped; OpenAI's Responses only say that it did."""
    if isinstance(value, dict) and value.get("status") in ("completed", "incomplete"):
        return True
    return any(isinstance(found, dict) and any(map(found.get, FINISH_REASON_KEYS)) for found in _nested(value))


def _nested(value: Any) -> Iterator[Any]:
    """A value and all that is in it, however deep: what a server sends may be deeper than a stack."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, dict | list):
            waiting += found.values() if isinstance(found, dict) else found


def finish_kind(reason: Any) -> FaultKind:
    """What a finish reason means.

    >>> finish_kind("FINISH_REASON_SAFETY").name, finish_kind("max-tokens").name, finish_kind("endTurn").name
    ('REFUSAL', 'CUT_OFF', 'ANSWER')
    """
    return _kind_of(_word(reason))


def _kind_of(word: str) -> FaultKind:
    kind = _KIND_OF_WORD.get(word)
    return kind if kind is not None else _KIND_OF_WORD.get(_snake_case(word), FaultKind.UNKNOWN)


def settled_finish(reason: Any, *, has_content: bool, where: str) -> tuple[str, str]:
    """The finish to store and a note about it; raises Unavailable where the response is not an answer."""
    word = _word(reason)
    kind = _kind_of(word)
    if kind is FaultKind.OUTAGE:
        raise Unavailable(f'{where}: the answer broke off with finish reason "{word}"')
    if finish := _STORED_FINISH.get(kind):
        return finish, ""
    if not has_content:
        why = f'the unknown finish reason "{word}"' if word else "no finish reason"
        raise Unavailable(f"{where}: sent neither text nor a tool call, and {why}")
    return (word, f'the finish reason "{word}" is unknown') if word else (Finish.STOP, "")


def _word(reason: Any) -> str:
    if isinstance(reason, dict):  # SGLang: {"type": "abort", "message": ...}
        reason = reason.get("type") or reason.get("reason")
    if isinstance(reason, str) and reason in _KIND_OF_WORD:
        return str(reason)  # nearly all are written as the table has them
    return " ".join(str(reason).split())[:MAX_FINISH_CHARACTERS] if has_finish(reason) else ""


def has_finish(reason: Any) -> bool:
    """Whether a finish reason says anything; some servers send null as a string until a stream ends.

    >>> has_finish("stop"), has_finish("null"), has_finish(None)
    (True, False, False)
    """
    return bool(reason) and reason not in ("null", "None")


@lru_cache(maxsize=256)
def _snake_case(word: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word)
    return (
        re.sub(r"[^a-z0-9]+", "_", parted.lower())
        .strip("_")
        .removeprefix("finish_reason_")
        .removeprefix("finishreason_")
    )


def is_error(value: Any) -> bool:
    """Whether the value of a key `error` says that something went wrong.

    >>> is_error({"code": None, "message": ""}), is_error({"code": 502}), is_error(False)
    (False, True, False)
    """
    return any(found and not isinstance(found, dict) for found in _nested(value))


def error_status(error: Any) -> int | None:
    """The HTTP status that an error inside a body names as its code."""
    code = error.get("code") or error.get("status") or error.get("status_code") if isinstance(error, dict) else None
    text = str(code) if isinstance(code, int | str) else ""
    return int(text) if re.fullmatch(r"[345]\d\d", text) else None


class PhraseMeaning(StrEnum):
    """What a sentence of a server can mean that has no field for it; the sentences are in server_phrases.toml."""

    TOKEN_LIMIT = "token limit"  # noqa: S105  tokens of a text
    STREAM = "stream"
    FILTERED_INPUT = "filtered input"
    CACHE_MARKS = "cache marks"
    MOST_TOKENS = "most tokens"


class ServerPhrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of server_phrases.toml."""

    meaning: PhraseMeaning
    pattern: str
    server: str
    seen: str
    example: str


@cache
def server_phrases() -> tuple[ServerPhrase, ...]:
    """The phrases that we know, with who says each and where it was seen."""
    text = Path(__file__).with_name("server_phrases.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["phrases"], tuple[ServerPhrase, ...])


@cache
def _phrase_patterns(meaning: PhraseMeaning) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(row.pattern, re.IGNORECASE) for row in server_phrases() if row.meaning is meaning)


def server_phrase(meaning: PhraseMeaning, message: str) -> re.Match[str] | None:
    """Where a message says this, by the phrases that we know."""
    return next((found for pattern in _phrase_patterns(meaning) if (found := pattern.search(message))), None)


STREAM_PARAMETERS = frozenset(("stream", "stream_options"))
PARAMETER_KEYS = ("param", "parameter", "loc", "field")
"""Where an error names the parameter that it is about: OpenAI, gateways, FastAPI and Mistral."""
QUOTA_KEYS = ("quotaMetric", "quotaId")
"""Where an error of Gemini names the quota that is used up."""


def is_about_stream(content: Any) -> bool:
    """Whether an error is about how the response is sent: by the parameter that it names, otherwise by its message.

    >>> is_about_stream({"error": {"param": "stream", "message": "verify your organization"}})
    True
    >>> is_about_stream({"error": {"param": "seed", "message": "seed is not supported when streaming"}})
    False
    """
    named = _texts_at(content, PARAMETER_KEYS)
    return (
        bool(named & STREAM_PARAMETERS) if named else bool(server_phrase(PhraseMeaning.STREAM, error_message(content)))
    )


def is_token_limit(content: Any) -> bool:
    """Whether a limit on tokens was reached, and not one on requests: by the type or the quota, otherwise by the message.

    >>> is_token_limit({"error": {"type": "tokens", "message": "slow down"}})
    True
    >>> is_token_limit({"error": {"type": "requests", "message": "limit: 3 requests; 20 tokens per minute are left"}})
    False
    """
    kinds = _texts_at(content, ("type",)) & {"tokens", "requests"}
    quotas = _texts_at(content, QUOTA_KEYS)
    if kinds or quotas:
        return "tokens" in kinds or any("token" in quota.lower() for quota in quotas)
    return server_phrase(PhraseMeaning.TOKEN_LIMIT, error_message(content)) is not None


def _texts_at(content: Any, names: Sequence[str]) -> set[str]:
    """The texts, also in lists, under these keys of an error, however deep they are."""
    found: set[str] = set()
    for name, item in _error_fields(content):
        texts = item if isinstance(item, list) else [item]
        if name in names and all(isinstance(text, str | int) for text in texts):
            found.update(text for text in texts if isinstance(text, str) and text)
    return found


def _error_fields(content: Any) -> Iterator[tuple[str, Any]]:
    """The keys of an error response with their values, however deep they are."""
    for value in _nested(content):
        if isinstance(value, dict):
            yield from value.items()


def provider_error(
    message: str, status: int, content: Any, *, retry_after: float | None = None, parameters: list[str]
) -> ProviderError:
    """The exception for a status and the error that came with it."""
    if retry_after is None:
        retry_after = _error_delay(content)
    if status in FILTERED_STATUSES and is_filtered_input(content):
        return FilteredInput(message, parameters=parameters)
    if status == 429 and QUOTA_CODE in _error_words(content)[0]:
        return Rejected(message, everyone=True)
    if status in PASSING_STATUSES or status >= 500:
        is_limit = status == 429 and is_token_limit(content)
        return Unavailable(message, retry_after=retry_after, parameters=parameters, is_token_limit=is_limit)
    return Rejected(
        message,
        everyone=status < 400 or status in REFUSING_STATUSES,
        about_stream=is_about_stream(content),
        parameters=parameters,
    )


def _error_delay(content: Any) -> float | None:
    """The wait that an error asks for in its details, as Gemini does: `"retryDelay": "34.07s"`."""
    delays = (value for name, value in _error_fields(content) if name == "retryDelay" and isinstance(value, str))
    return next(map(seconds_until, delays), None)


def is_filtered_input(content: Any) -> bool:
    """Whether an error response is about what the input says, by its codes, its keys or its message."""
    codes, keys, message = _error_words(content)
    return bool(codes & FILTERED_CODES or keys & FILTERED_KEYS or server_phrase(PhraseMeaning.FILTERED_INPUT, message))


def names_filter(error: Any) -> bool:
    """Whether an error without a status is about what the input says, by its codes or keys; a message is not proof."""
    codes, keys, _ = _error_words(error)
    return bool(codes & FILTERED_CODES or keys & FILTERED_KEYS)


def block_reason(body: Any) -> str:
    """Why a provider blocked the prompt, in a response that says so and has no answer; otherwise empty."""
    feedback = body.get("promptFeedback") or body.get("prompt_feedback") if isinstance(body, dict) else None
    found = feedback.get("blockReason") or feedback.get("block_reason") if isinstance(feedback, dict) else None
    return _word(found)


def _error_words(content: Any) -> tuple[set[str], set[str], str]:
    """The codes, the keys and the messages of an error response, however deep they are."""
    codes: set[str] = set()
    keys: set[str] = set()
    messages = [content] if isinstance(content, str) else []
    for name, item in _error_fields(content):
        keys.add(_snake_case(str(name)))
        if name in ("code", "type", "status", "reason") and isinstance(item, str):
            codes.add(_snake_case(item))
        elif isinstance(item, str) and name in ("message", "error", "detail", "msg", "raw"):
            messages.append(item)
    return codes, keys, " ".join(messages)[:10_000]


def decoded_error(body: bytes) -> Any:
    """An error response as JSON, or as text where it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return body.decode("utf-8", "replace")


def named_parameters(message: str, body: Any) -> list[str]:
    """The parameters of a request that an error message names.

    Servers have no common field for the parameter that they do not support, but their message names it.
    """
    return [name for name in body if name in message] if isinstance(body, dict) else []


def error_message(content: Any) -> str:
    """What an error says, in one line.

    >>> error_message({"error": {"message": "no such model", "code": "model_not_found"}})
    'no such model (model_not_found)'
    """
    code = ""
    for name in ("error", "message", "detail"):
        if isinstance(content, dict) and name in content:
            code = str(content.get("code") or content.get("type") or code)
            content = content[name]
    if isinstance(content, dict):
        code = str(content.get("code") or content.get("type") or code)
        content = content.get("message", content)
    text = " ".join(str(content).split())
    return f"{text} ({code})" if code and code not in text else text
