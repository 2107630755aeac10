r"""Code in colours, in one pass over it, whatever it holds.

Every pattern below matches from where it begins: what is left open ends with its line or with the text, so nothing is
ever read twice. Lexers that are made for well-formed code are not like that: five thousand blank lines keep one busy for
seconds, and a report has a thousand replies.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from markupsafe import Markup, escape

LONGEST = 50_000
"""Characters; longer code is shown plain."""

KEYWORD, STRING, NUMBER, COMMENT, NAME, BUILTIN, ADDED, REMOVED = "k", "s", "n", "c", "f", "b", "a", "d"
"""The classes of `page.css`."""


class Language(NamedTuple):
    """What can be told apart in a language, as far as colours want to know."""

    patterns: str
    """Alternatives, each in a group named after its class."""
    keywords: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()


def highlighted(text: str, language: str) -> Markup:
    """The text as markup in which only our own elements are elements; plain where the language is not known.

    >>> str(highlighted('return "<b>"  # done', "python"))
    '<span class="k">return</span> <span class="s">&#34;&lt;b&gt;&#34;</span>  <span class="c"># done</span>'
    """
    known = LANGUAGES.get(language.casefold())
    if known is None or len(text) > LONGEST:
        return escape(text)
    pieces = []
    end = 0
    for match in _pattern(known.patterns).finditer(text):
        kind = match.lastgroup or ""
        word = match[0]
        if kind == "word":
            kind = KEYWORD if word in known.keywords else BUILTIN if word in known.builtins else ""
        if kind:
            pieces += [escape(text[end : match.start()]), f'<span class="{kind}">{escape(word)}</span>']
            end = match.end()
    return Markup("".join([*pieces, escape(text[end:])]))  # noqa: S704  every piece of it is escaped


@cache
def _pattern(patterns: str) -> re.Pattern[str]:
    return re.compile(patterns, re.MULTILINE)


_WORD = r"(?P<word>[^\W\d]\w*)"
_NUMBER = r"(?P<n>\b\d[\w.]*(?:(?<=[eE])[+-]\d+)?)"
_QUOTED = r'"(?:[^"\\\n]++|\\[\s\S]?)*+"?'
_SINGLE = r"'(?:[^'\\\n]++|\\[\s\S]?)*+'?"
_TRIPLE = r"\"\"\"(?:[^\\]|\\[\s\S]?)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\[\s\S]?)*?(?:'''|\Z)"
_SLASHES = r"(?P<c>//.*|/\*[\s\S]*?(?:\*/|\Z))"


def _names(*words: str) -> str:
    """What stands after one of these words is a name that is defined there."""
    return "|".join(rf"(?<=\b{word} )\w+" for word in words)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PYTHON = Language(
    "|".join(
        (
            r"(?P<c>#.*)",
            rf"(?P<s>\b[rRbBuUfF]{{1,2}}(?=[\"'])|{_TRIPLE}|{_QUOTED}|{_SINGLE})",
            r"(?P<b>^[ \t]*@[\w.]+)",
            rf"(?P<f>{_names('def', 'class')})",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "False None True and as assert async await break case class continue def del elif else except finally for from global if "
        "import in is lambda match nonlocal not or pass raise return try while with yield"
    ),
    _words(
        "abs all any bool bytes dict enumerate filter float frozenset int isinstance iter len list map max min next object open ord "
        "print range repr reversed round self set sorted str sum super tuple type zip cls chr divmod "
        "Exception IndexError KeyError TypeError ValueError AssertionError"
    ),
)
_RUST = Language(
    "|".join(
        (
            _SLASHES,
            rf"(?P<s>\bb?r(?P<fence>#*)\"[\s\S]*?(?:\"(?P=fence)|\Z)|{_QUOTED}|'(?:\\[^\n']{{1,10}}|[^\\\n'])')",
            r"(?P<b>#!?\[[^\]\n]*\]?|\b\w+!|'[a-z_]\w*)",
            rf"(?P<f>{_names('fn', 'struct', 'enum', 'trait', 'mod')})",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref "
        "return self Self static struct super trait true type unsafe use where while"
    ),
    _words(
        "Box Err HashMap HashSet None Ok Option Result Some String Vec bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 "
        "u128 usize"
    ),
)
_C_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return "
    "short signed sizeof static struct switch typedef union unsigned void volatile while"
)
_C = Language(
    "|".join((_SLASHES, rf"(?P<s>{_QUOTED}|{_SINGLE})", r"(?P<b>^[ \t]*#.*)", _NUMBER, _WORD)),
    _words(_C_WORDS),
    _words("NULL bool false true size_t uint8_t uint32_t uint64_t int32_t int64_t"),
)
_CPP = _C._replace(
    keywords=_C.keywords
    | _words(
        "bool catch class constexpr delete explicit false final friend mutable namespace new noexcept nullptr operator override private "
        "protected public template this throw true try typename using virtual"
    ),
    builtins=_words("std string vector map set pair size_t"),
)
_JAVA = Language(
    "|".join(
        (
            _SLASHES,
            rf"(?P<s>\"\"\"[\s\S]*?(?:\"\"\"|\Z)|{_QUOTED}|{_SINGLE})",
            r"(?P<b>@\w+)",
            rf"(?P<f>{_names('class', 'interface', 'enum', 'record')})",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally "
        "float for if implements import instanceof int interface long new null package private protected public record return short "
        "static super switch synchronized this throw throws transient true try var void volatile while"
    ),
    _words("String Integer List Map Set Optional Object Math System"),
)
_JAVASCRIPT = Language(
    "|".join(
        (
            _SLASHES,
            rf"(?P<s>`(?:[^`\\]++|\\[\s\S]?)*+`?|{_QUOTED}|{_SINGLE})",
            r"(?P<b>@\w+)",
            rf"(?P<f>{_names('function', 'class', 'interface')})",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export "
        "extends false finally for from function get if implements import in instanceof interface let new null number of private public "
        "readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield"
    ),
    _words("Array Boolean JSON Map Math Number Object Promise RegExp Set String console module require"),
)
_GO = Language(
    "|".join(
        (
            _SLASHES,
            rf"(?P<s>`[^`]*`?|{_QUOTED}|{_SINGLE})",
            rf"(?P<f>{_names('func', 'type')})",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return "
        "select struct switch type var true false nil"
    ),
    _words("append bool byte cap copy error float64 int int64 len make new panic rune string uint uint64"),
)
_HCL = Language(
    "|".join(
        (
            rf"(?P<c>#.*|{_SLASHES[5:-1]})",
            rf"(?P<s>{_QUOTED}|<<-?(?P<fence>\w+)[\s\S]*?(?:^[ \t]*(?P=fence)\b|\Z))",
            r"(?P<b>^[ \t]*[\w-]+(?= *=))",
            _NUMBER,
            _WORD,
        )
    ),
    _words(
        "resource variable output module provider locals data terraform true false null for in if dynamic content lifecycle"
    ),
    _words("var local each count self path string number bool list map object set any"),
)
_SHELL = Language(
    "|".join(
        (r"(?P<c>(?:^|(?<=\s))#.*)", rf"(?P<s>{_QUOTED}|'[^']*'?)", r"(?P<b>\$\w+|\$\{[^}\n]*\}?)", _NUMBER, _WORD)
    ),
    _words("if then else elif fi for in do done while until case esac function return exit local export set"),
    _words("echo printf cd test read source trap eval exec shift"),
)
_SQL_WORDS = (
    "select from where and or not in is null as on join left right inner outer group by order having limit offset insert into values "
    "update set delete create table view index distinct union all case when then else end with over partition asc desc"
)
_SQL = Language(
    "|".join((r"(?P<c>--.*|/\*[\s\S]*?(?:\*/|\Z))", rf"(?P<s>'[^']*'?|{_QUOTED})", _NUMBER, _WORD)),
    _words(_SQL_WORDS) | _words(_SQL_WORDS.upper()),
)
_JSON = Language(
    "|".join((r'(?P<f>"(?:[^"\\\n]++|\\[\s\S]?)*+"(?= *:))', rf"(?P<s>{_QUOTED})", _NUMBER, _WORD)),
    _words("true false null"),
)
_YAML = Language(
    "|".join(
        (
            r"(?P<c>(?:^|(?<=\s))#.*)",
            r"(?P<f>^[ \t]*(?:- )?[\w.-]+(?=:(?:\s|$))|^\[.*)",
            rf"(?P<s>{_QUOTED}|'[^'\n]*'?)",
            _NUMBER,
            _WORD,
        )
    ),
    _words("true false null yes no"),
)
_TOML = _YAML._replace(patterns=_YAML.patterns.replace("=:(?:\\s|$)", "= *="))
_DIFF = Language(r"(?P<k>^(?:diff|index|---|\+\+\+) .*)|(?P<b>^@@.*)|(?P<a>^\+.*)|(?P<d>^-.*)")

LANGUAGES = {
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
