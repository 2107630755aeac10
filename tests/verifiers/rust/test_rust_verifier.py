"""Rust answers are compiled, linted and tested, and what is said of them is about their own lines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard import evalsets
from steelyard.analysis.scoring import SCORING_RULES, is_correct, score
from steelyard.engine.preflight.references import check_references
from steelyard.errors import VerifierError
from steelyard.records import Answer, Case, Dependency, Expectations, Finding, Verify
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.verifiers.rust import case_tests, crate, libraries
from steelyard.verifiers.rust import source as rust_source
from steelyard.verifiers.rust.linker import Linker
from steelyard.verifiers.rust.syntax import rust_syntax_problem
from steelyard.verifiers.rust.toolchain import toolchain
from steelyard.verifiers.rust.verifier import RustVerifier
from support.studies import with_slow
from support.toolchains import needs

pytestmark = needs("rustc")

EXAMPLES = Path(__file__).parents[3] / "examples"
ADD = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up() {
        assert_eq!(add(1, 2), 3);
    }
}
"""
RIGHT = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"


def case(tests: str = ADD, *, dependencies: tuple[Dependency, ...] = (), **expected: Any) -> Case:
    return Case(
        id="add",
        prompt="add",
        language="rust",
        timeout_secs=20,
        dependencies=dependencies,
        expectations=Expectations(test_file=tests, **expected),
    )


def judge_all(pairs: list[tuple[Case, str]]) -> list[Finding]:
    async def verify() -> list[Finding]:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        rust = RustVerifier(sandbox)
        try:
            texts = [(of, f"Here you are:\n\n```rust\n{code}```\n") for of, code in pairs]
            return await asyncio.gather(*(rust.verify(of, Answer(text=text)) for of, text in texts))
        finally:
            await sandbox.close()

    return asyncio.run(verify())


def judge(code: str, of: Case | None = None) -> Finding:
    return judge_all([(of or case(), code)])[0]


def outcomes(finding: Finding) -> dict[str, str]:
    return {test.name: test.outcome for test in finding.tests}


# ---- verdicts


def test_references_pass_and_counterexamples_fail() -> None:
    # the page on Rust validates all of them
    cases = evalsets.load([EXAMPLES / "rust-basics.toml"]).cases[::4]
    claims = [(each, text) for each in cases for text in (each.reference, each.counterexample)]
    for (each, text), finding in zip(claims, judge_all(claims), strict=True):
        assert is_correct(each, finding) == (text == each.reference), (each.id, finding)
        assert finding.warnings is not None


def test_a_right_answer_is_found_to_be_right_in_every_respect() -> None:
    finding = judge(RIGHT, case(expected_functions=("add",), max_clippy_warnings=0))
    assert finding.compiled
    assert outcomes(finding) == {"tests::adds_up": "passed"}
    assert (finding.warnings, finding.missing, finding.label, finding.trust) == (0, (), "", "in-process")
    assert score(case(), finding, SCORING_RULES["code"]) == 1


def test_a_reply_without_code_is_told_from_wrong_code() -> None:
    async def verify() -> Finding:
        return await RustVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).verify(
            case(), Answer(text="I would rather not.")
        )

    assert asyncio.run(verify()).label == "no code"


def test_a_failed_assertion_says_what_came_instead_and_no_panic_of_the_answer_looks_like_one() -> None:
    bodies = ("a - b", 'panic!("assertion `left == right` failed")', "assert!(a > b); a + b", 'panic!("Error: 3")')
    finding, *panics = judge_all([(case(), f"pub fn add(a: i32, b: i32) -> i32 {{ {body} }}") for body in bodies])
    assert [each.label for each in panics] == ["exception"] * 3
    assert [each.tests[0].cause for each in (finding, *panics)] == ["comparison", *["exception"] * 3]
    assert finding.label == "wrong answer"
    assert finding.reason.startswith("tests::adds_up: assertion `left == right` failed")
    assert "left: -1" in finding.reason
    assert "right: 3" in finding.tests[0].message


def test_where_nothing_should_compile_an_answer_that_does_is_wrong() -> None:
    of = case("", should_compile=False)
    compiles, not_compiles = judge_all([(of, RIGHT), (of, 'fn f() -> i32 { "" }')])
    assert not is_correct(of, compiles)
    assert is_correct(of, not_compiles)


def test_what_has_no_tests_is_compiled_as_it_would_be_without_a_linter() -> None:
    of = case(should_pass_tests=False)
    code = 'pub fn f() -> i32 { 3 }\n#[cfg(not(clippy))]\ncompile_error!("only for the linter");'
    hidden, plain = judge(code, of), judge("pub fn f() -> i32 { return 3; }", of)
    assert (hidden.compiled, hidden.reason) == (False, "only for the linter")
    assert (plain.compiled, plain.warnings) == (True, 1)


def test_where_tests_need_not_pass_they_are_not_run() -> None:
    of = case(should_pass_tests=False)
    finding = judge("pub fn add(a: i32, b: i32) -> i32 { a - b }", of)
    assert finding.tests == ()
    assert is_correct(of, finding)


def test_an_answer_that_does_not_fit_its_tests_has_compiled_all_the_same() -> None:
    finding = judge("pub fn add(a: i32) -> i32 { a }")
    assert finding.compiled
    assert outcomes(finding) == {"tests::adds_up": "failed"}
    assert finding.label == "does not fit the tests"
    assert finding.diagnostics[0].code == "E0061"


def test_what_an_answer_prints_is_kept_but_bounded() -> None:
    talkative = 'pub fn add(a: i32, b: i32) -> i32 { println!("adding"); a + b }'
    flooding = 'pub fn add(a: i32, b: i32) -> i32 { for _ in 0..100_000 { println!("{:100}", 1); } a + b }'
    little, much = judge_all([(case(), talkative), (case(), flooding)])
    assert little.output == "adding\n"
    assert len(much.output) < 1 << 17
    assert is_correct(case(), much)


# ---- what the compiler and the linter say


def test_a_diagnostic_carries_code_span_and_text() -> None:
    finding = judge('pub fn add(a: i32, b: i32) -> i32 {\n    let sum: i32 = "x";\n    a + b + sum\n}\n')
    assert finding.label == "does not compile"
    (error,) = finding.diagnostics
    assert (error.level, error.code, error.message) == ("error", "E0308", "mismatched types")
    (span,) = error.spans
    assert (span.file, span.line_start, span.line_end, span.text) == ("answer.rs", 2, 2, 'let sum: i32 = "x";')
    assert (span.column_start, span.column_end) == (20, 23)


def test_columns_are_those_of_the_answer_where_its_paths_were_lengthened() -> None:
    finding = judge("pub struct A;\npub fn add(a: crate::A, b: crate::A) -> crate::A { let x: u8 = a; b }\n")
    (span,) = finding.diagnostics[0].spans
    assert (span.line_start, span.column_start, span.column_end) == (2, 64, 65)
    assert "m_" not in finding.reason


def test_warnings_are_counted_with_their_codes_however_an_answer_silences_them() -> None:
    plain = "pub fn add(a: i32, b: i32) -> i32 { let unused = 1; return a + b; }"
    silenced = [
        f"#![allow(clippy::all, unused)]\n{plain}",
        f"#[allow(clippy::needless_return, unused_variables)]\n{plain}",
        f"#![cfg_attr(all(), allow(warnings))]\n{plain}",
        f"#[expect(clippy::needless_return, unused_variables)]\n{plain}",
    ]
    found, *quiet = judge_all([(case(), code) for code in (plain, *silenced)])
    assert found.warnings == 2
    assert {lint.code for lint in found.diagnostics} == {"clippy::needless_return", "unused_variables"}
    for finding in quiet:
        assert finding.warnings == 2
        assert [note.level for note in finding.diagnostics][-1] == "note"
        assert not is_correct(case(max_clippy_warnings=1), finding)


def test_only_the_answer_is_linted() -> None:
    tests = ADD.replace("assert_eq!(add(1, 2), 3);", "let unused = 1; return assert_eq!(add(1, 2), 3);")
    finding = judge(RIGHT, case(tests))
    assert finding.warnings == 0
    assert finding.diagnostics == ()


def test_without_clippy_nothing_is_known_about_warnings() -> None:
    made = crate.crate_module(RIGHT, rust_source.rust_tokens(RIGHT), case_tests.parse_rust_tests(ADD, ()))

    async def check() -> crate.CompilationResult:
        sandbox = ZygoteSandbox(strongest_isolation(allow_weak=True))
        harness = libraries.compiled_harness(toolchain())
        compiler = crate.RustCompiler(toolchain()._replace(clippy=None), Linker("cc"), (harness,))
        try:
            async with sandbox.workspace({}, readable=compiler.readable) as place:
                return await compiler.check(place, [made], 20)
        finally:
            await sandbox.close()

    compiled = asyncio.run(check())
    assert not compiled.linted
    assert not compiled.broke


def test_expected_names_are_found_wherever_they_are_defined() -> None:
    code = """
    pub struct Stack { items: Vec<i32> }
    pub union Bits { pub a: u32, pub b: f32 }
    pub enum Color { Red }
    pub type Pair = (i32, i32);
    pub trait Shape { fn area(&self) -> f64; }
    impl Stack { pub fn push(&mut self, item: i32) { self.items.push(item) } }
    // fn commented() {}
    pub const TEXT: &str = "struct Quoted; fn quoted() {}";
    """
    of = case(
        should_pass_tests=False,
        expected_functions=("push", "Stack::push", "area", "commented", "quoted"),
        expected_types=("Stack", "Bits", "Color", "Pair", "Shape", "Quoted"),
    )
    assert judge(code, of).missing == ("commented", "quoted", "Quoted")


# ---- tests


def test_every_kind_of_test_is_counted_and_run() -> None:
    tests = """
    #[cfg(test)]
    mod tests {
        #![allow(unused)]
        use super::*;

        #[test]
        #[should_panic]
        fn panics() { Hidden { value: 0 }.checked(); }

        #[test]
        #[should_panic(expected = "no value")]
        fn panics_with_a_text() { Hidden { value: 0 }.checked(); }

        #[test]
        #[should_panic(expected = "another text")]
        fn panics_with_another_text() { Hidden { value: 0 }.checked(); }

        #[test]
        #[should_panic]
        fn does_not_panic() { Hidden { value: 1 }.checked(); }

        #[test]
        #[ignore = "too slow"]
        fn is_left_out() { panic!(); }

        #[test]
        fn returns_a_result() -> Result<(), std::num::ParseIntError> { "1".parse::<i32>().map(|_| ()) }

        #[test]
        fn returns_an_error() -> Result<(), std::num::ParseIntError> { "x".parse::<i32>().map(|_| ()) }

        #[test]
        fn uses_a_macro_of_the_answer() { assert_eq!(double!(2), 4); }

        #[test]
        fn uses_an_exported_macro() { assert_eq!(triple!(2), 6); }

        mod deeper {
            use super::super::*;
            const _: &str = "#[test] fn quoted() {}";

            // #[test] fn commented() {}
            #[test]
            pub fn sees_private_items() { assert_eq!(Hidden { value: 3 }.checked(), 3); }
        }
    }

    #[test]
    fn stands_outside_of_any_module() { assert_eq!(crate::double(2), 4); }
    """
    code = """
    struct Hidden { value: i32 }
    impl Hidden { fn checked(&self) -> i32 { if self.value == 0 { panic!("no value here") } self.value } }
    macro_rules! double { ($x:expr) => { $x * 2 }; }
    fn double(x: i32) -> i32 { double!(x) }
    #[macro_export] macro_rules! triple { ($x:expr) => { $x + $crate::double($x) }; }
    """
    finding = judge(code, case(tests))
    assert outcomes(finding) == {
        "tests::panics": "passed",
        "tests::panics_with_a_text": "passed",
        "tests::panics_with_another_text": "failed",
        "tests::does_not_panic": "failed",
        "tests::is_left_out": "ignored",
        "tests::returns_a_result": "passed",
        "tests::returns_an_error": "failed",
        "tests::uses_a_macro_of_the_answer": "passed",
        "tests::uses_an_exported_macro": "passed",
        "tests::deeper::sees_private_items": "passed",
        "stands_outside_of_any_module": "passed",
    }


def test_after_a_test_that_ends_the_process_the_next_one_runs() -> None:
    tests = """mod tests { use super::*;
        #[test] fn first() { assert_eq!(one(), 1); }
        #[test] fn second() { leave(); }
        #[test] fn third() { assert_eq!(one(), 1); } }"""
    finding = judge("pub fn one() -> i32 { 1 }\npub fn leave() { std::process::exit(0) }", case(tests))
    assert list(outcomes(finding).values()) == ["passed", "failed", "passed"]
    assert finding.reason == "tests::second: died before the verdict, with exit code 0"


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("", "no tests"),
        ("mod tests { use super::*; }", "no tests"),
        ("#[tokio::test] async fn adds_up() {}", "#[tokio::test]"),
        ("macro_rules! made { ($n:ident) => { #[test] fn $n() {} } }", "no tests"),
        ("macro_rules! made { () => {} } #[test] fn $n() {}", "made by a macro"),
        ("#[rstest::test] fn adds_up() {}", "#[rstest::test]"),
        ('#[test]\nfn a() { f("x", "name\n"hello world""); }', "not Rust: line 3: "),
        ("#[test]\nfn a() {\n    assert_eq!(add(1 2), 3);\n}", "not Rust: line 3: "),
        ("#[test]\nfn a() { assert_eq!(add(1, 2), 3);", "not Rust: line 2: "),
        ("#[test]\ndef a() { assert add(1, 2) == 3 }\n#[test] fn b() {}", "not Rust: line 2: "),
    ],
)
def test_tests_that_cannot_be_counted_are_refused_before_answers_are_paid_for(tests: str, said: str) -> None:
    with pytest.raises(VerifierError, match=said.replace("[", r"\[")):
        RustVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).check(case(tests))


def test_an_answer_is_not_blamed_for_tests_that_are_not_rust_and_others_do_not_pay_for_asking() -> None:
    asked = rust_syntax_problem.cache_info().misses
    assert list(outcomes(judge(RIGHT, case(f"{ADD}// new to the compiler"))).values()) == ["passed"]
    assert rust_syntax_problem.cache_info().misses == asked
    with pytest.raises(VerifierError, match="not Rust: line 8: "):
        judge(RIGHT, case(ADD.replace("add(1, 2)", "add(1 2)")))


# ---- the machine


def test_a_machine_without_rust_says_how_to_get_it() -> None:
    asked = "from steelyard.verifiers.rust.toolchain import toolchain\ntry:\n    toolchain()\nexcept Exception as e:\n    print(e)"
    environment = {"PATH": "/nonexistent"}
    ran = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, timeout=60)
    assert "rustup" in ran.stdout
    assert "apt install rustc" in ran.stdout


def test_the_version_names_compiler_and_linter() -> None:
    version = RustVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).version
    assert version.startswith("rust 13, rustc 1.")
    assert ("clippy" in version) == (toolchain().clippy is not None)


ITOA = (Dependency(name="itoa", version="1"),)


@pytest.mark.skipif(
    not any(libraries.DEBIAN_CRATE_REGISTRY.glob("itoa-1*")) and not os.environ.get("CI"),
    reason="librust-itoa-dev is missing",
)
def test_dependencies_are_built_once_and_lent_to_every_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    of = case(ADD.replace("add(1, 2), 3", 'show(128), "128"'), dependencies=ITOA)
    right = "pub fn show(n: u32) -> String { itoa::Buffer::new().format(n).to_string() }"
    wrong = "pub fn show(n: u32) -> String { itoa::Buffer::new().format(n + 1).to_string() }"
    # tests mean the crate by its name, even if the answer has a module that is called like it
    named = case(ADD.replace("add(1, 2), 3", "show(128), itoa::Buffer::new().format(128)"), dependencies=ITOA)
    fake = 'impl Buffer { pub fn new() -> Self { Buffer } pub fn format(&self, _: u32) -> &str { "" } }'
    shadowing = f"pub mod itoa {{ pub struct Buffer; {fake} }}\npub fn show(_: u32) -> String {{ String::new() }}"
    libraries.compiled_harness.cache_clear()
    answers = [(of, right), (of, wrong), (case(), right), (named, right), (named, shadowing)]
    first, second, third, fourth, fifth = judge_all(answers)
    libraries.compiled_harness.cache_clear()
    assert is_correct(of, first), first
    assert is_correct(named, fourth), fourth
    assert not is_correct(named, fifth), fifth
    assert second.label == "wrong answer"
    assert third.label == "does not compile"
    assert len(list(tmp_path.glob("steelyard/rust/*/libitoa-*.rlib"))) == 1


RUNTIME_CRATE = """
pub mod NAME {
    PARTS
}
fn run<F: std::future::Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) { return value; }
    }
}
"""
"""The part of an async runtime that the attributes of its tests need."""
TOKIO_PARTS = """
pub struct Builder;
impl Builder {
    pub fn new_current_thread() -> Self { Builder }
    pub fn new_multi_thread() -> Self { Builder }
    pub fn worker_threads(&mut self, _: usize) -> &mut Self { self }
    pub fn enable_all(&mut self) -> &mut Self { self }
    pub fn build(&mut self) -> std::io::Result<Runtime> { Ok(Runtime) }
}
pub struct Runtime;
impl Runtime { pub fn block_on<F: std::future::Future>(&self, future: F) -> F::Output { crate::run(future) } }
"""
ASYNC_STD_PARTS = "pub fn block_on<F: std::future::Future>(future: F) -> F::Output { crate::run(future) }"


@pytest.mark.parametrize(
    ("name", "module", "parts", "attribute"),
    with_slow(
        [("tokio", "runtime", TOKIO_PARTS, '#[tokio::test(flavor = "multi_thread", worker_threads = 2)]')],
        [
            ("tokio", "runtime", TOKIO_PARTS, "#[tokio::test]"),
            ("async-std", "task", ASYNC_STD_PARTS, "#[async_std::test]"),
        ],
    ),
)
def test_async_tests_are_run_by_their_runtime(
    name: str, module: str, parts: str, attribute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, folder in (("STEELYARD_CARGO_VENDOR", "vendor"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    libraries.compiled_harness.cache_clear()
    package = tmp_path / "vendor" / name
    (package / "src").mkdir(parents=True)
    (package / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n')
    (package / "src" / "lib.rs").write_text(RUNTIME_CRATE.replace("NAME", module).replace("PARTS", parts))
    (package / ".cargo-checksum.json").write_text('{"files": {}}')
    tests = f"""
    mod tests {{
        use super::*;
        {attribute}
        async fn adds_up() {{ assert_eq!(add(1, 2).await, 3); }}
        {attribute}
        async fn gives_a_result() -> Result<(), String> {{ if add(1, 1).await == 2 {{ Ok(()) }} else {{ Err("no".into()) }} }}
        {attribute}
        #[should_panic(expected = "overflow")]
        async fn panics() {{ add(i32::MAX, 1).await; }}
    }}"""
    of = case(tests, dependencies=(Dependency(name=name, version="1"),))
    right, wrong = judge_all([(of, f"pub async {RIGHT[4:]}"), (of, f"pub async {RIGHT[4:]}".replace("a + b", "a * b"))])
    libraries.compiled_harness.cache_clear()
    assert is_correct(of, right), right
    assert not is_correct(of, wrong)
    assert wrong.compiled
    with pytest.raises(VerifierError, match=f"add {name.replace('-', '_')} to its dependencies"):
        judge(RIGHT, case(tests))


def test_dependencies_that_are_not_here_are_named_with_the_way_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CARGO_VENDOR", str(tmp_path))
    with pytest.raises(VerifierError, match=r"\(itoa\) are not on this machine; .*cargo vendor"):
        RustVerifier(ZygoteSandbox(strongest_isolation(allow_weak=True))).check(case(dependencies=ITOA))


# ---- reading source


def test_words_in_strings_comments_and_characters_are_no_words() -> None:
    source = """a "b\\"" r#"c"# 'd' /* e /* f */ g */ 'h i<'j> b"k" br"l" '\\'' '\\u{6d}' r#n // o"""
    words = [token.text for token in rust_source.rust_tokens(source) if token.kind == "word"]
    assert words == ["a", "i", "n"]


@pytest.mark.parametrize(
    "pattern",
    ['"', "/*", "'", "r#", "r#######", "crate::", "#[", "#![a]", "impl<", "fn f(", "[", "use x as ", "#[allow(", "\\", "PartialEq as "],
)  # fmt: skip
def test_a_hostile_source_is_read_in_linear_time(pattern: str) -> None:
    source = pattern * (60_000 // len(pattern))
    started = time.process_time()
    code = rust_source.rust_tokens(source)
    rust_source.affects_whole_crate(code)
    rust_source.silenced_lints(code)
    crate.crate_module(source, code, case_tests.parse_rust_tests(ADD, ()))
    assert time.process_time() - started < 3


def test_tests_that_do_not_fit_the_signatures_of_the_prompt_are_warned_of() -> None:
    def asked(name: str, prompt: str, test: str) -> Case:
        tests = f"#[cfg(test)]\nmod tests {{\n    use super::*;\n    #[test]\n    fn t() {{ assert!({test}); }}\n}}\n"
        return Case(id=name, prompt=prompt, language="rust", verify=Verify(tests=tests))

    adds = "Write `pub fn add(a: i32, b: i32) -> i32` that adds."
    cases = [
        asked("fine", adds, "add(1, 2) == 3"),
        asked("other name", adds, "sum(1, 2) == 3"),
        asked("other number", adds, "add(1) == 3"),
        asked("own type", "Write `fn norm(p: Point) -> f64` for a struct Point.", "norm(Point { x: 1.0 }) == 1.0"),
        asked("in words", "Write add.", "add(1, 2) == 3"),
    ]
    proved, problems = check_references(cases)
    assert (proved, [problem.fatal for problem in problems]) == (0, [False, False, False])
    # and that none of them has a reference
    problems = [problem for problem in problems if problem.where]
    assert [problem.where for problem in problems] == ['case "other name"', 'case "other number"']
    assert "cannot find function `sum`" in problems[0].what
