"""The suites that come with us."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.evalsets import load
from steelyard.evalsets.suites import SHIPPED_SUITE_NAMES
from steelyard.records import Answer, Case, Finding
from steelyard.sandbox.levels import ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.response.verifier import RESPONSE_CLASS_ORDER, ResponseVerifier

ALL = load(["suite:all"])
NOWHERE = ZygoteSandbox(ISOLATION_LEVELS[-1])


def suite(name: str) -> list[Case]:
    return [case for case in ALL.cases if case.suite == name]


def wrong(*paths: str) -> str:
    with pytest.raises(InputError) as error:
        load(paths)
    return str(error.value)


def classes(case: Case, *texts: str) -> list[str]:
    async def every() -> list[str]:
        verifier = ResponseVerifier(NOWHERE)
        return [(await verifier.verify(case, Answer(text=text))).label or "pass" for text in texts]

    return asyncio.run(every())


@pytest.mark.parametrize("name", SHIPPED_SUITE_NAMES)
def test_every_suite_has_at_least_twenty_cases_with_both_answers(name: str) -> None:
    cases = suite(name)
    assert len(cases) >= 20
    assert all(case.reference and case.counterexample and case.tags and case.name for case in cases)
    assert all(case.id.startswith(f"{name}/") for case in cases)
    assert not ALL.problems


@pytest.mark.parametrize("name", SHIPPED_SUITE_NAMES)
def test_references_pass_and_counterexamples_do_not(name: str) -> None:
    for case in suite(name):
        reference, counterexample = classes(case, case.reference, case.counterexample)
        assert reference == "pass", case.id
        assert counterexample != "pass", case.id
        assert counterexample in RESPONSE_CLASS_ORDER


@pytest.mark.parametrize("name", SHIPPED_SUITE_NAMES)
def test_silence_passes_nowhere_and_an_echo_only_where_nothing_is_attacked(name: str) -> None:
    for case in suite(name):
        asked = "\n".join(message.text for message in case.messages)
        silence, blank, echo = classes(case, "", " \n", asked)
        assert "pass" not in (silence, blank), case.id
        assert echo != "pass" or "control" in case.tags, case.id


@pytest.mark.parametrize("family", ["direct", "indirect", "obfuscated", "canary"])
def test_injections_come_in_four_families_with_controls_in_each(family: str) -> None:
    of_family = [case for case in suite("injection") if family in case.tags]
    assert len(of_family) >= 8
    assert any("control" in case.tags for case in of_family)


def test_a_suite_is_named_like_an_eval_set_and_counts_once() -> None:
    loaded = load(["suite:injection", "suite:injection"])
    assert [case.id for case in loaded.cases] == [case.id for case in suite("injection")]
    assert [file.path for file in loaded.files] == ["suite:injection"]
    assert [file.path for file in ALL.files] == [f"suite:{name}" for name in SHIPPED_SUITE_NAMES]


def test_long_contexts_are_as_long_as_asked_for_and_differ_by_seed() -> None:
    short, long = load(["suite:long_context@2000"]), load(["suite:long_context@20000"])
    again, other = load(["suite:long_context@2000"]), load(["suite:long_context@2000,1"])
    assert max(len(case.messages[0].text) for case in short.cases) <= 2000
    assert min(len(case.messages[0].text) for case in long.cases) > 19_000
    assert short == again
    assert short.files[0].digest != other.files[0].digest
    assert short.cases[0].prompt != other.cases[0].prompt


def test_a_suite_that_is_not_there_is_one_clear_sentence() -> None:
    assert 'did you mean "injection"?' in wrong("suite:injektion")
    assert "write suite:injection" in wrong("suite:injection@100")
    assert "such as suite:long_context@32000" in wrong("suite:long_context@many")
    assert "such as suite:long_context@32000" in wrong("suite:long_context@1,2,3")
    assert "suite:long_context@100" in wrong("suite:long_context@100")


def test_suites_and_files_are_read_together(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"case_id": "a", "suite_id": "s", "prompt": "p", "expected_response": "x"}\n')
    assert {case.suite for case in load([own, "suite:json_api"]).cases} == {"s", "json_api"}


PIECES = [
    *('{"', '"}', "[", "]", "<p>", "</p>", "```json\n", "```", "a,b\n", "42", "-1,5", "I can't help with that. ", "Es tut mir leid, "),
    *("\0", "\x1b[2J", "\u202e", "\u200b", "\ud800", "\U000e0041", "e\u0301", "\ufeff", "\r\n", "NaN", "<think>", "</think>", "ß", "İ"),
]  # fmt: skip


def test_no_text_whatever_breaks_the_classification_of_any_case() -> None:
    chance = random.Random(7)

    async def every() -> list[tuple[str, Finding]]:
        verifier = ResponseVerifier(NOWHERE)
        found = []
        for case in ALL.cases:
            texts = ["".join(chance.choices(PIECES, k=chance.randrange(40))) for _ in range(8)]
            texts += [chance.randbytes(300).decode("utf-8", "surrogateescape"), "[" * 5_000, case.reference[:7]]
            for text in texts:
                finish = chance.choice(["stop", "stop", "length", "content_filter"])
                found.append((case.id, await verifier.verify(case, Answer(text=text, finish=finish))))
        return found

    for case, finding in asyncio.run(every()):
        assert (finding.label or "pass") in RESPONSE_CLASS_ORDER, case
        assert finding.passed == (not finding.label), case
        assert finding.evidence, case
