"""Cases as lines of JSON that load as the same cases, here and in tools that know the dialect of response suites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from steelyard.records import Case, Verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def case_json_lines(cases: Iterable[Case]) -> Iterator[str]:
    """Each case as one line, its end included.

    A case that is judged as the dialect knows it has its names; beside them stands only what is not at its default. What the
    dialect cannot say, the tests of code for example, stands under our own names. A function of the user's is named by the
    path it was loaded from, which another machine need not have.
    """
    for case in cases:
        text = msgspec.json.encode(_table(case)).decode()
        # invisible characters and unusual line ends would not survive every editor
        yield f"{text if text.isprintable() else ''.join(map(_escaped_if_invisible, text))}\n"


def _escaped_if_invisible(letter: str) -> str:
    if letter.isprintable():
        return letter
    halves = letter.encode("utf-16-be")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


def _table(case: Case) -> dict[str, Any]:
    own: dict[str, Any] = msgspec.to_builtins(case)
    for renamed in ("id", "suite", "prompt", "target", "verify", "expected_classification", "tags"):
        own.pop(renamed, None)
    if case.timeout_secs == Case(id="", prompt="").timeout_secs:
        own.pop("timeout_secs", None)
    return {
        "case_id": case.id,
        "suite_id": case.suite,
        "prompt" if isinstance(case.prompt, str) else "messages": msgspec.to_builtins(case.prompt),
        **_verification_fields(case),
        **({"expected_classification": case.expected_classification} if case.expected_classification else {}),
        **({"tags": case.tags} if case.tags else {}),
        **own,
    }


def _verification_fields(case: Case) -> dict[str, Any]:
    """How an answer is judged: in the words of the dialect where it has them."""
    verify, target = case.verify, {"target": case.target} if case.target else {}
    if verify == Verify(expect=verify.expect) and verify.expect and not (case.tests or case.target):
        return {"expect": verify.expect}
    if case.target and not case.tests:
        if verify == Verify(kind="response", style="regex"):
            return {"expected_response": case.target}
        if verify == Verify(kind="response"):
            return target
    if verify.python or case.expectations.custom_check:
        # the digest of the files; the loader computes it again
        verify = replace(verify, source="")
    # written even where they are empty, because a reader of the dialect would otherwise guess them from the rest
    settings_table = msgspec.to_builtins(replace(verify, settings={})) | verify.settings
    return {**target, "verify": {"kind": verify.kind, "style": verify.style, **settings_table}}
