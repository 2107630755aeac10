"""What real Terraforms print is read as they mean it, and anything else is no answer at all."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.verifiers.terraform.diagnostics import (
    MAX_TERRAFORM_MESSAGE_CHARACTERS,
    MAX_VALIDATE_DIAGNOSTICS,
    MAX_VALIDATE_OUTPUT_BYTES,
    UnreadableValidateOutput,
    canonical_summary,
    parse_validate_output,
    stored_diagnostic,
)

PRINTED = Path(__file__).parent / "recorded" / "printed"


def answer(*diagnostics: dict[str, Any], **changes: Any) -> bytes:
    """An answer as Terraform prints it, changed."""
    errors = sum(one.get("severity") == "error" for one in diagnostics)
    told = {
        "format_version": "1.0",
        "valid": not errors,
        "error_count": errors,
        "warning_count": sum(one.get("severity") == "warning" for one in diagnostics),
        "diagnostics": diagnostics,
    }
    return json.dumps({key: value for key, value in (told | changes).items() if value != "left out"}).encode()


def error(**changes: Any) -> dict[str, Any]:
    place = {
        "filename": "main.tf",
        "start": {"line": 3, "column": 5, "byte": 40},
        "end": {"line": 4, "column": 1, "byte": 50},
    }
    told = {"severity": "error", "summary": "Bad", "detail": "Very bad.", "range": place}
    return {key: value for key, value in (told | changes).items() if value != "left out"}


def test_the_words_of_1_0_3_are_read_with_place_and_address() -> None:
    found = parse_validate_output((PRINTED / "1.0.3.txt").read_bytes())
    assert not found.valid
    assert len(found.errors) == len(found.diagnostics) == 11
    (spoken_by_provider,) = [one for one in found.diagnostics if one.address]
    assert spoken_by_provider.address == "data.terraform_remote_state.w"
    assert (spoken_by_provider.summary, spoken_by_provider.detail) == (
        "Invalid backend configuration",
        'There is no backend type named "nosuch".',
    )
    assert (spoken_by_provider.file, spoken_by_provider.line_start, spoken_by_provider.column_start) == (
        "main.tf",
        20,
        13,
    )


def test_the_mark_that_0_13_5_puts_before_its_output_is_taken_off() -> None:
    printed = (PRINTED / "0.13.5.txt").read_bytes()
    assert printed.startswith(b"o:{")
    found = parse_validate_output(printed)
    assert (len(found.errors), len(found.diagnostics)) == (2, 7)
    assert (
        parse_validate_output((PRINTED / "0.13.5-valid.txt").read_bytes())
        == parse_validate_output((PRINTED / "1.0.3-valid.txt").read_bytes())
        == (True, ())
    )


def test_warnings_do_not_make_a_module_invalid() -> None:
    found = parse_validate_output(answer(error(severity="warning")))
    assert found.valid
    assert found.errors == ()
    assert found.diagnostics[0].severity == "warning"


def test_a_diagnostic_may_lack_its_detail_place_and_address() -> None:
    (bare,) = parse_validate_output(answer(error(detail="left out", range="left out"))).diagnostics
    assert (bare.detail, bare.file, bare.line_start, bare.address) == ("", "", None, "")
    (null,) = parse_validate_output(answer(error(range=None))).diagnostics
    assert null.file == ""
    nowhere = {
        "filename": "x.tf",
        "start": {"line": 0, "column": 0, "byte": 0},
        "end": {"line": 0, "column": 0, "byte": 0},
    }
    (whole_file,) = parse_validate_output(answer(error(range=nowhere))).diagnostics
    assert (whole_file.file, whole_file.line_start, whole_file.column_start) == ("x.tf", None, None)


def test_what_a_newer_terraform_adds_is_passed_over() -> None:
    assert len(parse_validate_output(answer(error(snippet={"code": "x"}, colour="red"), generation=5)).errors) == 1
    assert parse_validate_output(answer(format_version="left out")).valid


def test_files_are_named_alike_however_they_are_written() -> None:
    place = error()["range"]
    for written, read in [("./main.tf", "main.tf"), ("m\\main.tf", "m/main.tf"), ("m/../main.tf", "main.tf"), ("", "")]:
        (one,) = parse_validate_output(answer(error(range=place | {"filename": written}))).diagnostics
        assert one.file == read


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"o:",
        b"Error: no such flag",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"valid":' * 100_000,
        answer() + answer(),
        answer() + b" x",
        answer()[:-1],
        b"o:o:" + answer(),
        answer(valid="true"),
        answer(valid=1),
        answer(valid=False),
        answer(error(), valid=True),
        answer(error(), error_count=0, valid=True),
        answer(error_count=1, valid=False),
        answer(error(), error_count=2),
        answer(error(), warning_count=1),
        answer(error_count=-1),
        answer(error_count=0.5),
        answer(error_count=10**30),
        answer(error_count="left out"),
        answer(warning_count="left out"),
        answer(diagnostics=None),
        answer(diagnostics="left out"),
        answer(diagnostics={}),
        answer(error(severity="note"), error_count=1, valid=False),
        answer(error(severity="left out"), error_count=1, valid=False),
        answer(error(summary="left out")),
        answer(error(summary=None)),
        answer(error(range={"filename": "main.tf"})),
        answer(
            error(range={"filename": "main.tf", "start": {"line": -1, "column": 1}, "end": {"line": 1, "column": 1}})
        ),
        answer(format_version="2.0"),
        answer(format_version=1.0),
        answer(*[error()] * (MAX_VALIDATE_DIAGNOSTICS + 1)),
        answer() + b" " * MAX_VALIDATE_OUTPUT_BYTES,
    ],
    ids=lambda output: repr(output[-40:].strip()),
)
def test_anything_but_an_answer_that_agrees_with_itself_says_nothing(output: bytes) -> None:
    with pytest.raises(UnreadableValidateOutput):
        parse_validate_output(output)


def test_an_answer_that_is_cut_or_scrambled_is_never_read_as_valid() -> None:
    chance = random.Random(2)
    whole = (PRINTED / "1.0.3.txt").read_bytes()
    for cut in range(0, len(whole) - 1, 7):
        with pytest.raises(UnreadableValidateOutput):
            parse_validate_output(whole[:cut])
    for _ in range(2000):
        spoiled = bytearray(whole)
        spoiled[chance.randrange(len(whole))] = chance.randrange(256)
        try:
            assert not parse_validate_output(bytes(spoiled)).valid
        except UnreadableValidateOutput:
            continue


def test_diagnostics_come_in_one_order_whatever_order_they_are_said_in() -> None:
    whole = json.loads((PRINTED / "1.0.3.txt").read_bytes())
    found = parse_validate_output(json.dumps(whole).encode())
    chance = random.Random(1)
    for _ in range(5):
        chance.shuffle(whole["diagnostics"])
        assert parse_validate_output(json.dumps(whole).encode()) == found


def test_a_cycle_is_the_same_wherever_it_begins() -> None:
    members = ["local.a (expand)", "local.b (expand)", "module.m.var.x (expand)"]
    written = {canonical_summary(f"Cycle: {', '.join(members[turn:] + members[:turn])}") for turn in range(3)}
    assert written == {"Cycle: local.a (expand), local.b (expand), module.m.var.x (expand)"}
    assert canonical_summary("Bad Cycle: b, a") == "Bad Cycle: b, a"


def test_a_diagnostic_is_stored_like_that_of_any_compiler() -> None:
    (one,) = parse_validate_output(answer(error())).diagnostics
    stored = stored_diagnostic(one)
    assert (stored.level, stored.message) == ("error", "Bad: Very bad.")
    (span,) = stored.spans
    assert (span.file, span.line_start, span.line_end, span.column_start, span.column_end) == ("main.tf", 3, 4, 5, 1)
    assert msgspec.json.decode(msgspec.json.encode(stored), type=type(stored)) == stored


def test_a_diagnostic_without_a_place_or_of_any_length_can_be_stored() -> None:
    (one,) = parse_validate_output(answer(error(detail="x" * 10_000, range=None))).diagnostics
    stored = stored_diagnostic(one)
    assert stored.spans == ()
    assert len(stored.message) == MAX_TERRAFORM_MESSAGE_CHARACTERS
