"""Answers compiled as the modules of one crate: a single one the same way as fifty.

Every answer is the file of a module with a random name, so it cannot know whether it is alone, and what the
compiler says about it is the same in both cases. First the answers are checked as a library, without any tests, by
clippy where it is installed: what compiles and what the linter minds. Then they are built with their tests and the
harness into one program, as cargo would: without `cfg(clippy)`. The compiler reports which types the tests see and which files it read.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.errors import VerifierError
from steelyard.protocols import ProcessResult, ResourceLimits
from steelyard.records import Diagnostic, DiagnosticLevel, Span
from steelyard.verifiers.rust import case_tests, mir, neighbours, source
from steelyard.verifiers.rust.harness import HARNESS_CRATE, HarnessModule, harness_program
from steelyard.verifiers.rust.linker import LINK_ERROR_PREFIX, Linker, dynamic_linking_arguments

if TYPE_CHECKING:
    from steelyard.protocols import Workspace
    from steelyard.verifiers.rust.libraries import CompiledLibraries
    from steelyard.verifiers.rust.toolchain import Toolchain

MAX_DIAGNOSTICS_PER_ANSWER = 50
"""Diagnostics that are kept of one answer."""
MAX_RUSTC_MESSAGE_CHARS = 2000
"""Characters of a message that are kept."""
MAX_PROGRAM_BYTES = 256 << 20
"""The largest program that is fetched from the folder where it was built."""
COMPILER_MEMORY_BYTES = 4 << 30
UNSTABLE_REFUSED_PATTERN = re.compile(rb"\Aerror: the option `Z` is only accepted")
"""The beginning of the message of a compiler that accepts no unstable options."""
OWN_ERROR_PREFIXES = (
    "extern location",
    "can't find crate",
    "failed to write",
    "failed to create",
    "error writing",
    "couldn't create",
)
"""How errors begin that no answer can cause."""
UNCOUNTED_LINTS = {
    "dead_code",
    "unused_macros",
    "unused_macro_rules",
    "unused_attributes",
    "unused_extern_crates",
    "unused_features",
    "unused_visibilities",
    "unfulfilled_lint_expectations",
    "unsafe_code",
}
"""Lints about who uses an answer, which here are the tests, about attributes of a crate that it does not have, and ours."""
VALUE_LINTS = ("overflowing_literals", "arithmetic_overflow", "unconditional_panic")
"""Lints about values that the compiler takes for errors unless configured otherwise, in the tests as well."""
SHARED_CONFIGURATION = ("--crate-name=attempt", "-Ztrim-diagnostic-paths=no")
"""Options of checking and building; types are printed in full."""
MAX_MIR_BYTES = 256 << 20
TESTS_FILE = "tests.rs"
"""What the file of the tests is called in messages."""
METHOD_PROBE_IMPORTS = (
    "#![allow(unused)]\nuse std::{fmt::Write as _, io::{BufRead as _, Read as _, Write as _}, hash::{Hash as _, Hasher as _}, borrow::Borrow as _};\n"
    "#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)] pub struct Own;\n"
)
"""What tests often import, and a type that stands for those of an answer."""
NOT_A_METHOD_CODE = "E0615"
"""The compiler's code for a method that is used like a field, which proves that the method exists."""
UNSAFE_LINT = "unsafe_code"
FORCED_LINT_ARGUMENTS = ("--force-warn", "clippy::all", "--force-warn", "unused", "--force-warn", "nonstandard-style")
"""Lints that no attribute of an answer can silence or turn into errors."""


class CrateModule(NamedTuple):
    """An answer as a module of a crate."""

    module: str
    tests_module: str
    macros_module: str
    """Where the answer's macros are for its tests; empty when they use none."""
    code: str
    checked: source.EditedSource
    """The answer by itself."""
    built: source.EditedSource
    """The answer with its tests."""
    tests: case_tests.RustTests
    may_change_inference: bool
    """Whether it may change which errors others in its crate have."""

    @property
    def tests_file(self) -> str:
        """The name of the file of its tests, which no answer can guess."""
        return f"{self.module}/{self.tests_module}.rs"

    def plain(self, text: str) -> str:
        """A text of the compiler's without the names that only this piece has."""
        text = text.replace(case_tests.HARNESS_ALIAS, HARNESS_CRATE)
        for name in (self.tests_module, self.module):
            text = text.replace(f"{name}::", "").replace(f"::{name}", "").replace(f"{name}/", "").replace(name, "crate")
        return text


def crate_module(code: str, read: Sequence[source.RustToken], tests: case_tests.RustTests) -> CrateModule:
    """An answer, with its tokens, made ready for a crate."""
    module, tests_module, macros_module = (f"{kind}_{secrets.token_hex(4)}" for kind in "mtn")
    # the tests see no macro of the answer but those they ask for by a name that means nothing else
    names = source.defined_names(read)
    macros = names.macros & tests.called - set(case_tests.STD_MACROS)
    lent = "".join(
        f"pub(crate) use {'crate::' if name in names.exported_macros else ''}{name}; " for name in sorted(macros)
    )
    return CrateModule(
        module=module,
        tests_module=tests_module,
        macros_module=macros_module if macros else "",
        code=code,
        checked=source.module_source(code, read, module, "", ""),
        built=source.module_source(
            code,
            read,
            module,
            f"pub(crate) mod {tests_module}; ",
            # in a module of its own a macro is brought in without a function of the same name
            f"mod {macros_module} {{ {lent}}}" if macros else "",
        ),
        tests=tests,
        may_change_inference=neighbours.may_change_inference(read),
    )


Texts = dict[str, tuple[CrateModule, source.EditedSource]]
"""By module: an answer, and the text of its file."""


class CompilerMessages(NamedTuple):
    """The compiler's messages about one piece."""

    errors: tuple[Diagnostic, ...] = ()
    lints: tuple[Diagnostic, ...] = ()
    is_unsafe: bool = False
    """Whether the compiler found code that can read and write any memory, or that replaces what others define."""


class CompilationResult(NamedTuple):
    """How compiling some pieces went."""

    outcome: ProcessResult
    messages: dict[str, CompilerMessages]
    """By module."""
    elsewhere: tuple[str, ...]
    """Errors that belong to no piece."""
    linted: bool = False
    linter_crashed: bool = False
    program: bytes = b""
    functions: dict[str, tuple[mir.MirFunction, ...]] = {}
    """By module: its functions, with the types that they see."""
    other_files: tuple[str, ...] = ()
    """Files that were read and are not ours."""

    def of(self, piece: CrateModule) -> CompilerMessages:
        """What was said of a piece."""
        return self.messages.get(piece.module, CompilerMessages())

    @property
    def failed(self) -> set[str]:
        """The modules that did not compile."""
        return {module for module, messages in self.messages.items() if messages.errors}

    @property
    def failed_to_link(self) -> bool:
        """Whether the linker failed; an answer can cause that, and so can a broken linker."""
        return any(error.startswith(LINK_ERROR_PREFIX) for error in self.elsewhere)

    @property
    def broke(self) -> bool:
        """Whether the compiler ended without naming what is wrong with which piece."""
        printed = self.outcome.stdout
        cut_off = bool(printed) and not printed.endswith(b"\n")
        denied = any(
            lint.level == DiagnosticLevel.ERROR for messages in self.messages.values() for lint in messages.lints
        )
        spoke = self.outcome.exit_code == 0 or (self.outcome.exit_code == 1 and (self.failed or denied))
        return bool(self.elsewhere or self.other_files or self.outcome.limit or cut_off or not spoke)


class RustCompiler(NamedTuple):
    """The toolchain with the libraries that answers are compiled against."""

    tools: Toolchain
    linker: Linker
    libraries: tuple[CompiledLibraries, ...]

    @property
    def readable(self) -> list[str]:
        return [*self.tools.readable, *self.linker.readable, *(library.folder for library in self.libraries)]

    async def check(self, place: Workspace, pieces: Sequence[CrateModule], seconds: float) -> CompilationResult:
        """Compile the answers by themselves, as a library, and ask the linter."""
        root = "".join(f'#[path = "{each.module}/answer.rs"] pub mod {each.module};\n' for each in pieces)
        files = {f"{each.module}/answer.rs": each.checked.text for each in pieces}
        # clippy would go on looking for its settings in the folders above
        await place.write({"check.rs": root, "clippy.toml": "", **files})
        texts = {each.module: (each, each.checked) for each in pieces}
        wanted = ("--crate-type", "lib", "--emit", "metadata=check.rmeta", "--force-warn", UNSAFE_LINT, "check.rs")
        if self.tools.clippy:
            linted = await self._compile(place, texts, (self.tools.clippy, *FORCED_LINT_ARGUMENTS, *wanted), seconds)
            if linted.outcome.limit or not linted.broke:
                linted = linted._replace(linted=True)
                if linted.outcome.limit or linted.failed or all(each.tests.found for each in pieces):
                    return linted
                # what has no tests is built nowhere else, and clippy's own build has `cfg(clippy)`
                compiled = await self._compile(place, texts, (self.tools.rustc, *wanted), seconds)
                return compiled._replace(messages=_with_lints_of(linted, compiled, pieces), linted=True)
        # a linter that crashes or is missing is not proof that the answer does not compile
        compiled = await self._compile(place, texts, (self.tools.rustc, *wanted), seconds)
        return compiled._replace(linter_crashed=bool(self.tools.clippy))

    async def build(self, place: Workspace, pieces: Sequence[CrateModule], seconds: float) -> CompilationResult:
        """Compile the answers with their tests and the harness into a program."""
        judged = [HarnessModule(each.module, each.tests_module, each.tests.found) for each in pieces]
        files = {f"{each.module}/answer.rs": each.built.text for each in pieces}
        files |= {each.tests_file: each.tests.within(each.module, each.macros_module) for each in pieces}
        root = f"r_{secrets.token_hex(8)}.rs"
        files[root] = harness_program(judged) + mir.PROBE_SOURCE
        await place.write(files)
        texts = {each.module: (each, each.built) for each in pieces}
        lints = [argument for lint in (*VALUE_LINTS, UNSAFE_LINT) for argument in ("--force-warn", lint)]
        wanted = ("--cap-lints=warn", "-Awarnings", *lints, "-Ccodegen-units=1", "-Cstrip=symbols")
        linking = (*dynamic_linking_arguments(self.tools), *self.linker.arguments)
        made = ("--emit", "link=attempt,mir=types.mir,dep-info=files.d")
        compiled = await self._compile(place, texts, (self.tools.rustc, *wanted, *linking, *made, root), seconds)
        compiled = compiled._replace(messages=_with_denied_lints(compiled, pieces))
        if compiled.outcome.exit_code:
            return compiled
        types = await place.read("types.mir", MAX_MIR_BYTES) or b""
        read = (await place.read("files.d") or b"").decode("utf-8", "replace")
        return compiled._replace(
            program=await place.read("attempt", MAX_PROGRAM_BYTES) or b"",
            functions=mir.mir_functions(
                types.decode("utf-8", "replace"), {each.module: each.tests_module for each in pieces}
            ),
            other_files=tuple(sorted(_files_read(read) - files.keys())),
        )

    async def has_method(self, place: Workspace, type_name: str, method: str, seconds: float) -> bool:
        """Whether a type has a method of this name without any answer."""
        # a closure has no name that could be written
        written = re.sub(r"\{closure@[^}]*\}", "fn()", type_name)
        written = re.sub(r"'(?!static\b)\w+", "'_", written)
        # the parameters of a function of the tests
        names = dict.fromkeys(re.findall(r"(?<![\w:'])[A-Z]\w*\b(?!::)", written))
        parameters = ", ".join(f"{name}: Clone + Ord" for name in names if name != "Own")
        text = f"{METHOD_PROBE_IMPORTS}pub fn method<{parameters}>(value: &{written}) {{ let _ = value.r#{method}; }}\n"
        await place.write({"method.rs": text})
        wanted = ("--crate-type", "lib", "--emit", "metadata=method.rmeta", "method.rs")
        compiled = await self._compile(place, {}, (self.tools.rustc, *wanted), seconds)
        return f'"code":"{NOT_A_METHOD_CODE}"'.encode() in compiled.outcome.stdout

    async def fits_tests(self, place: Workspace, piece: CrateModule, signature: str, seconds: float) -> bool:
        """Whether the tests of an answer accept a function with this signature in place of its own."""
        stub = f"#[allow(unused)] pub(crate) {case_tests.with_standard_paths(signature)} {{ loop {{}} }} "
        tests = piece.tests.within(piece.module, piece.macros_module, stub)
        await place.write(
            {
                "stub.rs": f'#[path = "{piece.module}/answer.rs"] mod {piece.module};\n',
                f"{piece.module}/answer.rs": piece.built.text,
                piece.tests_file: tests,
            }
        )
        wanted = ("--crate-type", "lib", "--emit", "metadata=stub.rmeta", "--cap-lints=warn", "-Awarnings", "stub.rs")
        texts = {piece.module: (piece, piece.built)}
        compiled = await self._compile(place, texts, (self.tools.rustc, *wanted), seconds)
        return compiled.outcome.exit_code == 0

    async def _compile(self, place: Workspace, texts: Texts, argv: Sequence[str], seconds: float) -> CompilationResult:
        compiler, *wanted = argv
        common = ("--sysroot", self.tools.sysroot, "--edition=2021", "-Cdebuginfo=0", "-Csymbol-mangling-version=v0")
        formats = ("--error-format=json", "--json=diagnostic-short")
        against = [argument for library in self.libraries for argument in library.arguments]
        outcome = await place.run(
            [compiler, *common, *SHARED_CONFIGURATION, *formats, *wanted, *against],
            limits=ResourceLimits(
                cpu_seconds=seconds,
                wall_seconds=2 * seconds + 10,
                memory_bytes=COMPILER_MEMORY_BYTES,
                file_bytes=MAX_PROGRAM_BYTES,
                compiles=True,
            ),
            # a stable compiler prints types with their paths only when it takes options that are not stable; no answer
            # can use what else that allows, because it is never the root of a crate
            environment={**self.tools.environment, "RUSTC_BOOTSTRAP": "1"},
            # of standard error only the beginning is kept
            one_output=True,
        )
        if outcome.exit_code in (126, 127):
            raise VerifierError(f"{compiler} did not start: {outcome.stdout[-300:].decode('utf-8', 'replace')}")
        if outcome.exit_code and UNSTABLE_REFUSED_PATTERN.search(outcome.stdout):
            # without them it does not say which types the tests see, and nothing that it compiles can be trusted
            raise VerifierError(
                f"{compiler} takes no options that are not stable, even with RUSTC_BOOTSTRAP=1; use the one that rustup installs"
            )
        messages, elsewhere = _messages_by_module(outcome.stdout, texts)
        if ours := next((error for error in elsewhere if error.startswith(OWN_ERROR_PREFIXES)), None):
            raise VerifierError(f"the compiler lacks something of ours: {ours}")
        return CompilationResult(outcome, messages, elsewhere)


def _with_lints_of(
    linted: CompilationResult, compiled: CompilationResult, pieces: Iterable[CrateModule]
) -> dict[str, CompilerMessages]:
    """The messages of a compilation with the lints of another one."""
    return {each.module: compiled.of(each)._replace(lints=linted.of(each).lints) for each in pieces}


def _with_denied_lints(compiled: CompilationResult, pieces: Sequence[CrateModule]) -> dict[str, CompilerMessages]:
    """The messages, in which what the compiler denies by default about the tests is an error unless they allow it.

    Unsafe code is an error beside others: it could reach into what they are linked into, and is judged alone.
    """
    judged = dict(compiled.messages)
    for piece in pieces:
        found = compiled.of(piece)
        denied = tuple(
            lint
            for lint in found.lints
            if lint.code in VALUE_LINTS and lint.code not in piece.tests.source and is_about_tests(lint)
        )
        if found.is_unsafe and len(pieces) > 1:
            denied += (Diagnostic(level=DiagnosticLevel.ERROR, message="unsafe code", code=UNSAFE_LINT),)
        if denied:
            judged[piece.module] = found._replace(errors=found.errors + denied)
    return judged


def is_about_tests(message: Diagnostic) -> bool:
    """Whether a message of the compiler's speaks of the tests."""
    return any(span.file == TESTS_FILE for span in message.spans)


def _files_read(rules: str) -> set[str]:
    """The files in the rules that the compiler writes for make."""
    return {name for line in rules.splitlines() for name in line.partition(": ")[2].split() if not line.startswith("#")}


def _messages_by_module(printed: bytes, texts: Texts) -> tuple[dict[str, CompilerMessages], tuple[str, ...]]:
    """The compiler's messages by the pieces they speak of, and the errors that speak of none."""
    errors: dict[str, set[Diagnostic]] = {}
    lints: dict[str, set[Diagnostic]] = {}
    elsewhere: list[str] = []
    unsafe: set[str] = set()
    for line in printed.splitlines():
        message = _message(line)
        if message is None or message["level"] not in ("error", "warning", "error: internal compiler error"):
            continue
        code = (message.get("code") or {}).get("code")
        places = [home for span in message["spans"] if span["is_primary"] and (home := _owning_module(span, texts))]
        homes = {module for module, _ in places}
        is_error = message["level"] != "warning"
        if code == UNSAFE_LINT:
            unsafe |= {module for module, span in places if span["file_name"].endswith("/answer.rs")}
        if not is_error and (code is None or code in UNCOUNTED_LINTS):
            continue
        if not homes:
            if is_error and not message["message"].startswith(("aborting due to", "could not compile")):
                elsewhere.append(message["message"].partition("\n")[0][:MAX_RUSTC_MESSAGE_CHARS])
            continue
        for module in homes:
            diagnostic = _diagnostic(message, code, module, texts)
            # deny(clippy::all) in an answer is a lint, not an error of compilation
            is_lint = not is_error or (code or "").startswith("clippy::")
            (lints if is_lint else errors).setdefault(module, set()).add(diagnostic)
    messages = {
        module: CompilerMessages(_sorted(errors.get(module, ())), _sorted(lints.get(module, ())), module in unsafe)
        for module in {*errors, *lints, *unsafe}
    }
    return messages, tuple(elsewhere)


def _message(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        message = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        return None
    return message if isinstance(message, dict) and {"level", "spans", "message"} <= message.keys() else None


def _owning_module(span: dict[str, Any] | None, texts: Texts) -> tuple[str, dict[str, Any]] | None:
    """The piece whose file contains a span, or the macro call that led there, with the span in that file."""
    while span is not None:
        module, _, file = span["file_name"].partition("/")
        if module in texts and file in ("answer.rs", f"{texts[module][0].tests_module}.rs"):
            return module, span
        span = (span.get("expansion") or {}).get("span")
    return None


def _diagnostic(message: dict[str, Any], code: str | None, module: str, texts: Texts) -> Diagnostic:
    homes = [_owning_module(span, texts) for span in message["spans"] if span["is_primary"]]
    spans = [_span(home[1], *texts[module]) for home in homes if home and home[0] == module]
    level = DiagnosticLevel.WARNING if message["level"] == "warning" else DiagnosticLevel.ERROR
    text = texts[module][0].plain(message["message"])[:MAX_RUSTC_MESSAGE_CHARS]
    return Diagnostic(level=level, message=text, code=code, spans=tuple(dict.fromkeys(spans)))


def _span(span: dict[str, Any], piece: CrateModule, edited: source.EditedSource) -> Span:
    is_answer = span["file_name"].endswith("/answer.rs")
    file = "answer.rs" if is_answer else TESTS_FILE
    first, last = span["line_start"], span["line_end"]
    begin, end = span["column_start"], span["column_end"]
    text: str | None = None
    if is_answer:
        begin, end = edited.column(first, begin), edited.column(last, end)
        lines = piece.code.split("\n")
        text = lines[first - 1].strip()[:300] if first <= len(lines) else None
    return Span(file=file, line_start=first, line_end=last, column_start=begin, column_end=end, text=text)


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By place, in an order that does not depend on the compiler's."""

    def place(diagnostic: Diagnostic) -> tuple[Any, ...]:
        spans = [(span.file, span.line_start, span.column_start) for span in diagnostic.spans]
        return (spans, diagnostic.code or "", diagnostic.message)

    return tuple(sorted(diagnostics, key=place))


def stable_output(output: bytes, piece: CrateModule) -> str:
    """What the code printed, without the names and numbers that differ from run to run."""
    text = re.sub(r"^(thread '.*') \(\d+\) ", r"\1 ", output.decode("utf-8", "replace"), flags=re.MULTILINE)
    return piece.plain(text)
