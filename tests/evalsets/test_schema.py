"""The JSON Schema of TOML eval sets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import msgspec
import pytest

from steelyard.evalsets.schema import Draft, ProblemCollector, record_from_draft, schema, with_verifier_settings
from steelyard.evalsets.starter import starter
from steelyard.plugins import settings_type
from steelyard.plugins.built_in import BUILT_IN_PLUGINS
from steelyard.records import Case, VerifierSettings, Verify

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_schema_is_the_same_every_time() -> None:
    assert schema() == schema()


def test_every_field_of_a_case_is_in_the_schema() -> None:
    assert set(schema()["$defs"]["Case"]["properties"]) == {*Case.__struct_fields__, "checks"}


def test_fields_are_explained_by_the_strings_beneath_them() -> None:
    definitions = schema()["$defs"]
    assert (
        definitions["Expectations"]["properties"]["test_file"]["description"] == "The source of the tests, not a path."
    )
    assert definitions["Header"]["properties"]["default_language"]["description"]


@pytest.mark.parametrize("name", ["python-basics", "rust-basics"])
def test_the_examples_satisfy_the_schema(name: str) -> None:
    jsonschema.validate(tomllib.loads((EXAMPLES / f"{name}.toml").read_text("utf-8")), schema())


def test_the_starter_satisfies_the_schema() -> None:
    jsonschema.validate(tomllib.loads(starter()), schema())


@pytest.mark.parametrize("key", ["id", "prompt"])
def test_a_case_without_a_required_key_does_not(key: str) -> None:
    document = tomllib.loads(starter())
    del document["cases"][0][key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(document, schema())


def test_every_key_that_a_verifier_owns_is_in_the_schema() -> None:
    known = schema()["$defs"]["Verify"]["properties"]
    for name in BUILT_IN_PLUGINS["verifiers"]:
        owner = settings_type("verifiers", name) or VerifierSettings
        assert set(owner.__struct_fields__) <= known.keys(), name
        assert all(known[key]["description"] for key in owner.__struct_fields__), name
    document = tomllib.loads(starter())
    document["cases"][0] |= {"checks": [{"contains": "a"}], "verify": {"threshold": 0.7}}
    jsonschema.validate(document, schema())


class NarrowSettings(VerifierSettings, frozen=True, kw_only=True):
    """A verifier that wants more of a key than the record, which only stores it."""

    tolerance: Annotated[float, msgspec.Meta(le=1)] = 0


def checked(verify: dict[str, Any], settings: type[msgspec.Struct] | None = None) -> tuple[Case | None, list[str]]:
    draft = Draft({"id": "a", "prompt": "p", "verify": verify}, "a.toml", 'case "a"', lambda _: 3)
    problems = ProblemCollector()
    draft = draft._replace(settings=settings) if settings else with_verifier_settings(draft, problems)
    case = record_from_draft(Case, draft, problems)
    return case, [problem.what for problem in problems.errors]


def test_the_struct_of_its_verifier_checks_what_a_case_says_and_the_record_only_stores_it() -> None:
    case, problems = checked({"tolerance": 2.0}, NarrowSettings)
    assert (case, len(problems)) == (None, 1)
    assert problems[0].startswith('case "a": verify.tolerance: expected')
    assert checked({"tolerance": 1}, NarrowSettings)[0] == Case(id="a", prompt="p", verify=Verify(tolerance=1))


@pytest.mark.parametrize("name", sorted(BUILT_IN_PLUGINS["verifiers"]))
def test_a_key_of_the_wrong_type_is_named_once_whoever_owns_it(name: str) -> None:
    owner = settings_type("verifiers", name) or VerifierSettings
    for key in set(owner.__struct_fields__) - {"kind"}:
        _, problems = checked({"kind": name, key: 1j})
        assert len(problems) == 1, (key, problems)
        assert problems[0].startswith(f'case "a": verify.{key}: expected '), problems


def test_the_record_of_stored_cases_does_not_grow_with_verifiers() -> None:
    """The keys of a verifier that is new go to `settings`: stored cases and their digests have these at their own level for ever."""
    stored = (
        "kind style pairs tolerance python_env answer files lines target syntax_only build test run lint results tests "
        "entry_point stub python source fixes workspace_digest expect settings"
    )
    assert list(Verify.__struct_fields__) == stored.split()
