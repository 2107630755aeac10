"""What proves that the tests of a command came to their end, and which answers have the means to fake that.

A pass of an answer with such means counts, but only as `unproved`: the tests may have been made to say what they did not find. Looking
at its text is a bar and not a wall; compiled programs are looked into as well (`native`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.settings import CommandSettings

END_PLACEHOLDER = "STEELYARD_END_OF_TESTS"
"""The placeholder for the secret that tests print last, in a file of a case."""
SUBSTITUTING_SHELL_PATTERN = re.compile(r"\b(?:bash|zsh|ksh)\b")
PROCESS_SUBSTITUTION_PATTERN = re.compile(r"[<>]\(|/dev/fd\b")
SCRIPT_COMMAND_PATTERN = re.compile(r"(?:node|python3?|sh|dash|bash|perl)(?: -[^-\s]\S*)* (?P<script>[\w./-]+)")
"""A test command that only runs a script."""
SCRIPT_ENDS = {
    ".js": ';process.once("beforeExit", () => console.log("{secret}"));',
    ".py": 'print("{secret}")',
    ".sh": "[ $? -eq 0 ] && echo {secret}",
    ".pl": 'print "\\n{secret}\\n";',
}
"""By the ending of a script's name: the code that we append. Node says it when nothing is left to do."""
SCRIPT_ENDS |= {".mjs": SCRIPT_ENDS[".js"], ".cjs": SCRIPT_ENDS[".js"]}
OWN_END_PATTERN = re.compile(
    r"\bexit\b|\b_exit\b|\bquit\b|\bexec\b|\babort\b|__END__|__DATA__|\bunittest\b|\batexit\b|\btrap\b"
)
"""Words of a script that may end it early, so that our last line may not be reached."""


class EndProof(NamedTuple):
    """A secret that the tests of one attempt print last."""

    secret: str
    built: Mapping[str, str]
    """The files that the answer is built with."""
    tested: Mapping[str, str]
    """The files that the tests run with: the secret is in a script that is run, and no longer in what was compiled."""

    def is_in(self, printed: bytes) -> bool:
        """Whether the tests printed it."""
        return self.secret.encode() in printed

    def without(self, text: str) -> str:
        """What was printed, without what differs for every attempt."""
        return re.sub(rf"\n?{self.secret}\n?", "\n", text).strip("\n")


def end_proof(case: Case) -> EndProof | None:
    """The proof for a case that only looks at an exit code; None if there is none."""
    said = CommandSettings.of(case)
    files = said.files
    secret = secrets.token_hex(16)
    found = SCRIPT_COMMAND_PATTERN.fullmatch(" ".join(said.test.split()))
    script = str(PurePosixPath(found["script"])) if found else ""
    if any(END_PLACEHOLDER in text for text in files.values()):
        built = {name: text.replace(END_PLACEHOLDER, secret) for name, text in files.items()}
        is_compiled = bool(said.build) and END_PLACEHOLDER not in files.get(script, "")
        return EndProof(secret, built, files if is_compiled else built)
    last = SCRIPT_ENDS.get(PurePosixPath(script).suffix, "")
    if not last or script not in files or OWN_END_PATTERN.search(files[script]):
        return None
    ended = {**files, script: f"{files[script]}\n{last.replace('{secret}', secret)}\n"}
    return EndProof(secret, ended, ended)


MEANS_PATTERNS = {
    "javascript": re.compile(
        r"\b(?:process|require|globalThis|global|eval|Function|Reflect|Worker|setPrototypeOf|defineProperty|defineProperties"
        r"|__proto__|__defineGetter__|captureStackTrace|prepareStackTrace|getPrototypeOf)\b"
        r"|\bimport\b(?!\s*(?:[\w$*\s{},]+\sfrom\s*)?[\"']\./[\w./-]+[\"'])|\[\s*`"
        r"|\.\s*(?:constructor|prototype)\b|\\u|\\x|\[\s*[\"'`][^\"'`\n]*[\"'`]\s*\+"
        r"|\b(?:setTimeout|setInterval|setImmediate|queueMicrotask|console\.\w+)\s*=(?![=>])"
    ),
    "python": re.compile(
        r"\b(?:os|sys|signal|atexit|inspect|gc|ctypes|builtins|importlib|threading|traceback|unittest|pytest|subprocess|exit|quit"
        r"|open|eval|exec|compile|getattr|setattr|globals|vars|attrgetter|methodcaller|posix|pathlib|io|codecs|fileinput|linecache"
        r"|tokenize|glob|shutil|mmap|runpy|pkgutil|zipimport|multiprocessing|platform|pty|resource|socket|_(?:os|sys|io|thread|signal|imp|posixsubprocess))\b"
        r"|__(?:globals|closure|code|main|builtins|import|subclasses|dict|class|getattribute|traceback|file)__"
    ),
    "shell": re.compile(
        r"\b(?:exit|exec|trap|kill|eval|alias|source|unset|find|PATH|IFS|ENV|set)\b|[*?]\.\w|\w[*?](?=[\s.;)])|\$\{?0|\$\$|\bBASH_|[<>]&?\d"
        r"|^\s*(?:function\s+)?(?:\[|test|true|false|echo|printf|diff|cmp|grep|cat)\s*\(\)",
        re.MULTILINE,
    ),
    "perl": re.compile(
        r"\b(?:exit|exec|die|kill|fork|open|eval|require|BEGIN|END|CORE|DATA|syscall|POSIX|main|glob|ARGV|IO|File|system|sysopen|qx|readpipe|do)\b|`|\$0|[%$]SIG|\*\{"
    ),
}  # fmt: skip
"""By language: what in an answer reaches the process that its tests run in, or their files."""
SHELL_INDIRECTION_PATTERN = re.compile(
    r"(?:^|[;&|({]|\b(?:then|do|else))[ \t]*(?:[\"']?\$\{?[A-Za-z_@*]|\.[ \t]|\w*[\"'\\]\w)", re.MULTILINE
)
"""A command of a shell whose name is in a variable or in quotes, and a file that is read as a script."""
SHELL_FUNCTION_PATTERN = re.compile(
    r"(?:^|[;&|{}(])\s*(?:function\s+([^\s(){};]+)|[\"']?([^\s(){};\"'$]+)[\"']?\s*\(\s*\))", re.MULTILINE
)
OWN_METHOD_PATTERN = re.compile(
    r"(?:^|[{,;}])\s*(?:static\s+|async\s+|get\s+)*([A-Za-z_$][\w$]*)\s*(?:\([^()]*\)\s*\{|[:=]\s*(?:async\s*)?(?:function\b|\w+\s*=>|\([^()]*\)\s*=>))"
)
"""A method of an object or a class in JavaScript."""
JUDGING_METHODS = frozenset(
    (
        *(
            "includes",
            "has",
            "every",
            "some",
            "equals",
            "isEqual",
            "indexOf",
            "find",
            "findIndex",
            "filter",
            "startsWith",
            "endsWith",
        ),
        *(
            "test",
            "match",
            "forEach",
            "entries",
            "keys",
            "values",
            "slice",
            "map",
            "reduce",
            "localeCompare",
            "toEqual",
        ),
    )
)
"""Methods by which tests ask a result of the language's own types whether it is right."""
CODE_FROM_TEXT_PATTERN = re.compile(
    r"\b(?:eval|Function|vm|prototype|globalThis|mock|spyOn|setPrototypeOf|defineProperty)\b"
)
"""What in tests may change the language itself, or make code out of text."""
COMPILED_LANGUAGES = ("c", "cpp")
"""Languages whose programs are looked into once they are built."""
OTHER_MEANS_PATTERN = re.compile(
    r"\b(?:exit|_exit|_Exit|Exit|quick_exit|quit|halt|abort|kill|exec|execve|fork|atexit|at_exit|syscall|Syscall|Runtime|unsafe|reflect|asm)\b"
)


def has_means_to_end_tests(case: Case, code: str) -> bool:
    """Whether the text of an answer names what could end its tests, or their files."""
    language = canonical_language(case.language)
    if language in COMPILED_LANGUAGES:
        return False
    pattern = MEANS_PATTERNS.get("javascript" if language == "typescript" else language, OTHER_MEANS_PATTERN)
    is_naming_tests = any(name in code for name in CommandSettings.of(case).files)
    return is_naming_tests or bool(pattern.search(code)) or _answers_for_tests(case, code, language)


def _answers_for_tests(case: Case, code: str, language: str) -> bool:
    """Whether an answer defines, unasked, what its tests call to judge it: a command of the shell, or a method of a result."""
    asked = set(re.findall(r"\w+", " ".join([*(message.text for message in case.messages), case.reference])))
    tests = "\n".join(CommandSettings.of(case).files.values())
    if language == "shell":
        defined = {name for names in SHELL_FUNCTION_PATTERN.findall(code) for name in names if name}
        called = set(re.findall(r"[^\s;&|(){}]+", tests))
        return bool(defined & called - asked) or bool(SHELL_INDIRECTION_PATTERN.search(code))
    if language in ("javascript", "typescript"):
        named = {*OWN_METHOD_PATTERN.findall(code), *re.findall(r"[\"'`](\w+)[\"'`]", code)}
        defined = named & JUDGING_METHODS - asked
        is_proxy = bool(re.search(r"\bProxy\b", code)) and "Proxy" not in asked
        return is_proxy or bool(defined & set(re.findall(r"\.\s*(\w+)\s*\(", tests)))
    return False


def is_language_left_alone(case: Case) -> bool:
    """Whether the tests of a case in JavaScript neither change the language's own objects nor make code out of text."""
    return not any(CODE_FROM_TEXT_PATTERN.search(text) for text in CommandSettings.of(case).files.values())


def needs_descriptor_paths(case: Case, code: str) -> bool:
    """Whether a shell runs something that it can only do with `/dev/fd`: an answer or tests with `<(...)` in them."""
    said = CommandSettings.of(case)
    is_in_shell = any(SUBSTITUTING_SHELL_PATTERN.search(command) for command in (said.run, said.test))
    return is_in_shell and any(PROCESS_SUBSTITUTION_PATTERN.search(text) for text in (code, *said.files.values()))
