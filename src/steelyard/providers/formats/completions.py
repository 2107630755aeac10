"""OpenAI completions of base models, which continue the code of a case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from steelyard.errors import Rejected
from steelyard.protocols import Delivery, Provider, ProviderSettings
from steelyard.providers.bodies import content_text
from steelyard.providers.faults import settled_finish
from steelyard.providers.formats.base import NAMED_OPTIONS
from steelyard.providers.formats.openai import OpenAIProvider, answer_with_usage
from steelyard.records import Answer, Attempt, Finish, Verify
from steelyard.text import verbatim_reply

MAX_STOP_SEQUENCES = 4
"""OpenAI takes no more; at the others we cut the text ourselves."""
DEFAULT_COMPLETION_MAX_TOKENS = 512
"""Sent if the user gives no maximum: servers stop after 16 tokens by default."""
FUNCTION_STOPS = {
    "python": ("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    "rust": ("\nfn", "\npub", "\nmod", "\n#[", "\n//", "\n/*"),
}
"""What ends the body of a function; for Python as in the paper on HumanEval."""
PROGRAM_STOPS = ('\n"""', "\nassert", "\nif __name__", "\nprint")
"""What ends a program that a docstring began."""


class OpenAICompletionsProvider(OpenAIProvider):
    """One model behind a completions endpoint."""

    takes_tools = False

    def path(self, *, streams: bool) -> str:  # noqa: ARG002  the body says whether it is a stream
        return "/completions"

    def request(self, attempt: Attempt) -> dict[str, Any]:
        case = attempt.case
        if not case.verify.stub:
            raise Rejected(f'case "{case.id}" has no stub, and a base model only continues code; ask a chat model')
        stops = () if "stop" in attempt.parameters else _completion_stops(case.verify, case.language)
        return {
            "model": self.model,
            "prompt": case.verify.stub,
            "max_tokens": DEFAULT_COMPLETION_MAX_TOKENS,
            **({"stop": stops[:MAX_STOP_SEQUENCES]} if stops else {}),
            **attempt.parameters,
        }

    def unsupported(self, parameters: Mapping[str, Any]) -> str:
        named = [name for name in NAMED_OPTIONS if name in parameters]
        return f"only continues code, and has no {named[0].replace('_', ' ')}" if named else ""

    async def ask(self, attempt: Attempt, delivery: Delivery) -> Answer:
        return _cut_answer(await super().ask(attempt, delivery), attempt)

    def answer(self, response: dict[str, Any], sent: Any) -> Answer:
        choice, others = self.choice(response, sent)
        continued = content_text(choice.get("text"))
        finish, note = settled_finish(choice.get("finish_reason"), has_content=bool(continued), where=self.endpoint)
        answer = Answer(
            text=continued,
            finish=finish,
            other_choices=tuple(content_text(other.get("text")) for other in others),
            note=note,
        )
        return answer_with_usage(answer, response)


def _cut_answer(continued: Answer, attempt: Attempt) -> Answer:
    """The code of the case with its continuation, which ends where the function does."""
    case = attempt.case
    stops = () if "stop" in attempt.parameters else _completion_stops(case.verify, case.language)
    end = min((at for at in map(continued.text.find, stops) if at >= 0), default=None)
    finish, note = (continued.finish, continued.note) if end is None else (Finish.STOP, "")
    text = verbatim_reply((case.verify.stub or "") + continued.text[:end], case.language)
    return msgspec.structs.replace(continued, text=text, finish=finish, note=note)


def connect(model: str, settings: ProviderSettings) -> dict[str, Provider]:
    """A completions endpoint, asked for one model."""
    return {model: OpenAICompletionsProvider(model, settings)}


def _completion_stops(verify: Verify, language: str) -> tuple[str, ...]:
    """What ends a completion, when it begins inside a function or before one."""
    head = rf"^[ \t]*(?:\w+[ \t]+)*(?:def|fn)[ \t]+{re.escape(verify.entry_point)}\b"
    if language == "python" and not re.search(head, verify.stub or "", re.MULTILINE):
        return PROGRAM_STOPS
    return FUNCTION_STOPS.get(language, ())
