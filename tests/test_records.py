"""What a record is hashed by stays the same, so that stored replies and verdicts stay valid."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from steelyard.plugins import load_plugin
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.records import Attempt, Case, Pair, RunInfo, Target, VerifierSettings, Verify
from steelyard.verifiers.function import FunctionSettings
from steelyard.verifiers.python.settings import PythonSettings

VERIFIERS = Path(__file__).parents[1] / "src" / "steelyard" / "verifiers"

CASES = (
    Case(
        id="a",
        prompt="p",
        language="python",
        verify=Verify(tests="assert f()", style="asserts", entry_point="f", python_env="/env"),
    ),
    Case(
        id="b",
        prompt="p",
        verify=Verify(
            kind="command",
            answer="a.c",
            files={"t.sh": "x"},
            build="cc",
            test="sh t.sh",
            lint="l",
            results="tap",
            fixes=("t",),
            workspace_digest="d",
        ),
    ),
    Case(
        id="c",
        prompt="p",
        verify=Verify(
            kind="terraform",
            answer="main.tf",
            lines=(1, 3),
            syntax_only=True,
            target=Target(summary="s", line_start=1, line_end=2),
        ),
    ),
    Case(id="d", prompt="p", verify=Verify(expect={"type": "json", "schema": {"type": "object"}}), timeout_secs=5),
    Case(
        id="e",
        prompt="p",
        verify=Verify(python="/x/checks.py:score", source="0123", stub="", pairs=(Pair(input="1", output="2"),)),
    ),
)
DIGESTS_OF_0_1_0 = {
    "a": ("b615f19697112f4a3113fee446f304ec", "cfbd2ed2c820a831b071a728c76c7085"),
    "b": ("246182a108203e449d0a991fff9bb4af", "94e03734782befd7e98756914d59c184"),
    "c": ("fbaf09527cf66f2004e8203c7afc6e81", "322bb8112741ea79b325080ff70ad78c"),
    "d": ("c2399c9da55c41c9f58d259d5cc729ff", "f609a75281414471c289d9d23e5da3ff"),
    "e": ("2be03cde1693a0003e559e323d19f03a", "55f9ab44f6146e91fed63b47c0a66af4"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_digests_of_version_0_1_0_are_those_of_today(case: Case) -> None:
    attempt = Attempt(case=case, model="p/m", parameters={"temperature": 0.5}, system="s", number=2)
    assert (case.tests_digest, attempt.key) == DIGESTS_OF_0_1_0[case.id]


class HaikuSettings(msgspec.Struct):
    syllables: tuple[int, ...] = (5, 7, 5)
    tests: str = ""


def test_settings_of_a_verifier_are_part_of_the_digest_and_survive_the_disk() -> None:
    case = Case(id="h", prompt="p", verify=Verify(kind="haiku", tests="t", settings={"syllables": [3, 5, 3]}))
    stored = msgspec.json.decode(msgspec.json.encode(case), type=Case)
    assert stored.verify.settings_as(HaikuSettings) == HaikuSettings(syllables=(3, 5, 3), tests="t")
    assert stored.tests_digest == case.tests_digest
    other = msgspec.structs.replace(case, verify=Verify(kind="haiku", tests="t"))
    assert other.tests_digest != case.tests_digest
    assert other.verify.settings_as(HaikuSettings).syllables == (5, 7, 5)


def owned_settings() -> dict[str, type[VerifierSettings]]:
    verifiers = {name: load_plugin("verifiers", name) for name in BUILT_IN_PLUGINS["verifiers"]}
    return {name: getattr(each, "settings", FunctionSettings) for name, each in verifiers.items()}


def test_every_verifier_of_ours_owns_the_keys_that_it_reads() -> None:
    """Stored cases have some keys beside `kind`, so the record knows them too: types and defaults are those of their owner."""
    owned: set[str] = set(VerifierSettings.__struct_fields__)
    stored = {field.name: (field.type, field.default) for field in msgspec.structs.fields(Verify)}
    for name, settings in owned_settings().items():
        fields = {field.name: (field.type, field.default) for field in msgspec.structs.fields(settings)}
        assert {key: stored[key] for key in fields if key in stored} == {
            key: fields[key] for key in fields if key in stored
        }, name
        owned |= fields.keys()
    assert stored.keys() <= {*owned, "settings"}, "a key that no verifier owns"


def test_a_verifier_reads_its_own_keys_from_its_own_struct() -> None:
    own = set().union(*(settings.__struct_fields__ for settings in owned_settings().values()))
    own -= set(VerifierSettings.__struct_fields__)
    reads = re.compile(rf"case\.verify\.({'|'.join(sorted(own))})\b")
    # a witness is a case that we make: it has the keys of the case that it is made for
    modules = [path for path in VERIFIERS.rglob("*.py") if path.name != "witnesses.py"]
    assert len(modules) > 50
    assert [str(path) for path in modules if reads.search(path.read_text("utf-8"))] == []


def test_what_a_case_says_to_its_verifier_is_what_was_written() -> None:
    pair = Pair(input=[(1, 2), {3}], output=b"4")
    case = Case(id="p", prompt="p", verify=Verify(pairs=(pair,), python_env="/env", stub="s", settings={"unknown": 1}))
    said = PythonSettings.of(case)
    assert (said.pairs, said.python_env, said.stub, said.tolerance) == ((pair,), "/env", "s", 0)
    assert PythonSettings.of(case) is said
    other = msgspec.structs.replace(case, verify=Verify(python_env="/other"))
    assert PythonSettings.of(other).python_env == "/other"
    assert (other == case, msgspec.json.decode(msgspec.json.encode(other), type=Case) == other) == (False, True)


def test_a_run_of_an_earlier_version_keeps_its_own_number_of_attempts_at_each_case() -> None:
    written = b'{"id": "r", "started_at": "", "samples": 5, "allocated": {"m": {"a": 2}}, "stopped": {"n": 3}}'
    info = msgspec.json.decode(written, type=RunInfo)
    assert [info.fair_samples(*each) for each in (("m", "a"), ("m", "b"), ("n", "a"))] == [2, 5, 3]
