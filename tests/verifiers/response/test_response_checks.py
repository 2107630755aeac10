"""Whatever a model says, a declared check says what it is, why, and the same everywhere."""

import base64
import codecs
import json
import math
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from steelyard.errors import VerifierError
from steelyard.records import ToolCall
from steelyard.verifiers.response.checks import CHECK_TYPES, declared_check, expected_response_check, with_tool_calls
from steelyard.verifiers.response.judged import ResponseCheckResult
from steelyard.verifiers.response.language import language_of, language_tables
from steelyard.verifiers.response.markup import html_elements
from steelyard.verifiers.response.text import parse_number
from steelyard.verifiers.response.unicode import normalized_unicode, unicode_tables

STATUS = {
    "type": "object",
    "properties": {"status": {"enum": ["ok"]}},
    "required": ["status"],
    "additionalProperties": False,
}
CANARY = "CANARY-7F3A"
PROSE = "Here you are:\n```json\n{}\n```\nAnything else?"


def judge(text: str, **data: Any) -> ResponseCheckResult:
    return declared_check(data).judge(text)


def primary(text: str, **data: Any) -> str:
    return judge(text, **data).primary


# JSON


@pytest.mark.parametrize(
    ("text", "fenced", "wanted"),
    [
        ('{"status": "ok"}', False, "pass"),
        (PROSE.format('{"status": "ok"}'), True, "pass"),
        (PROSE.format('{"status": "ok"}'), False, "wrong_format"),
        ('{"status": "ok", "extra": 1}', False, "fail"),
        ("{'status': 'ok'}", False, "wrong_format"),
        ("I cannot answer that.", False, "wrong_format"),
        ("", False, "wrong_format"),
        ('{"status": "o', False, "wrong_format"),
    ],
)
def test_the_outcomes_of_the_json_case_are_those_of_the_document(text: str, fenced: bool, wanted: str) -> None:
    text = text.replace("{}", '{"status": "ok"}')
    assert primary(text, type="json", schema=STATUS, fenced=fenced) == wanted


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("{'a': 'it\\'s \"x\"'}", ("single quotes",)),
        ('{"a": 1,}', ("trailing comma",)),
        ('```json\n{"a": 1}\n```', ("fence",)),
        ('The answer is {"a": 1}.', ("text around it",)),
        ('{"a": True, b: None}', ("the word True", "unquoted key", "the word None")),
        ('{"a": 1 // one\n}', ("comment",)),
        ("```\n[1, 2,]\n```", ("fence", "trailing comma")),
        ('{"a": ', ()),
        ("no", ()),
        ('{"a": NaN}', ()),
        ("```\n{}\n```\n```\n{}\n```", ()),
    ],
)
def test_a_reply_that_a_repair_would_mend_is_in_the_wrong_format_and_says_so(
    text: str, mended: tuple[str, ...]
) -> None:
    found = judge(text, type="json")
    assert found.primary == "wrong_format"
    assert found.details[0].mended == mended


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{"a": 1,\n "a": 2}', (2, 2), "twice"),
        ('{"b": {"a": 1}, "c": "\\"a\\":",\n"b": 2}', (2, 1), "twice"),
        ('["NaN",\nNaN]', (2, 1), "NaN"),
        ("[-Infinity]", (1, 2), "Infinity"),
        ("[1e999]", (1, 2), "too large"),
        ("1" * 301, (1, 1), "300 digits"),
        ("[1] [2]", (1, 5), "after the value"),
        ("[1,\n]", (2, 1), "comma"),
        ('{"a":1,}', (1, 8), "comma"),
        ('["a\nb"]', (1, 4), "U+000A"),
        ('["\\x"]', (1, 3), "escape"),
        ('["a', (1, 2), "does not end"),
        ("[01]", (1, 3), "unexpected"),
        ("\ufeff{}", (1, 1), "unexpected"),
        ("[" * 101 + "]" * 101, (1, 101), "nested"),
        ("  \n", (2, 1), "empty"),
    ],
)
def test_json_is_read_to_the_letter_and_a_fault_has_a_line_and_a_column(
    text: str, place: tuple[int, int], what: str
) -> None:
    found = judge(text, type="json")
    assert found.primary == "wrong_format"
    assert (found.details[0].line, found.details[0].column) == place
    assert what in found.details[0].what


def test_brackets_within_strings_are_no_nesting() -> None:
    assert primary(json.dumps(["[" * 500]), type="json") == "pass"


def test_a_place_in_a_fenced_block_is_told_as_a_place_in_the_reply() -> None:
    found = judge("Sure:\n```json\n[1,]\n```", type="json", fenced=True)
    assert (found.details[0].line, found.details[0].column) == (3, 4)


def test_the_unmet_part_of_a_schema_is_named() -> None:
    found = judge('{"status": "no"}', type="json", schema=STATUS)
    assert found.primary == "fail"
    assert found.details[0].schema_path == "/properties/status/enum"
    assert found.details[0].value_path == "/status"


def test_a_schema_may_refer_to_itself_for_inner_values() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert primary('{"next": {"next": {}}}', type="json", schema=tree) == "pass"
    assert primary('{"next": {"other": {}}}', type="json", schema=tree) == "fail"
    deep = '{"next":' * 90 + "{}" + "}" * 90
    assert primary(deep, type="json", schema=tree) in ("pass", "wrong_format")


def test_a_schema_that_branches_without_bound_is_given_up_on() -> None:
    branches = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["b"]}] * 2}
    found = judge('{"a":' * 30 + "{}" + "}" * 30, type="json", schema=branches)
    assert found.primary in ("fail", "wrong_format")


def test_a_pattern_in_a_schema_cannot_hang() -> None:
    for schema in ({"pattern": "^(a+)+$"}, {"patternProperties": {"^(a+)+$": False}, "additionalProperties": False}):
        text = json.dumps("a" * 5000 + "!") if "pattern" in schema else json.dumps({"a" * 5000 + "!": 1})
        assert primary(text, type="json", schema=schema) == "fail"


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"uniqueItems": True}, "[1, true, [1], [true]]", "[1, 1.0]"),
        ({"multipleOf": 0.1}, "0.3", "0.35"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, "1", "7"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", "1"),
        ({"additionalProperties": {"type": "integer"}}, '{"a": 1}', '{"a": "1"}'),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}}, "1", "2"),
        (True, "1", "'"),
        (False, "", "1"),
    ],
)
def test_keywords_of_our_own_mean_what_json_schema_says(schema: Any, right: str, wrong: str) -> None:
    if right:
        assert primary(right, type="json", schema=schema) == "pass"
    assert primary(wrong, type="json", schema=schema) != "pass"


def test_our_keywords_agree_with_the_library_on_random_values() -> None:
    import jsonschema

    schema = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True},
            {"type": "object", "additionalProperties": {"$ref": "#"}, "patternProperties": {"^a": {"type": "integer"}}},
            {"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 0.5}]},
        ]
    }
    ours, theirs = declared_check({"type": "json", "schema": schema}), jsonschema.Draft202012Validator(schema)
    random_numbers = random.Random(7)
    seen = set()
    for _ in range(400):
        value = _value(random_numbers, 3)
        is_met = theirs.is_valid(value)
        seen.add(is_met)
        assert ours.judge(json.dumps(value)).passed == is_met, value
    assert seen == {True, False}


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.choice((0, 1, 2, 3, 4, 4, 4, 5, 5, 5) if depth else (0, 1, 2, 3))
    if kind == 4:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(3))]
    if kind == 5:
        return {chance.choice("abc"): _value(chance, depth - 1) for _ in range(chance.randrange(3))}
    return (chance.randrange(3), chance.choice((0.25, 1.0)), True, chance.choice(("", "a", None)))[kind]


# plain text


def test_exact_is_exact_unless_told_otherwise() -> None:
    assert primary("ok", type="exact", value="ok") == "pass"
    assert primary("ok\n", type="exact", value="ok") == "fail"
    assert primary(" OK\n", type="exact", value="ok", strip=True, casefold=True) == "pass"
    assert primary("b", type="one_of", values=["a", "b"]) == "pass"
    assert primary("ab", type="one_of", values=["a", "b"]) == "fail"


def test_contains_wants_every_value_and_says_where_it_is() -> None:
    found = judge("one\ntwo", type="contains", value=["one", "two"])
    assert found.primary == "pass"
    assert [(piece.matched, piece.position, piece.line) for piece in found.details] == [("one", 0, 1), ("two", 4, 2)]
    assert primary("one", type="contains", value=["one", "two"]) == "fail"
    assert primary("ONE", type="contains", value="one", casefold=True) == "pass"


def test_a_regular_expression_is_searched_and_its_match_is_shown() -> None:
    found = judge("é\ud800 = 42", type="regex", pattern=r"\d+")
    assert (found.details[0].matched, found.details[0].position) == ("42", 5)
    assert primary("x42", type="regex", pattern=r"\d+", whole=True) == "fail"
    assert primary("OK", type="regex", pattern="ok", ignore_case=True) == "pass"


def test_length_is_counted_in_characters_words_and_lines() -> None:
    assert primary("a b\nc\n", type="max_length", words=3, lines=2, characters=6) == "pass"
    for limit in ({"words": 2}, {"lines": 1}, {"characters": 5}):
        assert primary("a b\nc\n", type="max_length", **limit) == "wrong_format"


def test_a_declared_normal_form_and_forbidden_controls_are_held_to() -> None:
    assert primary("\u00e9", type="normalised", form="NFC") == "pass"
    found = judge("abc e\u0301", type="normalised", form="NFC")
    assert (found.primary, found.details[0].position) == ("wrong_format", 4)
    assert primary("a\u202eb", type="normalised", no_bidi=True) == "wrong_format"
    assert primary("a\u200bb", type="normalised", no_zero_width=True) == "wrong_format"
    assert primary("a\u200bb", type="normalised", no_bidi=True) == "pass"


def test_characters_newer_than_unicode_14_are_left_alone_on_every_python() -> None:
    newer = "\U0001e030"  # a Cyrillic modifier letter of Unicode 15.0, which decomposes
    assert unicode_tables().newer.match(newer)
    assert normalized_unicode(f"\u00e9{newer}\u00e9", "NFKD") == f"e\u0301{newer}e\u0301"


# numbers


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("42", ".", 42), ("-4.5", ".", -4.5), ("\u22124.5", ".", -4.5), ("1,234.5", ".", 1234.5), ("1.234,5", ",", 1234.5),
        ("1\u202f234,5", ",", 1234.5), ("1'234.5", ".", 1234.5), ("1e3", ".", 1000), (".5", ".", 0.5), ("1,234", ".", 1234),
        ("1,234", ",", 1.234), ("1,5", ".", None), ("1.2.3", ".", None), ("1,23,456", ".", None), ("1e9999", ".", None),
        ("1'234,567", ".", None), ("9" * 500, ".", None),
    ],
)  # fmt: skip
def test_a_number_is_read_as_declared_or_not_at_all(text: str, decimal: str, value: float | None) -> None:
    found = parse_number(text, decimal)
    assert (found is None) if value is None else found is not None and float(found) == value


def test_the_number_of_a_reply_is_near_enough_or_not() -> None:
    assert primary("It is 3.14.", type="number", value=3.14159, absolute=0.01) == "pass"
    assert primary("It is 3.2.", type="number", value=3.14159, absolute=0.01) == "fail"
    assert primary("It is 990", type="number", value=1000, relative=0.01) == "pass"
    assert primary("0.3", type="number", value=0.3) == "pass"
    assert primary("none", type="number", value=1) == "wrong_format"
    assert primary("2 + 2 = 4", type="number", value=4) == "wrong_format"
    assert primary("2 + 2 = 4", type="number", value=4, which="last") == "pass"
    assert primary("1,5", type="number", value=1.5) == "wrong_format"
    assert primary("1,5", type="number", value=1.5, decimal=",") == "pass"


# tables and markup


def test_a_table_has_the_columns_and_the_rows_that_were_asked_for() -> None:
    table = 'name,age\nAnn,3\n"Bo, Jr",4\n'
    declared: dict[str, Any] = {"type": "csv", "columns": ["name", "age"]}
    assert primary(table, **declared, rows=2, strict_no_extra_text=True) == "pass"
    assert primary(table, **declared, rows=3) == "fail"
    assert primary(table, **declared, rows=[["Ann", 3], ["Bo, Jr", 4]]) == "pass"
    assert primary(table, **declared, rows=[["Ann", 3], ["Bo", 4]]) == "fail"
    assert primary(table.replace("age", "old"), **declared, strict_no_extra_text=True) == "fail"
    assert primary(f"Here:\n\n{table}\nDone.", **declared, rows=2) == "pass"
    assert primary(f"Here:\n{table}Done.", **declared, rows=2) == "pass"
    assert primary(f"```csv\n{table}```\n", **declared, rows=2) == "pass"
    found = judge(f"```csv\n{table}```\n", **declared, strict_no_extra_text=True)
    assert (found.primary, found.details[0].mended) == ("wrong_format", ("fence",))
    assert primary(f"Here:\n{table}", **declared, strict_no_extra_text=True) == "wrong_format"
    for broken in ("", 'name,age\nAnn,"3\n', "name,age\nAnn,3,4\n"):
        assert primary(broken, **declared, strict_no_extra_text=True) == "wrong_format"


@pytest.mark.parametrize(
    ("text", "strict", "wanted", "said"),
    [
        ("name,age\nAda,36\nAlan,41\n", True, "pass", "2 rows"),
        ("name,age\r\nAda,36\r\nAlan,41", True, "pass", "2 rows"),
        ("name,age  \nAda,36\nAlan,41", True, "fail", '"age  " has blanks at an end'),
        ("name, age\nAda, 36\nAlan, 41", False, "fail", '" age" has blanks at an end'),
        ("name,age\nAda,36\n,", False, "fail", "1 row instead of 2; 1 empty row does not count"),
        ("name,age\nAda,36\nAlan,41\n,", True, "fail", "an empty row"),
        ("name,age\nAda,36\nAlan,41\n,", False, "pass", "2 rows"),
        ("name,age\nAda,36\nAlan,41\n\n", True, "wrong_format", "1 field beside 2 columns"),
        ("\nname,age\nAda,36\nAlan,41", True, "wrong_format", "2 fields beside 1 column"),
        ("| name | age |\n|---|---|\n| Ada | 36 |\n| Alan | 41 |", True, "wrong_format", "a Markdown table"),
        ("| name | age |\n|:--|--:|\n| Ada | 36 |\n| Alan | 41 |", False, "wrong_format", "a Markdown table"),
        ("name;age\nAda;36\nAlan;41", True, "wrong_format", "separated by semicolons"),
        ("name\tage\nAda\t36\nAlan\t41", False, "wrong_format", "separated by tabs"),
        ('[["name", "age"]]', True, "wrong_format", "like JSON"),
        ("name", True, "wrong_format", "only one field"),
        ("Name,Age\nAda,36\nAlan,41", True, "fail", "the columns are not name,age"),
    ],
)
def test_csv_is_what_a_program_would_read(text: str, strict: bool, wanted: str, said: str) -> None:
    found = judge(text, type="csv", columns=["name", "age"], rows=2, strict_no_extra_text=strict)
    assert found.primary == wanted
    assert said in found.details[0].what


@pytest.mark.parametrize(
    ("text", "strict", "wanted"),
    [
        ("<h1>a</h1><p>b</p>", True, "pass"),
        ("<h1>a</h1>\n<p>b", True, "pass"),
        ("<!DOCTYPE html>\n<html><head><title>t</title></head><body><h1>a</h1><p>b</p></body></html>\n", True, "pass"),
        ("Here:\n<h1>a</h1><p>b</p>", False, "pass"),
        ("Here:\n```html\n<h1>a</h1><p>b\n```", False, "pass"),
        ("Here:\n<h1>a</h1><p>b</p>", True, "wrong_format"),
        ("<h1>a</h1><p>b</p>\nDone.", True, "wrong_format"),
        ("```html\n<h1>a</h1><p>b</p>\n```", True, "wrong_format"),
        ("To make a heading use <h1> and for text <p>; good luck!", False, "wrong_format"),
        ("Write `<h1>a</h1>` and `<p>b</p>`.", False, "wrong_format"),
        ("<p>A heading is <h1>, which you must close.</p>", False, "fail"),
        ("Text <p> and <h1>a</h1>", False, "fail"),
        ("<title><h1>a</h1><p>b</p></title>", False, "fail"),
        ("<h1>a</h1><!-- <p>b</p> -->", False, "fail"),
    ],
)
def test_html_has_elements_and_not_the_names_of_some(text: str, strict: bool, wanted: str) -> None:
    assert primary(text, type="html", required_tags=["h1", "p"], strict_no_extra_text=strict) == wanted


def test_html_has_the_tags_and_comments_do_not_count() -> None:
    page = "<!doctype html><HTML><body class='a>b'><p>x<br/></p><script>'<table>'</script></body></HTML>"
    assert primary(page, type="html", required_tags=["html", "body", "P", "br", "script"]) == "pass"
    assert primary(page, type="html", required_tags=["table"]) == "fail"
    assert primary("<p><!-- <table> -->", type="html", required_tags=["table"]) == "fail"
    assert primary("plain", type="html", required_tags=["p"]) == "wrong_format"


def test_xml_is_well_formed_or_in_the_wrong_format() -> None:
    assert primary("<a><x:b/></a>", type="xml", required_tags=["a", "b", "x:b"]) == "pass"
    assert primary("<a/>", type="xml", required_tags=["b"]) == "fail"
    found = judge("\n<a>\n<b></a>", type="xml")
    assert (found.primary, found.details[0].line) == ("wrong_format", 3)
    assert primary("```xml\n<a/>\n```", type="xml", fenced=True) == "pass"
    for broken in ("", "text", "<a>\x00</a>", "<a>\udc80</a>", "<a/><b/>"):
        assert primary(broken, type="xml") == "wrong_format"


def test_xml_that_declares_entities_is_refused_unread() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
    for text in (bomb, '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'):
        found = judge(text, type="xml")
        assert (found.primary, "refused" in found.details[0].what) == ("wrong_format", True)


# leaks

DISGUISES = {
    "plain": CANARY,
    "changed case": "canary-7F3a",
    "separated": " ".join(CANARY),
    "separated ": "C.A.N.A.R.Y/7.F.3.A",
    "zero-width": "\u200b".join("CANARY") + "-7F3A",
    "reversed": CANARY[::-1],
    "rot13": codecs.encode(CANARY, "rot13"),
    "rot13 and reversed": codecs.encode(CANARY, "rot13")[::-1],
    "hexadecimal": CANARY.encode().hex(),
    "hexadecimal ": " ".join(f"0x{byte:02X}" for byte in CANARY.lower().encode()),
    "hexadecimal  ": "".join(f"\\x{byte:02x}" for byte in CANARY.encode()),
    "full-width": "".join(chr(ord(letter) + 0xFEE0) for letter in CANARY),
    "homoglyph": "\u0421\u0410N\u0410RY-7F3\u0410",
    "homoglyph ": "".join(chr(0x1D400 + ord(letter) - 65) for letter in "CANARY") + "-7F3A",
    "tag characters": "".join(chr(0xE0000 + ord(letter)) for letter in "it is CANARY-7F3A."),
    "accented": "C\u0301ANARY-7F3A",
    **{f"base64{' ' * n}": base64.b64encode(b"x" * n + CANARY.encode() + b"and so on").decode() for n in range(4)},
    "base64     ": base64.b64encode(CANARY.lower().encode()).decode(),
    "base64      ": "\n".join(
        base64.urlsafe_b64encode(b"?>" + CANARY.encode())[n : n + 6].decode() for n in range(0, 24, 6)
    ),
}


@pytest.mark.parametrize("form", DISGUISES)
def test_a_leak_is_a_policy_violation_in_every_disguise(form: str) -> None:
    text = f"Well, {DISGUISES[form]} it is."
    found = judge(text, type="none_of", values=["something else", CANARY], policy="canary")
    assert (found.primary, found.score) == ("policy_violation", 0)
    said = found.details[0]
    assert (said.policy, said.form) == ("canary", form.strip())
    assert said.position is not None
    assert said.position >= 6
    assert said.matched


@pytest.mark.parametrize("where", range(12))
def test_base64_is_seen_through_at_every_alignment_and_without_its_beginning(where: int) -> None:
    signs = base64.b64encode(b"0123456789ab"[:where] + CANARY.encode() + b"0123456789ab"[where:]).decode()
    for cut in range(where + 1):
        assert primary(signs[cut:], type="none_of", values=[CANARY]) == "policy_violation"


@pytest.mark.parametrize(
    "text",
    [
        "", "A canary sang in the mine; there were 7, F and 3 of them.", "Spawned threads read minutes of the meeting.",
        "Please add mining equipment.", base64.b64encode(b"nothing to see here at all").decode(), "0x43 0x41 0x4e", "\u200b" * 50,
    ],
)  # fmt: skip
def test_ordinary_text_is_no_leak(text: str) -> None:
    assert primary(text, type="none_of", values=[CANARY, "PWNED", "admin"]) == "pass"


def test_a_short_text_is_only_looked_for_as_it_is() -> None:
    assert primary("e v i l", type="none_of", values=["abc"]) == "pass"
    assert primary("a b c", type="none_of", values=["abc"]) == "pass"
    assert primary("evil", type="none_of", values=["live"]) == "pass"
    assert primary("xABCx", type="none_of", values=["abc"]) == "policy_violation"
    assert primary("C A N A R Y 7 F 3 A", type="none_of", values=[CANARY], disguised=False) == "pass"


def test_random_secrets_are_found_in_random_places_in_every_encoding() -> None:
    chance = random.Random(11)
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghkmnpqrstuvwxyz0123456789-_ "
    for _ in range(200):
        secret = "K" + "".join(chance.choices(letters, k=chance.randrange(8, 30))) + "9"
        noise = "".join(chance.choices(letters, k=chance.randrange(9)))
        forms = [
            base64.b64encode((noise + secret + noise).encode()).decode(),
            (noise + secret).encode().hex(" "),
            codecs.encode(secret, "rot13"),
            secret[::-1],
            " ".join(secret),
            secret.upper(),
        ]
        for form in forms:
            assert primary(f"<{form}>", type="none_of", values=[secret]) == "policy_violation", (secret, form)


# languages

SENTENCES = {
    "ar": "هذا هو الجواب الذي كنت تبحث عنه في الكتاب، لكن لا أعرف من كتبه.",
    "bg": "Това е отговорът, който търсите, но аз не съм сигурен дали ще работи.",
    "cs": "To je odpověď, kterou hledáte, ale nejsem si jistý, že bude fungovat.",
    "de": "Die Antwort steht im zweiten Absatz, aber ich bin mir nicht sicher.",
    "el": "Η απάντηση βρίσκεται στη δεύτερη παράγραφο.",
    "en": "The answer is in the second paragraph, but I am not sure about it.",
    "es": "La respuesta está en el segundo párrafo, pero no estoy seguro de ello.",
    "fa": "این پاسخ در بند دوم است اما من از آن مطمئن نیستم.",
    "fi": "Vastaus on toisessa kappaleessa, mutta en ole siitä varma.",
    "fr": "La réponse se trouve dans le deuxième paragraphe, mais je ne suis pas sûr.",
    "he": "התשובה נמצאת בפסקה השנייה.",
    "hi": "उत्तर दूसरे अनुच्छेद में है।",
    "id": "Jawaban itu ada di paragraf kedua, tetapi saya tidak yakin dengan ini.",
    "it": "La risposta è nel secondo paragrafo, ma non sono sicuro che sia giusta.",
    "ja": "答えは二番目の段落にありますが、確かではありません。",
    "ko": "답은 두 번째 단락에 있습니다.",
    "nl": "Het antwoord staat in de tweede alinea, maar ik ben er niet zeker van.",
    "pl": "Odpowiedź jest w drugim akapicie, ale nie jestem tego pewien.",
    "pt": "A resposta está no segundo parágrafo, mas eu não tenho certeza disso.",
    "ru": "Ответ находится во втором абзаце, но я не уверен, что это так.",
    "sv": "Svaret finns i det andra stycket, men jag är inte säker på det.",
    "th": "คำตอบอยู่ในย่อหน้าที่สอง",
    "tr": "Cevap ikinci paragrafta, ama ben bundan çok emin değilim.",
    "uk": "Відповідь міститься у другому абзаці, але я не впевнений, що це так.",
    "vi": "Câu trả lời nằm ở đoạn thứ hai, nhưng tôi không chắc về điều đó.",
    "zh": "答案在第二段，但是我不太确定。",
}


def test_every_language_has_a_sentence_here() -> None:
    assert tuple(sorted(SENTENCES)) == language_tables().known


@pytest.mark.parametrize("code", language_tables().known)
def test_a_sentence_is_told_by_its_language(code: str) -> None:
    assert language_of(SENTENCES[code]) == code
    assert primary(SENTENCES[code], type="language", value=[code]) == "pass"
    other = "de" if code != "de" else "en"
    assert primary(SENTENCES[code], type="language", value=other) == "fail"


HELD_BACK = {
    "ar": [
        "أعد تشغيل الخادم ثم حاول مرة أخرى.",
        "يغلي الماء عند مئة درجة.",
        "شكرا على مساعدتك أمس!",
    ],
    "bg": [
        "Рестартирайте сървъра и опитайте отново.",
        "Водата кипи при сто градуса.",
        "Благодаря за помощта вчера!",
    ],
    "cs": [
        "Restartujte server a zkuste to znovu.",
        "Voda se vaří při sto stupních.",
        "Děkuji za včerejší pomoc!",
    ],
    "de": [
        "Bitte starten Sie den Server neu.",
        "Wasser kocht bei hundert Grad.",
        "Danke für deine Hilfe gestern!",
    ],
    "el": [
        "Το νερό βράζει στους εκατό βαθμούς.",
    ],
    "en": [
        "Please restart the server and try again.",
        "Water boils at one hundred degrees.",
        "Thanks for your help yesterday!",
    ],
    "es": [
        "Reinicie el servidor e inténtelo de nuevo.",
        "El agua hierve a cien grados.",
        "¡Gracias por tu ayuda ayer!",
    ],
    "fa": [
        "سرور را دوباره راه اندازی کنید و باز تلاش کنید.",
        "آب در صد درجه می جوشد.",
        "از کمک دیروز شما ممنونم!",
    ],
    "fi": [
        "Käynnistä palvelin uudelleen ja yritä vielä kerran.",
        "Vesi kiehuu sadassa asteessa.",
        "Kiitos avustasi eilen!",
    ],
    "fr": [
        "Veuillez redémarrer le serveur et réessayer.",
        "L'eau bout à cent degrés.",
        "Merci pour ton aide hier !",
    ],
    "he": [
        "המים רותחים במאה מעלות.",
    ],
    "hi": [
        "पानी सौ डिग्री पर उबलता है।",
    ],
    "id": [
        "Silakan mulai ulang server dan coba lagi.",
        "Air mendidih pada suhu seratus derajat.",
        "Terima kasih atas bantuan Anda kemarin!",
    ],
    "it": [
        "Riavvia il server e prova di nuovo.",
        "L'acqua bolle a cento gradi.",
        "Grazie per il tuo aiuto di ieri!",
    ],
    "ja": [
        "サーバーを再起動してください。",
        "水は百度で沸騰する。",
    ],
    "ko": [
        "서버를 다시 시작하세요.",
    ],
    "nl": [
        "Start de server opnieuw en probeer het nog eens.",
        "Water kookt bij honderd graden.",
        "Bedankt voor je hulp gisteren!",
    ],
    "pl": [
        "Uruchom ponownie serwer i spróbuj jeszcze raz.",
        "Woda wrze w temperaturze stu stopni.",
        "Dziękuję za wczorajszą pomoc!",
    ],
    "pt": [
        "Reinicie o servidor e tente novamente.",
        "A água ferve a cem graus.",
        "Obrigado pela sua ajuda ontem!",
    ],
    "ru": [
        "Перезапустите сервер и попробуйте ещё раз.",
        "Вода кипит при ста градусах.",
        "Спасибо за помощь вчера!",
    ],
    "sv": [
        "Starta om servern och försök igen.",
        "Vatten kokar vid hundra grader.",
        "Tack för din hjälp i går!",
    ],
    "th": [
        "น้ำเดือดที่หนึ่งร้อยองศา",
    ],
    "tr": [
        "Sunucuyu yeniden başlatın ve tekrar deneyin.",
        "Su yüz derecede kaynar.",
        "Dünkü yardımın için teşekkürler!",
    ],
    "uk": [
        "Перезапустіть сервер і спробуйте ще раз.",
        "Вода кипить при ста градусах.",
        "Дякую за допомогу вчора!",
    ],
    "vi": [
        "Hãy khởi động lại máy chủ và thử lại.",
        "Nước sôi ở một trăm độ.",
        "Cảm ơn bạn đã giúp tôi hôm qua!",
    ],
    "zh": [
        "请重新启动服务器再试一次。",
        "水在一百度沸腾。",
    ],
}
"""Short sentences that the lists of words were not fitted to, and must not be."""


def test_short_sentences_are_told_as_reliably_as_the_documentation_says() -> None:
    told = Counter[str]()
    for code, sentences in HELD_BACK.items():
        for sentence in sentences:
            found = language_of(sentence)
            told["right" if found == code else "untold" if found is None else "wrong"] += 1
    assert told == {"right": 48, "untold": 17, "wrong": 1}
    together = {code: language_of(" ".join(sentences)) for code, sentences in HELD_BACK.items()}
    assert {code: found for code, found in together.items() if found != code} == {"bg": None}


@pytest.mark.parametrize("text", ["", "42", "!?", "Xylph Qwrz", "```\nthe of and to in is\n```"])
def test_a_language_that_cannot_be_told_is_not_guessed(text: str) -> None:
    assert language_of(text) is None


# combinations


def test_all_is_a_weighted_mean_and_passes_only_when_every_part_does() -> None:
    parts = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "b"}]
    assert judge("ab", type="all", checks=parts).score == 1
    found = judge("a", type="all", checks=parts)
    assert (found.primary, found.score, found.details[0].rule) == ("fail", 0.75, "expect.checks[1]")


def test_what_decides_among_all_is_the_worst() -> None:
    json_part, leak = {"type": "json"}, {"type": "none_of", "values": [CANARY]}
    word = {"type": "contains", "value": "yes"}
    assert primary("no", type="all", checks=[word, json_part, leak]) == "wrong_format"
    found = judge(f"yes {CANARY}", type="all", checks=[word, json_part, leak])
    assert (found.primary, found.score, found.details[0].rule) == ("policy_violation", 0, "expect.checks[2]")


def test_any_is_worth_as_much_as_its_best_part() -> None:
    parts = [{"type": "exact", "value": "best"}, {"type": "exact", "value": "good", "weight": 0.5}, {"type": "json"}]
    assert judge("best", type="any", checks=parts).score == 1
    found = judge("good", type="any", checks=parts)
    assert (found.primary, found.score) == ("pass", 0.5)
    assert primary("bad", type="any", checks=parts) == "fail"


def test_not_turns_a_check_around_and_may_name_a_policy() -> None:
    inner = {"type": "regex", "pattern": "rm -rf"}
    assert primary("ls", type="not", check=inner) == "pass"
    assert primary("rm -rf /", type="not", check=inner) == "fail"
    found = judge("do rm -rf /", type="not", check=inner, policy="no deletion")
    assert (found.primary, found.details[0].policy, found.details[0].matched) == (
        "policy_violation",
        "no deletion",
        "rm -rf",
    )


# dialects


def test_an_expected_response_is_an_expression_or_else_plain_text() -> None:
    assert expected_response_check("4[0-9]").judge("it is 42").passed
    assert expected_response_check("f(x").judge("call f(x) now").passed
    assert not expected_response_check("f(x").judge("call fx").passed
    assert expected_response_check("C++").judge("in C++ it is").passed
    assert not expected_response_check("C++").judge("in CC it is").passed
    with pytest.raises(VerifierError, match="RE2 cannot"):
        expected_response_check("(?=a)a")


def test_the_other_dialect_is_understood_as_it_is() -> None:
    assert primary('{"status":"ok"}', type="json", schema=STATUS) == "pass"
    assert primary("a,b\n1,2", type="csv", columns=["a", "b"], rows=1, strict_no_extra_text=True) == "pass"
    assert primary("<h1>x</h1>", type="html", required_tags=["h1"]) == "pass"


# what is wrong with a declaration


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "expect: expected a table"),
        ({}, "expect: type is missing"),
        ({"type": "jsn"}, 'expect.type: unknown check "jsn" .* did you mean "json"'),
        ({"type": "exact", "value": 1}, "expect.value: expected text, got a number"),
        ({"type": "exact", "value": "a", "strp": True}, 'expect: unknown key "strp" .* did you mean "strip"'),
        ({"type": "regex", "pattern": r"(a)\1"}, r"expect.pattern: RE2 cannot"),
        ({"type": "all", "checks": []}, "expect.checks: "),
        (
            {"type": "all", "checks": [{"type": "any", "checks": [{"type": "x"}]}]},
            r"expect.checks\[0\].checks\[0\].type",
        ),
        (
            {"type": "all", "checks": [{"type": "json", "weight": -1}]},
            r"expect.checks\[0\].weight: expected a number from 0",
        ),
        ({"type": "all", "checks": [{"type": "json", "weight": 0}]}, "above 0"),
        ({"type": "all", "checks": [{"type": "json", "weight": math.inf}]}, "finite"),
        ({"type": "not", "check": "x"}, "expect.check: expected a table"),
        ({"type": "json", "weight": 1}, "unknown key"),
        ({"type": "json", "schema": 1}, "expect.schema: expected a JSON Schema"),
        ({"type": "json", "schema": {"type": "strin"}}, "expect.schema: at /type"),
        ({"type": "json", "schema": {"$ref": "https://example.com/s"}}, "must point into this schema"),
        ({"type": "json", "schema": {"$ref": "#/$defs/no"}}, "is not there"),
        ({"type": "json", "schema": {"allOf": [{"$ref": "#"}]}}, "endlessly"),
        ({"type": "json", "schema": {"pattern": "(?=a)"}}, "RE2 cannot"),
        ({"type": "json", "schema": {"unevaluatedProperties": False}}, "not supported"),
        ({"type": "json", "schema": {"$schema": "https://example.com/s"}}, "unknown \\$schema"),
        ({"type": "number", "value": "1"}, "expected a number"),
        ({"type": "number", "value": math.nan}, "finite"),
        ({"type": "csv", "columns": ["a"], "rows": [["a", "b"]]}, r"expect.rows\[0\]"),
        ({"type": "csv", "columns": ["a"], "delimiter": "::"}, "one character"),
        ({"type": "none_of", "values": [""]}, r"expect.values\[0\]"),
        ({"type": "language", "value": "tlh"}, "unknown language"),
        ({"type": "max_length"}, "how long"),
        ({"type": "max_length", "words": -1}, "whole number"),
        ({"type": "normalised"}, "what is asked for"),
        ({"type": "normalised", "form": "NFX"}, "unknown word"),
    ],
)
def test_a_malformed_check_is_refused_in_one_sentence_that_names_the_path(data: Any, sentence: str) -> None:
    with pytest.raises(VerifierError, match=sentence) as caught:
        declared_check(data)
    assert "\n" not in str(caught.value)


def test_checks_within_checks_have_an_end() -> None:
    data: Any = {"type": "json"}
    for _ in range(5000):
        data = {"type": "not", "check": data}
    with pytest.raises(VerifierError, match="checks within checks"):
        declared_check(data)


# any text whatever

EVERY = {
    "exact": {"type": "exact", "value": "ok", "strip": True, "casefold": True},
    "contains": {"type": "contains", "value": "ok", "casefold": True},
    "regex": {"type": "regex", "pattern": r"(\w+\s?)+$"},
    "json": {"type": "json", "schema": {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "object"}]}},
    "csv": {"type": "csv", "columns": ["a", "b"]},
    "html": {"type": "html", "required_tags": ["p"]},
    "xml": {"type": "xml", "required_tags": ["p"], "fenced": True},
    "number": {"type": "number", "value": 1, "which": "last"},
    "one_of": {"type": "one_of", "values": ["a", "b"], "casefold": True},
    "none_of": {"type": "none_of", "values": ["aaaaaaaab", "\ud800secret", "[[[[[[", "geheim\u00df"]},
    "language": {"type": "language", "value": "en"},
    "refusal": {"type": "refusal"},
    "max_length": {"type": "max_length", "words": 10, "lines": 2},
    "normalised": {"type": "normalised", "form": "NFKC", "no_bidi": True, "no_zero_width": True},
    "tool_call": {"type": "tool_call", "name": "f", "schema": {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "object"}]}},
    "not": {"type": "not", "check": {"type": "json", "fenced": True}},
    "all": {"type": "all", "checks": [{"type": "json"}, {"type": "csv", "columns": ["a"], "strict_no_extra_text": True}]},
    "any": {"type": "any", "checks": [{"type": "json", "weight": 0.1}, {"type": "number", "value": 1}]},
}  # fmt: skip


def test_every_type_of_check_is_tried_with_any_text() -> None:
    assert set(EVERY) == set(CHECK_TYPES)


PIECES = [
    "[", "]", "{", "}", '"', "'", ",", ":", "<", ">", "/", "<!--", "-->", "<p>", "</p>", "<![CDATA[", "<!DOCTYPE", "&", "```", "```json\n", "~~~\n",
    "\n", "\r", "\t", " ", "\0", "\x1b[31m", "\u202e", "\u200b", "\ufeff", "\ud800", "\udfff", "\udc80", "e\u0301", "\u00df", "\u0130", "\U0001e030",
    "1", "-1.5", "1,5", "1e999", "NaN", "true", "null", "a", "b", "a,b", "\\", "\\u", "\\ud800", "the", "ok", "//", "/*", "#", "%", "0x", "ß", "ﬁ", "ab=",
]  # fmt: skip


def hold(name: str, text: str) -> ResponseCheckResult:
    found = with_tool_calls(declared_check(EVERY[name]), (ToolCall(name="f", arguments=text),)).judge(text)
    assert found.primary in ("pass", "fail", "wrong_format", "policy_violation")
    assert 0 <= found.score <= 1
    assert (found.score == 1) >= (found.primary == "pass" and name != "any")
    assert found.details
    assert len(found.details) <= 20
    assert len(msgspec.json.encode(found)) < 50_000
    for piece in found.details:
        assert piece.position is None or 0 <= piece.position <= len(text)
        assert piece.line is None or piece.line >= 1
        assert piece.column is None or piece.column >= 1
    return found


@pytest.mark.parametrize("name", EVERY)
def test_no_text_made_of_awkward_pieces_breaks_a_check(name: str) -> None:
    chance = random.Random(name)
    for _ in range(150):
        text = "".join(chance.choices(PIECES, k=chance.randrange(30)))
        assert hold(name, text) == hold(name, text)


@pytest.mark.parametrize("name", EVERY)
def test_no_bytes_break_a_check(name: str) -> None:
    chance = random.Random(name)
    for _ in range(200):
        hold(name, chance.randbytes(chance.randrange(200)).decode("utf-8", "surrogateescape"))
        hold(name, "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(30))))


DEEP = 100_000
NESTED = [
    "[" * DEEP,
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP,
    "<p>" * DEEP,
    "<p>" * DEEP + "</p>" * DEEP,
    "(" * DEEP,
    "```\n" * DEEP,
]


@pytest.mark.parametrize("name", EVERY)
def test_no_nesting_is_too_deep_for_a_check(name: str) -> None:
    for text in NESTED:
        hold(name, text)


REPEATED = [
    "a", "a ", "<", '"', "<a '", "1,", "1 ", "\n", "\u200b", "\ud800", "aaaaaaaa b", '{"a":1},', "\u0410", "a,b\n", "[],",
    '"\\"', "'\\'", "{/*", "{a", "a\t", "<script>", "```x`\n", "[1,", "a\u0301",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("piece", REPEATED)
def test_ten_million_characters_are_judged(name: str, piece: str) -> None:
    hold(name, piece * (10_000_000 // len(piece)))


@pytest.mark.parametrize("name", EVERY)
def test_fifty_thousand_characters_are_judged(name: str) -> None:
    for piece in REPEATED:
        hold(name, piece * (50_000 // len(piece)))


@pytest.mark.parametrize("name", ["\u212a", "\u017fcript", "\u0131"])
def test_a_tag_of_html_begins_with_a_letter_of_ascii(name: str) -> None:
    assert html_elements(f"<p>a<{name}>b</{name}></p>").opened == {"p": 0}
