"""Code in colours is the same code, and only our own elements are elements."""

from __future__ import annotations

import html
import random
import re

import pytest

from steelyard.reports.highlight import HIGHLIGHT_LANGUAGES, MAX_HIGHLIGHTED_CHARACTERS, highlighted
from support.hostile_texts import TEXTS
from support.studies import with_slow

SPAN = re.compile(r'<span class="[ksncfbad]">|</span>')
PIECES = (
    *(
        '"',
        "'",
        "`",
        "\\",
        "\n",
        "#",
        "//",
        "/*",
        "*/",
        "<",
        ">",
        "&",
        "{",
        "}",
        "(",
        ")",
        "=",
        ":",
        "@",
        "$",
        "${",
        "<<",
        "<<E\n",
    ),
    *(
        '"""',
        "'''",
        'r#"',
        "f'",
        "b'",
        "0x",
        "1.5e-3",
        "def ",
        "class ",
        "fn ",
        "func ",
        "x",
        "x-y",
        " ",
        "\t",
        "- ",
        "[",
        "--",
    ),
    *("</span>", "<script>", "&lt;", "é", "\U0001f600", "diff ", "+", "@@", "EOT", "true"),
)


def text_of(markup: str) -> str:
    """What a browser shows of it."""
    return html.unescape(SPAN.sub("", markup))


@pytest.mark.parametrize("language", HIGHLIGHT_LANGUAGES)
def test_no_character_is_lost_or_added_and_no_element_is_another_s(language: str) -> None:
    chance = random.Random(language)
    for _ in range(300):
        code = "".join(chance.choices(PIECES, k=chance.randrange(60)))
        markup = str(highlighted(code, language))
        assert text_of(markup) == code
        assert "<" not in SPAN.sub("", markup)
        assert markup.count("<span") == markup.count("</span>")


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_are_texts_in_every_language(name: str) -> None:
    for language in {id(known): name for name, known in HIGHLIGHT_LANGUAGES.items()}.values():
        markup = str(highlighted(TEXTS[name], language))
        assert text_of(markup) == TEXTS[name]
        assert "<" not in SPAN.sub("", markup)


@pytest.mark.parametrize(
    ("language", "code", "coloured"),
    [
        (
            "python",
            'def f(x):\n    return "a"  # why',
            {"k": ["def", "return"], "f": ["f"], "s": ['"a"'], "c": ["# why"]},
        ),
        ("python", '"""one\ntwo"""\nx = 1.5', {"s": ['"""one\ntwo"""'], "n": ["1.5"]}),
        ("python", "@cached\nclass A: pass", {"b": ["@cached"], "k": ["class", "pass"], "f": ["A"]}),
        ("rust", "fn f<'a>() { r#\"x\"y\"#; 'c' }", {"k": ["fn"], "f": ["f"], "b": ["'a"], "s": ['r#"x"y"#', "'c'"]}),
        ("javascript", "const a = `x\n${1}`; // b", {"k": ["const"], "s": ["`x\n${1}`"], "c": ["// b"]}),
        ("c", "#include <a>\nint x = 0; /* a\nb */", {"b": ["#include <a>"], "k": ["int"], "c": ["/* a\nb */"]}),
        ("terraform", 'resource "a" {\n  b = 1\n}', {"k": ["resource"], "s": ['"a"'], "b": ["  b"], "n": ["1"]}),
        ("json", '{"a": "b", "c": true}', {"f": ['"a"', '"c"'], "s": ['"b"'], "k": ["true"]}),
        (
            "diff",
            "--- a\n+++ b\n@@ -1 @@\n-x\n+y",
            {"k": ["--- a", "+++ b"], "b": ["@@ -1 @@"], "d": ["-x"], "a": ["+y"]},
        ),
    ],
)
def test_what_belongs_together_has_one_colour(language: str, code: str, coloured: dict[str, list[str]]) -> None:
    found: dict[str, list[str]] = {}
    for kind, inside in re.findall(r'<span class="(.)">(.*?)</span>', str(highlighted(code, language)), re.DOTALL):
        found.setdefault(kind, []).append(html.unescape(inside))
    assert {kind: found.get(kind, []) for kind in coloured} == coloured


BEGINNINGS = [
    (language, piece)
    for piece in ("\n", '"', "'a", "/*", '"\\', "a.", "r#", "<<E ", "1e", "[[", "  @", "a-")
    for language in {known: name for name, known in HIGHLIGHT_LANGUAGES.items()}.values()
]


def test_other_languages_and_very_long_code_are_plain() -> None:
    assert str(highlighted("def f(): pass <b>", "klingon")) == "def f(): pass &lt;b&gt;"
    assert "<span" not in highlighted("def " * MAX_HIGHLIGHTED_CHARACTERS, "python")


@pytest.mark.parametrize(("language", "piece"), with_slow(BEGINNINGS[::3], BEGINNINGS[1::3] + BEGINNINGS[2::3]))
def test_however_often_something_begins_it_ends_in_time(language: str, piece: str) -> None:
    # patterns that read on to the end from each of these would take minutes
    code = (piece * MAX_HIGHLIGHTED_CHARACTERS)[:MAX_HIGHLIGHTED_CHARACTERS]
    assert text_of(str(highlighted(code, language))) == code
