"""Rubrics are read as people have them, and a wrong one is answered with where, what and what would work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.evalsets.rubrics import MAX_RUBRIC_FILE_BYTES, RubricFile, load
from steelyard.tiers.rubrics import RubricCategory, RubricItem

REQUIREMENTS = """\
requirements:
  - id: R001
    description: The file parses
    weight: 2.0
    evaluation: binary
  - id: "R002"
    description: All targets are there
    weight: 1
    evaluation: scaled
    scoring:
      1.0: all of them
      0.5: half of them
grading:
  pass_threshold: 0.7
  grade_scale: {S: 1.0, A: 0.8, F: 0.0}
"""
CATEGORIES = """\
categories:
  functional:
    weight: 0.35
    items:
      - id: F1
        check: It runs
        points: 1.0
      - id: F2
        check: >
          Its output
          is right
        points: 0.5
        na_condition: It prints nothing
  clarity:
    weight: 0.2
    description: A reader can follow it
"""
AS_TOML = """\
[categories.functional]
weight = 0.35
[[categories.functional.items]]
id = "F1"
check = "It runs"
points = 1
[[categories.functional.items]]
id = "F2"
check = "Its output is right\\n"
points = 0.5
na_condition = "It prints nothing"
[categories.clarity]
weight = 0.2
description = "A reader can follow it"
"""
AS_JSON = """\
{"categories": {
  "functional": {"weight": 0.35, "items": [
    {"id": "F1", "check": "It runs", "points": 1},
    {"id": "F2", "check": "Its output is right\\n", "points": 0.5, "na_condition": "It prints nothing"}]},
  "clarity": {"weight": 0.2, "check": "A reader can follow it"}}}
"""


def loaded(folder: Path, name: str, text: str | bytes) -> RubricFile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path)


def complaint(folder: Path, name: str, text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        loaded(folder, name, text)
    said = str(caught.value)
    assert str(folder / name) in said
    assert all(problem.what for problem in caught.value.problems)
    return said.replace(str(folder / name), "FILE")


def test_requirements_become_categories_of_one_item(tmp_path: Path) -> None:
    rubric, file, problems = loaded(tmp_path, "make.yaml", REQUIREMENTS)
    assert problems == ()
    assert file.path == str(tmp_path / "make.yaml")
    assert rubric.id == "make"
    assert rubric.categories == (
        RubricCategory(
            name="R001", weight=2.0, items=(RubricItem(id="R001", check="The file parses", evaluation="binary"),)
        ),
        RubricCategory(
            name="R002",
            weight=1.0,
            items=(
                RubricItem(
                    id="R002", check="All targets are there", scoring={"1.0": "all of them", "0.5": "half of them"}
                ),
            ),
        ),
    )
    assert rubric.pass_threshold == 0.7
    assert rubric.grades == {"S": 1.0, "A": 0.8, "F": 0.0}
    assert all(category.requirement for category in rubric.categories)


def test_the_same_rubric_in_three_formats_is_the_same_rubric(tmp_path: Path) -> None:
    from_yaml = loaded(tmp_path, "one.yaml", CATEGORIES).rubric
    assert loaded(tmp_path, "one.yml", CATEGORIES).rubric == from_yaml
    assert loaded(tmp_path, "one.toml", AS_TOML).rubric == from_yaml
    assert loaded(tmp_path, "one.json", AS_JSON).rubric == from_yaml
    assert loaded(tmp_path, "two.json", AS_JSON).rubric.digest == from_yaml.digest
    functional, clarity = from_yaml.categories
    assert [item.points for item in functional.items] == [1.0, 0.5]
    assert functional.items[1].na_condition == "It prints nothing"
    assert (clarity.items, clarity.check) == ((), "A reader can follow it")
    assert from_yaml.pass_threshold == 0.6


def test_requirements_and_categories_of_one_file_are_judged_together(tmp_path: Path) -> None:
    rubric = loaded(tmp_path, "both.yaml", REQUIREMENTS + CATEGORIES).rubric
    assert [category.name for category in rubric.categories] == ["R001", "R002", "functional", "clarity"]


def test_a_category_with_nothing_but_a_name_is_scored_as_a_whole(tmp_path: Path) -> None:
    rubric = loaded(tmp_path, "short.yaml", "id: mine\ncategories:\n  clarity:\n  on:\n    weight: 2\n").rubric
    assert rubric.id == "mine"
    assert rubric.categories == (RubricCategory(name="clarity", weight=1.0), RubricCategory(name="on", weight=2.0))


def test_a_mark_of_byte_order_and_other_line_ends_do_no_harm(tmp_path: Path) -> None:
    plain = loaded(tmp_path, "plain.yaml", CATEGORIES).rubric
    marked = b"\xef\xbb\xbf" + CATEGORIES.replace("\n", "\r\n").encode()
    assert loaded(tmp_path, "marked.yaml", marked).rubric.digest == plain.digest


def test_unknown_keys_are_warned_of_once_with_their_line(tmp_path: Path) -> None:
    text = CATEGORIES.replace("    weight: 0.2\n", "    weight: 0.2\n    wieght: 3\n") + "author: me\n"
    rubric, _, problems = loaded(tmp_path, "odd.yaml", text)
    assert len(rubric.categories) == 2
    said = [str(problem).replace(str(tmp_path), "") for problem in problems]
    assert said[0].startswith('/odd.yaml:18: unknown key "author"')
    assert said[1].startswith('/odd.yaml:16: unknown key "wieght"')
    assert said[1].endswith('did you mean "weight"?)')
    assert not any(problem.fatal for problem in problems)


def test_a_name_that_some_providers_refuse_is_warned_of(tmp_path: Path) -> None:
    problems = loaded(tmp_path, "odd.yaml", 'categories: {"How clear is it?": {weight: 1}}').problems
    assert "some providers" in str(problems[0])


WRONG = [
    ("no weight is a number", "categories:\n  a:\n    weight: heavy\n", ':3: category "a": weight: expected a number'),
    ("nan", "categories:\n  a:\n    weight: .nan\n", ':3: category "a": weight: must be a number from 0'),
    ("infinity", "categories: {a: {weight: .inf}}", "weight: must be a number from 0"),
    ("a negative weight", "categories: {a: {weight: -1}}", "weight: must be a number from 0"),
    ("a flag as weight", "categories: {a: {weight: yes}}", "weight: expected a number, got true or false"),
    ("no weights", "categories: {a: {weight: 0}}", "all weights are 0"),
    ("no points", "categories: {a: {items: [{id: x, check: y, points: 0}]}}", 'item "x": points: must be'),
    ("points in words", "categories: {a: {items: [{id: x, check: y, points: '2'}]}}", "items[0].points: expected a"),
    ("items that are a table", "categories: {a: {items: {x: y}}}", "items: expected a list"),
    ("items that are texts", "categories: {a: {items: [x]}}", "items[0]: expected a table"),
    ("an item without a check", "categories:\n  a:\n    items:\n    - id: x\n", ":4: "),
    ("an item without a check, in words", "categories: {a: {items: [{id: x}]}}", "items[0].check is missing"),
    ("an item with an empty check", "categories: {a: {items: [{id: x, check: ' '}]}}", "does not say what to look"),
    ("an item twice", "categories: {a: {items: [{id: x, check: y}, {id: x, check: z}]}}", "appears twice in this cat"),
    ("both kinds of condition", "categories: {a: {na_condition: n, items: [{id: x, check: y}]}}", "move it there"),
    ("a category that is text", "categories: {a: b}", 'category "a": expected a table'),
    ("categories in a list", "categories: [a]", "categories: expected a table by name"),
    ("an empty name", "categories: {'': {weight: 1}}", "a name must have 1 to 80 characters"),
    ("a control character", 'categories: {"a\\x1b": {weight: 1}}', "no control characters"),
    ("requirements by name", "requirements: {a: b}", "requirements: expected a list"),
    ("a requirement that is text", "requirements: [a]", "requirement 1: expected a table"),
    ("a requirement without id", "requirements: [{description: x}]", "requirement 1: id is missing"),
    ("a requirement without description", "requirements: [{id: x}]", 'requirement "x": description is missing'),
    ("an id that is a number", "requirements: [{id: 1, description: x}]", "id: expected text, got a whole number"),
    ("an unknown evaluation", "requirements: [{id: x, description: y, evaluation: binry}]", 'did you mean "binary"?'),
    ("the same requirement twice", "requirements: [{id: x, description: y}, {id: x, description: z}]", "appears twice"),
    ("one name in both forms", "requirements: [{id: x, description: y}]\ncategories: {x: {}}", "appears twice"),
    ("a threshold in percent", "categories: {a: {}}\ngrading: {pass_threshold: 60}", ":2: grading: pass_threshold"),
    ("a grade beyond 1", "categories: {a: {}}\ngrading: {grade_scale: {A: 90}}", 'grade "A": must begin at a number'),
    ("two grades at once", "categories: {a: {}}\ngrading: {grade_scale: {A: 0.9, B: 0.9}}", 'begins where "A" does'),
    ("a scale in words", "categories: {a: {}}\ngrading: {grade_scale: {A: best}}", "expected a number, got text"),
    ("grading that is a number", "categories: {a: {}}\ngrading: 3", "grading: expected a table"),
    ("an empty file", "", 'empty; a rubric has "requirements" or "categories"'),
    ("a list", "- a\n", "not a table"),
    ("nothing asked for", "name: x\n", "asks for nothing"),
    ("too much", "categories:\n" + "".join(f"  c{n}: {{}}\n" for n in range(201)), "more than 200 categories"),
    (
        "a key twice",
        "categories:\n  a: {}\n  b: {}\n  a: {}\n",
        ':4: categories: the key "a" appears twice, first in line 2',
    ),
    ("a key twice, deeply", "categories: {a: {weight: 1, weight: 2}}", 'categories.a: the key "weight" appears twice'),
    ("an alias", "categories:\n  a: &x {weight: 1}\n  b: *x\n", ":2: an anchor &x"),
    ("an alias of nothing", "categories:\n  a: *x\n", ":2: an alias *x"),
    ("a merge", "categories: {a: {<<: {weight: 1}}}", None),
    ("an object", "categories: !!python/object/apply:os.system [echo]\n", "is not plain data"),
    ("a private tag", "categories: !mine {a: 1}\n", "is not plain data"),
    ("a set", "categories: !!set {a}\n", "is not plain data"),
    ("binary", "categories: {a: {weight: !!binary aGVsbG8=}}\n", "weight: expected a number, got text"),
    ("no number at all", "categories: {a: {weight: !!int ''}}\n", "cannot be read as a number"),
    ("no flag at all", "categories: {a: {weight: !!bool perhaps}}\n", "cannot be read as true or false"),
    ("digits that are none", "categories: {a: {weight: 0b_}}\n", "cannot be read as a number"),
    ("a number without end", f"categories: {{a: {{weight: {'9' * 5000}}}}}\n", "cannot be read as a number"),
    ("a number of sixties", f"categories: {{a: {{weight: 1{':00' * 30}.5}}}}\n", "weight: must be a number from 0"),
    ("a date", "categories: {a: {weight: 2024-01-01}}\n", "weight: expected a number, got text"),
    ("two documents", "categories: {a: {}}\n---\ncategories: {b: {}}\n", ":2: not YAML: but found another document"),
    ("a tab", "categories:\n\ta: {}\n", ":2: not YAML: "),
    ("an open bracket", "categories: {a: {", "not YAML: "),
    ("a control in the text", "categories: {a: {check: 'x\x07'}}", ":1: not YAML: U+0007"),
    ("half a surrogate", 'categories: {a: {check: "\\ud800"}}', "half of a surrogate pair"),
    ("deep lists", "categories: " + "[" * 5000, ":1: nested more than 20 levels deep"),
    ("deep tables", "".join(f"{' ' * n}a:\n" for n in range(300)), ":21: nested more than 20 levels deep"),
    ("more than anybody writes", "categories: [" + "a, " * 20_000 + "]", "more than 10000 values"),
    ("a key that is a list", "categories: {[a]: {}}", "a key that is a list or a table"),
]


@pytest.mark.parametrize(("text", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_yaml_rubric_is_named_with_its_place(tmp_path: Path, text: str, said: str | None) -> None:
    if said is None:
        assert 'unknown key "<<"' in str(loaded(tmp_path, "w.yaml", text).problems[0])
    else:
        assert said in complaint(tmp_path, "w.yaml", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[categories.a]\nweight = 'x'\n", 'FILE:2: category "a": weight: expected a number, got text'),
        ("[categories.a]\nweight = nan\n", "FILE:2: "),
        ("[categories.a]\n[categories.a]\n", "FILE:2: not TOML: "),
        ("[categories.a\n", "FILE:1: not TOML: "),
        ("x = " + "[" * 5000, "FILE"),
        (".".join("a" * 200) + " = 1", "a key of more than 100 parts"),
        ("[[requirements]]\nid = 'x'\ndescription = 'y'\nweight = -1\n", "FILE:4: "),
        ("[categories.a]\n[[categories.a.items]]\nid = 'x'\ncheck = 'y'\npoints = 0\n", "FILE:5: "),
    ],
)
def test_a_wrong_toml_rubric_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(tmp_path, "w.toml", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"categories": {"a":\n {"weight": "x"}}}', 'FILE:2: category "a": weight: expected a number, got text'),
        ('{"categories": {"a": {},\n "a": {}}}', "FILE:2: categories.a: appears twice, first in line 1"),
        ('{"categories": {"a": {"weight": NaN}}}', "NaN is not JSON"),
        ('{"categories": {"a": {"weight": 1e999}}}', "weight: must be a number from 0"),
        ('{"categories": {"a": {"weight": ' + "9" * 5000 + "}}}", "not JSON"),
        ('{"categories": {"a": {"weight": ' + "9" * 400 + "}}}", "weight: number out of range"),
        ('{"categories": {"a": {"weight": "\\ud800"}}}', "weight: contains half of a surrogate pair"),
        ("{'categories': {}}", "FILE:1: not JSON: "),
        ('{"categories":\n {"a": {}}', "FILE:2: not JSON: "),
        ("[" * 100_000, "FILE:1: nested more than 20 levels deep"),
        ('{"categories": {"a": {"check": "\\ud800"}}}', "half of a surrogate pair"),
        ('{"requirements": [{"id": "x", "check": "y"},\n {"id": "z", "check": 3}]}', "FILE:2: "),
        ("", "empty"),
        ("null", "empty"),
        ('"text"', "not a table"),
    ],
)
def test_a_wrong_json_rubric_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(tmp_path, "w.json", text)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "categories:\n  a: {weight: x}\n  b: {weight: -1}\ngrading: {pass_threshold: 7}\nodd: 1\n"
    lines = complaint(tmp_path, "w.yaml", text).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["FILE:2", "FILE:3", "FILE:4", "FILE:5"]


def test_a_file_full_of_mistakes_does_not_drown_its_reader(tmp_path: Path) -> None:
    text = "categories:\n" + "".join(f"  c{number}: {{weight: x}}\n" for number in range(1000))
    lines = complaint(tmp_path, "w.yaml", text).splitlines()
    assert len(lines) == 101
    assert "stopped after 100 problems" in lines[-1]


def test_a_bomb_of_aliases_does_not_go_off(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, letter in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{letter}: &{letter} [{', '.join([f'*{before}'] * 9)}]\n"
    assert "FILE:1: an anchor &a" in complaint(tmp_path, "bomb.yaml", bomb)


def test_what_is_no_text_or_too_long_is_refused(tmp_path: Path) -> None:
    assert "FILE:2: not UTF-8 text" in complaint(tmp_path, "w.yaml", b"categories:\n  a\xff: {}\n")
    assert "not UTF-8" in complaint(tmp_path, "w.yaml", "categories: {}".encode("utf-16"))
    assert "larger than 256 KB" in complaint(tmp_path, "w.yaml", b"#" * (MAX_RUBRIC_FILE_BYTES + 1))
    assert "unknown kind of file" in complaint(tmp_path, "w.txt", "categories: {a: {}}")


def test_a_file_that_is_not_there_or_not_a_file_is_named(tmp_path: Path) -> None:
    for path, what in (tmp_path / "none.yaml", "does not exist"), (tmp_path, "a folder"):
        with pytest.raises(InputError, match=what):
            load(path)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="not a regular file"):
        load(tmp_path / "pipe.yaml")
