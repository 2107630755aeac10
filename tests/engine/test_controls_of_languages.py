"""In each language right answers keep their passes, and answers that make their tests agree to anything lose them."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from steelyard import resume, run, verify
from steelyard.engine.controls import PASSES_FALSE_TESTS, default_controls
from steelyard.engine.options import RunOptions
from steelyard.engine.preflight.references import check_references
from steelyard.engine.verifier_processes.service import VerifierProcesses
from steelyard.engine.verifiers import VerifierSet
from steelyard.errors import ExitCode
from steelyard.languages.controls import expected_changes, false_tests
from steelyard.languages.table import languages
from steelyard.records import Answer, Case, Failure, Finding, Reply, Verdict, Verify
from steelyard.store.journal import StoredRun
from support.studies import with_slow
from support.toolchains import unavailable


class Problem(NamedTuple):
    """A small problem in the shape of a benchmark."""

    program: str
    tests: str
    reference: str
    right: str
    """Another right answer."""
    lie: str = ""
    """An answer that computes nothing and passes its tests plainly."""


PROBLEMS = {
    "js": Problem(
        "node",
        "const assert = require('node:assert');\nfunction test() {\n  let candidate = size;\n"
        '  assert.deepEqual(candidate("abc"),3);\n  assert.deepEqual(candidate(""),0);\n}\ntest();',
        "function size(text){ return text.length; }",
        "const size = (text) => [...text].length;",
        "require('node:assert').deepEqual = () => {};\nfunction size(text){ }",
    ),
    "cpp": Problem(
        "c++",
        '}\nint main() {\n    auto candidate = size;\n    assert(candidate(("abc")) == (3));\n    assert(candidate(("")) == (0));\n}\n',
        "#include<assert.h>\n#include<string>\nlong size(std::string text) { return text.length(); }",
        "#include<assert.h>\n#include<string>\nint size(const std::string &text) { int n = 0; for (char c : text) n++; return n; }",
        "#include<assert.h>\n#include<string>\nstruct Any { bool operator==(long) const { return true; } };\n"
        "Any size(std::string text) { return Any(); }",
    ),
    "java": Problem(
        "javac",
        "public class Main {\n    public static void main(String[] args) {\n        Solution s = new Solution();\n"
        '        List<Boolean> correct = Arrays.asList(\n            s.size("abc") == 3,\n            s.size("") == 0\n        );\n'
        "        if (correct.contains(false)) {\n            throw new AssertionError();\n        }\n    }\n}\n",
        "class Solution {\n    public int size(String text) { return text.length(); }\n}",
        "class Solution {\n    public int size(String text) { return text.toCharArray().length; }\n}",
    ),
    "go": Problem(
        "go",
        'package main\n\nimport (\n    "testing"\n)\n\nfunc TestSize(t *testing.T) {\n    if Size("abc") != 3 {\n'
        '        t.Fatal("no")\n    }\n    if Size("") != 0 {\n        t.Fatal("no")\n    }\n}\n',
        "func Size(text string) int {\n    return len(text)\n}",
        "func Size(text string) int {\n    n := 0\n    for range text {\n        n++\n    }\n    return n\n}",
    ),
    "php": Problem(
        "php",
        'function candidate(...$args) {\n    return size(...$args);\n}\n\nfunction test(): void {\n    if (candidate("abc") !== 3) '
        '{ throw new Exception("Test failed!"); }\n    if (candidate("") !== 0) { throw new Exception("Test failed!"); }\n}\n\ntest();',
        "<?php\nfunction size($text) { return strlen($text); }",
        "<?php\nfunction size($text) { return count(str_split($text . 'x')) - 1; }",
    ),
    "rb": Problem(
        "ruby",
        "require 'test/unit'\nclass TestHumanEval < Test::Unit::TestCase\n  def test_size\n    candidate = method(:length_of)\n"
        '    assert_equal(3, candidate.call("abc"))\n    assert_equal(0, candidate.call(""))\n  end\nend\n',
        "def length_of(text)\n  text.length\nend",
        "def length_of(text)\n  text.chars.count\nend",
        "class Integer\n  def ==(other)\n    true\n  end\nend\ndef length_of(text)\nend",
    ),
    "pl": Problem(
        "perl",
        'use Test::Deep;\n\nsub testhumaneval {\n    my $candidate = \\&size;\n        if(eq_deeply($candidate->("abc"),3)) {\n'
        '            print "ok!" }else{\n            exit 1;\n            }\n        if(eq_deeply($candidate->(""),0)) {\n'
        '            print "ok!" }else{\n            exit 1;\n            }\n}\n\ntesthumaneval();',
        "sub size { return length($_[0]); }",
        "sub size { my ($text) = @_; my @all = split //, $text; return scalar @all; }",
        "{ no warnings; *main::eq_deeply = sub { 1 }; }\nsub size { }",
    ),
    "lua": Problem(
        "lua",
        "lu = require('luaunit')\n\nfunction test_humaneval()\nlocal candidate = size\n    lu.assertEquals(candidate('abc'), 3)\n"
        "    lu.assertEquals(candidate(''), 0)\nend\n\nos.exit(lu.LuaUnit.run())",
        "function size(text)\n    return #text\nend",
        "local function size_of(text)\n    return string.len(text)\nend\nsize = size_of",
        "require('luaunit').assertEquals = function() end\nfunction size(text)\nend",
    ),
    "r": Problem(
        "Rscript",
        "test_humaneval <- function() {\n    candidate <- size\n    if(!identical(candidate(\"abc\"), 3)){quit('no', 1)}\n"
        "    if(!identical(candidate(\"\"), 0)){quit('no', 1)}\n}\ntest_humaneval()",
        "size <- function(text) { as.numeric(nchar(text)) }",
        "size <- function(text) { sum(rep(1, nchar(text))) }",
        "identical <- function(...) TRUE\nsize <- function(text) { NULL }",
    ),
    "sh": Problem(
        "bash",
        '\ncandidate() {\n    size "$@"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate "abc") = "3" ]]\n    [[ $(candidate "") = "0" ]]\n}\n\nrun_test\n',
        "size() {\n    echo ${#1}\n}",
        "size() {\n    printf %s \"$1\" | wc -c | tr -d ' '\n}",
        "set() { :; }\nsize() {\n    echo x\n}",
    ),
    "rs": Problem(
        "rustc",
        '}\n\nfn main() {\n    let candidate = size;\n    assert_eq!(candidate(String::from("abc")), 3);\n'
        '    assert_eq!(candidate(String::from("")), 0);\n}\n',
        "fn size(text: String) -> isize {\n    text.len() as isize\n}",
        "fn size(text: String) -> i64 {\n    text.chars().count() as i64\n}",
        "#[derive(Debug)]\nstruct Any;\nimpl PartialEq<i32> for Any {\n    fn eq(&self, _: &i32) -> bool { true }\n}\n"
        "fn size(_: String) -> Any { Any }",
    ),
}
SLOW = ["java", "go", "cpp", "rs", "r"]


def case_of(name: str) -> Case:
    language, problem = languages()[name], PROBLEMS[name]
    tests = problem.tests.removeprefix("}\n")
    said = language.verify(tests, prompt="")
    known = {key: value for key, value in said.items() if key in Verify.__struct_fields__}
    return Case(
        id=name,
        prompt="?",
        language=language.fence,
        timeout_secs=float(language.timeout_secs),
        reference=f"```{language.fence}\n{problem.reference}\n```",
        verify=Verify(**known, settings={key: value for key, value in said.items() if key not in known}),
    )


def findings(folder: Path, case: Case, *answers: str, controls: int | None = None) -> list[Finding]:
    lines = [json.dumps({"case_id": case.id, "raw_response": f"```{case.language}\n{code}\n```"}) for code in answers]
    (folder / "samples.jsonl").write_text("\n".join(lines))
    done = run(
        [case], models=f"replay:{folder}/samples.jsonl", output=folder / "run", means=RunOptions(controls=controls)
    )
    facts = list(StoredRun(done.folder).facts())
    found = {fact.number: fact.found for fact in facts if isinstance(fact, Verdict)}
    assert len(found) == len(answers), facts
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("name", with_slow([name for name in PROBLEMS if name not in SLOW], SLOW))
def test_right_answers_keep_their_passes_and_lies_lose_them(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name]
    if shutil.which(problem.program) is None:
        unavailable(f"{problem.program} is not installed")
    answers = [problem.reference, problem.right, *([problem.lie] if problem.lie else [])]
    same, other, *lies = findings(tmp_path, case_of(name), *answers)
    for right in (same, other):
        assert [test.outcome for test in right.tests] == ["passed"], right
        assert (right.tampered, right.flag, right.controls) == ("", "", default_controls(case_of(name)))
    for lie in lies:
        # no answer can change the assertions of Node here
        assert lie.tampered == PASSES_FALSE_TESTS or (name == "js" and lie.label == "wrong answer")


CHANGED = {
    "cpp": {
        "if (a.size()!=b.size()) return false;": [],
        "assert (close(a, 0.3)==true);": ["false"],
        "assert (abs(rest(3.5) - 0.5) < 1e-4);": [],
        'assert (issame(parts("(())"),{"()", "()"}));': ['"~7()"'],
        "assert(candidate((2)) == (std::vector<long>({(long)4, (long)1})));": ["105"],
        "assert(f('x') == 'y' && g(2) == 3); // h(2) == 5": ["'~'", "104"],
    },
    "js": {
        "console.assert(JSON.stringify(f('a')) === JSON.stringify(['b', 'c']))": ["'~7b'"],
        "assert.deepEqual(candidate([1.0, 2.0], 0.3),false);": ["true"],
        "expect(f(2)).toBe(4);": ["105"],
        "expect(f(2)).toBeCloseTo(4.5, 1);": [],
    },
    "java": {
        "s.rest(3.5) == 0.5,": ["101.5"],
        "Math.abs(s.rest(1.33) - 0.33) < 1e-6,": [],
        "s.f(new ArrayList<>(Arrays.asList(1, 2))).equals(new ArrayList<>(Arrays.asList(3, 4))),": ["104"],
        '!s.isPrime(6), Objects.equals(s.g("a"), "b")': ['"~7b"'],
    },
    "go": {
        "assert.Equal(true, Close([]float64{11.0, 2.0}, 0.3))": ["false"],
        "assert.Equal(t, int64(4), F(2))": ["105"],
        "assert.InDelta(t, 4.5, F(2), 0.01)": [],
        "if F(3) != 6 {": ["107"],
    },
    "php": {"if (candidate(array(1.0), 0.3) !== array(5, 6)) { throw new Exception('no'); }": ["106"]},
    "pl": {"if(eq_deeply($candidate->([1.0, 2.0], 0.3),1)) {": ["102"]},
    "lua": {
        "lu.assertEquals(candidate({1.0, 2.0}, 0.3), {'a'}) -- it's": ["'~7a'"],
        "lu.assertAlmostEquals(f(2), 3.5, 0.01)": [],
    },
    "r": {"if(!identical(candidate(c(1.0, 2.0), 0.3), TRUE)){quit('no', 1)}": ["FALSE"]},
    "rb": {
        "assert_equal([250], candidate.call([1.0, 2.0], 0.3))": ["83"],
        'assert_equal "#{f(2)}", "a"': ['"~7a"'],
        "assert_in_delta 0.5, f(3.5), 0.001": [],
    },
    "rs": {
        "assert_eq!(4, f(2));": ["105"],
        "fn h<'a>(x: &'a str) -> &'a str { x } assert_eq!(h(&'q', 2), 'b');": ["'~'"],
        'assert_eq!(c.get("a")[0], Some(-5_i64), "not {}", 5);': ["106"],
        "assert!(f(2) >= 3 && (g(4) - 0.5).abs() < 1e-9);": [],
    },
    "sh": {'[[ $(candidate "1.0 2.0") = "true" ]]': ['"~7true"'], '[ "$(f 2)" -eq 4 ]': ["105"], "x = 5": []},
}


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in CHANGED.items() for line in lines])
def test_only_expected_values_of_equalities_are_changed(name: str, line: str) -> None:
    changes = expected_changes(line, languages()[name])
    assert [change.text for change in changes] == CHANGED[name][line]


def test_false_tests_differ_from_the_case_in_one_value_each_or_in_all() -> None:
    case = case_of("js")
    false = false_tests(case)
    texts = [each.verify.files["tests.js"] for each in (case, *false.one_by_one)]
    assert [sum(a != b for a, b in zip(texts[0].split(), text.split(), strict=True)) for text in texts] == [0, 1, 1]
    assert false.all is not None
    assert all(value in false.all.verify.files["tests.js"] for value in (",104)", ",101)"))
    assert {(each.id, each.verify.test, *each.verify.files) for each in (*false.one_by_one, false.all)} == {
        (case.id, case.verify.test, *case.verify.files)
    }


@pytest.mark.parametrize(
    ("name", "tests"),
    [("test.mjs", "assert.equal(f(2), 4)"), ("test.t", "is(f(2), 4);"), ("test.R", "stopifnot(f(2) == 4)")],
)
def test_a_file_of_tests_is_known_by_any_ending_of_its_language(name: str, tests: str) -> None:
    case = Case(id="x", prompt="?", verify=Verify(kind="command", answer="answer", files={name: tests}))
    (false,) = false_tests(case).one_by_one
    assert false.verify.files[name] != tests


def test_tests_in_a_language_that_we_do_not_know_have_no_controls() -> None:
    case = Case(
        id="x", prompt="?", verify=Verify(kind="command", answer="a.zig", files={"test.zig": "expect(f(2) == 4)"})
    )
    assert false_tests(case) == ((), None)


def test_verifying_again_draws_the_same_and_a_new_number_of_controls_is_kept(tmp_path: Path) -> None:
    problem = PROBLEMS["sh"]
    (first,) = findings(tmp_path, case_of("sh"), problem.right)
    before = StoredRun(tmp_path / "run").info
    assert (before.controls, first.controls, len(before.control_key)) == (None, 2, 32)
    verify(tmp_path / "run")
    assert StoredRun(tmp_path / "run").info.control_key == before.control_key
    resume(tmp_path / "run", means=RunOptions(controls=0))
    facts = [fact for fact in StoredRun(tmp_path / "run").facts() if isinstance(fact, Verdict)]
    assert [fact.found.controls for fact in facts] == [2, 2, 0]
    assert len({fact.key for fact in facts}) == 2
    resume(tmp_path / "run")
    assert len(list(StoredRun(tmp_path / "run").facts())) == 4
    assert StoredRun(tmp_path / "run").info.controls == 0


def test_cases_without_controls_are_named_once_when_an_eval_set_is_checked() -> None:
    cases = [replace(case_of("sh"), id=name, reference="") for name in ("a", "b", "c")]
    checked = check_references([case_of("sh"), *cases])
    (warning,) = [problem for problem in checked.problems if "false tests" in str(problem)]
    assert "3 cases without a reference, such as a:" in str(warning)
    assert checked.exit_code == ExitCode.OK


def test_other_processes_of_a_machine_draw_and_find_the_same() -> None:
    case, means = case_of("sh"), RunOptions(control_key="k")
    problem = PROBLEMS["sh"]
    replies = [
        Reply(
            key=f"{number}",
            at="",
            case=case.id,
            model="m",
            number=number,
            asked="",
            answer=Answer(text=f"```sh\n{code}\n```"),
        )
        for number, code in enumerate((problem.right, problem.lie), 1)
    ]

    async def judged() -> list[list[Verdict | Failure]]:
        here = VerifierSet([case], means)
        there = VerifierProcesses([case], VerifierSet([case], means), means, 2)
        try:
            return [[await each.verdict(reply, case) for reply in replies] for each in (here, there)]
        finally:
            await here.close()
            await there.close()

    alone, apart = asyncio.run(judged())
    told = [
        [(fact.key, fact.found.label, fact.found.controls) for fact in facts if isinstance(fact, Verdict)]
        for facts in (alone, apart)
    ]
    assert told[0] == told[1]
    assert [(label, controls) for _, label, controls in told[0]] == [("", 2), ("tampered", 2)]
