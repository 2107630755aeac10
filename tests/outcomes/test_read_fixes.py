"""Outcomes of repairs are read as they are, and what is odd in them is said once."""

from __future__ import annotations

import csv
import gzip
import random
from pathlib import Path

import pytest

from steelyard import outcomes
from steelyard.errors import InputError, Problem
from steelyard.outcomes.files import READ_CHUNK_BYTES

HEADER = "oid,iteration_id,plausible_fix\n"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(*paths: Path, problems: Path | None = None, passed: str = "plausible_fix") -> tuple[Problem, ...]:
    with pytest.raises(InputError) as raised:
        outcomes.fixes(paths, problems, passed=passed)
    assert all(problem.fatal for problem in raised.value.problems)
    return raised.value.problems


def test_a_file_of_fixes_is_counted_by_problem_in_the_order_of_the_problems_file(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "oid,filename\nb,y.tf\na,x.tf\nc,z.tf\n")
    fixes = written(tmp_path, "gemini_fixes.csv", HEADER + "a,1,True\na,2,false\nb,1,yes\na,3,0\n")
    (tally,) = outcomes.fixes([fixes], problems).tallies
    assert tally.model == "gemini"
    assert tally.cases == ("b", "a", "c")
    assert tally.tried == (1, 3, 0)
    assert tally.passed == (1, 1, 0)
    assert (tally.missing, tally.costs, tally.scores) == (0, None, None)


def test_without_a_problems_file_the_cases_are_those_of_all_fixes_in_order_of_appearance(tmp_path: Path) -> None:
    first = written(tmp_path, "one_fixes.csv", HEADER + "z,1,1\na,1,1\n")
    second = written(tmp_path, "two_fixes.csv", HEADER + "m,1,1\na,1,0\n")
    read = outcomes.fixes([str(first), second])
    assert [tally.cases for tally in read.tallies] == [("z", "a", "m")] * 2
    assert [tally.tried for tally in read.tallies] == [(1, 1, 0), (0, 1, 1)]
    assert read.problems == ()


@pytest.mark.parametrize("word", ["true", "TRUE", " True ", "1", "1.0", "yes", "Yes"])
def test_a_pass_has_many_words(tmp_path: Path, word: str) -> None:
    (tally,) = outcomes.fixes([written(tmp_path, "m_fixes.csv", f"{HEADER}a,1,{word}\n")]).tallies
    assert (tally.tried, tally.passed) == ((1,), (1,))


@pytest.mark.parametrize("word", ["false", "FALSE", "0", "0.0", "no", " No"])
def test_a_failure_has_many_words(tmp_path: Path, word: str) -> None:
    (tally,) = outcomes.fixes([written(tmp_path, "m_fixes.csv", f"{HEADER}a,1,{word}\n")]).tallies
    assert (tally.tried, tally.passed) == ((1,), (0,))


@pytest.mark.parametrize(
    ("word", "told"), [("maybe", '"maybe"'), ("", "empty"), ("2", '"2"'), ("\x1b[31mred", '"\\u001b[31mred"')]
)
def test_any_other_word_is_an_error_with_its_line(tmp_path: Path, word: str, told: str) -> None:
    path = written(tmp_path, "m_fixes.csv", f"{HEADER}a,1,true\na,2,{word}\na,3,{word}\n")
    (problem,) = refusal(path)
    assert problem.line == 3
    assert problem.what == (
        f"plausible_fix is {told}; expected true or false, 1 or 0, yes or no; 2 such rows, on lines 3 and 4"
    )


def test_another_column_can_say_what_passed(tmp_path: Path) -> None:
    path = written(tmp_path, "m_outcomes.csv", "oid,iteration_id,plausible_fix,is_fixed\na,1,true,false\n")
    (tally,) = outcomes.fixes([path], passed="is_fixed").tallies
    assert tally.passed == (0,)


def test_models_are_named_after_their_files_as_briefly_as_they_can_be(tmp_path: Path) -> None:
    names = [
        "gemini_fixes.csv",
        "gemini_synthetic_fixes.csv",
        "gpt_synthetic_fixes.csv",
        "claude_outcomes.csv",
        "x.csv",
    ]
    paths = [written(tmp_path, name, f"{HEADER}a,1,1\n") for name in names]
    packed = written(tmp_path, "packed_fixes.csv.gz", gzip.compress(f"{HEADER}a,1,1\n".encode()))
    read = outcomes.fixes([*paths, packed])
    assert [tally.model for tally in read.tallies] == ["gemini", "gemini_synthetic", "gpt", "claude", "x", "packed"]


def test_files_that_would_get_one_name_are_told_apart(tmp_path: Path) -> None:
    names = ["one/m_fixes.csv", "two/m_fixes.csv", "one/m_outcomes.csv"]
    paths = [written(tmp_path, name, f"{HEADER}a,1,1\n") for name in names]
    read = outcomes.fixes(paths)
    assert [tally.model for tally in read.tallies] == ["one/m_fixes", "two/m", "one/m_outcomes"]


def test_a_row_of_an_unknown_problem_is_ignored_with_a_warning(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "oid\na\n")
    rows = "".join(f"zz,{number},true\n" for number in range(7))
    path = written(tmp_path, "m_fixes.csv", f"{HEADER}a,1,true\n{rows}")
    read = outcomes.fixes([path], problems)
    (tally,) = read.tallies
    assert (tally.cases, tally.tried) == (("a",), (1,))
    what = f'oid "zz" is not in {problems}; ignored; 7 such rows, on lines 3, 4, 5, 6, 7 and 2 more'
    assert read.problems == (Problem(str(path), 3, what, fatal=False),)


def test_an_identical_repetition_counts_once_with_a_warning(tmp_path: Path) -> None:
    path = written(tmp_path, "m_fixes.csv", HEADER + "a,1,true\nb,1,no\na, 1 ,yes\nb,1,0\n")
    read = outcomes.fixes([path])
    assert (read.tallies[0].tried, read.tallies[0].passed) == ((1, 1), (1, 0))
    what = '"a", iteration "1" is already on line 2; counted once; 2 such rows, on lines 4 and 5'
    assert read.problems == (Problem(str(path), 4, what, fatal=False),)


def test_a_contradiction_is_an_error_that_names_both_lines(tmp_path: Path) -> None:
    text = HEADER.strip() + ',reply\na,1,true,"x\ny\r\nz"\n\nb,1,true,\na,1,false,\nb,1,false,\n'
    (problem,) = refusal(written(tmp_path, "m_fixes.csv", text))
    assert problem.line == 7
    assert problem.what == (
        '"a", iteration "1" is false here but true on line 2; keep one of the two; 2 such rows, on lines 7 and 8'
    )


def test_iterations_are_text(tmp_path: Path) -> None:
    (tally,) = outcomes.fixes([written(tmp_path, "m_fixes.csv", HEADER + "a,1,true\na,01,false\n")]).tallies
    assert tally.tried == (2,)


def test_two_models_may_have_the_same_iterations(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}_fixes.csv", f"{HEADER}a,1,{name == 'x'}\n") for name in "xy"]
    read = outcomes.fixes(paths)
    assert [tally.passed for tally in read.tallies] == [(1,), (0,)]
    assert read.problems == ()


def test_a_missing_column_is_an_error_with_the_columns_there_are(tmp_path: Path) -> None:
    path = written(tmp_path, "m_fixes.csv", "oid,iteration,plausible_fx\na,1,true\n")
    assert [str(problem) for problem in refusal(path)] == [
        f'{path}:1: no column "iteration_id" (known: iteration, oid, plausible_fx; did you mean "iteration"?)',
        f'{path}:1: no column "plausible_fix" (known: iteration, oid, plausible_fx; did you mean "plausible_fx"?)',
    ]


def test_a_column_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "m_fixes.csv", "oid,iteration_id,oid,plausible_fix\na,1,a,true\n")
    (problem,) = refusal(path)
    assert (problem.line, problem.what) == (1, 'column "oid" occurs 2 times in the header')


@pytest.mark.parametrize(("row", "name"), [(",1,true", "oid"), ("a,  ,true", "iteration_id")])
def test_an_empty_id_is_an_error(tmp_path: Path, row: str, name: str) -> None:
    (problem,) = refusal(written(tmp_path, "m_fixes.csv", f"{HEADER}a,1,1\n{row}\n"))
    assert (problem.line, problem.what) == (3, f"{name} is empty")


def test_rows_with_too_few_or_too_many_fields_are_errors(tmp_path: Path) -> None:
    few, many = refusal(written(tmp_path, "m_fixes.csv", f"{HEADER}a,1\na,2,true,x\na,3\n"))
    assert (few.line, few.what) == (2, "too few fields: 2, where the header has 3; 2 such rows, on lines 2 and 4")
    assert (many.line, many.what) == (3, "too many fields: 4, where the header has 3")


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    (problem,) = refusal(written(tmp_path, "m_fixes.csv", content))
    assert problem.what == "empty; expected a header line with oid, iteration_id, plausible_fix"


def test_a_header_alone_is_a_warning_and_leaves_every_problem_unscored(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "oid\na\nb\n")
    read = outcomes.fixes([written(tmp_path, "m_fixes.csv", HEADER)], problems)
    assert read.tallies[0].tried == (0, 0)
    assert [problem.what for problem in read.problems] == ["a header without rows: every problem is unscored"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_blank_lines_and_byte_order_marks_do_not_matter(tmp_path: Path, ending: str, mark: str) -> None:
    lines = [
        "",
        "oid,iteration_id,plausible_fix,reply",
        "",
        f'a,1,true,"one{ending}{ending}two, ""three"""',
        "",
        "b,1,x,",
    ]
    path = written(tmp_path, "m_fixes.csv", mark + ending.join(lines))
    (problem,) = refusal(path)
    assert problem.line == 8
    path.write_bytes(path.read_bytes().replace(b"b,1,x", b"b,1,1"))
    (tally,) = outcomes.fixes([path]).tallies
    assert (tally.cases, tally.tried) == (("a", "b"), (1, 1))


def test_lines_are_counted_across_batches_and_pieces(tmp_path: Path) -> None:
    rows = [f'a,{number},true,"{"long " * 100}\n{number}"\n' for number in range(5000)]
    rows[4321] = 'a,4321,huh,"two\nlines"\n'
    path = written(tmp_path, "m_fixes.csv", "oid,iteration_id,plausible_fix,reply\n" + "".join(rows))
    assert path.stat().st_size > 2 << 20
    (problem,) = refusal(path)
    assert problem.line == 2 + 2 * 4321


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("seed", range(4))
def test_lines_are_counted_alike_with_quotes_and_without(tmp_path: Path, ending: str, seed: int) -> None:
    chance = random.Random(seed)
    text, bad, passed = f"oid,iteration_id,plausible_fix,reply{ending}", [], 0
    for block in range(12):
        quoted = chance.random() < 0.4
        for number in range(chance.randrange(4000)):
            outcome = chance.choice(["true", "false"]) if chance.random() < 0.9998 else "huh"
            if outcome == "huh":
                bad.append(1 + text.count(ending))
            passed += outcome == "true"
            reply = f'"x{ending}""y"",{ending}"' if quoted and chance.random() < 0.1 else "plain"
            text += f"a,{block}-{number},{outcome},{reply}{ending}{ending if chance.random() < 0.0001 else ''}"
    path = written(tmp_path, "m_fixes.csv", text.removesuffix(ending))
    assert path.stat().st_size > 3 * READ_CHUNK_BYTES
    if bad:
        (problem,) = refusal(path)
        assert problem.line == bad[0]
        assert all(str(line) in problem.what for line in bad[1:5])
    path.write_bytes(path.read_bytes().replace(b"huh", b"false"))
    (tally,) = outcomes.fixes([path]).tallies
    assert tally.passed == (passed,)


def test_a_field_may_be_megabytes_long_and_leaves_the_limit_of_others_alone(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    reply = "resource {}\n" * 400_000
    text = f'oid,iteration_id,plausible_fix,reply\na,1,true,"{reply}"\na,2,false,\n'
    (tally,) = outcomes.fixes([written(tmp_path, "m_fixes.csv", text)]).tallies
    assert tally.tried == (2,)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (b"a,2,\xff\n", "not UTF-8 text; save the file as UTF-8"),
        (b"a,2,tr\0ue\n", "a NUL byte; save the file as UTF-8 text"),
        (b'a,2,"true\n', "a quote is opened on this line and never closed"),
        (b'a,2,"tr"ue\n', "broken quoting (',' expected after '\"'); double a quote inside quotes"),
    ],
)
def test_a_file_that_breaks_off_is_an_error_with_its_line(tmp_path: Path, bad: bytes, what: str) -> None:
    path = written(tmp_path, "m_fixes.csv", HEADER.encode() + b'"a\n",1,true\n' + bad)
    (problem,) = refusal(path)
    assert (problem.line, problem.what) == (4, what)


def test_what_stands_before_broken_quoting_is_judged_too(tmp_path: Path) -> None:
    path = written(tmp_path, "m_fixes.csv", HEADER + 'a,1,true\na,1,false\nb,1,huh\nb,2,"')
    assert [problem.line for problem in refusal(path)] == [3, 4, 5]


def test_a_file_given_twice_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "m_fixes.csv", HEADER + "a,1,true\n")
    link = tmp_path / "other_fixes.csv"
    link.symlink_to(path)
    again, linked = refusal(path, path, link)
    assert str(again) == f"{path}: given twice"
    assert str(linked) == f"{link}: the same file as {path}"


def test_files_that_are_none_get_one_sentence_each_all_at_once(tmp_path: Path) -> None:
    broken = written(tmp_path, "broken_fixes.csv", "oid\n")
    cut = written(tmp_path, "cut_fixes.csv.gz", gzip.compress(HEADER.encode())[:-9])
    told = [str(problem) for problem in refusal(tmp_path, tmp_path / "none", broken, cut, Path("a\0b"))]
    assert told[0] == f"{tmp_path}: a folder; name the files in it"
    assert told[1] == f"{tmp_path / 'none'}: no such file"
    assert told[2].startswith(f'{broken}:1: no column "iteration_id"')
    assert told[3].startswith(f'{broken}:1: no column "plausible_fix"')
    assert told[4].startswith(f"{cut}: cannot be unpacked: ")
    assert told[5].startswith("a\\u0000b: cannot be read: ")


def test_a_name_cannot_reach_the_terminal_raw(tmp_path: Path) -> None:
    path = written(tmp_path, "m\x1b[2J_fixes.csv", "\x1b[31moid,iteration_id,plausible_fix\n")
    (problem,) = refusal(path)
    assert str(problem).isprintable()
    assert "\\u001b[31moid" in problem.what


def test_problems_listed_twice_count_once(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "filename,oid\nx,a\ny,b\nz,a\n")
    read = outcomes.fixes([written(tmp_path, "m_fixes.csv", HEADER + "a,1,1\n")], problems)
    assert read.tallies[0].cases == ("a", "b")
    assert read.problems == (Problem(str(problems), 4, '"a" is already on line 2; counted once', fatal=False),)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("filename\nx\n", 'no column "oid" (known: filename)'),
        ("oid\n", "lists no problems"),
        ("", "empty; expected a header line with oid"),
        ("oid,filename\n,x\na,y\n", "oid is empty"),
    ],
)
def test_a_problems_file_that_lists_none_is_an_error(tmp_path: Path, text: str, what: str) -> None:
    fixes = written(tmp_path, "m_fixes.csv", HEADER + "a,1,huh\n")
    first, *_, last = refusal(fixes, problems=written(tmp_path, "problems.csv", text))
    assert first.what == what
    assert last.where == str(fixes)


RICHER = "oid,specific_oid,iteration_id,plausible_fix\n"


def test_problems_that_share_an_oid_are_told_apart_by_specific_oid(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "oid\na\nb\nc\n")
    path = written(tmp_path, "m_fixes.csv", RICHER + "b,b1,1,1\na,a2,1,1\na,a1,1,0\na,a2,2,0\nz,z1,1,1\n")
    read = outcomes.fixes([path], problems)
    assert read.tallies[0].cases == ("a2", "a1", "b1", "c")
    assert read.tallies[0].tried == (2, 1, 1, 0)
    assert [problem.what for problem in read.problems] == [f'oid "z" is not in {problems}; ignored']


def test_a_problems_file_with_specific_oid_is_matched_by_it(tmp_path: Path) -> None:
    problems = written(tmp_path, "problems.csv", "oid,specific_oid\na,a1\nb,b1\na,a2\n")
    path = written(tmp_path, "m_fixes.csv", RICHER + "a,a2,1,1\na,a3,1,1\nb,,1,1\n")
    read = outcomes.fixes([path], problems)
    assert read.tallies[0].cases == ("a1", "b1", "a2")
    assert read.tallies[0].tried == (0, 1, 1)
    assert [problem.what for problem in read.problems] == [f'specific_oid "a3" is not in {problems}; ignored']


def test_a_file_without_specific_oid_joins_one_that_has_it(tmp_path: Path) -> None:
    plain = written(tmp_path, "plain_fixes.csv", HEADER + "a,1,1\nb,1,0\n")
    richer = written(tmp_path, "richer_fixes.csv", RICHER + "a,a1,1,1\nb,b1,1,1\n")
    read = outcomes.fixes([plain, richer])
    assert [tally.cases for tally in read.tallies] == [("a1", "b1")] * 2
    assert [tally.passed for tally in read.tallies] == [(1, 0), (1, 1)]


def test_an_oid_that_stands_for_several_problems_needs_the_specific_one(tmp_path: Path) -> None:
    plain = written(tmp_path, "plain_fixes.csv", HEADER + "a,1,1\n")
    richer = written(tmp_path, "richer_fixes.csv", RICHER + "a,a1,1,1\na,a2,1,1\n")
    (problem,) = refusal(plain, richer)
    assert str(problem) == f'{plain}:2: oid "a" means several problems, and no specific_oid says which'
