"""OpenAI completions: base models, which are not asked but continue the code of a case."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from steelyard.errors import Rejected, Unavailable
from steelyard.protocols import Delivery, Provider, ProviderSettings
from steelyard.providers.openai import OPENAI_FINISH_REASONS, OpenAIProvider, OpenAIUsage, answer_with_usage
from steelyard.records import Answer, Attempt, Verify
from steelyard.text import verbatim_reply

FUNCTION_STOPS = {
    "python": ("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    "rust": ("\nfn", "\npub", "\nmod", "\n#[", "\n//", "\n/*"),
}
"""What ends the body of a function; for Python as in the paper on HumanEval."""
PROGRAM_STOPS = ('\n"""', "\nassert", "\nif __name__", "\nprint")
"""What ends a program that a docstring began."""
MAX_STOP_SEQUENCES = 4
"""OpenAI takes no more; at the others we cut the text ourselves."""
DEFAULT_COMPLETION_MAX_TOKENS = 512
"""Sent where nothing else is asked for: servers stop after 16 tokens by themselves."""


class _TextCompletionChoice(msgspec.Struct):
    text: str = ""
    finish_reason: str | None = None


class _TextCompletion(msgspec.Struct):
    choices: list[_TextCompletionChoice] = []
    id: str | None = None
    usage: OpenAIUsage | None = None
    error: Any = None


class OpenAICompletionsProvider(OpenAIProvider):
    """One model behind a completions endpoint."""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        case = attempt.case
        if not case.verify.stub:
            raise Rejected(f'case "{case.id}" has no stub, and a base model only continues code; ask a chat model')
        stops = () if "stop" in attempt.parameters else _stops(case.verify, case.language)
        body = {
            "model": self._model,
            "prompt": case.verify.stub,
            "max_tokens": DEFAULT_COMPLETION_MAX_TOKENS,
            **({"stop": stops[:MAX_STOP_SEQUENCES]} if stops else {}),
            **attempt.parameters,
        }
        exchange = await self._http.exchange("POST", "/completions", body, delivery)
        completion = self._http.decode(exchange, _TextCompletion)
        if not completion.choices:
            detail = f": {self._http.clean(str(completion.error))[:300]}" if completion.error else ""
            raise Unavailable(f"{self.endpoint}: sent a completion without choices{detail}")
        choice = completion.choices[0]
        end = min((at for at in map(choice.text.find, stops) if at >= 0), default=None)
        finish = "stop" if end is not None else choice.finish_reason or "stop"
        text = verbatim_reply(case.verify.stub + choice.text[:end], case.language)
        return answer_with_usage(
            Answer(text=text, finish=OPENAI_FINISH_REASONS.get(finish, finish)),
            exchange,
            completion.usage or OpenAIUsage(),
            completion.id,
        )


def _stops(verify: Verify, language: str) -> tuple[str, ...]:
    """What ends a completion, when it begins inside a function or before one."""
    head = rf"^[ \t]*(?:\w+[ \t]+)*(?:def|fn)[ \t]+{re.escape(verify.entry_point)}\b"
    if language == "python" and not re.search(head, verify.stub or "", re.MULTILINE):
        return PROGRAM_STOPS
    return FUNCTION_STOPS.get(language, ())


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A completions endpoint, asked for one model."""
    return {model: OpenAICompletionsProvider(model, settings)}
