r"""Syntax highlighting of any text in one pass.

Every pattern below matches from where it begins: what is left open ends with its line or with the text, so nothing is
ever read twice. Lexers that are made for well-formed code are not like that: five thousand blank lines keep one busy for
seconds, and a report has a thousand replies.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from markupsafe import Markup, escape

from steelyard.text import word_set

MAX_HIGHLIGHTED_CHARACTERS = 50_000
"""Characters; longer code is shown plain."""

(
    KEYWORD_CSS_CLASS,
    STRING_CSS_CLASS,
    NUMBER_CSS_CLASS,
    COMMENT_CSS_CLASS,
    NAME_CSS_CLASS,
    BUILTIN_CSS_CLASS,
    ADDED_CSS_CLASS,
    REMOVED_CSS_CLASS,
) = "k", "s", "n", "c", "f", "b", "a", "d"
"""The classes of `page.css`."""


class HighlightLanguage(NamedTuple):
    """The kinds of token that get a colour of their own in a language."""

    patterns: str
    """Alternatives, each in a group named after its class."""
    keywords: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()


def highlighted(text: str, language: str) -> Markup:
    """The text as markup in which only our own elements are elements; plain where the language is not known.

    >>> str(highlighted('return "<b>"  # done', "python"))
    '<span class="k">return</span> <span class="s">&#34;&lt;b&gt;&#34;</span>  <span class="c"># done</span>'
    """
    known = HIGHLIGHT_LANGUAGES.get(language.casefold())
    if known is None or len(text) > MAX_HIGHLIGHTED_CHARACTERS:
        return escape(text)
    pieces = []
    end = 0
    for match in _pattern(known.patterns).finditer(text):
        kind = match.lastgroup or ""
        word = match[0]
        if kind == "word":
            kind = KEYWORD_CSS_CLASS if word in known.keywords else BUILTIN_CSS_CLASS if word in known.builtins else ""
        if kind:
            pieces += [escape(text[end : match.start()]), f'<span class="{kind}">{escape(word)}</span>']
            end = match.end()
    return Markup("".join([*pieces, escape(text[end:])]))  # noqa: S704  every piece of it is escaped


@cache
def _pattern(patterns: str) -> re.Pattern[str]:
    return re.compile(patterns, re.MULTILINE)


_WORD = r"(?P<word>[^\W\d]\w*)"
_NUMBER = r"(?P<n>\b\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"
_DOUBLE_QUOTED = r'"(?:[^"\\\n]++|\\[\s\S]?)*+"?'
_SINGLE_QUOTED = r"'(?:[^'\\\n]++|\\[\s\S]?)*+'?"
_TRIPLE_QUOTED = r"\"\"\"(?:[^\\]|\\[\s\S]?)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\[\s\S]?)*?(?:'''|\Z)"
_SLASH_COMMENT = r"(?P<c>//.*|/\*[\s\S]*?(?:\*/|\Z))"


def _names_after(*words: str) -> str:
    """What stands after one of these words is a name that is defined there."""
    return "|".join(rf"(?<=\b{word} )\w+" for word in words)


_PYTHON = HighlightLanguage(
    "|".join(
        (
            r"(?P<c>#.*)",
            rf"(?P<s>\b[rRbBuUfF]{{1,2}}(?=[\"'])|{_TRIPLE_QUOTED}|{_DOUBLE_QUOTED}|{_SINGLE_QUOTED})",
            r"(?P<b>^[ \t]*@[\w.]+)",
            rf"(?P<f>{_names_after('def', 'class')})",
            _NUMBER,
            _WORD,
        )
    ),
    word_set(
        "False None True and as assert async await break case class continue def del elif else except finally for from global if "
        "import in is lambda match nonlocal not or pass raise return try while with yield"
    ),
    word_set(
        "abs all any bool bytes dict enumerate filter float frozenset int isinstance iter len list map max min next object open ord "
        "print range repr reversed round self set sorted str sum super tuple type zip cls chr divmod "
        "Exception IndexError KeyError TypeError ValueError AssertionError"
    ),
)
_RUST = HighlightLanguage(
    "|".join(
        (
            _SLASH_COMMENT,
            rf"(?P<s>\bb?r(?P<fence>#*)\"[\s\S]*?(?:\"(?P=fence)|\Z)|{_DOUBLE_QUOTED}|'(?:\\[^\n']{{1,10}}|[^\\\n'])')",
            r"(?P<b>#!?\[[^\]\n]*\]?|\b\w+!|'[a-z_]\w*)",
            rf"(?P<f>{_names_after('fn', 'struct', 'enum', 'trait', 'mod')})",
            _NUMBER,
            _WORD,
        )
    ),
    word_set(
        "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref "
        "return self Self static struct super trait true type unsafe use where while"
    ),
    word_set(
        "Box Err HashMap HashSet None Ok Option Result Some String Vec bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 "
        "u128 usize"
    ),
)
_BRACES = "|".join(
    (
        _SLASH_COMMENT,
        rf"(?P<s>\"\"\"[\s\S]*?(?:\"\"\"|\Z)|`(?:[^`\\]++|\\[\s\S]?)*+`?|{_DOUBLE_QUOTED}|{_SINGLE_QUOTED})",
        r"(?P<b>@\w+|^[ \t]*#[ \t]*(?:include|define|undef|if|ifdef|ifndef|elif|else|endif|pragma|error|line)\b.*)",
        rf"(?P<f>{_names_after('function', 'func', 'class', 'interface', 'enum', 'record', 'type')})",
        _NUMBER,
        _WORD,
    )
)
"""Languages with braces and the comments of C; what only one of them has the others do not write."""
_C = HighlightLanguage(
    _BRACES,
    word_set(
        "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return "
        "short signed sizeof static struct switch typedef union unsigned void volatile while"
    ),
    word_set("NULL bool false true size_t uint8_t uint32_t uint64_t int32_t int64_t"),
)
_CPP = _C._replace(
    keywords=_C.keywords
    | word_set(
        "bool catch class constexpr delete explicit false final friend mutable namespace new noexcept nullptr operator override private "
        "protected public template this throw true try typename using virtual"
    ),
    builtins=word_set("std string vector map set pair size_t"),
)
_JAVA = HighlightLanguage(
    _BRACES,
    word_set(
        "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally "
        "float for if implements import instanceof int interface long new null package private protected public record return short "
        "static super switch synchronized this throw throws transient true try var void volatile while"
    ),
    word_set("String Integer List Map Set Optional Object Math System"),
)
_JAVASCRIPT = HighlightLanguage(
    _BRACES,
    word_set(
        "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export "
        "extends false finally for from function get if implements import in instanceof interface let new null number of private public "
        "readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield"
    ),
    word_set("Array Boolean JSON Map Math Number Object Promise RegExp Set String console module require"),
)
_GO = HighlightLanguage(
    _BRACES,
    word_set(
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return "
        "select struct switch type var true false nil"
    ),
    word_set("append bool byte cap copy error float64 int int64 len make new panic rune string uint uint64"),
)
_HCL = HighlightLanguage(
    "|".join(
        (
            rf"(?P<c>#.*|{_SLASH_COMMENT[5:-1]})",
            rf"(?P<s>{_DOUBLE_QUOTED}|<<-?(?P<fence>\w+)[\s\S]*?(?:^[ \t]*(?P=fence)\b|\Z))",
            r"(?P<b>^[ \t]*[\w-]+(?= *=))",
            _NUMBER,
            _WORD,
        )
    ),
    word_set(
        "resource variable output module provider locals data terraform true false null for in if dynamic content lifecycle"
    ),
    word_set("var local each count self path string number bool list map object set any"),
)
_SHELL = HighlightLanguage(
    "|".join(
        (
            r"(?P<c>(?:^|(?<=\s))#.*)",
            rf"(?P<s>{_DOUBLE_QUOTED}|'[^']*'?)",
            r"(?P<b>\$\w+|\$\{[^}\n]*\}?)",
            _NUMBER,
            _WORD,
        )
    ),
    word_set("if then else elif fi for in do done while until case esac function return exit local export set"),
    word_set("echo printf cd test read source trap eval exec shift"),
)
_SQL_WORDS = (
    "select from where and or not in is null as on join left right inner outer group by order having limit offset insert into values "
    "update set delete create table view index distinct union all case when then else end with over partition asc desc"
)
_SQL = HighlightLanguage(
    "|".join((r"(?P<c>--.*|/\*[\s\S]*?(?:\*/|\Z))", rf"(?P<s>'[^']*'?|{_DOUBLE_QUOTED})", _NUMBER, _WORD)),
    word_set(_SQL_WORDS) | word_set(_SQL_WORDS.upper()),
)
_JSON = HighlightLanguage(
    "|".join((r'(?P<f>"(?:[^"\\\n]++|\\[\s\S]?)*+"(?= *:))', rf"(?P<s>{_DOUBLE_QUOTED})", _NUMBER, _WORD)),
    word_set("true false null"),
)
_YAML = HighlightLanguage(
    "|".join(
        (
            r"(?P<c>(?:^|(?<=\s))#.*)",
            r"(?P<f>^[ \t]*(?:- )?[\w.-]+(?=:(?:\s|$))|^\[.*)",
            rf"(?P<s>{_DOUBLE_QUOTED}|'[^'\n]*'?)",
            _NUMBER,
            _WORD,
        )
    ),
    word_set("true false null yes no"),
)
_TOML = _YAML._replace(patterns=_YAML.patterns.replace("=:(?:\\s|$)", "= *="))
_DIFF = HighlightLanguage(r"(?P<k>^(?:diff|index|---|\+\+\+) .*)|(?P<b>^@@.*)|(?P<a>^\+.*)|(?P<d>^-.*)")

HIGHLIGHT_LANGUAGES = {
    "bash": _SHELL,
    "c": _C,
    "c++": _CPP,
    "cpp": _CPP,
    "diff": _DIFF,
    "go": _GO,
    "hcl": _HCL,
    "java": _JAVA,
    "javascript": _JAVASCRIPT,
    "js": _JAVASCRIPT,
    "json": _JSON,
    "python": _PYTHON,
    "rust": _RUST,
    "sh": _SHELL,
    "shell": _SHELL,
    "sql": _SQL,
    "terraform": _HCL,
    "toml": _TOML,
    "ts": _JAVASCRIPT,
    "typescript": _JAVASCRIPT,
    "yaml": _YAML,
}
"""By the names that cases have for them."""
