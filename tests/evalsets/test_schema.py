"""The JSON Schema of TOML eval sets."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

from steelyard.evalsets.schema import schema
from steelyard.evalsets.starter import starter
from steelyard.records import Case

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
