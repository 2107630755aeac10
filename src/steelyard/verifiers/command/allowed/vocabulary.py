"""What an answer to a test command may name and still be proved, by language: values, texts, collections, arithmetic.

Whatever is not here is not forbidden: a pass of an answer that names it is `unproved`.
"""

from __future__ import annotations

import re

from steelyard.text import word_set

# ---- JavaScript

JAVASCRIPT_KEYWORDS = word_set(
    "break case catch class const continue default delete do else export extends finally for from function if import in instanceof "
    "let new null of return static super switch this throw true false try typeof var void while yield async await undefined as get set "
    "type interface enum implements readonly private public protected declare keyof unknown never any string number boolean object "
    "bigint symbol abstract is infer asserts satisfies"
)
JAVASCRIPT_GLOBALS = word_set(
    "Array Object String Number Boolean Math JSON Map Set WeakMap WeakSet RegExp Date BigInt Symbol Error TypeError RangeError SyntaxError "
    "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float32Array Float64Array BigInt64Array "
    "BigUint64Array ArrayBuffer DataView Infinity NaN undefined isNaN isFinite parseInt parseFloat encodeURIComponent decodeURIComponent "
    "structuredClone Intl TextEncoder URLSearchParams Record Partial Readonly ReadonlyArray Iterable Iterator IterableIterator Generator "
    "Pick Omit Exclude Extract NonNullable Required ReturnType Parameters module exports"
)
JAVASCRIPT_ASYNC_GLOBALS = word_set(
    "Promise setTimeout clearTimeout setInterval clearInterval queueMicrotask performance"
)
"""What a case has to ask for: it does something after the answer has returned."""
JAVASCRIPT_ASYNC_PATTERN = re.compile(
    r"\basync\b|\bawait\b|promise|timeout|timer|delay|debounce|throttle|\.then\b|concurren|retr(?:y|ies)", re.IGNORECASE
)
JAVASCRIPT_METHODS = word_set(
    "abs acos acosh add all allSettled any apply assign asIntN asUintN asin asinh at atan atan2 atanh bind call catch cbrt ceil charAt charCodeAt "
    "clear clz32 codePointAt concat copyWithin cos cosh create delete encode endsWith entries every exec exp expm1 fill filter finally find "
    "findIndex findLast findLastIndex flat flatMap floor forEach format formatToParts freeze from fromCharCode fromCodePoint fromEntries fround get getDate "
    "getDay getFullYear getHours getInt16 getInt32 getInt8 getMilliseconds getMinutes getMonth getSeconds getTime getTimezoneOffset "
    "getUTCDate getUTCDay getUTCFullYear getUTCHours getUTCMilliseconds getUTCMinutes getUTCMonth getUTCSeconds getUint16 getUint32 "
    "getUint8 getFloat32 getFloat64 getBigInt64 getBigUint64 groupBy has hasOwn hasOwnProperty hypot imul includes indexOf is isArray "
    "isFinite isFrozen isInteger isNaN isSafeInteger iterator asyncIterator join keys lastIndexOf localeCompare log log10 log1p log2 map match matchAll max min "
    "next normalize now of padEnd padStart parse parseFloat parseInt pop pow push race random raw reduce reduceRight reject repeat "
    "replace replaceAll resolve return reverse round search seal set setDate setFullYear setHours setInt16 setInt32 setInt8 setMilliseconds "
    "setMinutes setMonth setSeconds setTime setUTCDate setUTCFullYear setUTCHours setUTCMinutes setUTCMonth setUTCSeconds setUint16 setUint32 setUint8 "
    "shift sign sin sinh slice some sort splice split sqrt startsWith stringify subarray substr substring tan tanh test then throw "
    "toDateString toExponential toFixed toISOString toLocaleDateString toLocaleLowerCase toLocaleString toLocaleUpperCase toLowerCase "
    "toPrecision toReversed toSorted toSpliced toString toUTCString toUpperCase trim trimEnd trimStart trunc union intersection difference "
    "symmetricDifference isSubsetOf isSupersetOf isDisjointFrom unshift UTC values with"
)
JAVASCRIPT_MEMBERS = JAVASCRIPT_METHODS | word_set(
    "length size message name cause index groups input indices lastIndex source flags global buffer byteLength errors value done status "
    "reason EPSILON MAX_SAFE_INTEGER MIN_SAFE_INTEGER MAX_VALUE MIN_VALUE POSITIVE_INFINITY NEGATIVE_INFINITY PI E LN2 LN10 SQRT2 SQRT1_2 "
    "LOG2E LOG10E NumberFormat DateTimeFormat Collator Segmenter segment compare exports"
)
JAVASCRIPT_PRINTING = word_set("log error warn info debug table group groupEnd")
JAVASCRIPT_IMPLICIT_METHODS = word_set(
    "valueOf then constructor __proto__ prototype toLocaleString inspect caller callee"
)
"""What the language calls by itself, so that a result which has it decides what tests see."""
JAVASCRIPT_BASES = word_set("Error TypeError RangeError SyntaxError")

# ---- Java

JAVA_TYPES = word_set(
    "Object String StringBuilder StringBuffer StringJoiner CharSequence Character Integer Long Short Byte Double Float Boolean Number Math StrictMath "
    "Void Comparable Iterable Runnable Enum Record Override FunctionalInterface SafeVarargs SuppressWarnings Deprecated Exception RuntimeException "
    "IllegalArgumentException IllegalStateException IndexOutOfBoundsException ArrayIndexOutOfBoundsException StringIndexOutOfBoundsException "
    "ArithmeticException NullPointerException NumberFormatException UnsupportedOperationException ClassCastException "
    "NoSuchElementException ConcurrentModificationException EmptyStackException InputMismatchException CloneNotSupportedException DateTimeException System "
    "List ArrayList LinkedList Map HashMap LinkedHashMap TreeMap SortedMap NavigableMap EnumMap Set HashSet LinkedHashSet TreeSet SortedSet NavigableSet EnumSet BitSet "
    "Queue Deque ArrayDeque PriorityQueue Stack Vector Collection Collections Arrays Iterator ListIterator PrimitiveIterator Entry Objects Optional OptionalInt "
    "OptionalLong OptionalDouble Comparator Random IntSummaryStatistics DoubleSummaryStatistics LongSummaryStatistics UUID Locale "
    "Stream IntStream LongStream DoubleStream Collectors Collector StreamSupport Spliterator Spliterators "
    "Function BiFunction Supplier Consumer BiConsumer Predicate BiPredicate UnaryOperator BinaryOperator IntFunction IntPredicate "
    "IntUnaryOperator IntBinaryOperator ToIntFunction ToLongFunction ToDoubleFunction ToIntBiFunction IntToDoubleFunction IntConsumer IntSupplier "
    "LongUnaryOperator LongBinaryOperator LongFunction DoubleUnaryOperator DoubleBinaryOperator DoubleFunction BooleanSupplier ObjIntConsumer "
    "BigInteger BigDecimal RoundingMode MathContext Pattern Matcher MatchResult PatternSyntaxException "
    "DecimalFormat NumberFormat SimpleImmutableEntry SimpleEntry StandardCharsets LocalDate LocalDateTime LocalTime Duration Period DayOfWeek Month Year YearMonth "
    "ChronoUnit ChronoField DateTimeFormatter TemporalAdjusters ZoneOffset Instant StringTokenizer Temporal"
)
JAVA_CONCURRENT_TYPES = word_set(
    "Thread ExecutorService Executors Future Callable TimeUnit CompletableFuture CountDownLatch ConcurrentHashMap ConcurrentMap AtomicInteger "
    "AtomicLong AtomicBoolean AtomicReference ReentrantLock Lock Condition ReadWriteLock ReentrantReadWriteLock Semaphore CopyOnWriteArrayList "
    "ConcurrentLinkedQueue BlockingQueue LinkedBlockingQueue ArrayBlockingQueue InterruptedException ExecutionException LongAdder ThreadLocalRandom"
)
JAVA_CONCURRENCY_PATTERN = re.compile(r"thread|concurren|parallel|atomic|\block\b|async|executor", re.IGNORECASE)
JAVA_PACKAGES = ("java.util.", "java.math.", "java.time.", "java.text.", "java.nio.charset.StandardCharsets")
JAVA_SYSTEM_MEMBERS = word_set("out err currentTimeMillis nanoTime arraycopy lineSeparator identityHashCode")
JAVA_PRINTING = word_set("print println printf format")
JAVA_BASES = word_set(
    "Object Exception RuntimeException IllegalArgumentException IllegalStateException ArithmeticException NoSuchElementException Comparable Comparator "
    "Iterable Iterator Runnable Cloneable Function BiFunction Supplier Consumer Predicate UnaryOperator BinaryOperator IntPredicate IntUnaryOperator IntBinaryOperator"
)
JAVA_UNLISTED_MEMBERS = word_set("getClass class wait notify notifyAll finalize setDefault getModule getEnclosingClass")
JAVA_PACKAGE_ROOTS = word_set("java javax jdk sun com org")

# ---- Go

GO_PACKAGES = word_set(
    "strings sort strconv math math/bits math/cmplx fmt errors unicode unicode/utf8 bytes container/heap container/list container/ring regexp slices "
    "maps cmp time math/big iter text/tabwriter"
)
GO_CONCURRENT_PACKAGES = word_set("sync sync/atomic context math/rand")
GO_CONCURRENCY_PATTERN = re.compile(
    r"goroutine|concurren|parallel|channel|\bchan\b|\bsync\b|thread|random|\brand\b", re.IGNORECASE
)
GO_PREDECLARED = word_set(
    "append cap clear close complex copy delete imag len make max min new panic print println real recover true false nil iota any bool byte "
    "comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr"
)
GO_JUDGING_METHODS = word_set("Is As String GoString Format MarshalJSON MarshalText Equal Compare")
GO_FORMATTING = word_set(
    "Sprint Sprintf Sprintln Errorf Stringer Formatter State Append Appendf Appendln Fprintf Fprint Fprintln Sscanf Sscan"
)
GO_LATER = word_set("AfterFunc NewTimer After Tick NewTicker Local")
GO_PRINTING = word_set("Print Printf Println")

# ---- Perl

PERL_FUNCTIONS = word_set(
    "abs atan2 bless chomp chop chr cos defined delete die each exists exp grep hex index int join keys last lc lcfirst length local log map my "
    "next no oct ord our pack pop pos push quotemeta rand redo ref return reverse rindex say scalar shift sin sort splice split sprintf sqrt "
    "sub substr time localtime gmtime tr uc ucfirst undef unpack unshift use values vec wantarray warn x y q qq qw qr m s lt gt le ge eq ne cmp and or not xor "
    "if elsif else unless while until for foreach package print printf parent base strict warnings utf8 constant integer bigint feature croak "
    "confess carp __PACKAGE__ isa state given when default eval do vars lib fc can croak"
)
PERL_RESERVED_NAMES = word_set(
    "ok is isnt like unlike is_deeply cmp_ok done_testing plan pass fail diag note subtest can_ok isa_ok DESTROY AUTOLOAD TIESCALAR FETCH import unimport"
)
PERL_MODULES = word_set(
    "strict warnings utf8 constant integer feature parent base List::Util Scalar::Util POSIX Exporter Carp Math::BigInt Math::BigFloat bigint Time::Local vars experimental bignum Time::Piece"
)
PERL_IMPORTED = word_set(
    "reduce first any all none notall min max minstr maxstr sum sum0 product shuffle uniq uniqnum uniqint uniqstr pairs pairkeys pairvalues pairmap blessed "
    "reftype looks_like_number floor ceil fmod pow strtol DBL_MAX INT_MAX INT_MIN LONG_MAX FLT_EPSILON DBL_EPSILON head tail zip mesh timelocal timegm signatures import weaken isdigit trunc round lround strftime mktime"
)
PERL_VARIABLES = re.compile(r"_|a|b|[1-9]|[&@+!-]")
"""Variables that need no declaration, without the many that change how the language itself works."""

# ---- shells

SHELL_COMMANDS = word_set(
    "echo printf local return shift test [ [[ ]] ] true false : read let expr case esac if then elif else fi for while until do done in select function "
    "break continue awk gawk mawk sed tr cut sort uniq wc head tail rev seq bc dc grep egrep fgrep cat tac paste fold fmt nl od basename dirname comm join column "
    "factor date { } ! declare typeset mapfile readarray set ((  )) time numfmt expand xxd md5sum sha256sum base64 cksum sum sleep"
)
SHELL_FILE_READERS = {
    **dict.fromkeys(
        sorted(
            word_set(
                "cat head tail sort uniq wc rev tac paste nl od fold fmt comm join column cut expand xxd md5sum sha256sum base64 cksum sum bc dc numfmt"
            )
        ),
        0,
    ),
    **dict.fromkeys(("awk", "gawk", "mawk", "sed", "grep", "egrep", "fgrep"), 1),
}
"""Commands that read files, with the number of operands before the first one."""

# ---- Python

PYTHON_MODULES = word_set(
    "math cmath random re string itertools functools collections heapq bisect operator typing dataclasses enum datetime decimal fractions statistics copy "
    "json textwrap abc numbers unicodedata hashlib base64 binascii struct array queue time calendar contextlib graphlib html difflib __future__ "
    "collections.abc zlib uuid secrets colorsys typing_extensions"
)
PYTHON_BUILTINS = word_set(
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float format frozenset hasattr hash hex id int "
    "isinstance issubclass iter len list map max memoryview min next object oct ord pow print property range repr reversed round set slice "
    "sorted staticmethod str sum super tuple type zip aiter anext Ellipsis NotImplemented None True False __name__ __debug__ Exception ValueError TypeError KeyError "
    "IndexError LookupError AttributeError ArithmeticError ZeroDivisionError OverflowError StopIteration StopAsyncIteration RuntimeError "
    "RecursionError NotImplementedError NameError UnicodeError UnicodeDecodeError UnicodeEncodeError FloatingPointError EOFError TimeoutError OSError FileNotFoundError PermissionError ConnectionError"
)
PYTHON_BASES = word_set(
    "object ABC Enum IntEnum StrEnum Flag NamedTuple TypedDict Protocol Generic Exception ValueError TypeError KeyError IndexError LookupError RuntimeError ArithmeticError NotImplementedError"
)
PYTHON_UNLISTED_ATTRIBUTES = word_set(
    "register seed setstate getcontext setcontext localcontext update_wrapper attrgetter methodcaller make_dataclass setfirstweekday create_dynamic "
    "default_factory_map setitem delitem gi_frame cr_frame ag_frame tb_frame f_back f_globals f_locals f_builtins f_code co_consts gi_code "
    "with_traceback partialmethod _register scanner InitVar"
)
PYTHON_COMPARISONS = word_set(
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __instancecheck__ __subclasscheck__ __getattribute__ __getattr__ __class__"
)
PYTHON_PLAIN_DUNDERS = word_set(
    "__init__ __post_init__ __slots__ __name__ __doc__ __all__ __enter__ __exit__ __iter__ __next__ __call__ __annotations__ __version__ __author__ __wrapped__ __future__"
)

# ---- C and C++

C_HEADERS = word_set(
    "assert.h complex.h ctype.h errno.h float.h inttypes.h iso646.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h "
    "time.h wchar.h wctype.h tgmath.h stdnoreturn.h sys/types.h"
)
C_THREAD_HEADERS = word_set(
    "pthread.h threads.h semaphore.h stdatomic.h thread mutex atomic condition_variable future shared_mutex chrono"
)
C_THREAD_PATTERN = re.compile(r"thread|concurren|parallel|atomic|mutex|\block", re.IGNORECASE)
CPP_HEADERS = C_HEADERS | word_set(
    "algorithm any array bit bitset cassert cctype cerrno cfloat charconv chrono cinttypes climits cmath compare complex concepts cstdarg cstddef cstdint cstdio cstdlib "
    "cstring ctime cwchar cwctype deque exception expected format forward_list functional initializer_list iomanip ios iosfwd iostream istream iterator "
    "limits list locale map memory numbers numeric optional ostream queue random ranges ratio regex set span sstream stack stdexcept streambuf string string_view "
    "tuple type_traits typeinfo typeindex unordered_map unordered_set utility valarray variant vector bits/stdc++.h version"
) - word_set("locale streambuf")
C_DEFINES = word_set(
    "_GNU_SOURCE _POSIX_C_SOURCE _XOPEN_SOURCE _DEFAULT_SOURCE _BSD_SOURCE _ISOC99_SOURCE _USE_MATH_DEFINES"
)
"""Macros that may stand before an `#include`."""
C_RESERVED = word_set(
    "__func__ __FUNCTION__ __PRETTY_FUNCTION__ __LINE__ __int128 __int128_t __uint128_t __restrict __restrict__ __inline __inline__ __cplusplus _Bool _Static_assert "
    "_Generic _Complex _Alignas _Alignof _Noreturn _Imaginary_I _Complex_I __attribute__ __unused__ __typeof__ __VA_ARGS__ "
    "__builtin_popcount __builtin_popcountl __builtin_popcountll __builtin_clz __builtin_clzl __builtin_clzll __builtin_ctz __builtin_ctzl __builtin_ctzll __builtin_ffs __builtin_ffsll "
    "__builtin_parity __builtin_parityll __builtin_expect __builtin_bswap16 __builtin_bswap32 __builtin_bswap64 __builtin_add_overflow "
    "__builtin_sub_overflow __builtin_mul_overflow __builtin_sadd_overflow __builtin_smul_overflow"
)
C_UNLISTED_KEYWORDS = word_set("asm register extern reinterpret_cast volatile import module export")
C_ATTRIBUTES = word_set(
    "unused __unused__ pure const always_inline maybe_unused nodiscard fallthrough likely unlikely noreturn deprecated"
)
