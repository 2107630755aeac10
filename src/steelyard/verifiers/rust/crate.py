"""Answers compiled as the modules of one crate: a single one the same way as fifty.

Every answer is the file of a module with a random name, so it cannot know whether it is alone, and what the
compiler says about it is the same in both cases. First the answers are checked as a library, without any tests, by
clippy where it is installed: what compiles and what the linter minds. Then they are built with their tests and the
harness into one program.
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
from steelyard.verifiers.rust import case_tests, source
from steelyard.verifiers.rust.harness import HarnessModule, harness_program
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
}
"""Lints about who uses an answer, which here are the tests, and about attributes of a crate that it does not have."""
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

    def plain(self, text: str) -> str:
        """A text of the compiler's without the names that only this piece has."""
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
            f'#[path = "tests.rs"] pub(crate) mod {tests_module}; ',
            # in a module of its own a macro is brought in without a function of the same name
            f"mod {macros_module} {{ {lent}}}" if macros else "",
        ),
        tests=tests,
    )


Texts = dict[str, tuple[CrateModule, source.EditedSource]]
"""By module: an answer, and the text of its file."""


class CompilerMessages(NamedTuple):
    """The compiler's messages about one piece."""

    errors: tuple[Diagnostic, ...] = ()
    lints: tuple[Diagnostic, ...] = ()


class CompilationResult(NamedTuple):
    """How compiling some pieces went."""

    outcome: ProcessResult
    messages: dict[str, CompilerMessages]
    """By module."""
    elsewhere: tuple[str, ...]
    """Errors that belong to no piece."""
    linted: bool = False
    program: bytes = b""

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
        return bool(self.elsewhere or self.outcome.limit or cut_off or not spoke)


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
        wanted = ("--crate-type", "lib", "--emit", "metadata=check.rmeta", "check.rs")
        if self.tools.clippy:
            compiled = await self._compile(place, texts, (self.tools.clippy, *FORCED_LINT_ARGUMENTS, *wanted), seconds)
            if compiled.outcome.limit or not compiled.broke:
                return compiled._replace(linted=True)
        # a linter that crashes or is missing is no proof that the answer does not compile
        return await self._compile(place, texts, (self.tools.rustc, *wanted), seconds)

    async def build(self, place: Workspace, pieces: Sequence[CrateModule], seconds: float) -> CompilationResult:
        """Compile the answers with their tests and the harness into a program."""
        judged = [HarnessModule(each.module, each.tests_module, each.tests.found) for each in pieces]
        files = {f"{each.module}/answer.rs": each.built.text for each in pieces}
        files |= {f"{each.module}/tests.rs": each.tests.within(each.module, each.macros_module) for each in pieces}
        await place.write({"main.rs": harness_program(judged), **files})
        texts = {each.module: (each, each.built) for each in pieces}
        wanted = ("--crate-name=attempt", "--cap-lints=warn", "-Awarnings", "-Ccodegen-units=1", "-Cstrip=symbols")
        linking = (*dynamic_linking_arguments(self.tools), *self.linker.arguments)
        argv = (self.tools.rustc, *wanted, *linking, "main.rs", "-o", "attempt")
        compiled = await self._compile(place, texts, argv, seconds)
        made = await place.read("attempt", MAX_PROGRAM_BYTES) if compiled.outcome.exit_code == 0 else None
        return compiled._replace(program=made or b"")

    async def _compile(self, place: Workspace, texts: Texts, argv: Sequence[str], seconds: float) -> CompilationResult:
        compiler, *wanted = argv
        common = ("--sysroot", self.tools.sysroot, "--edition=2021", "-Cdebuginfo=0", "-Csymbol-mangling-version=v0")
        formats = ("--error-format=json", "--json=diagnostic-short")
        against = [argument for library in self.libraries for argument in library.arguments]
        outcome = await place.run(
            # of standard error only the beginning is kept
            ["/bin/sh", "-c", 'exec "$0" "$@" 2>&1', compiler, *common, *formats, *wanted, *against],
            limits=ResourceLimits(
                cpu_seconds=seconds,
                wall_seconds=2 * seconds + 10,
                memory_bytes=COMPILER_MEMORY_BYTES,
                file_bytes=MAX_PROGRAM_BYTES,
            ),
            environment=self.tools.environment,
        )
        if outcome.exit_code in (126, 127):
            raise VerifierError(f"{compiler} did not start: {outcome.stdout[-300:].decode('utf-8', 'replace')}")
        messages, elsewhere = _messages_by_module(outcome.stdout, texts)
        if ours := next((error for error in elsewhere if error.startswith(OWN_ERROR_PREFIXES)), None):
            raise VerifierError(f"the compiler lacks something of ours: {ours}")
        return CompilationResult(outcome, messages, elsewhere)


def _messages_by_module(printed: bytes, texts: Texts) -> tuple[dict[str, CompilerMessages], tuple[str, ...]]:
    """The compiler's messages by the pieces they speak of, and the errors that speak of none."""
    errors: dict[str, set[Diagnostic]] = {}
    lints: dict[str, set[Diagnostic]] = {}
    elsewhere: list[str] = []
    for line in printed.splitlines():
        message = _message(line)
        if message is None or message["level"] not in ("error", "warning", "error: internal compiler error"):
            continue
        code = (message.get("code") or {}).get("code")
        homes = {home[0] for span in message["spans"] if span["is_primary"] and (home := _owning_module(span, texts))}
        is_error = message["level"] != "warning"
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
        module: CompilerMessages(_sorted(errors.get(module, ())), _sorted(lints.get(module, ())))
        for module in {*errors, *lints}
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
    """The piece in whose file a span lies, or the macro call that led there, with the span in that file."""
    while span is not None:
        module, _, file = span["file_name"].partition("/")
        if module in texts and file in ("answer.rs", "tests.rs"):
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
    file = span["file_name"].partition("/")[2]
    first, last = span["line_start"], span["line_end"]
    begin, end = span["column_start"], span["column_end"]
    text: str | None = None
    if file == "answer.rs":
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
