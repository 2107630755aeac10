"""What the author of a Rust case asks for: the types, the words and the signatures that the prompt and the tests name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from steelyard.text import word_set
from steelyard.verifiers.rust.source import TYPE_KEYWORDS, RustToken, after_generics, closing_token, rust_tokens
from steelyard.verifiers.rust.type_names import type_prefix

CODE_IN_PROMPT_PATTERN = re.compile(r"```[^\n]*\n(?P<block>.*?)```|`(?P<span>[^`\n]+)`", re.DOTALL)
DECLARED_TYPE_PATTERN = re.compile(
    r"\b(?:struct|enum|trait|union|type|class|newtype)s?\s+(?:(?:called|named)\s+)?`?(?P<name>[^\W\d]\w*)"
)
STANDARD_TYPE_NAMES = word_set(
    "Rust Vec String Option Result Some None Ok Err Box Self Rc Arc Cell RefCell Mutex RwLock Cow HashMap HashSet "
    "BTreeMap BTreeSet BinaryHeap VecDeque Ordering Duration Instant Path PathBuf Iterator IntoIterator Clone "
    "Copy Debug Display Default Hash Eq PartialEq Ord PartialOrd Add Sub Mul Div Rem Neg Not Deref Index From "
    "Into TryFrom TryInto FromStr AsRef ToString Fn FnMut FnOnce Drop Send Sync Sized Error"
)
"""Names of the standard library: an answer that defines one was asked for it only where the prompt declares it."""
IMPORTED_TYPE_NAMES = word_set(
    "Ordering HashMap HashSet BTreeMap BTreeSet BinaryHeap VecDeque LinkedList Duration Instant SystemTime Path PathBuf "
    "Rc Arc Weak Cell RefCell OnceCell Mutex RwLock Cow Wrapping Reverse PhantomData NonZeroU32 NonZeroU64 FromStr"
)
"""Names of the standard library that tests often take from what the answer imports."""
SELDOM_DEFINED_TYPE_NAMES = word_set(
    "Range RangeInclusive RangeFrom RangeTo Bound ControlFlow Poll Pin Saturating NonZero NonZeroU8 NonZeroUsize OsString OsStr CString "
    "CStr IpAddr Ipv4Addr Ipv6Addr SocketAddr ParseIntError ParseFloatError Utf8Error FromUtf8Error TryFromIntError Infallible TypeId "
    "AtomicBool AtomicI32 AtomicI64 AtomicU32 AtomicU64 AtomicUsize OnceLock LazyLock LazyCell NonNull ManuallyDrop MaybeUninit ErrorKind "
    "Peekable Chars Rev Utf8Chunk ThreadId UNIX_EPOCH"
)
"""Further names of the standard library: tests that use one which the prompt does not name mean the library's."""
ASKED_TYPE_PATTERN = re.compile(
    r"\b(?:[Ii]mplement|[Dd]efine|[Cc]reate|[Bb]uild|[Ww]rite|[Dd]esign|[Mm]ake|[Pp]rovide|[Rr]e-?implement)(?:ing|s|ed)?\s+"
    r"(?:(?:an?|the|your|own|simple|generic|basic|minimal|new|custom|pub|type|struct|enum|class|called|named)\s+)*`?(?P<name>[A-Z]\w*)"
    r"|`?\b(?P<kind>[A-Z]\w*)(?:<[^`\n]*>)?`?\s+(?:type|struct|enum|class|trait|implementation)\b"
)
"""How a prompt asks for a type without a word of Rust."""
OPERATORS_ASKED_PATTERN = re.compile(
    r"PartialEq|PartialOrd|compar(?:e|able|ison)|equal to|operator|arithmetic|scal(?:e|ing|ar)\b|==|!=|[<>]=|`[-+*/%<>!]`"
    r"|\b(?:Add|Sub|Mul|Div|Rem|Neg|Not)\b|(?:\b(?:with|by|and|or|for|supports?|overloads?|implements?)|,) [-+*/%<>]=?[ ,.;)]"
)
"""How a sentence asks that values of a type work with values of another."""
MIXED_OPERATORS_PATTERN = re.compile(
    r"Partial(?:Eq|Ord)\s*<|\b(?:number|integer|float|scalar|string|text|str|char|slice|primitive|constant|literal|factor|[iuf](?:8|16|32|64|128|size))s?\b"
    r"|\b(?:Add|Sub|Mul|Div|Rem)\b|\d",
    re.IGNORECASE,
)
"""How such a sentence says that the other is none of the answer's own types."""
SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")


class StatedSignature(NamedTuple):
    """A function as the prompt writes it."""

    text: str
    """From `fn` to its return type."""
    returns: str


ITEM_WORDS = word_set("struct enum union type trait fn mod const static mut")


class AuthorNames(NamedTuple):
    """What the author of a case names."""

    words: frozenset[str]
    """Every word of the prompt, the reference and the expected names."""
    code_words: frozenset[str]
    """Those that are written as code."""
    types: frozenset[str]
    """The types and traits that an answer is asked to define, by the prompt or by the tests."""
    annotated: frozenset[tuple[str, str]]
    """Types with the functions whose result the tests say to be of them."""
    operators: frozenset[str]
    """The types of which the prompt or the reference says that they work with others by operators or comparisons."""
    mixed_operators: frozenset[str]
    """Those of them that work with numbers or texts."""
    imported: frozenset[str]
    """The names of the standard library that the tests use, take from the answer, and that nobody asks the answer to define."""
    signatures: dict[str, StatedSignature]
    """The functions whose signature the prompt states, by their names."""
    methods: dict[str, str]
    """The methods whose result the prompt states: its type by their names."""
    defined_in_tests: frozenset[str] = frozenset()
    """What the tests define themselves; every word of theirs if they have macros of their own."""

    def __hash__(self) -> int:
        return hash((self.words, self.code_words, self.types))  # a dict has no hash


@lru_cache(maxsize=1000)
def author_names(prompt: str, known: str, tested: str) -> AuthorNames:
    """The names of a case by its prompt, by the reference and expected names, and by its tests."""
    asked = f"{prompt}\n{known}"
    declared = {found["name"] for found in DECLARED_TYPE_PATTERN.finditer(asked)}
    spans = [found["block"] or found["span"] for found in CODE_IN_PROMPT_PATTERN.finditer(prompt)]
    written = {token.text for text in (*spans, known) for token in rust_tokens(text) if token.kind == "word"}
    tests = rust_tokens(tested)
    used = _types_of_tests(tests)
    codes = (tests, *map(rust_tokens, spans))
    parameters = {name for code in codes for name in _type_parameters(code)}
    types = {name for name in written - STANDARD_TYPE_NAMES - parameters if _is_type_name(name) and len(name) > 1}
    types |= {name for name in used - STANDARD_TYPE_NAMES - parameters if _is_type_name(name)}
    types |= {name for name in declared if name[:1].isupper()}
    return AuthorNames(
        words=frozenset(token.text for token in rust_tokens(asked)),
        code_words=frozenset(written),
        types=frozenset(types),
        annotated=frozenset(_annotated(tests)),
        operators=frozenset(_types_with_operators(asked, types)),
        mixed_operators=frozenset(_types_with_operators(asked, types, MIXED_OPERATORS_PATTERN)),
        imported=frozenset(used & IMPORTED_TYPE_NAMES) - declared - _asked_types(prompt)
        | (used & SELDOM_DEFINED_TYPE_NAMES - set(re.findall(r"\w+", prompt))),
        # in a sentence a signature needs no marks of code
        signatures=_stated_signatures([*spans, CODE_IN_PROMPT_PATTERN.sub(" ", prompt)]),
        methods=_stated_methods(spans),
        defined_in_tests=frozenset(_defined(tests)),
    )


def _defined(code: Sequence[RustToken]) -> set[str]:
    """The names of the items in a piece of code, or all of its words where a macro may make items of them."""
    words = {token.text for token in code if token.kind == "word"}
    if "macro_rules" in words:
        return words
    return {name.text for before, name in pairwise(code) if before.text in ITEM_WORDS}


def _type_parameters(code: Sequence[RustToken]) -> Iterator[str]:
    """The names that a function, a type or an implementation in a piece of code gives to types that it does not know."""
    for number, token in enumerate(code):
        if token.kind != "word" or token.text not in TYPE_KEYWORDS | {"fn", "impl"}:
            continue
        opening = number + (1 if token.text == "impl" else 2)
        end = after_generics(code, opening)
        for before, name in pairwise(code[opening:end]):
            if before.text in ("<", ",") and name.kind == "word":
                yield name.text


def _asked_types(prompt: str) -> set[str]:
    return {found["name"] or found["kind"] for found in ASKED_TYPE_PATTERN.finditer(prompt)}


def _types_with_operators(
    asked: str, types: set[str], also: re.Pattern[str] = OPERATORS_ASKED_PATTERN
) -> Iterator[str]:
    """The types that are in a sentence about operators, or in the one before it; the sentence must hold another pattern too."""
    sentences = ["", *SENTENCE_END_PATTERN.split(re.sub(r"->|=>", " ", asked))]
    for before, sentence in pairwise(sentences):
        if OPERATORS_ASKED_PATTERN.search(sentence) and also.search(sentence):
            yield from types & set(re.findall(r"\w+", f"{before} {sentence}"))


def _is_type_name(name: str) -> bool:
    """Whether a word is capitalized like a type, and not like a constant."""
    return name[:1].isupper() and (len(name) == 1 or not name.isupper())


def _annotated(tests: Sequence[RustToken]) -> Iterator[tuple[str, str]]:
    """For `let sum: Money = total(` the type and the function."""
    texts = [token.text for token in tests]
    for colon, name, equals, function, opening in zip(texts, texts[1:], texts[2:], texts[3:], texts[4:], strict=False):
        if (colon, equals, opening) == (":", "=", "("):
            yield name, function


def _types_of_tests(tests: Sequence[RustToken]) -> set[str]:
    """The words with which a path of the tests begins that they neither define nor take from elsewhere."""
    foreign: set[str] = set()
    used: set[str] = set()
    path: list[str] | None = None
    for before, token in pairwise(tests):
        if token.text == "use":
            path = []
        elif path is not None and token.text == ";":
            is_answers = path[:1] and path[0] in ("super", "crate", "self")
            used |= set(path) if is_answers else set()
            foreign |= set() if is_answers else set(path)
            path = None
        if token.kind != "word":
            continue
        if path is not None:
            path += [token.text] if token.text != "use" else []
        elif before.text in TYPE_KEYWORDS:
            foreign.add(token.text)
        elif before.text != "::":
            used.add(token.text)
    return used - foreign


def _stated_signatures(spans: Sequence[str]) -> dict[str, StatedSignature]:
    """The functions that the prompt states once, with what they return."""
    stated: dict[str, set[StatedSignature]] = {}
    for text in spans:
        for name, signature, is_method in _signatures(text):
            if not is_method:
                stated.setdefault(name, set()).add(signature)
    # a prompt that shows a function before and after a change states neither
    single = {name: next(iter(each)) for name, each in stated.items() if len({found.returns for found in each}) == 1}
    return {name: signature for name, signature in single.items() if signature.returns}


def _stated_methods(spans: Sequence[str]) -> dict[str, str]:
    """What methods return, of those for which the prompt says it once."""
    stated: dict[str, set[str]] = {}
    for text in spans:
        for name, signature, is_method in _signatures(text):
            if is_method:
                stated.setdefault(name, set()).add(signature.returns)
    return {name: next(iter(each)) for name, each in stated.items() if len(each) == 1 and any(each)}


def _signatures(text: str) -> Iterator[tuple[str, StatedSignature, bool]]:
    """The functions of a piece of code, each with its signature, and whether it is a method."""
    code = rust_tokens(text)
    for number, (word, name) in enumerate(pairwise(code)):
        if word.text != "fn" or word.kind != "word" or name.kind != "word":
            continue
        opening = after_generics(code, number + 2)
        if opening >= len(code) or code[opening].text != "(":
            continue
        closing = closing_token(code, opening)
        if code[closing].text != ")":
            continue
        is_method = "self" in {token.text for token in code[opening : opening + 5]}
        end = closing + 1
        while end < len(code) and code[end].text not in ("{", ";", "where"):
            end += 1
        has_result = end > closing + 2 and code[closing + 1].text == "->"
        returns = type_prefix(text[code[closing + 2].start : code[end - 1].end]) if has_result else ""
        stated = StatedSignature(f"{text[word.start : code[closing].end]} -> {returns}", returns)
        yield name.text, stated, is_method
