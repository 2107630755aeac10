"""Whether the object file of an answer in C or C++, compiled apart from its tests, has nothing but what the list allows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from steelyard.protocols import Workspace
from steelyard.records import Case
from steelyard.text import word_set
from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.allowed.vocabulary import C_THREAD_PATTERN
from steelyard.verifiers.command.settings import CommandSettings

COMPILERS = frozenset(("cc", "gcc", "clang", "c99", "c11", "c17", "g++", "c++", "clang++"))
KEPT_OPTION_PATTERN = re.compile(r"-(?:std=|I|D|m|f(?!sanitize|profile)|pthread|include)\S*")
"""Options of a build that matter to what an object file holds."""
OBJECT_SCRIPT = """
folder=$(mktemp -d) || exit 3
compiler=$1; source=$2; shift 2
"$compiler" "$@" -w -c -o "$folder/answer.o" "$source" || exit 4
nm -C -- "$folder/answer.o" && echo --- && readelf -SW -- "$folder/answer.o"
status=$?
rm -r "$folder"
exit $status
"""
C_FUNCTIONS = re.compile(
    r"mem(?:cpy|move|set|cmp|chr|mem|pcpy)|str(?:n?cpy|n?cat|n?cmp|n?casecmp|n?dup|c?spn|chr|rchr|pbrk|str|casestr|tok|tok_r|sep|len|nlen|coll|to[dfl]|told|toll|toul|toull|toimax)|stpcpy|stpncpy|"
    r"(?:m|c|re)alloc|reallocarray|aligned_alloc|free|l?l?abs|imaxabs|l?l?div|ato(?:i|f|l|ll)|qsort|qsort_r|bsearch|rand|rand_r|srand|random|time|clock|difftime|mktime|timegm|"
    r"(?:gm|local)time(?:_r)?|strftime|asctime|ctime|is(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|to(?:upper|lower|ascii)|"
    r"isw\w+|tow(?:upper|lower)|wcs(?:len|cpy|cmp|cat|chr|str)|wmem\w+|__ctype_(?:b|tolower|toupper)_loc|__errno_location|v?sn?printf|sscanf|__isoc\d+_(?:sscanf|strto\w+)|"
    r"__stack_chk_fail|__assert_fail|abort|_GLOBAL_OFFSET_TABLE_|__(?:mem|str|stp)\w+_chk|__v?sn?printf_chk|"
    r"__(?:add|sub|mul|div|neg|fix|float|extend|trunc|pow|u?mod|u?div)\w*[0-9]|__(?:f?signbit|f?isnan|f?isinf|f?finite|fpclassify)[fl]?|"
    r"(?:a?(?:cos|sin|tan)h?|atan2|cbrt|ceil|copysign|erfc?|exp(?:2|10|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb|ldexp|l?lr(?:int|ound)|lgamma|"
    r"log(?:10|1p|2|b)?|modf|nan|nearbyint|nextafter|pow|remainder|rint|round|scalbl?n|sqrt|tgamma|trunc|c(?:abs|arg|imag|real|conj|exp|log|pow|sqrt|sin|cos|tan))[fl]?"
)
"""Functions for texts, numbers and memory."""
C_PRINTING = re.compile(r"v?f?printf|__v?f?printf_chk|puts|putchar|fput[cs]|putc|fwrite|fflush|perror|std(?:out|err)|_IO_putc|std::(?:cout|cerr|clog|basic_ostream\b.*|ostream\b.*|operator<< <.*|flush\b.*|endl\b.*|ios_base::Init::.*)")  # fmt: skip
C_READING = re.compile(r"f?getc|getchar|fgets|getline|f?scanf|__isoc\d+_f?scanf|fread|ungetc|feof|stdin|std::cin")
C_THREADS = re.compile(r"pthread_(?:create|join|detach|self|mutex\w*|cond\w*|rwlock\w*|once|barrier\w*)|sem_\w+|mtx_\w+|cnd_\w+|thrd_(?:create|join|yield)|std::(?:thread|condition_variable|__future|mutex|call_once|this_thread)\w*.*|std::_V2::.*|nanosleep|usleep|sleep|clock_gettime")  # fmt: skip
CPP_RUNTIME = re.compile(
    r"std::(?!basic_(?:filebuf|[io]?fstream)|filesystem|set_\w+|get_\w+|locale::global|ios_base::(?!failure|Init)|basic_ios|thread|condition_variable|_V2|this_thread|cout|cerr|clog|cin|quick_exit|exit|atexit|uncaught|random_device|nothrow_t|__cxx11::basic_(?:filebuf|[io]?fstream)).*"
    r"|operator (?:new|delete)(?:\[\])?\(.*|(?:vtable|typeinfo|typeinfo name|VTT|guard variable|construction vtable) for .*|__cxa_\w+|__gxx_personality_v0|_Unwind_Resume|__dso_handle|__gnu_cxx::.*|virtual thunk to .*|__dynamic_cast"
    r"|std::basic_ios<char, .*>::(?:fail|eof|good|bad|operator bool|operator!|rdstate)\(\) const"
)
SECTION_PATTERN = re.compile(r"^\s*\[\s*\d+\]\s+(\.?[\w.$-]+)", re.MULTILINE)
LISTED_SECTIONS = re.compile(
    r"\.(?:text|data|bss|rodata|comment|note|eh_frame|symtab|strtab|shstrtab|group|gcc_except_table|tbss|tdata|tm_clone_table|llvm_addrsig)(?:[.\w$-]*)|\.rela?\.(?:text|data|rodata|eh_frame|init_array|gcc_except_table|group)[.\w$-]*|\.rela?\.data\S*|NULL|\.symtab_shndx"
)
SYMBOL_PATTERN = re.compile(r"^(?:[0-9a-f]+|\s+) ([A-Za-z?]) (.+)$")
GLOBAL_KINDS = frozenset("TDBRCGSWVui")
STATEFUL_FUNCTIONS = word_set(
    "strtok rand srand random localtime gmtime asctime ctime strerror mblen mbtowc wctomb getopt"
)
"""Functions that keep something between their calls, so that an answer which calls them changes what tests get from them."""
LIBRARY_NAMES = word_set(
    "main exit _exit _Exit abort atexit printf fprintf sprintf snprintf puts putchar fputs fwrite write read assert strcmp strncmp memcmp strlen memcpy "
    "malloc free calloc realloc strstr strchr isatty fabs sqrt pow abs longjmp signal raise kill exp log floor ceil round qsort"
)


class ObjectSymbol(NamedTuple):
    """A line of `nm`."""

    kind: str
    name: str


async def unlisted_in_object(place: Workspace, case: Case, asked: Collection[str], *, is_printed: bool) -> str:
    """The first thing in the object file of an answer that is not on the list; empty if there is none, or where no C compiler builds it."""
    said = CommandSettings.of(case)
    lexer = shlex.shlex(said.build, posix=True, punctuation_chars=True)
    lexer.wordchars += "+"
    words = list(lexer)
    compiler = next((word for word in words if word in COMPILERS), "")
    language = canonical_language(case.language)
    if not compiler or language not in ("c", "cpp"):
        return ""
    options = [word for word in words if KEPT_OPTION_PATTERN.fullmatch(word)]
    is_source = PurePosixPath(said.answer).suffix in (".c", ".cc", ".cpp", ".cxx", ".C")
    options += [] if is_source else ["-x", "c" if language == "c" else "c++"]
    options += ["-fkeep-static-functions"] if "clang" not in compiler else []
    options += ["-fkeep-inline-functions"] if language == "c" and "clang" not in compiler else []
    built = await place.run(["/bin/sh", "-c", OBJECT_SCRIPT, "sh", compiler, said.answer, *options])
    if built.exit_code:
        return "code that cannot be compiled apart from the tests"
    symbols, _, sections = built.stdout.decode("utf-8", "replace").partition("---\n")
    for section in SECTION_PATTERN.findall(sections):
        if not LISTED_SECTIONS.fullmatch(section) and not (section == ".init_array" and language == "cpp"):
            return f"a section {section}"
    found = [ObjectSymbol(*each.groups()) for line in symbols.splitlines() if (each := SYMBOL_PATTERN.match(line))]
    is_threaded = bool(C_THREAD_PATTERN.search(" ".join(message.text for message in case.messages)))
    return next(_unlisted(found, case, set(asked), is_printed, is_threaded), "")


def _unlisted(
    symbols: list[ObjectSymbol], case: Case, asked: set[str], is_printed: bool, is_threaded: bool
) -> Iterator[str]:
    is_cpp = canonical_language(case.language) == "cpp"
    files = CommandSettings.of(case).files
    headers = {
        word for name, text in files.items() if name.endswith((".h", ".hpp")) for word in re.findall(r"\w+", text)
    }
    test_words = {word for name, text in files.items() for word in re.findall(r"\w+", text)}
    own = {name for kind, name in symbols if kind not in "Uw"}
    tests = "\n".join(files.values())
    for kind, name in symbols:
        base = _base_name(name)
        if kind == "U":
            is_listed = (
                C_FUNCTIONS.fullmatch(name)
                or (is_cpp and CPP_RUNTIME.fullmatch(name))
                or (is_threaded and C_THREADS.fullmatch(name))
            )
            is_listed = is_listed or (not is_printed and C_PRINTING.fullmatch(name))
            if name in STATEFUL_FUNCTIONS & test_words:
                yield f"{name}, which the tests call as well"
            is_asked = base in asked | headers and not (C_PRINTING.fullmatch(name) and is_printed)
            if not (is_listed or is_asked or name in own):
                yield f"{name[:60]}, which is neither listed nor its own"
        elif kind == "w" or kind == "i" or (kind in "WVu" and not is_cpp):
            yield f"{name[:60]}, which is weak"
        elif kind in GLOBAL_KINDS:
            # the library's own inline functions; `native_text` refuses an answer that adds to its namespace
            is_inline = is_cpp and kind in "WVu" and bool(re.match(r"(?:std|__gnu_cxx)::", name))
            is_library = not is_inline and (
                base in LIBRARY_NAMES
                or (not is_cpp and C_FUNCTIONS.fullmatch(base))
                or (kind == "T" and name.startswith(("std::", "__gnu_cxx::", "operator new", "operator delete")))
            )
            is_shared = (
                base in test_words
                and not name.startswith(("std::", "__gnu_cxx::", "typeinfo", "vtable", "guard variable"))
                and "std::" not in name.partition("(")[0]
            )
            # what tests call and do not define is the answer's
            is_called = kind == "T" and not re.search(rf"\b{re.escape(base)}\s*\([^;{{}}]*\)[^;{{}}()]*\{{", tests)
            if (is_library or (is_shared and not is_called)) and base not in asked | headers:
                yield f"its own {base[:60]}"


def _base_name(symbol: str) -> str:
    """The last name of a function or variable: `check` of `ns::check<int>(int)`."""
    plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", symbol.partition("(")[0]))
    return plain.rpartition("::")[2].strip().rpartition(" ")[2]
