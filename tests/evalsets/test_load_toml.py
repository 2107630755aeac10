"""Eval sets in TOML, well-formed and hostile."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import msgspec
import pytest

from steelyard.analysis import scoring
from steelyard.errors import InputError, Problem
from steelyard.evalsets import RESERVED_RULE_NAMES, load
from steelyard.evalsets.schema import KeyPath
from steelyard.evalsets.starter import starter
from steelyard.evalsets.toml import TomlLineIndex
from steelyard.records import Case, Message, Rule

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADER = '[eval_set]\nid = "set"\nname = "Set"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "set.toml"


def case(file: Path, lines: str, header: str = HEADER) -> Case:
    file.write_text(f'{header}[[cases]]\nid = "a"\nname = "A"\n{lines}\n', "utf-8")
    (only,) = load([file]).cases
    return only


def wrong(*paths: Path | str) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        load(paths)
    return list(caught.value.problems)


def wrong_case(file: Path, lines: str) -> str:
    with pytest.raises(InputError) as caught:
        case(file, lines)
    return str(caught.value)


def test_every_field_of_the_format_is_read(file: Path) -> None:
    lines = """
        prompt = "p"
        description = "d"
        language = "go"
        tags = ["x", "y"]
        timeout_secs = 1.5
        max_tokens = 7
        dependencies = [{name = "serde", version = "1", features = ["derive"]}]
        [cases.expectations]
        should_compile = false
        should_pass_tests = false
        test_file = "t"
        expected_functions = ["f"]
        expected_types = ["T"]
        max_clippy_warnings = 3
    """
    loaded = case(file, lines)
    assert (loaded.prompt, loaded.language, loaded.tags, loaded.timeout_secs) == ("p", "go", ("x", "y"), 1.5)
    assert (loaded.max_tokens, loaded.dependencies[0].features) == (7, ("derive",))
    assert (loaded.expectations.should_compile, loaded.expectations.max_clippy_warnings) == (False, 3)
    assert (loaded.tests, loaded.kind) == ("t", "go")


def test_the_defaults_of_the_set_apply_to_its_cases(file: Path) -> None:
    header = HEADER + 'default_language = "python"\ndefault_timeout_secs = 5\n'
    loaded = case(file, 'prompt = "p"', header)
    assert (loaded.language, loaded.timeout_secs) == ("python", 5)
    assert case(file, 'prompt = "p"\ntimeout_secs = 9\nlanguage = "go"', header).timeout_secs == 9


def test_a_set_that_names_no_language_is_about_rust(file: Path) -> None:
    assert case(file, 'prompt = "p"').kind == "rust"


def test_a_case_with_a_target_is_about_text_even_in_such_a_set(file: Path) -> None:
    loaded = case(file, 'prompt = "p"\ntarget = "42"')
    assert (loaded.kind, loaded.language) == ("response", "")


def test_an_unknown_key_is_a_warning_with_file_line_and_way_out(file: Path) -> None:
    file.write_text(f'{HEADER}[[cases]]\nid = "a"\nname = "A"\nprompt = """\n\n"""\ntimeout_sec = 3\n')
    (warning,) = load([file]).problems
    assert (warning.where, warning.line, warning.fatal) == (str(file), 10, False)
    assert '"timeout_sec"' in warning.what
    assert 'did you mean "timeout_secs"?' in warning.what


def test_unknown_keys_are_warned_of_at_every_level(file: Path) -> None:
    file.write_text(
        f'extra = 1\n{HEADER}colour = 1\n[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\n'
        'dependencies = [{name = "n", version = "1", path = "x"}]\n[cases.expectations]\ntest_fil = "t"\n'
    )
    warnings = {warning.line: warning.what for warning in load([file]).problems}
    assert list(warnings) == [1, 5, 10, 12]
    assert '"dependencies[0].path"' in warnings[10]
    assert '"expectations.test_fil"' in warnings[12]


def test_a_verifier_that_is_no_name_is_a_problem_of_its_line(file: Path) -> None:
    file.write_text(f'{HEADER}[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\nverify = {{ kind = ["x"] }}\n')
    with pytest.raises(InputError) as refused:
        load([file])
    (problem,) = refused.value.problems
    assert problem.line == 8
    assert "verify.kind" in problem.what


@pytest.mark.parametrize(
    ("verify", "unread"),
    [
        ('kind = "python", build = "make", pairs = []', ["build"]),
        ('kind = "command", answer = "a.c", expect = { type = "json" }', ["expect"]),
        ('kind = "terraform", files = {}, run = "./a", tolerance = 0.1', ["run", "tolerance"]),
        ('kind = "response", style = "exact", syntax_only = false', ["syntax_only"]),
        ('expect = { type = "json" }, lint = "x"', ["lint"]),
        ('tests = "#[test] fn f() {}", entry_point = "f", stub = "fn f()", python_env = "env"', ["python_env"]),
        ('python = "checks.py:score", lint = "your function may read it"', []),
    ],
)
def test_a_key_that_the_case_s_own_verifier_does_not_read_is_warned_of_and_kept(
    file: Path, verify: str, unread: list[str]
) -> None:
    (file.parent / "checks.py").write_text("def score(reply): return True\n")
    file.write_text(f'{HEADER}[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\nverify = {{ {verify} }}\n')
    loaded = load([file])
    assert [problem.what.split(" (")[0] for problem in loaded.problems] == [
        f'unknown key "verify.{key}"' for key in unread
    ]
    stored = msgspec.to_builtins(loaded.cases[0].verify)
    assert all(key in stored or key == "syntax_only" for key in unread)


def test_all_wrong_fields_of_all_cases_are_reported_at_once_with_their_lines(file: Path) -> None:
    file.write_text(
        f'{HEADER}[[cases]]\nid = "a"\nprompt = 3\ntags = [1]\n[cases.expectations]\ntest_file = 1\n'
        '[[cases]]\nname = "B"\nprompt = "p"\ndependencies = [{name = 1}, {version = "2"}]\n'
    )
    assert [(problem.line, problem.what) for problem in wrong(file)] == [
        (6, 'case "a": prompt: expected text or a list, got a whole number'),
        (7, 'case "a": tags[0]: expected text, got a whole number'),
        (9, 'case "a": expectations.test_file: expected text, got a whole number'),
        (13, "case 2: dependencies[0].name: expected text, got a whole number"),
        (13, "case 2: dependencies[0].version is missing"),
        (13, "case 2: dependencies[1].name is missing"),
        (10, "case 2: id is missing"),
    ]


def test_broken_toml_is_an_error_with_its_line(file: Path) -> None:
    file.write_text(HEADER + "[[cases]]\nid = \n")
    (problem,) = wrong(file)
    assert (problem.where, problem.line) == (str(file), 5)
    assert "not TOML" in problem.what


def test_a_missing_header_is_an_error(file: Path) -> None:
    file.write_text('[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\n')
    assert "no [eval_set] table" in str(wrong(file)[0])


@pytest.mark.parametrize("text", ["", " \n\n", "# nothing\n", HEADER, "cases = 3\n" + HEADER, "cases = []\n" + HEADER])
def test_a_file_without_cases_is_an_error(file: Path, text: str) -> None:
    file.write_text(text)
    assert "no cases" in str(wrong(file)[-1])


@pytest.mark.parametrize("name", ["", "a" * 201, "a\\nb", "a\\u001b[31m", "a\\u202Eb"])
def test_an_id_that_is_empty_long_or_unprintable_is_refused(file: Path, name: str) -> None:
    file.write_text(f'{HEADER}[[cases]]\nid = "{name}"\nname = "A"\nprompt = "p"\n')
    (problem,) = wrong(file)
    assert "an id must have 1 to 200 characters" in problem.what
    assert problem.what.isprintable()


def test_an_id_may_hold_a_slash_and_be_200_long(file: Path) -> None:
    name = "HumanEval/" + "0" * 190
    file.write_text(f'{HEADER}[[cases]]\nid = "{name}"\nname = "A"\nprompt = "p"\n')
    assert load([file]).cases[0].id == name


def test_an_id_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    for name in "one", "two":
        (tmp_path / f"{name}.toml").write_text(f'{HEADER}[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\n')
    (problem,) = wrong(tmp_path)
    assert (problem.where, problem.line) == (str(tmp_path / "two.toml"), 5)
    assert f"{tmp_path / 'one.toml'}:5" in problem.what


def test_a_file_given_twice_is_read_once(file: Path) -> None:
    case(file, 'prompt = "p"')
    assert len(load([file, file.parent]).cases) == 1


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", '"1"'])
def test_a_time_limit_must_be_a_positive_number(file: Path, value: str) -> None:
    assert "timeout_secs" in wrong_case(file, f'prompt = "p"\ntimeout_secs = {value}')


def test_a_prompt_can_come_from_a_file_beside_the_set(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "prompts").mkdir()
    (file.parent / "prompts" / "x.md").write_text("Say {{ word }}.\n")
    monkeypatch.chdir(file.parent.parent)
    assert case(file, 'prompt = "file://prompts/x.md"').prompt == "Say {{ word }}.\n"
    assert case(file, 'prompt = "file://prompts/x.md"\nvars = {word = "hi"}').prompt == "Say hi.\n"


def test_a_prompt_file_must_be_a_regular_text_file(file: Path) -> None:
    (file.parent / "bytes").write_bytes(b"\xff")
    os.mkfifo(file.parent / "pipe")
    assert "No such file" in wrong_case(file, 'prompt = "file://none.md"')
    assert "not UTF-8" in wrong_case(file, 'prompt = "file://bytes"')
    assert "not a regular file" in wrong_case(file, 'prompt = "file://pipe"')
    assert "not a regular file" in wrong_case(file, 'prompt = "file://."')
    assert "set.toml:7: " in wrong_case(file, 'prompt = "file://none.md"')


def test_variables_are_filled_in_and_then_gone(file: Path) -> None:
    prompt = "{% for x in xs %}{{ x|upper }}{{ ', ' if not loop.last }}{% endfor %} of {{ loop }}"
    loaded = case(file, f'prompt = "{prompt}"\nvars = {{xs = ["a", "b"], loop = 2}}')
    assert (loaded.prompt, loaded.vars) == ("A, B of 2", {})


def test_every_message_of_a_conversation_is_filled_in(file: Path) -> None:
    lines = (
        'prompt = [{role = "system", content = "Be {{how}}."}, {role = "user", content = "Hi"}]\nvars = {how = "brief"}'
    )
    messages = (Message(role="system", content="Be brief."), Message(role="user", content="Hi"))
    assert case(file, lines).messages == messages


def test_braces_in_a_prompt_without_variables_are_only_text(file: Path) -> None:
    assert case(file, "prompt = 'f\"{{x}}\" {% nonsense'").prompt == 'f"{{x}}" {% nonsense'


@pytest.mark.parametrize(
    "template",
    [
        "{{ y }}",
        "{{ x.nothing }}",
        "{{ x.__class__ }}",
        "{{ x",
        "{% for a in x %}",
        "{{ x * 9999999999 }}",
        "{{ 9 ** 9 ** 9 ** 9 }}",
        "{{ range(9) }}",
        "{{ x.format(1) }}",
        "{{ x|center(9999999999) }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in x recursive %}{{ loop(x) }}{% endfor %}",
        "{% include '/etc/passwd' %}",
        "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
        "{{" + "(" * 10_000 + "x" + ")" * 10_000 + "}}",
        "{{ x }}" * 20_000,
        "{{ x" + " == x" * 200_000 + " }}",
        "{% for a in x %}{{ big }}{% endfor %}",
    ],
)
def test_a_template_that_is_undefined_broken_or_runs_away_is_an_error_with_its_line(file: Path, template: str) -> None:
    started = time.process_time()
    message = wrong_case(file, f"prompt = '''{template}'''\nvars = {{x = '{'x' * 200}', big = '{'x' * 100_000}'}}")
    assert "set.toml:7: " in message
    assert "prompt: " in message
    assert time.process_time() - started < 10


def test_a_check_function_is_found_without_being_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = file.parent / "checks.py"
    checks.write_text("raise SystemExit\ndef score(text): return True\n")
    monkeypatch.chdir("/")
    loaded = case(file, 'prompt = "p"\nverify = {python = "checks.py:score"}')
    assert loaded.verify.python == f"{checks}:score"
    assert (loaded.kind, loaded.language) == ("function", "")


def test_a_changed_check_is_a_changed_test(file: Path) -> None:
    digests = set()
    for first, second in (1, 1), (1, 2), (2, 1):
        (file.parent / "one.py").write_text(f"def score(text): return {first}\n")
        (file.parent / "two.py").write_text(f"def score(text): return {second}\n")
        lines = 'prompt = "p"\nverify = {python = "one.py:score"}\nexpectations = {custom_check = "two.py:score"}'
        loaded = case(file, lines)
        assert loaded.expectations.custom_check == f"{file.parent / 'two.py'}:score"
        digests.add(loaded.tests_digest)
    assert len(digests) == 3


def test_a_check_function_that_is_not_there_is_an_error(file: Path) -> None:
    (file.parent / "checks.py").write_text("def score(text): return True\n")
    (file.parent / "broken.py").write_text("def score(:\n")

    def message(reference: str) -> str:
        return wrong_case(file, f'prompt = "p"\nverify = {{python = "{reference}"}}')

    assert 'does not define "scor" (known: score; did you mean "score"?)' in message("checks.py:scor")
    assert 'write "checks.py:score"' in message("checks.py")
    assert "No such file" in message("none.py:score")
    assert "is not Python" in message("broken.py:score")


def test_an_unknown_verifier_is_an_error_with_a_way_out(file: Path) -> None:
    message = wrong_case(file, 'prompt = "p"\n[cases.verify]\nkind = "pyton"')
    assert f'{file}:9: case "a": verify.kind: unknown verifier "pyton"' in message
    assert 'did you mean "python"?' in message


def test_a_folder_means_the_toml_files_below_it_in_order(tmp_path: Path) -> None:
    for name in "b", "a", "sub/c":
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.toml").write_text(f'{HEADER}[[cases]]\nid = "{name}"\nname = "A"\nprompt = "p"\n')
    (tmp_path / "a.jsonl").write_text("not read")
    (tmp_path / "loop").symlink_to(tmp_path)
    loaded = load([tmp_path])
    assert [one.id for one in loaded.cases] == ["a", "b", "sub/c"]
    assert [one.path for one in loaded.files] == [str(tmp_path / f"{name}.toml") for name in ("a", "b", "sub/c")]


def test_paths_that_cannot_be_read_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "set.docx").write_text("")
    os.mkfifo(tmp_path / "pipe.toml")
    names = "none.toml", "empty", "round", "nul\0.toml", "set.docx", "pipe.toml"
    problems = wrong(*(f"{tmp_path}/{name}" for name in names))
    whats = "No such file", "no eval sets", "Too many levels", "embedded null", "unknown kind of file", "regular file"
    assert len(problems) == len(whats)
    assert all(
        what in problem.what and str(problem).isprintable() for what, problem in zip(whats, problems, strict=True)
    )


def test_no_path_at_all_is_an_error() -> None:
    assert "no eval set was given" in str(wrong()[0])


def test_the_digest_of_a_file_follows_its_content(file: Path) -> None:
    digests = []
    for prompt in "p", "q", "p":
        case(file, f'prompt = "{prompt}"')
        digests.append(load([file]).files[0].digest)
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"a = 1\0",
        b"a = " + b"[" * 100_000,
        b"a = " + b"{b = " * 100_000,
        b".".join([b"a"] * 100_000) + b" = 1",
        b"[" + b".".join([b"a"] * 100_000) + b"]",
        b"x = {" + b".".join([b'"a"'] * 100_000) + b" = 1}",
        b"a = " + b"9" * 10_000,
        b'a = "' + b'\\"' * 1_000_000,
        b'a = """' + b'"' * 1_000_000,
        b"'''" * 300_001,
        b"[" * 1_000_000,
        b"=" * 1_000_000,
    ],
)
def test_a_hostile_file_is_refused_soon_and_in_one_sentence(file: Path, text: bytes) -> None:
    file.write_bytes(HEADER.encode() + text)
    started = time.process_time()
    problems = wrong(file)
    assert time.process_time() - started < 10
    assert len(problems) == 1
    assert len(str(problems[0])) < 500


def test_deep_metadata_is_refused_at_once_rather_than_when_a_run_is_stored(file: Path) -> None:
    nested = "{a = " * 300 + "1" + "}" * 300
    assert "metadata: nested more than 100 levels deep" in wrong_case(file, f'prompt = "p"\nmetadata = {nested}')


def test_a_very_long_file_is_read(file: Path) -> None:
    tables = (f'[[cases]]\nid = "{number}"\nname = "N"\nprompt = "p"\n' for number in range(25_000))
    file.write_text(HEADER + "".join(tables))
    assert len(load([file]).cases) == 25_000


def test_the_hundredth_problem_is_the_last_and_what_was_not_read_is_said(file: Path) -> None:
    file.write_text(HEADER + "[[cases]]\n" * 1000)
    problems = wrong(file, EXAMPLES / "python-basics.toml")
    assert len(problems) == 101
    assert "stopped after 100 problems" in problems[-1].what
    assert "1 further files" in problems[-1].what


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(file: Path) -> None:
    text = HEADER + '[[cases]]\nid = "a"\nname = "A"\nprompt = """\np\n"""\ntypo = 1\n'
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    loaded = load([file])
    assert (loaded.cases[0].prompt, loaded.problems[0].line) == ("p\n", 10)


def test_lines_are_found_through_strings_comments_and_nested_tables() -> None:
    text = '''# [[cases]]
a."b.c" = """ \\""" [[cases]]
x = 1 """ # ]
[[cases]] # [[cases]]
one = [ # ]
  "]", \'\'\'
  ]\'\'\', { k = 1 },
]
[cases.sub]
two.three = \'\'\'it\'s\'\'\'
[[cases.items]]
[[cases.items]]
four = 4
[[ cases ]]
'five' = 5
'''
    tomllib.loads(text)
    lines = TomlLineIndex()
    lines.scan(text)
    expected: dict[KeyPath, int] = {
        ("a", "b.c"): 2,
        ("cases", 0): 4,
        ("cases", 0, "one"): 5,
        ("cases", 0, "sub"): 9,
        ("cases", 0, "sub", "two", "three"): 10,
        ("cases", 0, "items", 0): 11,
        ("cases", 0, "items", 1, "four"): 13,
        ("cases", 1, "five"): 15,
        ("cases", 1, "unheard", "of"): 14,
    }
    assert {keys: lines.of(keys) for keys in expected} == expected


def test_the_starter_loads_without_warnings(file: Path) -> None:
    file.write_text(starter())
    loaded = load([file])
    assert (len(loaded.cases), loaded.problems) == (2, ())
    assert all(one.reference and one.counterexample and one.tests for one in loaded.cases)


@pytest.mark.parametrize("name", ["python-basics", "rust-basics"])
def test_the_examples_load_without_warnings(name: str) -> None:
    loaded = load([EXAMPLES / f"{name}.toml"])
    assert len(loaded.cases) >= 5
    assert loaded.problems == ()
    assert {one.kind for one in loaded.cases} == {name.partition("-")[0]}


def test_a_virtual_environment_lies_where_the_eval_set_says(tmp_path: Path) -> None:
    path = tmp_path / "set.toml"
    path.write_text(
        '[eval_set]\nid = "s"\nname = "S"\n[[cases]]\nid = "a"\nname = "A"\nlanguage = "python"\nprompt = "?"\n'
        '[cases.verify]\npython_env = "env"\ntests = "assert f() == 1"\n'
    )
    (case,) = load([path]).cases
    assert case.verify.python_env == str(tmp_path / "env")


RULES = """
[[rules]]
name = "strict"
correct = 1

[[rules]]
name = "tests-first"
compile = 1
tests = 3
"""


def with_rules(file: Path, rules: str, header: str = HEADER) -> Path:
    file.write_text(f'{header}{rules}\n[[cases]]\nid = "{file.stem}"\nname = "A"\nprompt = "p"\n', "utf-8")
    return file


def test_a_set_brings_rules_of_its_own_and_may_be_scored_by_one(file: Path) -> None:
    loaded = load([with_rules(file, RULES, f'{HEADER}rule = "tests-first"\n')])
    assert loaded.rules == (Rule(name="strict", correct=1), Rule(name="tests-first", compile=1, tests=3))
    assert loaded.rule == "tests-first"
    assert load([with_rules(file, "")]).rule == ""


@pytest.mark.parametrize(
    ("rules", "line", "what"),
    [
        ('[[rules]]\nname = "mine"\n', 4, 'rule "mine": weights are numbers from 0 up, and one must be above 0'),
        ('[[rules]]\nname = "mine"\ntests = -1\n', 6, 'rule "mine": tests: expected a number >= 0'),
        ('[[rules]]\nname = "mine"\ntests = inf\n', 6, 'rule "mine": tests: expected a number <= 1000000000000'),
        ('[[rules]]\nname = "mine"\ntests = nan\n', 6, 'rule "mine": tests: expected a number'),
        ('[[rules]]\nname = "mine"\ntests = "much"\n', 6, 'rule "mine": tests: expected a number, got text'),
        ("[[rules]]\ntests = 1\n", 4, "rule 1: name is missing"),
        ('[[rules]]\nname = ""\ntests = 1\n', 4, "1 to 80 characters"),
        ('[[rules]]\nname = "code"\ntests = 1\n', 0, 'rule "code" is built in; give yours another name'),
        ("[rules]\ntests = 1\n", 0, "rule 1: name is missing"),
    ],
)
def test_a_rule_that_cannot_score_is_an_error_with_its_line(file: Path, rules: str, line: int, what: str) -> None:
    (problem,) = wrong(with_rules(file, rules))
    assert problem.line == line or line == 0
    assert what in problem.what


def test_an_unknown_weight_is_warned_of_with_the_nearest_one(file: Path) -> None:
    (problem,) = load([with_rules(file, '[[rules]]\nname = "mine"\ntests = 1\nlimt = 2\n')]).problems
    assert 'did you mean "lint"?' in problem.what


def test_a_set_cannot_be_scored_by_a_rule_that_is_nowhere(file: Path) -> None:
    (problem,) = wrong(with_rules(file, RULES, f'{HEADER}rule = "strikt"\n'))
    assert 'eval_set.rule: unknown rule "strikt"' in problem.what
    assert 'did you mean "strict"?' in problem.what


def test_sets_must_not_contradict_each_other_about_rules(tmp_path: Path) -> None:
    first = with_rules(tmp_path / "a.toml", RULES, f'{HEADER}rule = "strict"\n')
    second = with_rules(tmp_path / "b.toml", RULES.replace("tests = 3", "tests = 4"), f'{HEADER}rule = "code"\n')
    other, wanted = wrong(first, second)
    assert other.what == f'rule "tests-first" is defined differently in {first}; rename one of them'
    assert wanted.what == f'asks for rule "code", but {first} wants "strict"; run them separately'


def test_no_set_can_take_the_name_of_a_built_in_rule() -> None:
    assert set(RESERVED_RULE_NAMES) == set(scoring.SCORING_RULES)


def test_a_settings_file_beside_eval_sets_is_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[eval_set]\nid = "s"\nname = "S"\n\n[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\ntarget = "t"\n'
    )
    (tmp_path / "steelyard.toml").write_text('models = ["openai/gpt-5"]\n')
    assert [case.id for case in load([tmp_path]).cases] == ["a"]


def test_an_experiment_beside_eval_sets_is_none_of_them_and_is_told_from_one(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[eval_set]\nid = "s"\nname = "S"\n\n[[cases]]\nid = "a"\nname = "A"\nprompt = "p"\ntarget = "t"\n'
    )
    experiment = tmp_path / "b.toml"
    experiment.write_text('[experiment]\nid = "x"\ncases = ["a.toml"]\n[[tiers]]\nname = "T0"\n')
    assert [case.id for case in load([tmp_path]).cases] == ["a"]
    with pytest.raises(InputError) as caught:
        load([experiment])
    assert str(caught.value).endswith(f"an experiment, not an eval set; run it with: steelyard tiers {experiment}")


def test_what_a_model_gets_to_see_from_elsewhere_is_told(tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    for folder in (theirs, mine, theirs / "space"):
        folder.mkdir()
    (mine / "key").write_text("secret")
    (theirs / "own.md").write_text("own")
    (theirs / "linked.md").symlink_to(mine / "key")
    (theirs / "elsewhere").symlink_to(mine)
    (theirs / "space" / "x").write_text("x")

    def told(lines: str) -> list[str]:
        file = theirs / "set.toml"
        file.write_text(f'{HEADER}[[cases]]\nid = "a"\nname = "A"\n{lines}\n')
        return [problem.what for problem in load([file, EXAMPLES / "python-basics.toml"]).problems]

    own = 'prompt = "file://own.md"\ntarget = "x"', 'prompt = "x"\nworkspace = "space"\nverify = { test = "true" }'
    assert [told(lines) for lines in own] == [[], []]
    for prompt in ("linked.md", "../mine/key", f"{mine}/key"):
        (what,) = told(f'prompt = "file://{prompt}"\ntarget = "x"')
        assert f'reads "{mine}/key", which is outside' in what
    for workspace in ("../mine", "elsewhere"):
        (what,) = told(f'prompt = "x"\nworkspace = "{workspace}"\nverify = {{ test = "true" }}')
        assert f'reads "{mine}", which is outside' in what
