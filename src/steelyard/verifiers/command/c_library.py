"""Which functions of the C library leave the tests of a program alone."""

from __future__ import annotations

import re

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
    "__libc_start_main|__cxa_(?!atexit|at_quick_exit|thread_atexit)\\w+|__gxx_\\w+|__gmon_start__|_ITM_\\w+|_Unwind_\\w+|_Z\\w+|__dso_handle|abort|"
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


def has_hold_of_streams(code: str) -> bool:
    """Whether code does anything with a standard stream but print to it and read from it: a stream holds what was printed."""
    rest = _STREAM_USE_PATTERN.sub("", code)
    return bool(re.search(_STREAM, rest) or _FUNCTION_MACRO_PATTERN.search(code) or "_IO_" in code)
