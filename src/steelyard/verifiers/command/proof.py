"""What proves that the tests of a command came to their end, and which answers have the means to fake that.

A pass of an answer with such means counts, but only as `unproved`: the tests may have been made to say what they did not find. Looking
at its text is a bar and not a wall; compiled programs are looked into as well (`native`).
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from steelyard.records import Case
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.own_judges import answers_for_tests
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
        r"|\bconsole\b(?!\s*\??\.\s*(?:log|error|warn|info|debug|table|group|groupCollapsed|groupEnd|time|timeEnd|timeLog|trace|assert|count|countReset|dir)\b)"
    ),
    "python": re.compile(
        r"\b(?:os|sys|signal|atexit|inspect|gc|ctypes|builtins|importlib|threading|traceback|unittest|pytest|subprocess|exit|quit"
        r"|open|eval|exec|compile|getattr|setattr|globals|vars|attrgetter|methodcaller|posix|pathlib|io|codecs|fileinput|linecache"
        r"|tokenize|glob|shutil|mmap|runpy|pkgutil|zipimport|multiprocessing|platform|pty|resource|socket|_(?:os|sys|io|thread|signal|imp|posixsubprocess))\b"
        r"|__(?:globals|closure|code|main|builtins|import|subclasses|dict|class|getattribute|traceback|file|self|loader|spec|mro|bases?|reduce|reduce_ex)__"
        r"|\b(?:pickle|marshal|shelve|(?:gi|cr|ag|tb)_frame|f_(?:back|globals|locals|code)|get_type_hints|redirect_std\w+)\b"
        r"|\b(?:import|from)\s+(?:timeit|doctest|cProfile|profile|pdb|bdb|code|codeop|trace|rlcompleter)\b"
    ),
    "shell": re.compile(
        r"\b(?:exit|exec|trap|kill|eval|alias|source|unset|find|PATH|IFS|ENV|set|nocasematch|extdebug|expand_aliases|enable|hash|caller|compgen|ls|dir|LC_\w+|LANG|readonly)\b"
        r"|\b(?:declare|typeset)\s+-\w*[rinlug]|\blocal\s+-\w*n|\bgrep\s+-\w*[rR]|(?<=\s)\*(?=[\s;)|]|$)|[*?]\.\w|\w[*?](?=[\s.;)])|\$\{?0|\$\$|\bBASH_|[<>](?!&2\b)&?\d"
        r"|^\s*(?:function\s+)?(?:\[|test|true|false|echo|printf|diff|cmp|grep|cat)\s*\(\)",
        re.MULTILINE,
    ),
    "perl": re.compile(
        r"\b(?:exit|exec|kill|fork|open|require|BEGIN|END|CORE|DATA|syscall|POSIX|main|glob|ARGV|IO|File|system|sysopen|qx|readpipe|overload|dualvar|select|close|tie|untie|binmode)\b|\bno\s+strict\b|[$@%&*]::|\*\w[\w:]*\s*=|`|\$0|[%$]SIG|\*\{"
    ),
}  # fmt: skip
"""By language: what in an answer reaches the process that its tests run in, or their files."""
CODE_FROM_TEXT_PATTERN = re.compile(
    r"\b(?:eval|Function|vm|prototype|globalThis|mock|spyOn|setPrototypeOf|defineProperty)\b"
)
"""What in tests may change the language itself, or make code out of text."""
QUOTING_PATTERN = re.compile(r"[\"'\\]")
COMPILED_LANGUAGES = ("c", "cpp")
"""Languages whose programs are looked into once they are built."""
OTHER_MEANS_PATTERN = re.compile(
    r"\b(?:exit|_exit|_Exit|Exit|quick_exit|quit|halt|abort|kill|exec|execve|fork|atexit|at_exit|syscall|Syscall|Runtime|unsafe|reflect|asm"
    r"|Files?|Paths?|File(?:Reader|InputStream|Channel|System\w*)|RandomAccessFile|getResource\w*|ClassLoader|forName|getDeclared\w*|setAccessible"
    r"|MethodHandles?|VarHandle|Unsafe|Instrumentation|Process(?:Builder|Handle)?|StackWalker|getStackTrace|os|ioutil|ReadFile|ReadDir|embed|linkname"
    r"|runtime|debug|plugin|IO|Dir|ObjectSpace|TracePoint|binding|instance_variable_\w+|define_method|file_get_contents|fopen|readfile|scandir|glob"
    r"|loadfile|dofile)\b|\bio\.(?:open|lines|popen)\b"
)
"""In all other languages: what ends a program, looks into it, or opens files."""


ARITHMETIC_PATTERN = re.compile(r"\$?\(\((?:[^()'\"`\\\n]|(?<!\$)\([^()'\"`\\\n]*\)|(?<=\$)\([^()'\"`\\\n*?]*\))*\)\)")
"""Arithmetic of a shell, without patterns of file names in commands in it."""
AWK_PATTERN = re.compile(r"\bawk '[^']*'")


def without_shell_signs(code: str) -> str:
    """A script whose arithmetic has no stars, which are no patterns of file names there; `$0` of awk is a line, and not the script."""
    for _ in range(3):
        code = ARITHMETIC_PATTERN.sub(lambda found: re.sub(r"[*()]", " ", found[0]), code)
    return AWK_PATTERN.sub(lambda found: found[0].replace("$0", "$1"), code)


def has_means_to_end_tests(case: Case, code: str) -> bool:
    """Whether the text of an answer names what could end its tests, or their files."""
    language = canonical_language(case.language)
    if language in COMPILED_LANGUAGES:
        return answers_for_tests(case, code, language)
    pattern = MEANS_PATTERNS.get("javascript" if language == "typescript" else language, OTHER_MEANS_PATTERN)
    if language == "python":
        # Python itself takes a name in wide letters for the plain one
        code = unicodedata.normalize("NFKC", code)
    # in a shell quotes may stand in the middle of a name
    named = QUOTING_PATTERN.sub("", code) if language == "shell" else code
    files = CommandSettings.of(case).files
    modules = "|".join(re.escape(PurePosixPath(name).stem) for name in files)
    is_naming_tests = any(name in named for name in files) or bool(
        language == "python" and modules and re.search(rf"\b(?:import|from)\s+(?:{modules})\b", code)
    )
    if language == "shell":
        return (
            is_naming_tests
            or bool(pattern.search(without_shell_signs(code)))
            or answers_for_tests(case, code, language)
        )
    return is_naming_tests or bool(pattern.search(code)) or answers_for_tests(case, code, language)


def is_language_left_alone(case: Case) -> bool:
    """Whether the tests of a case in JavaScript neither change the language's own objects nor make code out of text."""
    return not any(CODE_FROM_TEXT_PATTERN.search(text) for text in CommandSettings.of(case).files.values())


def needs_descriptor_paths(case: Case, code: str) -> bool:
    """Whether a shell runs something that it can only do with `/dev/fd`: an answer or tests with `<(...)` in them."""
    said = CommandSettings.of(case)
    is_in_shell = any(SUBSTITUTING_SHELL_PATTERN.search(command) for command in (said.run, said.test))
    return is_in_shell and any(PROCESS_SUBSTITUTION_PATTERN.search(text) for text in (code, *said.files.values()))
