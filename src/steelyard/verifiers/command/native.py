"""Whether a program of an answer in C and its tests still has the tests' own main, assert and printf."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from steelyard.protocols import Workspace
from steelyard.records import Case
from steelyard.text import word_set
from steelyard.verifiers.command.c_library import HARMLESS_IMPORT_PATTERN, has_hold_of_streams
from steelyard.verifiers.command.settings import CommandSettings

REPORTING_FUNCTIONS = word_set(
    "printf fprintf dprintf sprintf snprintf vprintf vfprintf vdprintf vsprintf vsnprintf puts fputs putchar putc "
    "fputc fwrite write writev perror fopen fclose fflush setvbuf setbuf __printf_chk __fprintf_chk "
    "__vfprintf_chk __snprintf_chk __sprintf_chk __assert_fail __assert __assert_perror_fail abort exit _exit "
    "_Exit quick_exit raise __libc_start_main _start __errno_location strcmp strncmp memcmp strcasecmp fabs"
)
"""Functions of the C library by which tests compare and report."""
ENDING_FUNCTIONS = frozenset(
    [
        *("exit", "_exit", "_Exit", "quick_exit", "atexit", "at_quick_exit", "on_exit", "syscall"),
        *(
            "execl",
            "execlp",
            "execle",
            "execv",
            "execvp",
            "execve",
            "execvpe",
            "fexecve",
            "posix_spawn",
            "posix_spawnp",
        ),
        *("fork", "vfork", "clone", "system", "popen", "kill", "raise", "pthread_exit", "pthread_kill", "sigqueue"),
        *("signal", "sigaction", "sigset", "bsd_signal", "sysv_signal", "__sysv_signal", "alarm", "setitimer"),
        *("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "setcontext", "swapcontext", "ptrace", "prctl"),
        *(
            "lseek",
            "lseek64",
            "fseek",
            "fseeko",
            "rewind",
            "ftruncate",
            "ftruncate64",
            "truncate",
            "pwrite",
            "pwrite64",
        ),
        # and those by which it could read what they expect
        *(
            "fopen",
            "fopen64",
            "open",
            "open64",
            "openat",
            "openat64",
            "opendir",
            "scandir",
            "nftw",
            "ftw",
            "glob",
            "mmap",
            "mmap64",
        ),
        *("freopen", "freopen64", "dup", "dup2", "dup3", "close", "fdopen", "mprotect", "dlopen", "dlsym", "dlmopen"),
    ]
)
"""Functions by which code that is linked statically could end its tests, change what they have said, or read their files."""
OWN_MACHINE_CODE_PATTERN = re.compile(
    r"\b(?:__)?asm(?:__)?\b|##|#\s*embed\b|\b(?:ifunc|destructor|fini_array|__executable_start|_end|_edata|_etext|__bss_start|__data_start)\b"
)
"""Other ways of an answer to do the same, or to name such a function indirectly."""
NATIVE_COMPILERS = frozenset(("cc", "gcc", "clang", "c99", "c11", "c17", "tcc", "g++", "c++", "clang++"))
EXTRA_INITIALIZERS_PATTERN = re.compile(
    r"-static\b|-fsanitize|-pg\b|--coverage|-fprofile|\+\+|\.so\b|-l(?!m\b|pthread\b)"
)
"""What in a build command may add code of its own that runs before main."""
INSPECT_SCRIPT = """
command -v nm >/dev/null && command -v readelf >/dev/null || exit 3
for program; do
    nm --defined-only -- "$program" 2>/dev/null; nm -D --defined-only -- "$program" 2>/dev/null
    readelf -SW -- "$program" 2>/dev/null
    nm -D --undefined-only -- "$program" 2>/dev/null
done
"""
SYMBOL_PATTERN = re.compile(r"^[0-9a-f]+ [A-Za-z] (\w+)(?:@\S+)?$", re.MULTILINE)
IMPORT_PATTERN = re.compile(r"^ +[Uw] (\w+)(?:@\S+)?$", re.MULTILINE)
INITIALIZERS_PATTERN = re.compile(
    r" \.(?P<section>preinit_array|init_array|ctors)\s+\w+\s+[0-9a-f]+ [0-9a-f]+ (?P<bytes>[0-9a-f]+)"
)
POINTER_BYTES = 8


class NativeInspection(NamedTuple):
    """What was found in a program before it ran."""

    is_known: bool
    """Whether the tools that look into programs are there."""
    replaced: str = ""
    """A function that the tests need and the answer replaces; empty for none."""
    runs_before_main: bool = False
    may_end_tests: bool = False
    """Whether the answer has the means to end the tests, or to change what they have said, before they are done."""


async def inspect_program(place: Workspace, case: Case, answer: str) -> NativeInspection | None:
    """What the program that the tests run is made of; None when no C compiler makes one."""
    said = CommandSettings.of(case)
    build = said.build
    programs = sorted({word for word in _words(said.test) if word.startswith("./")})
    if not programs or not NATIVE_COMPILERS & set(_words(build)):
        return None
    looked = await place.run(["/bin/sh", "-c", INSPECT_SCRIPT, "sh", *programs])
    if looked.exit_code == 3:
        return NativeInspection(is_known=False)
    printed = looked.stdout.decode("utf-8", "replace")
    asked = set(re.findall(r"\w+", " ".join([*(message.text for message in case.messages), case.reference])))
    known = asked | set(case.expectations.expected_functions)
    replaced = sorted(set(SYMBOL_PATTERN.findall(printed)) & REPORTING_FUNCTIONS - known - {"_start"})
    # the compiler itself puts one into each program
    is_early = any(
        int(found["bytes"], 16) > (0 if found["section"] == "preinit_array" else POINTER_BYTES)
        for found in INITIALIZERS_PATTERN.finditer(printed)
    )
    is_usual = bool(EXTRA_INITIALIZERS_PATTERN.search(build)) or any(
        "constructor" in text for text in CommandSettings.of(case).files.values()
    )
    return NativeInspection(
        is_known=True,
        replaced=replaced[0] if replaced else "",
        runs_before_main=is_early and not is_usual,
        may_end_tests=_may_end_tests(answer, set(IMPORT_PATTERN.findall(printed)), case),
    )


def _may_end_tests(answer: str, imported: set[str], case: Case) -> bool:
    """Whether an answer could end its tests early: functions that only the tests name are theirs."""
    words = set(re.findall(r"\w+", answer))
    files = CommandSettings.of(case).files
    of_tests = {word for text in files.values() for word in re.findall(r"\w+", text)}
    # a program that is linked statically imports nothing, and has every function in it
    reached = (
        {name for name in imported if not HARMLESS_IMPORT_PATTERN.fullmatch(name)}
        if imported
        else ENDING_FUNCTIONS & words
    )
    named = (reached - of_tests) | (reached & words)
    is_reading_tests = any(name in answer for name in files if not name.endswith((".h", ".hpp")))
    has_means = is_reading_tests or has_hold_of_streams(answer) or bool(OWN_MACHINE_CODE_PATTERN.search(answer))
    return bool(named) or has_means


def redefined_by_macro(case: Case, code: str) -> str:
    """A word of the tests that an included answer redefines; empty if there is none."""
    said = CommandSettings.of(case)
    name = re.escape(said.answer)
    including = [text for text in said.files.values() if re.search(rf'#\s*include\s*"(?:\./)?{name}"', text)]
    if not including:
        return ""
    spliced = re.sub(r"/\*.*?\*/", " ", re.sub(r"(?:\\|\?\?/)\r?\n", "", code), flags=re.DOTALL)
    defined = set(re.findall(r"(?:^|\n)[ \t]*(?:#|%:|\?\?=)[ \t]*(?:define|undef)[ \t]+(\w+)", spliced))
    asked = set(re.findall(r"\w+", " ".join([*(message.text for message in case.messages), case.reference])))
    text = "\n".join(including)
    own = set(re.findall(r"#\s*(?:define|undef|ifdef|ifndef)\s+(\w+)", text))
    # without a word in the tests, NDEBUG decides what assert means
    used = (set(re.findall(r"\w+", text)) | {"NDEBUG"}) - own - asked
    return next(iter(sorted(defined & used)), "")


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.wordchars += "+"
    return list(lexer)
