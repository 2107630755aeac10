"""Rust answers compiled together are judged as if each were alone, whatever the others are up to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from steelyard.analysis.scoring import is_correct
from steelyard.protocols import ProcessResult
from steelyard.records import Answer, Case, Expectations, Finding
from steelyard.sandbox.levels import strongest_isolation
from steelyard.sandbox.processors import processor_count
from steelyard.sandbox.sandbox import SandboxWorkspace, ZygoteSandbox
from steelyard.verifiers.rust import neighbours, source
from steelyard.verifiers.rust.batches import BatchItem, BatchQueue
from steelyard.verifiers.rust.verifier import RustVerifier
from support.toolchains import needs

pytestmark = needs("rustc")

TESTS = """
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_add_up() {
        assert_eq!(add(1, 2), 3);
    }

    #[test]
    fn opposites_cancel_out() {
        assert!(add(-7, 7) == 0, "not {}", add(-7, 7));
    }

    #[test]
    fn a_sum_can_be_counted_up_to() -> Result<(), String> {
        let sums: Vec<Option<i32>> = vec![Some(add(2, 2)), None];
        if sums.first() == Some(&Some(4)) { Ok(()) } else { Err(format!("{:?}", sums)) }
    }
}
"""
CASE = Case(
    id="add",
    prompt="Write `pub fn add(a: i32, b: i32) -> i32`.",
    language="rust",
    timeout_secs=2,
    expectations=Expectations(test_file=TESTS, expected_functions=("add",)),
)
RIGHT = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n"
WRONG = "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n"
"""What a hostile answer computes: it is wrong, so only a forged result can make it pass."""


def wrong_but(does: str) -> str:
    """An answer that is wrong and does something else before it says so."""
    return f"pub fn add(a: i32, b: i32) -> i32 {{\n    {does}\n    a - b\n}}\n"


class Attempt(NamedTuple):
    code: str
    label: str = ""
    """The kind of failure; none for an answer that passes."""


HONEST = {
    "right": Attempt(RIGHT),
    "not public": Attempt("fn add(a: i32, b: i32) -> i32 { a + b }"),
    "with a main of its own": Attempt(RIGHT + 'fn main() { println!("{}", add(1, 2)); }'),
    "with tests of its own": Attempt(
        RIGHT + "#[cfg(test)]\nmod tests { use super::*; #[test] fn own() { assert_eq!(add(1, 1), 3); } }"
    ),
    "with a plain module named tests": Attempt(RIGHT + "pub mod tests { pub fn small_numbers_add_up() {} }"),
    "with paths from the crate's root": Attempt(
        "mod inner { use crate::Sum; pub fn of(s: Sum) -> i32 { s.0 + s.1 } }\npub struct Sum(i32, i32);\n"
        "pub fn add(a: i32, b: i32) -> i32 { crate::inner::of(crate::Sum(a, b)) }"
    ),
    "with attributes and comments on top": Attempt(
        "#!/usr/bin/env run\n//! Adds.\n#![allow(dead_code)] /* one */ #![warn(missing_docs)] use std::ops::Add;\n"
        "pub fn add(a: i32, b: i32) -> i32 { a.add(b) }"
    ),
    "with unsafe": Attempt(
        "pub fn add(a: i32, b: i32) -> i32 { let p = &a as *const i32; unsafe { *p + b } }"
    ),
    "with a macro": Attempt(
        "macro_rules! plus { ($a:expr, $b:expr) => { $a + $b }; }\npub fn add(a: i32, b: i32) -> i32 { plus!(a, b) }"
    ),
    "with an exported macro": Attempt(
        "#[macro_export]\nmacro_rules! plus { ($a:expr, $b:expr) => { $crate::sum($a, $b) }; }\n"
        "pub fn sum(a: i32, b: i32) -> i32 { a + b }\npub fn add(a: i32, b: i32) -> i32 { plus!(a, b) }"
    ),
    "with lints": Attempt("pub fn add(a: i32, b: i32) -> i32 { let x = 1; return a + b; }"),
    "with lints silenced": Attempt(
        "#![allow(warnings, clippy::all)]\n#[allow(unused)]\npub fn add(a: i32, b: i32) -> i32 { let x = 1; return a + b; }"
    ),
    "with lints made errors": Attempt(
        "#![deny(clippy::all, clippy::pedantic)]\npub fn add(a: i32, b: i32) -> i32 { let z: u32 = a as u32; let _ = z; return a + b; }"
    ),
    "with a trait for foreign types": Attempt(
        "pub struct Sum(i32);\nimpl From<Sum> for i32 { fn from(s: Sum) -> i32 { s.0 } }\n"
        "pub fn add(a: i32, b: i32) -> i32 { Sum(a + b).into() }"
    ),
    "with a comparison of its own types": Attempt(
        "pub struct A(i32);\nimpl PartialEq for A { fn eq(&self, o: &A) -> bool { self.0 == o.0 } }\n" + RIGHT
    ),
    "with threads": Attempt(
        "pub fn add(a: i32, b: i32) -> i32 { std::thread::spawn(move || a + b).join().unwrap() }"
    ),
    "with quotes that look like more": Attempt(
        "pub fn add<'a>(a: i32, b: i32) -> i32 { let _ = ('\"', \"/* \\\" */\", r#\"\"}\"#, b'\\''); a + b } /* /* */ } */"
    ),
    "wrong": Attempt(WRONG, "wrong answer"),
    "with a panic": Attempt(wrong_but("if a < b { panic!(\"{a} < {b}\"); }"), "exception"),
    "with an overflow": Attempt("pub fn add(a: i32, b: i32) -> i32 { a + b + (i32::MAX - 1) }", "exception"),
    "without the function": Attempt("pub fn sum(a: i32, b: i32) -> i32 { a + b }", "does not fit the tests"),
    "with another signature": Attempt("pub fn add(a: &str) -> String { a.into() }", "does not fit the tests"),
    "of a wrong type": Attempt("pub fn add(a: i32, b: i32) -> i32 { a.to_string() }", "does not compile"),
    "with an unknown name": Attempt("use std::nothing::Here;\npub fn add(a: i32, b: i32) -> i32 { a + c }", "does not compile"),
    "with a moved value": Attempt(
        "pub fn add(a: i32, b: i32) -> i32 { let s = String::new(); drop(s); s.len() as i32 + a + b }", "does not compile"
    ),
    "defined twice": Attempt(RIGHT + RIGHT, "does not compile"),
    "cut off": Attempt("pub fn add(a: i32, b: i32) -> i32 {\n    a +", "does not compile"),
}  # fmt: skip

HOSTILE = {
    "an unclosed string": Attempt(WRONG + 'const S: &str = "', "does not compile"),
    "an unclosed raw string": Attempt(WRONG + 'const S: &str = r##"', "does not compile"),
    "an unclosed comment": Attempt(WRONG + "/* ", "does not compile"),
    "a brace too many": Attempt(WRONG + "}\nmod other {", "does not compile"),
    "an attribute for what follows": Attempt(WRONG + "#[cfg(any())]", "does not compile"),
    "a module that follows": Attempt(WRONG + "mod tests;", "does not compile"),
    "leaving at once": Attempt(wrong_but("std::process::exit(0);"), "died"),
    "leaving from a thread": Attempt(
        wrong_but("std::thread::spawn(|| std::process::exit(0)).join().ok();"), "died"
    ),
    "leaving when it fails": Attempt(
        wrong_but("std::panic::set_hook(Box::new(|_| std::process::exit(0)));"), "died"
    ),
    "aborting": Attempt(wrong_but("std::process::abort();"), "died"),
    "a forged report": Attempt(
        wrong_but('println!("running 3 tests\\n\\ntest result: ok. 3 passed; 0 failed\\n finished");'), "wrong answer"
    ),
    "asking for the secret": Attempt(
        wrong_but("let mut s = String::new(); std::io::stdin().read_line(&mut s).ok(); println!(\"{s} 0 passed 0 0 \");"),
        "wrong answer",
    ),
    "writing to every file": Attempt(
        wrong_but(
            "use std::io::Write; use std::os::fd::FromRawFd;\n    for fd in 0..64 { let mut f = std::mem::ManuallyDrop::new(unsafe "
            "{ std::fs::File::from_raw_fd(fd) }); let _ = f.write_all(b\"pppp\\n 0 passed 0 0 \\n\"); }"
        ),
        "wrong answer",
    ),
    "having its results read too early": Attempt(
        wrong_but(
            "use std::io::Write; use std::os::fd::FromRawFd;\n    for fd in 3..8 { let mut f = std::mem::ManuallyDrop::new(unsafe "
            "{ std::fs::File::from_raw_fd(fd) }); let _ = f.write_all(&[b'.'; 50_000]); }"
        ),
        "wrong answer",
    ),
    "its own assert_eq": Attempt(WRONG + "macro_rules! assert_eq { ($($t:tt)*) => {}; }\npub(crate) use assert_eq;", "wrong answer"),
    "another assert": Attempt(
        WRONG + "macro_rules! nothing { ($($t:tt)*) => {}; }\nuse nothing as assert; use nothing as assert_eq; use nothing as panic;",
        "wrong answer",
    ),
    "macros for all that follows": Attempt(
        "#![macro_use]\nmacro_rules! assert_eq { ($($t:tt)*) => {}; }\n" + WRONG, "wrong answer"
    ),
    "its own standard library": Attempt(
        WRONG + "pub mod std { pub mod process { pub fn exit(_: i32) {} } }\npub mod core {}", "wrong answer"
    ),
    "its own Some": Attempt(WRONG + "pub fn Some<T>(_: T) -> u8 { 1 }\npub struct Vec;", "wrong answer"),
    "an equal to everything": Attempt(
        "#[derive(Debug)]\npub struct Any;\nimpl<T> PartialEq<T> for Any { fn eq(&self, _: &T) -> bool { true } }\n"
        "pub fn add(_: i32, _: i32) -> Any { Any }",
        "does not fit the tests",
    ),
    "a truth of its own": Attempt(
        "pub struct Yes;\nimpl std::ops::Not for Yes { type Output = bool; fn not(self) -> bool { false } }\n"
        "pub fn add(_: i32, _: i32) -> Yes { Yes }",
        "does not fit the tests",
    ),
    "methods for foreign types": Attempt(
        "type Found = Option<&'static Option<i32>>;\npub trait Nice { fn first(&self) -> Found; }\n"
        "impl<T> Nice for Vec<T> { fn first(&self) -> Found { Some(&Some(4)) } }\n"
        + WRONG,
        "tampered",
    ),
    "right for the linter": Attempt(
        "pub fn add(a: i32, b: i32) -> i32 { if cfg!(clippy) { a + b } else { a - b } }", "wrong answer"
    ),
    "compiling for the linter": Attempt('#[cfg(not(clippy))]\ncompile_error!("no");\n' + RIGHT, "does not compile"),
    "its own write, but for the linter": Attempt(
        WRONG + '#[cfg_attr(not(clippy), no_mangle)]\npub extern "C" fn write(_: i32, _: *const u8, n: usize) -> isize { n as isize }',
        "died",
    ),
    "speaking for the harness": Attempt("use ::steelyard_harness::tell_end;\n" + WRONG, "does not compile"),
    "a file of the machine": Attempt('const S: &str = include_str!("/etc/passwd");\n' + WRONG, "does not compile"),
    "a file by another name": Attempt('use std::include as take;\ntake!("/etc/hostname");\n' + WRONG, "does not compile"),
    "a module from elsewhere": Attempt('#[path = "/etc/passwd"]\nmod elsewhere;\n' + WRONG, "does not compile"),
    "no main": Attempt("#![no_main]\n" + WRONG, "wrong answer"),
    "a panic handler": Attempt(
        "#![no_std]\n#[panic_handler]\nfn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n" + WRONG, "does not compile"
    ),
    "code before main": Attempt(
        WRONG + 'extern "C" fn first() { std::process::exit(0); }\n#[used]\n'
        '#[cfg_attr(all(), link_section = ".init_array")]\nstatic FIRST: extern "C" fn() = first;',
        "died",
    ),
    "code before main, in other letters": Attempt(
        WRONG + '#[r#link_section = ".init_array"]\nstatic FIRST: extern "C" fn() = { extern "C" fn f() {} f };', "wrong answer"
    ),
    "its own write": Attempt(
        WRONG + '#[no_mangle]\npub extern "C" fn write(_: i32, _: *const u8, n: usize) -> isize { n as isize }', "died"
    ),
    "its own wait": Attempt(WRONG + '#[export_name = "wait4"]\npub extern "C" fn w() -> i32 { 0 }', "wrong answer"),
    "its own memory": Attempt(
        WRONG + "use std::alloc::System;\n#[global_allocator]\nstatic A: System = System;", "wrong answer"
    ),
    "machine code": Attempt(wrong_but('unsafe { std::arch::asm!("nop") };'), "wrong answer"),
    "opening what is shut": Attempt(
        WRONG + 'extern "C" { fn mprotect(p: *mut u8, n: usize, a: i32) -> i32; }', "wrong answer"
    ),
    "killing the harness": Attempt(
        'extern "C" { fn kill(p: i32, s: i32) -> i32; fn getppid() -> i32; }\n' + wrong_but("unsafe { kill(getppid(), 9) };\n    std::thread::sleep(std::time::Duration::from_secs(60));"),
        "died",
    ),
    "reading where nothing is": Attempt(wrong_but("unsafe { std::ptr::read_volatile(8 as *const u8) };"), "died"),
    "recursion without end": Attempt(wrong_but("fn f(x: u64) -> u64 { std::hint::black_box(f(x + 1)) + 1 }\n    f(0);"), "died"),
    "a loop without end": Attempt(wrong_but("loop { std::hint::spin_loop(); }"), "cpu limit"),
    "more memory than there is": Attempt(
        wrong_but("let mut v: Vec<Box<[u8]>> = vec![];\n    loop { v.push(vec![0u8; 1 << 26].into()); }"), "memory limit"
    ),
    "words about memory, and an abort": Attempt(
        wrong_but('eprintln!("memory allocation of 9 bytes failed");\n    std::process::abort();'), "memory limit"
    ),
    "words about memory, and another end": Attempt(
        wrong_but('eprintln!("memory allocation of 9 bytes failed");\n    unsafe { std::ptr::read_volatile(8 as *const u8) };'), "died"
    ),
    "a constant without end": Attempt(
        "#![allow(long_running_const_eval)]\nconst X: i32 = { let mut i = 0u64; loop { i = i.wrapping_add(1); if i == u64::MAX { break; } } 1 };\n"
        + wrong_but("let _ = X;"),
        "cpu limit",
    ),
    "a macro without end": Attempt(
        WRONG + "macro_rules! grow { ($($t:tt)*) => { grow!($($t)* $($t)* x) }; }\ngrow!(x);", "cpu limit"
    ),
    "a type without end": Attempt(
        "struct W<T>(T);\nfn deep<T>(n: u32, t: W<T>) -> u32 { if n == 0 { 0 } else { deep(n - 1, W(t)) } }\n"
        + wrong_but("deep(3, W(1));"),
        "does not compile",
    ),
    "the neighbours' answers": Attempt("use super::*;\n" + wrong_but("let _ = module_path!();"), "wrong answer"),
    "a crate by another name": Attempt("extern crate self as all;\n" + WRONG, "wrong answer"),
    "a secret in a drop": Attempt(
        "struct Bye;\nimpl Drop for Bye { fn drop(&mut self) { std::process::exit(0); } }\n"
        + wrong_but("std::panic::panic_any(Bye);"),
        "exception",
    ),
}  # fmt: skip
ATTEMPTS = HONEST | HOSTILE


ENDLESS = {name: attempt for name, attempt in ATTEMPTS.items() if "without end" in name}


class Counting(ZygoteSandbox):
    """A sandbox that counts how often a compiler is called."""

    compiled = 0
    tested = 0

    @asynccontextmanager
    async def workspace(
        self,
        files: Mapping[str, str | bytes],
        *,
        readable: Sequence[str] = (),
        local_sockets: bool = False,
        descriptor_paths: bool = False,
    ) -> AsyncIterator[Counted]:
        async with super().workspace(
            files, readable=readable, local_sockets=local_sockets, descriptor_paths=descriptor_paths
        ) as place:
            yield Counted(place, self)


class Counted(SandboxWorkspace):
    def __init__(self, place: SandboxWorkspace, sandbox: Counting) -> None:
        super().__init__(place._worker)
        self._sandbox = sandbox

    async def run(self, argv: Sequence[str], **more: Any) -> ProcessResult:
        self._sandbox.tested += argv[0] == "./attempt"
        self._sandbox.compiled += Path(argv[0]).name in ("clippy-driver", "rustc")
        return await super().run(argv, **more)


async def judged(attempts: Mapping[str, Attempt], *, together: bool) -> tuple[dict[str, Finding], int]:
    """What was found, and how often a compiler was called for it."""
    sandbox = Counting(strongest_isolation(allow_weak=True))
    rust = RustVerifier(sandbox)
    texts = [f"```rust\n{attempt.code}\n```\n" for attempt in attempts.values()]
    try:
        if together:
            findings = await asyncio.gather(*(rust.verify(CASE, Answer(text=text)) for text in texts))
        else:
            findings = [await rust.verify(CASE, Answer(text=text)) for text in texts]
    finally:
        await sandbox.close()
    return dict(zip(attempts, findings, strict=True)), sandbox.compiled


def timeless(finding: Finding) -> Finding:
    tests = tuple(replace(test, seconds=0) for test in finding.tests)
    return replace(finding, tests=tests, compile_seconds=0, test_seconds=0)


def is_noted(finding: Finding) -> bool:
    return any("has unsafe code" in note.message for note in finding.diagnostics)


def deserves(name: str, finding: Finding) -> None:
    assert finding.label == ATTEMPTS[name].label, (name, finding)
    assert is_correct(CASE, finding) == (not ATTEMPTS[name].label), name
    assert bool(finding.tampered) == (finding.label == "tampered"), name
    assert finding.trust == "in-process", name
    # what was built tells it, and nothing that a text says
    is_unsafe = any(word in ATTEMPTS[name].code for word in ("unsafe {", "no_mangle", "link_section", "export_name"))
    assert not finding.tests or is_noted(finding) == is_unsafe, name


def test_each_answer_gets_the_verdict_it_deserves_in_a_mixed_batch() -> None:
    attempts = {name: attempt for name, attempt in ATTEMPTS.items() if name not in ENDLESS}
    together, compiled = asyncio.run(judged(attempts, together=True))
    for name, finding in together.items():
        deserves(name, finding)
    # two calls for each answer would mean that nothing was judged together
    assert compiled < 1.2 * len(attempts)
    # those that never end take no neighbour along
    attempts = {"right": HONEST["right"], **ENDLESS, "wrong": HONEST["wrong"]}
    together, _ = asyncio.run(judged(attempts, together=True))
    for name, finding in together.items():
        deserves(name, finding)


def test_unsafe_code_is_linked_with_no_neighbour() -> None:
    code = "pub fn add(a: i32, b: i32) -> i32 {{ let p = &a as *const i32; unsafe {{ *p {} b }} }}"
    attempts = {sign: Attempt(code.format(sign)) for sign in "+-"}
    together, compiled = asyncio.run(judged(attempts, together=True))
    assert {sign: is_correct(CASE, finding) for sign, finding in together.items()} == {"+": True, "-": False}
    assert all(map(is_noted, together.values()))
    # on one processor both are checked together first
    assert compiled in (4, 5)


def test_what_does_not_compile_is_judged_with_the_others_unless_they_may_be_the_reason() -> None:
    broken = {f"broken {n}": Attempt(f'pub fn add(a: i32, b: i32) -> i32 {{ "{n}" }}') for n in range(8)}
    together, compiled = asyncio.run(judged(broken, together=True))
    assert {finding.reason for finding in together.values()} == {"mismatched types"}
    assert compiled <= processor_count()
    # `true == ` asks for the one type that a bool is compared with, until a neighbour brings another
    inferring = RIGHT.replace("a + b", 'if true == "true".parse().unwrap() { a + b } else { 0 }')
    meddling = "mod decoy { pub struct bool; }\nstruct M;\nimpl PartialEq<M> for bool { fn eq(&self, _: &M) -> bool { true } }\n"
    attempts = {"inferring": Attempt(inferring), "meddling": Attempt(meddling + RIGHT), **broken}
    together, _ = asyncio.run(judged(attempts, together=True))
    assert is_correct(CASE, together["inferring"])


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("impl PartialEq<M> for bool {}", True),
        ("mod m { struct bool; }\nimpl PartialEq<M> for bool {}", True),
        ("#[cfg(any())] struct bool;\nimpl PartialEq<M> for bool {}", True),
        ("fn f() { struct bool; }\nimpl<'a> Mul<[M; 3]> for bool {}", True),
        ("impl Mul<N<{ 1 }>> for f64 {}", True),
        ("fn f() { struct f64; }\nimpl<T: Into<Vec<u8>>> Mul<N<T>> for &f64 {}", True),
        ("macro_rules! i { ($($t:tt)*) => { $($t)* } }", True),
        ("impl " * 500 + "Mul<M> for f64 {}", True),
        ("struct M;\nimpl PartialEq<f64> for M {}\nimpl<'a> Mul<M> for &'a mut M {}", False),
        ("#[derive(Debug)]\nenum E<T> { A(T) }\nimpl<T> From<T> for E<T> {}", False),
        ("struct M;\nimpl fmt::Display for M {}\nimpl<T> M<T> { fn f(&self) {} }", False),
        ("fn f(x: impl Into<String>) -> impl Iterator<Item = u8> { for i in x {} }", False),
        ("fn f(x: &dyn for<'a> Fn(&'a str), y: impl for<'a> Fn(&'a str)) { for i in x {} }", False),
    ],
)
def test_an_implementation_that_changes_inference_elsewhere_is_seen(code: str, changes: bool) -> None:
    assert neighbours.may_change_inference(source.rust_tokens(code)) == changes


@pytest.mark.parametrize(
    "code", ["fn f( {", "fn f() }", "fn f() { (] }", 'fn f() { "a }', 'fn f() { r#"a" }', "fn f() {"]
)
def test_what_is_never_closed_is_seen(code: str) -> None:
    assert neighbours.is_never_closed(source.rust_tokens(code))
    assert not neighbours.is_never_closed(source.rust_tokens(RIGHT + "const A: &str = r#\"a\"#;\nconst B: char = '{';"))
    assert not neighbours.is_never_closed(source.rust_tokens('const A: &str = "a"'))


@pytest.mark.slow
def test_each_answer_gets_the_same_verdict_alone_and_in_a_mixed_batch() -> None:
    alone, _ = asyncio.run(judged(ATTEMPTS, together=False))
    together, _ = asyncio.run(judged(ATTEMPTS, together=True))
    for name, finding in alone.items():
        deserves(name, finding)
        assert timeless(finding) == timeless(together[name]), name


def test_an_answer_that_sleeps_keeps_no_neighbour_waiting_and_is_ended_once() -> None:
    async def ends() -> tuple[list[str], int]:
        sandbox = Counting(strongest_isolation(allow_weak=True))
        rust = RustVerifier(sandbox)
        ended: list[str] = []

        async def verify(name: str, code: str) -> None:
            found = await rust.verify(CASE, Answer(text=f"```rust\n{code}\n```"))
            ended.append(f"{name}: {found.label}")

        asleep = wrong_but("std::thread::sleep(std::time::Duration::from_secs(600));")
        try:
            await asyncio.gather(verify("asleep", asleep), *(verify("right", f"{RIGHT}// {n}") for n in range(4)))
        finally:
            await sandbox.close()
        return ended, sandbox.tested

    ended, tested = asyncio.run(ends())
    assert ended == ["right: "] * 4 + ["asleep: time limit"]
    assert tested == 5


def test_fifty_answers_are_compiled_at_once() -> None:
    attempts = {str(number): Attempt(f"{RIGHT}// {number}") for number in range(50)}
    together, compiled = asyncio.run(judged(attempts, together=True))
    assert all(is_correct(CASE, finding) for finding in together.values())
    assert compiled <= 2 * processor_count()


def test_what_waits_together_is_done_together_and_what_fails_fails_alone() -> None:
    groups: list[Sequence[int]] = []

    async def halved(batch: Sequence[BatchItem[int, int]]) -> None:
        groups.append([each.item for each in batch])
        await asyncio.sleep(0)
        for each in batch:
            each.tell(each.item // 2 if each.item % 2 == 0 else ValueError(each.item))

    async def all_of_them() -> list[int | BaseException]:
        batches = BatchQueue(halved, most=4, at_once=1)
        return await asyncio.gather(*(batches.done("kind", number) for number in range(6)), return_exceptions=True)

    results = asyncio.run(all_of_them())
    assert groups == [[0, 1, 2, 3], [4, 5]]
    assert [result for result in results if isinstance(result, int)] == [0, 1, 2]
    assert sum(isinstance(result, ValueError) for result in results) == 3


def test_who_is_told_a_result_may_hand_in_the_next_item_at_once() -> None:
    async def same(batch: Sequence[BatchItem[int, int]]) -> None:
        for each in batch:
            each.tell(each.item)

    async def one_after_the_other() -> list[int]:
        batches = BatchQueue(same, most=4, at_once=1)
        async with asyncio.timeout(20):
            return [await batches.done("kind", number) for number in range(3)]

    assert asyncio.run(one_after_the_other()) == [0, 1, 2]


def test_answers_are_compiled_by_themselves_in_one_crate_and_told_apart() -> None:
    texts = (RIGHT, 'pub fn f() -> i32 { "a" }', "pub fn f( {", "#![macro_use]\npub fn f() {}", "// nothing")

    async def compiled() -> list[bool]:
        sandbox = ZygoteSandbox(strongest_isolation())
        try:
            return await RustVerifier(sandbox).compiling([(CASE, f"```rust\n{text}\n```") for text in texts])
        finally:
            await sandbox.close()

    # what may change the whole crate is not compiled with others, so nothing is known of it
    assert asyncio.run(compiled()) == [True, False, False, False, True]


@pytest.mark.parametrize(
    "code",
    [
        "#[macro_export]\nmacro_rules! plus { () => {}; }",
        "#![macro_use]",
        'extern "C" { fn abs(x: i32) -> i32; }',
        "impl From<Sum> for i32 { fn from(s: Sum) -> i32 { s.0 } }\nstruct Sum(i32);",
        "impl<T> std::ops::Add<Sum> for Vec<T> where T: Copy {}\nstruct Sum;",
        "macro_rules! all { ($t:ty) => { impl From<Sum> for $t {} } }\nstruct Sum;",
    ],
)
def test_an_answer_that_others_could_notice_is_compiled_alone(code: str) -> None:
    assert source.affects_whole_crate(source.rust_tokens(code + RIGHT))
    assert not source.affects_whole_crate(source.rust_tokens(RIGHT))
