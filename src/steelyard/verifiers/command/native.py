"""Whether a program of an answer in C and its tests still has the tests' own main, assert and printf."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import NamedTuple

from steelyard.protocols import Workspace
from steelyard.records import Case
from steelyard.text import word_set
from steelyard.verifiers.code.comments import without_comments
from steelyard.verifiers.command.settings import CommandSettings

_MATHEMATICS = (
    "a?(?:cos|sin|tan)h?|atan2|cbrt|ceil|copysign|div|erfc?|exp(?:2|10|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot|"
    "ilogb|ldexp|l?lr(?:int|ound)|lgamma|log(?:10|1p|2|b)?|modf|nan|nearbyint|nextafter|nexttoward|pow|remainder|remquo|rint|"
    "round|roundeven|scalbl?n|sincos|sqrt|tgamma|trunc|c(?:abs|arg|imag|real|conj|exp|log|pow|sqrt|sin|cos|tan)"
)
_STRINGS = (
    "str(?:n?cpy|n?cat|n?cmp|n?casecmp|n?dup|c?spn|chr|rchr|chrnul|pbrk|str|casestr|tok|tok_r|sep|len|nlen|error|error_r|coll|"
    "xfrm|lcpy|lcat|verscmp|ftime|ptime|to[dfl]|told|toll|toul|toull|toimax|toumax)|stpn?cpy|"
    "mem(?:cpy|move|set|cmp|chr|rchr|mem|pcpy|ccpy)|rawmemchr|b(?:zero|cmp|copy)|(?:r?index|ffs(?:ll?)?|basename|dirname)|"
    "wcs\\w+|wmem\\w+|isw\\w+|tow\\w+|btowc|wctob|wctype|wctrans|mbs?r?towcs?|mbr?len|mblen|wcr?tombs?|mbtowc|mbrtowc|mbsinit|"
    "is(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(?:upper|lower|ascii)|"
    "__ctype_\\w+_loc|__ctype_get_mb_cur_max|__(?:str|mem|stp|wcs)\\w+"
)
_VALUES = (
    "malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|memalign|free|cfree|malloc_usable_size|"
    "l?l?abs|imaxabs|l?l?div|imaxdiv|ato(?:i|f|l|ll)|q?sort|qsort_r|bsearch|[lt](?:find|search)|tdelete|twalk|h(?:create|search|destroy)(?:_r)?|"
    "s?rand(?:om)?(?:_r)?|[delmnj]rand48|s?rand48|arc4random\\w*|getrandom|time|times|clock|clock_gettime|gettimeofday|timespec_get|difftime|"
    "(?:gm|local)time(?:_r)?|mktime|timegm|asctime(?:_r)?|ctime(?:_r)?|tzset|usleep|sleep|nanosleep|getenv|setlocale|localeconv|nl_langinfo|"
    "getpid|getppid|gettid|getuid|sysconf|sched_yield|iconv(?:_open|_close)?|reg(?:comp|exec|free|error)|fnmatch|hto[nl][ls]|nto[h][ls]"
)
_PRINTING = (
    "v?(?:f|s|sn|as|d)?w?printf|v?(?:f|s)?w?scanf|f?putw?[cs]|putw?char|puts|fput[cs]|fwrite|fread|f?getw?[cs]|getw?char|gets|"
    "get(?:line|delim)|ungetc|feof|ferror|clearerr|fflush|perror|write|read|(?:put|get)(?:c|char)_unlocked|__isoc\\d+_\\w+|__\\w+_chk|"
    "std(?:in|out|err)|__(?:get|ask)?(?:line|delim)"
)
_THREADS = (
    "pthread_(?:create|join|detach|self|equal|once|attr_\\w+|mutex\\w*|cond\\w*|rwlock\\w*|spin_\\w+|barrier\\w*|getspecific|setspecific|"
    "key_create|key_delete)|sem_(?:init|destroy|wait|trywait|timedwait|post|getvalue)|mtx_\\w+|cnd_\\w+|thrd_(?:create|join|yield|sleep|current|equal|detach)|"
    "call_once|tss_\\w+"
)
_COMPILER = (
    "__libc_start_main|__cxa_(?!atexit|at_quick_exit|thread_atexit)\\w+|__gxx_\\w+|__gmon_start__|_ITM_\\w+|_Unwind_\\w+|_Z(?!\\w*(?:filebuf|fstream|filesystem))\\w+|__dso_handle|abort|"
    "__stack_chk_fail|__stack_chk_guard|__assert(?:_perror)?_fail|__errno_location|__tls_get_addr|__memcpy_chk|__TMC_END__|__sigsetjmp|_?setjmp|"
    "__(?:f?signbit|f?isnan|f?isinf|f?finite|fpclassify)[fl]?|__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|fix|float|extend|trunc|pow)\\w+"
)
HARMLESS_IMPORT_PATTERN = re.compile(
    f"(?:{_STRINGS}|{_VALUES}|{_PRINTING}|{_THREADS}|{_COMPILER}|(?:{_MATHEMATICS})[fl]?(?:32|64|128)?x?)"
)
"""What code may import and still has no means to end its tests, to change what they have said, or to read their files."""
_STREAM = r"\bstd(?:in|out|err)\b"
_STREAM_USE_PATTERN = re.compile(
    rf"\b(?:v?fw?printf|v?fw?scanf|fflush|feof|ferror|f?getw?c|clearerr)\s*\(\s*{_STREAM}|"
    rf"\b(?:fput[cs]|putc|fwrite|fread|fgets|getline|getdelim|ungetc)\s*\([^;{{}}]*?,\s*{_STREAM}\s*\)"
)
_FUNCTION_MACRO_PATTERN = re.compile(
    r"(?:#|%:|\?\?=)\s*(?:define|undef)\s+(?:v?fw?printf|v?fw?scanf|fflush|feof|ferror|f?getw?c|fput[cs]|putc|f(?:write|read|gets)|std\w+)\b"
)


_STREAM_OBJECT_USE_PATTERN = re.compile(
    r"\b(?:cout|cerr|clog|cin)\s*(?:<<|>>|\.\s*(?:put|write|flush|get|getline|read|ignore|peek|width|precision|setf|unsetf|fill|fail|good|eof)\s*\()"
    r"|\bcin\s*,"
)
_STREAM_STATE_PATTERN = re.compile(
    r"\bw?(?:cout|cerr|clog|cin)\b|(?:\.|->)\s*(?:setstate|rdbuf|exceptions|tie|copyfmt|imbue|register_callback|pub(?:setbuf|seek\w+|sync)|set_rdbuf|~)"
    r"|\b(?:sync_with_stdio|basic_ios|ios_base)\b|\bclear\s*\([^)]*(?:bit|\bios\b)"
)
"""What changes a stream of C++ that the tests print to: one that is bad prints nothing."""


def has_hold_of_streams(code: str) -> bool:
    """Whether code does anything with a standard stream but print to it and read from it: a stream holds what was printed."""
    rest = _STREAM_USE_PATTERN.sub("", code)
    if re.search(_STREAM, rest) or _FUNCTION_MACRO_PATTERN.search(code) or "_IO_" in code:
        return True
    if _STREAM_STATE_PATTERN.search(_STREAM_OBJECT_USE_PATTERN.sub("", code)):
        return True
    # what is left over of a width is put into what the tests print next
    return bool(re.search(r"\bc(?:out|err|log)\b", code) and re.search(r"\b(?:setw|setfill|width|fill)\b", code))


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
    r"\b(?:__)?asm(?:__)?\b|##|\b_Z\w|\bredefine_extname\b|\b__builtin_(?:frame_address|return_address|longjmp|eh_return|unwind_init|apply|return)\b|#\s*embed\b|\b(?:ifunc|destructor|fini_array|__executable_start|_end|_edata|_etext|__bss_start|__data_start)\b"
)
"""Other ways of an answer to do the same, or to name such a function indirectly."""
INTERNAL_PREFIXES = ("__assert", "__ASSERT", "__builtin", "__STRING", "__extension", "__glibc")
"""How the names begin that the library's own macros, such as `assert`, are made of."""
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
VARIABLE_PATTERN = re.compile(r"^[0-9a-f]+ ([BDCGSRVu]|[bdgsr]) (\w+)$", re.MULTILINE)
"""A variable of a program; a small letter for one that only its own file sees."""
SPECIALISATION_PATTERN = re.compile(r"\btemplate\s*<\s*>\s*(?!struct\s+(?:std\s*::\s*)?(?:hash|formatter)\b)")
"""A specialisation, which the linker prefers to what the tests have of that template; a hash of an own type is not theirs."""
EXIT_FUNCTION_WORDS = word_set("atexit at_quick_exit on_exit __cxa_atexit")
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
        may_end_tests=_may_end_tests(answer, set(IMPORT_PATTERN.findall(printed)), case)
        or _shares_with_tests(answer, printed, case, asked),
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
    if not words & EXIT_FUNCTION_WORDS:
        # the compiler calls it for static objects, those of <iostream> among them
        reached -= {"__cxa_atexit"}
    named = (reached - of_tests) | (reached & words)
    is_reading_tests = any(name in answer for name in files if not name.endswith((".h", ".hpp")))
    has_means = is_reading_tests or has_hold_of_streams(answer) or bool(OWN_MACHINE_CODE_PATTERN.search(answer))
    return bool(named) or has_means


def _shares_with_tests(answer: str, symbols: str, case: Case, asked: Collection[str]) -> bool:
    """Whether an answer names what its tests define, such as their count of failures, or defines a function that they call.

    Of two inline functions with one name the linker takes the first.
    """
    said = CommandSettings.of(case)
    code = without_comments(answer)
    # what a header has that the answer includes is meant for it
    tests = "\n".join(text for name, text in said.files.items() if f'"{name}"' not in code)
    words = set(re.findall(r"\w+", code)) - set(asked)
    sees_all = is_included(case)
    variables = {name for kind, name in VARIABLE_PATTERN.findall(symbols) if sees_all or kind.isupper()}
    called = set(re.findall(r"\b(\w+)\s*\(", tests))
    library = {name for name in SYMBOL_PATTERN.findall(symbols) if HARMLESS_IMPORT_PATTERN.fullmatch(name)}
    own_library = {name for name in library & called & words if not name.startswith("_")} - _definitions(tests)
    own = set(re.findall(r"^\s*static\b[^;{}()]*?\b(\w+)\s*\(", code, re.MULTILINE))
    shared = (variables & _file_variables(tests) | _definitions(tests) - own) & words - {"main"}
    return bool(shared or own_library or SPECIALISATION_PATTERN.search(code))


def _definitions(code: str) -> set[str]:
    """The types and functions that code in C or C++ defines, without those that only its own file sees."""
    types = re.findall(r"\b(?:struct|class|union)\s+(\w+)[^;{}()=]*\{", code)
    functions = re.findall(r"^(?!\s*static\b)[\w:<>,&*\s]*?\b(\w+)\s*\([^;{}]*?\)[^;{}()]*\{", code, re.MULTILINE)
    return {*types, *functions} - {"if", "for", "while", "switch"}


def _file_variables(code: str) -> set[str]:
    """The words of the declarations outside of functions, their variables among them."""
    declarations = re.findall(r"^[A-Za-z_][^(){}=;]*[=;]", code, re.MULTILINE)
    return {word for declaration in declarations for word in re.findall(r"\w+", declaration)}


def is_included(case: Case) -> bool:
    """Whether the tests include the answer."""
    said = CommandSettings.of(case)
    name = re.escape(said.answer)
    return any(re.search(rf'#\s*include\s*"(?:\./)?{name}"', text) for text in said.files.values())


MACRO_PATTERN = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*define[ \t]+(\w+)(?:\(([^()]*)\))?[ \t]*(.*)$", re.MULTILINE)
PLAIN_MACRO_PATTERN = re.compile(r"[-+~!]?[\w.]+(?:\([^()]*\))?|\"[^\"]*\"|'[^']*'|")
"""A macro that is a name, a number, a text, a plain call or nothing."""


def has_loose_macro(case: Case, code: str) -> bool:
    """Whether a macro that the tests name could mean more than a value there: `1 || 0` equals everything."""
    said = CommandSettings.of(case)
    used = {word for text in said.files.values() for word in re.findall(r"\w+", text)}
    spliced = re.sub(r"/\*.*?\*/|//[^\n]*", " ", re.sub(r"(?:\\|\?\?/)\r?\n", "", code), flags=re.DOTALL)
    for name, parameters, body in MACRO_PATTERN.findall(spliced):
        text = body.strip()
        assigned = set(re.findall(r"\b([A-Za-z_]\w*)\s*(?:[-+*/|&^]?=(?!=)|\+\+|--)", text))
        is_value = PLAIN_MACRO_PATTERN.fullmatch(text) or (text.startswith("(") and _closing(text) == len(text) - 1)
        is_block = re.match(r"(?:do\b|\{)", text)
        # what it assigns to may be a variable of the tests
        changes_tests = assigned & used - set(re.findall(r"\w+", parameters))
        if name in used and (changes_tests or not (is_value or is_block)):
            return True
    return False


def _closing(text: str) -> int:
    """Where the bracket that begins a text is closed; -1 if nowhere."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return place
    return -1


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
    used = (set(re.findall(r"\w+", text)) | {"NDEBUG"} | REPORTING_FUNCTIONS) - own - asked
    used |= {name for name in defined if name.startswith(INTERNAL_PREFIXES)}
    return next(iter(sorted(defined & used)), "")


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.wordchars += "+"
    return list(lexer)
