"""Whether an answer in Perl names nothing but what its list has."""

from __future__ import annotations

import re

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.perl.meaning import is_topic_shared, may_give_no_value, shared_variable
from steelyard.verifiers.command.allowed.perl.values import may_give_several
from steelyard.verifiers.command.allowed.tokens import UnreadableCodeError, check_depth, line_end

_PERL_POD_PATTERN = re.compile(r"^=[a-zA-Z].*?(?:^=cut\b[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
MAX_FUNCTIONS = 200
"""Functions, or conditional expressions, of an answer that is read; each is read to its end again."""
_PERL_BRACKETS = {"(": ")", "{": "}", "[": "]", "<": ">"}
_PERL_QUOTE_PATTERN = re.compile(r"\b(qw|qq|q|qr|m|s|tr|y)\b(?=\s*[^\w\s,;=>)]|\s*#)(?!\s*=>)")
_PERL_LIST_HEAD = r"(?:[@%]|\(?\s*(?:map|grep|sort|reverse|split|keys|values|each|splice|unpack|localtime|gmtime|wantarray|shuffle|uniq\w*|pairs|head|tail)\b)"
_PERL_LIST_PATTERN = re.compile(
    rf"\breturn\s*\(?\s*{_PERL_LIST_HEAD}|[;{{]\s*{_PERL_LIST_HEAD}[^;{{}}]*;?\s*\}}|\)\s*x\s*[\d$(]|(?:\breturn\s*|[?:]\s*)\([^()]*,|[;{{]\s*\([^()]*,[^()]*\)\s*;?\s*\}}|\breturn\b(?!\s*(?:join|sprintf|bless)\b\s*[^(\s])[^;(]*,"
)
"""A function that may give several values."""
_PERL_BEFORE_MATCH_PATTERN = re.compile(
    r"(?:^|[=~(,;{!&|?:\[+*<.]|=>|\b(?:split|grep|map|if|unless|while|until|and|or|xor|not|return|x|when|eq|ne|lt|gt|le|ge|cmp))$"
)
"""What stands before a slash that begins a pattern."""
_PERL_ARGUMENT_CHANGE_PATTERN = re.compile(
    r"\$_\s*\[[^\[\]]*\]\s*(?:(?:[-+*/.x|&^%]|\*\*|\|\||&&|//)?=(?![=~>])|\+\+|--|=~\s*\"(?:s|tr|y)\")|(?:\+\+|--|\\)\s*\$_\s*\["
)
_PERL_BOUND_PATTERN = re.compile(r"(?:[=!]~|\bsplit\s*\(?)$")
_PERL_VARIABLE_PATTERN = re.compile(
    r"(\$#|[$@])(\{\s*\^?\w+\s*\}|[A-Za-z_]\w*(?:(?:::|')\w+)*|\d+|\^\w|[^\w\s{$#@%])|(?<![\w)\]}&*])([%&*])(\{\s*\^?\w+\s*\}|[A-Za-z_]\w*(?:(?:::|')\w+)*)"
)


def unlisted_in_perl(code: str, names: AskedNames) -> str:
    """The first thing in code that the list does not have; empty if there is none."""
    asked, tests, is_printed = names.called, names.tests, names.is_printed
    code = _PERL_POD_PATTERN.sub("", code)
    code = re.split(r"^__(?:END|DATA)__\b", code, maxsplit=1, flags=re.MULTILINE)[0]
    plain, texts, problem = _plain_perl(code)
    if problem:
        return problem
    check_depth(plain)
    if plain.count("sub ") > MAX_FUNCTIONS or plain.count("?") > MAX_FUNCTIONS:
        return "too much code to be read"
    if re.search(r"(?:\breturn\b(?!\s*(?:scalar|join)\b)|[;{]\s*\$)[^;()]*->\s*[@%]\*\s*;?\s*(?:\}|\Z|(?<=;))", plain):
        return "a list of a reference"
    whole = plain
    plain = re.sub(r"->\s*(?:\$#|[$@%])\*", "", plain)
    for text in texts:
        if re.search(r"[@$]\{(?!\s*\$?\w+\s*\})|\$\$(?!\w)|\(\?\??\{|\$(?:::|main::)", text):
            return "code in a text"
    own = set(re.findall(r"\bsub\s+(\w+)", plain))
    constants = set(re.findall(r"\buse\s+constant\s*\{?\s*(\w+)", plain)) | (
        set(re.findall(r"(\w+)\s*=>", plain)) if "constant" in plain else set()
    )
    variables = _PERL_VARIABLE_PATTERN.sub(" $ ", plain)
    if problem := _perl_variables(plain):
        return problem
    for module in re.findall(r"\b(?:use|no)\s+([A-Za-z][\w:]*)", plain):
        if module not in vocabulary.PERL_MODULES and not re.fullmatch(r"v?5[\d._]*", module):
            return f"use {module}"
    if re.search(r"\beval\b(?!\s*\{)|\bdo\b(?!\s*\{)|<\s*\$?\w*\s*>", variables):
        return "eval of a text, or a file that is read"
    packages = set(re.findall(r"\bpackage\s+([\w:]+)", plain))
    asked_parts = {*asked, *re.findall(r"\w+", " ".join(re.findall(r"[\w:]+::[\w:]+", names.prompt)))}
    foreign = {name for name in packages if "::" in name and not set(name.split("::")[:1]) <= asked_parts}
    if taken := packages & {"main", *vocabulary.PERL_MODULES} | foreign:
        return f"package {min(taken)}"
    if found := re.search(r"\bmain::|\bsub\s+\w+(?:::|')", plain):
        return found[0]
    listed = vocabulary.PERL_FUNCTIONS | vocabulary.PERL_IMPORTED | own | constants | asked
    if word := _unlisted_perl_word(variables, listed, packages, tests):
        return word
    if is_printed and re.search(r"(?<![$@%>{])\b(?:print|printf|say)\b(?!\s*(?:=>|\}|STDERR))", variables):
        return "print"
    if shared := own & (vocabulary.PERL_FUNCTIONS | vocabulary.PERL_RESERVED_NAMES):
        return f"its own {min(shared)}"
    return (
        _equal_constants_of_perl(code, names.test_words)
        or _left_to_answer(_tests_without_texts(tests))
        or _meaning_in_perl(plain, tests)
        or (may_give_several(whole, _tests_without_texts(tests)) and "more than one value where the tests take one")
        or ""
    )


def _equal_constants_of_perl(code: str, used: set[str]) -> str:
    """Constants that tests use and that have the same value."""
    values: dict[str, str] = {}
    for name, value in re.findall(r"\b([A-Z][A-Z0-9_]+)\s*=>\s*([^,;}\n]+)", code):
        if name in used and values.setdefault(value.strip(), name) != name:
            return f"{values[value.strip()]} and {name} with one value"
    own = set(re.findall(r"\bsub\s+([A-Z][A-Z0-9_]+)\b", code)) & used
    return f"{min(own)} without a plain value" if len(own) > 1 else ""


def _left_to_answer(tests: str) -> str:
    """Variables of packages that tests read and do not set: without a value they are all the same."""
    declared = " ".join(re.findall(r"\bour\b[^=;]*;|\buse\s+vars\b[^;]*;", tests))
    shared = set(re.findall(r"[$@%](\w+)", declared))
    elements = re.findall(r"(?<!\\)\$\{?(\w+)\s*(\{\s*\w+\s*\}|\[)", tests)
    read = {name + re.sub(r"\s", "", place) for name, place in elements if name in shared}
    read |= set(re.findall(r"(?<!\\)\$\{?((?:\w+::)+\w+)", tests))
    read |= shared & set(re.findall(r"(?<!\\)\$\{?(\w+)(?!\s*[\w:\[{])", tests))
    filled = " ".join(re.findall(r"\([$@%\w\s,:]*\)(?=\s*=(?![=~]))", tests))
    read -= set(re.findall(r"\$((?:\w+::)*\w+)\s*=(?![=~])", tests)) | set(re.findall(r"\$([\w:]+)", filled))
    return f"{min(read)} to set, which the tests read" if len(read) > 1 else ""


def _meaning_in_perl(plain: str, tests: str) -> str:
    """What changes variables of the tests, or gives them more than one value."""
    if re.search(r"\$_\b(?!\[)", tests) and re.search(
        r"(?<!local )\$_\s*(?:[-+*/.x|&^%]|\*\*|\|\||&&|//)?=(?![=~>])|\bch(?:om|o)p\s*;", plain
    ):
        return "another $_"
    if is_topic_shared(plain, tests):
        return "the $_ of its caller"
    is_changing = re.search(
        r"\$_\s*(?:[-+*/.x|&^%]|\*\*|\|\||&&|//)?=(?![=~])|\$_(?:\+\+|--)|(?:\+\+|--)\$_|\\\s*[$@]_|\bch(?:om|o)p\b",
        plain,
    )
    if is_changing and re.search(r"@_(?!\w|\s*;|\s*==|\s*[<>])", re.sub(r"=\s*@_", "", plain)):
        return "another @_"
    if _PERL_ARGUMENT_CHANGE_PATTERN.search(plain):
        return "another @_"
    called = r"\w\s*\(\s*(?:\$?\w+(?:::|->))*(\w+)\s*\(|\b(?:is|ok|isnt|like|cmp_ok)\s+(?:\$?\w+(?:::|->))*(\w+)\s*\("
    alone = {name for names in re.findall(called, tests) for name in names if name}
    for name, body in re.findall(r"\bsub\s+(\w+)(.*?)(?=\bsub\s+\w|\Z)", plain, re.DOTALL):
        if name in alone and _PERL_LIST_PATTERN.search(body):
            return "a list where the tests take one value"
    if shared := shared_variable(plain, _tests_without_texts(tests)):
        return f"{shared}, a variable that the tests set"
    if may_give_no_value(plain, _tests_without_texts(tests)):
        return "no value where the tests take one"
    return ""


def _tests_without_texts(tests: str) -> str:
    """Tests without their texts and comments, or as they are if they cannot be read."""
    try:
        plain, _, problem = _plain_perl(tests)
    except UnreadableCodeError:
        return tests
    return tests if problem else plain


def _unlisted_perl_word(plain: str, listed: set[str] | frozenset[str], packages: set[str], tests: str) -> str:
    """The first function or method that is not listed."""
    for found in re.finditer(r"(->\s*|\{\s*)?(?<![\w$@%&>])([A-Za-z_][\w:']*)(?=(\s*\}|\s*=>)?)", plain):
        before, name, after = found[1] or "", found[2].strip(":"), found[3] or ""
        is_key = after.strip() == "=>" or (before.startswith("{") and after.strip() == "}")
        if is_key or name in listed or name in packages:
            continue
        if (
            name in vocabulary.PERL_MODULES
            or all(part in listed | packages for part in name.split("::"))
            or name.rpartition("::")[0] in packages | vocabulary.PERL_MODULES
        ):
            continue
        if before.startswith("->") and name in re.findall(r"\w+", tests):
            continue
        return name
    return ""


def _perl_variables(plain: str) -> str:
    """The first variable that code neither declares nor may use."""
    declared = set(re.findall(r"\b(?:my|our|state|field)\s*\(?\s*[$@%](\w+)", plain))
    for inside in re.findall(r"\b(?:(?:my|our|state)|sub\b[\s\w]*)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", plain):
        declared |= set(re.findall(r"[$@%](\w+)", inside))
    functions = set(re.findall(r"\bsub\s+(\w+)", plain))
    for found in _PERL_VARIABLE_PATTERN.finditer(plain):
        sigil, name = found[1] or found[3], (found[2] or found[4]).strip("{} \t\n")
        is_listed = (
            name in declared or vocabulary.PERL_VARIABLES.fullmatch(name) or (sigil == "&" and name in functions)
        )
        is_exported = re.fullmatch(r"(?:\w+::)*(?:ISA|VERSION|EXPORT(?:_OK|_TAGS)?)", name)
        if sigil == "*" or not (is_listed or is_exported) or name == "0":
            return f"{sigil}{name}"
    return ""


def _plain_perl(code: str) -> tuple[str, list[str], str]:
    """Code without its texts and comments, the texts that hold variables, and what cannot be read."""
    plain: list[str] = []
    texts: list[str] = []
    place = 0
    while place < len(code):
        sign = code[place]
        last = "".join(plain[-40:]).rstrip()
        if sign == "#" and not last.endswith("$"):
            place = line_end(code, place)
        elif sign in "\"'" and not last.endswith(("$", "&")):
            close = _perl_end(code, place, sign)
            if sign == '"':
                texts.append(code[place + 1 : close])
            plain.append(_quoted([code[place + 1 : close]] if sign == '"' else []))
            place = close + 1
        elif sign == "`":
            return "", [], "a command in backquotes"
        elif code.startswith("<<", place) and re.compile(r"<<~?[\"'A-Za-z_]").match(code, place):
            return "", [], "a here-document"
        elif sign == "/" and last.endswith("}"):
            if not code.startswith("//", place) and "/" in code[place + 1 :]:
                return "", [], "a slash after a brace"
            plain.append(code[place : place + 2])
            place += 2
        elif sign == "/" and _PERL_BEFORE_MATCH_PATTERN.search(last):
            close = _perl_end(code, place, "/")
            texts.append(code[place + 1 : close])
            plain.append(_quoted([code[place + 1 : close]], "" if _PERL_BOUND_PATTERN.search(last) else "$_"))
            place = _flags_end(code, close + 1)
        elif sign == "/" and not code.startswith("//", place) and re.search(r"(?<![\w$@%&>:])[a-z]+$", last):
            return "", [], "a slash after a name"
        elif (
            (quote := _PERL_QUOTE_PATTERN.match(code, place))
            and not last.endswith(("$", "@", "%", "&", "->", "sub"))
            and not (last.endswith("{") and code[quote.end() :].lstrip().startswith("}"))
            and (not place or not (code[place - 1].isalnum() or code[place - 1] in "_$@%&"))
        ):
            place, inside, flags = _perl_quote(code, quote)
            is_plain = quote[1] in ("q", "qw", "tr", "y")
            texts += [] if is_plain else inside
            if "e" in flags and quote[1] == "s":
                inner, inner_texts, problem = _plain_perl(inside[-1])
                if problem or "ee" in flags:
                    return "", [], problem or "code in a text"
                plain.append(f" {inner} ")
                texts += inner_texts
            is_match = quote[1] in ("m", "s", "tr", "y")
            topic = "$_" if is_match and not _PERL_BOUND_PATTERN.search(last) else ""
            changing = quote[1] if quote[1] in ("s", "tr", "y") else ""
            words = ", ".join(['""'] * len(inside[0].split()))
            plain.append(f"({words})" if quote[1] == "qw" else _quoted([] if is_plain else inside, topic or changing))
        else:
            plain.append(sign)
            place += 1
    return "".join(plain), texts, ""


def _quoted(inside: list[str], instead: str = "") -> str:
    """What stands for a text: `$_` if it uses that."""
    has_topic = any(re.search(r"[$@%#]\$_\b|\$_\b(?!\s*\[)|\$\{\s*_\s*\}|[$@]\{\s*\$_\b", text) for text in inside)
    return '"$_"' if has_topic else f'"{instead}"'


def _perl_end(code: str, place: int, close: str) -> int:
    """Where a text ends that begins at a place."""
    opening, depth = code[place], 0
    at = place
    while at < len(code):
        if code[at] == "\\":
            at += 2
            continue
        if opening != close:
            depth += (code[at] == opening) - (code[at] == close)
            if not depth:
                return at
        elif at > place and code[at] == close:
            return at
        at += 1
    raise UnreadableCodeError("a text that does not end")


def _flags_end(code: str, place: int) -> int:
    while place < len(code) and code[place].isalpha():
        place += 1
    return place


def _perl_quote(code: str, quote: re.Match[str]) -> tuple[int, list[str], str]:
    """Where a quote such as `qq{...}` ends, what is in it, and its flags."""
    place = quote.end()
    while code[place].isspace():
        place += 1
    opening = code[place]
    close = _perl_end(code, place, _PERL_BRACKETS.get(opening, opening))
    inside = [code[place + 1 : close]]
    if quote[1] in ("s", "tr", "y"):
        if opening in _PERL_BRACKETS:
            close += 1
            while close < len(code) and code[close].isspace():
                close += 1
            second = _perl_end(code, close, _PERL_BRACKETS.get(code[close : close + 1], code[close : close + 1]))
            inside.append(code[close + 1 : second])
        else:
            second = _perl_end(code, close, opening)
            inside.append(code[close + 1 : second])
        close = second
    end = _flags_end(code, close + 1)
    return end, inside, code[close + 1 : end]
