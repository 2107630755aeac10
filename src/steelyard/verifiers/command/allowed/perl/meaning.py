"""What an answer in Perl shares with the tests that call it: their `$_`, and the lists that their calls take."""

from __future__ import annotations

import re

_TOPIC = r"[$@%#]\$_\b|\$_\b(?!\s*\[)|\$\{\s*_\s*\}(?!\s*\[)"
_TOPIC_PATTERN = re.compile(_TOPIC)
_TESTS_TOPIC_PATTERN = re.compile(
    rf"{_TOPIC}|\b(?:map|grep|first|any|all|none)\b|\bfor(?:each)?\b(?!\s*(?:my|our|state)?\s*\$\w)|\bwhile\s*\(\s*<"
)
_INFIX = r"(?:x|eq|ne|lt|gt|le|ge|cmp|and|or|xor|if|unless|while|until|for|foreach|isa)\b"
_DEFAULTED_PATTERN = re.compile(
    r"(?<![\w$@%&>])(?:abs|chomp|chop|chr|cos|defined|exp|fc|hex|int|lc|lcfirst|length|log|oct|ord|pos|print|say|quotemeta|ref|reverse|sin|sqrt|uc|ucfirst)\b"
    rf"(?!\s*=>)(?!\s*\(\s*[^)\s]|\s*(?!{_INFIX})[$@%\"\w\\+&-])"
    r"|\bsplit\b\s*\(?\s*(?:\"[^\"]*\")?\s*(?:[;)}]|$)|\bunpack\b\s*\(?\s*\"[^\"]*\"\s*(?:[;)}]|$)|\b(?:given|when)\b(?!\s*=>)"
)
"""A function without an argument, which takes `$_`."""
_KEY_PATTERN = re.compile(r"((?:[$@%]\w+|->|\])\s*\{)\s*\w+\s*\}")
_LOCAL_PATTERN = re.compile(r"(?<=[;{])\s*local\s+\$_\s*(?:=\s*(?:shift(?:\s*@_)?|\$(?!_\b)\w+|\$_\[\d+\]|\"\")\s*)?;")
_BLOCK_PATTERN = re.compile(r"\b(map|grep|first|any|all|none|notall)\b\s*\(?\s*(?!=>)")
_FOR_PATTERN = re.compile(r"(?<![\w$@%&>{])for(?:each)?\b(?!\s*(?:=>|(?:my|our|state)?\s*\$\w+\s*\())")
_LIST_HEAD = r"(?:[@%]|\(?\s*(?:map|grep|sort|reverse|split|keys|values|each|splice|unpack|localtime|gmtime|wantarray|shuffle|uniq\w*|pair\w+|zip|mesh|head|tail)\b)"
_EMPTY_PATTERN = re.compile(
    rf"^\s*(?:$|{_INFIX})|(?:^|[^\w\s>}}\])]|\b(?:or|and|x))\s*\(\s*\)(?!\s*=)|(?:[?:]|&&|\|\||//|\b(?:and|or))\s*{_LIST_HEAD}|\b(?:do|eval)\s*\{{|\)\s*x\b"
    rf"|^(?!\s*\(?@\w+\s*(?:[=!<>]=|[<>?]))[\s(+]*{_LIST_HEAD}"
)
"""A value of a function that may be an empty list."""
_MATCH_PATTERN = re.compile(
    r"=~\s*(?:\"(?:\$_)?\"|\$[\w>\[\]{}-]+|\()(?![\w\s)]*\?)|(?:^|&&|\|\||\b(?:and|or)\b)\s*\"\$_\"\s*$"
)
_LISTED_BEFORE_PATTERN = re.compile(
    r"(?:\[|\bfor(?:each)?\s+my\s+\$\w+\s*\(|[@%]\w+\s*=|\)\s*=|\bjoin\s*\(?\s*\"[^\"]*\"\s*,)\s*(?:(?:sort|reverse|map|grep)\b\s*(?:\{[^{}]*\})?)?\s*\(?\s*$"
)
_SCALAR_BEFORE_PATTERN = re.compile(
    r"(?:\$\w+\s*=|\bscalar\b\s*\(?|[=!<>]=|<=>|[<>!+*/.]|=~|\b(?:eq|ne|lt|gt|le|ge|cmp|not)|\b(?:if|unless|while|until)\s*\()\s*$"
)
_SCALAR_AFTER_PATTERN = re.compile(r"\s*(?:[=!<>]=|<=>|[<>+*/.?%-]|=~|&&|\|\||\b(?:eq|ne|lt|gt|le|ge|cmp|and|or)\b)")
_LEAVING_PATTERN = re.compile(r"\s*(?:return|die|croak|confess)\b")


def is_topic_shared(plain: str, tests: str) -> bool:
    """Whether code uses a `$_` that no loop of its own sets, beside tests that may have one."""
    if not _TESTS_TOPIC_PATTERN.search(tests):
        return False
    own = set(re.findall(r"\bsub\s+(\w+)", plain))
    spans = [(found.end(), _block_end(plain, found.end())) for found in _LOCAL_PATTERN.finditer(plain)]
    spans += [(found.start(), found.end()) for found in _LOCAL_PATTERN.finditer(plain)]
    spans += [_first_argument(plain, found.end()) for found in _BLOCK_PATTERN.finditer(plain) if found[1] not in own]
    spans += [_loop_body(plain, found) for found in _FOR_PATTERN.finditer(plain)]
    rest = list(plain)
    for start, end in spans:
        if not re.search(r"\bsub\b", plain[start:end]):
            rest[start:end] = " " * (end - start)
    text = _KEY_PATTERN.sub(r"\1 0 }", "".join(rest))
    return bool(_TOPIC_PATTERN.search(text) or _DEFAULTED_PATTERN.search(re.sub(r"\bsub\s+\w+", "", text)))


def shared_variable(plain: str, tests: str) -> str:
    """The first variable of a package that code declares and tests set; empty if there is none.

    >>> shared_variable("our $fails; sub add { $fails = -1; 9 }", "our $fails = 0; $fails++ unless add(1, 2) == 3;")
    'fails'
    >>> shared_variable("our $fails; sub add { 9 }", "my $fails = 0; $fails++ unless add(1, 2) == 3;")
    ''
    """
    declared = " ".join(re.findall(r"\bour\b\s*(?:\([^()]*\)|[$@%]\w+)", plain))
    own = set(re.findall(r"[$@%](\w+)", declared))
    own |= {name for name in ("a", "b") if re.search(rf"\${name}\s*(?:[-+*/.x|&]|\*\*|\|\||//)?=(?![=~])", plain)}
    lexical = " ".join(re.findall(r"\b(?:my|state)\b\s*(?:\([^()]*\)|[$@%]\w+)", tests))
    changed = set(re.findall(r"[$@%](?:main::|::)?(\w+)(?=[^;=!<>~]*(?<![=!<>])=(?![=~])|\s*(?:\+\+|--))", tests))
    changed |= {
        name
        for names in re.findall(
            r"(?:\+\+|--)\s*\$(?:main::|::)?(\w+)|\b(?:push|unshift)\b[\s(]*@(?:main::|::)?(\w+)", tests
        )
        for name in names
        if name
    }
    return min((own & changed) - set(re.findall(r"[$@%](\w+)", lexical)), default="")


def closing_place(text: str, place: int) -> int:
    """Where the bracket at a place is closed; the end of the text if it is not."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if not depth:
            return at
    return len(text)


def _block_end(text: str, place: int) -> int:
    """Where the block around a place ends."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            return at
    return len(text)


def _first_argument(text: str, place: int) -> tuple[int, int]:
    """The block or the expression that `map` and the like run for each item."""
    if text.startswith("{", place):
        return place, closing_place(text, place)
    at = place
    while at < len(text) and text[at] not in ",;)]}":
        at = closing_place(text, at) + 1 if text[at] in "([{" else at + 1
    return (place, at) if text.startswith(",", at) else (place, place)


def _loop_body(text: str, found: re.Match[str]) -> tuple[int, int]:
    """What a `for` without a named variable repeats: the block after it, or the statement before it."""
    place = found.end()
    while place < len(text) and text[place].isspace():
        place += 1
    if text.startswith("(", place):
        close = closing_place(text, place)
        block = re.compile(r"\s*\{").match(text, close + 1)
        if block:
            is_counted = ";" in text[place:close]
            return (place, place) if is_counted else (block.end() - 1, closing_place(text, block.end() - 1))
    return _statement_start(text, found.start()), found.start()


def _statement_start(text: str, place: int) -> int:
    """Where the statement begins that ends at a place."""
    depth, at = 0, place
    while at and not (depth == 0 and text[at - 1] in ";{(["):
        sign = text[at - 1]
        if sign == "}" and not depth:
            opening = _opening(text, at - 1)
            if not re.search(r"(?:[$@%]\w*|->|[\]}])$", text[max(0, opening - 60) : opening]):
                return at
            at = opening
            continue
        depth += (sign in ")]}") - (sign in "([{")
        at -= 1
    return at


def _opening(text: str, place: int) -> int:
    """Where the bracket was opened that is closed at a place."""
    depth = 0
    for at in range(place, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if not depth:
            return at
    return 0


def may_give_no_value(plain: str, tests: str) -> bool:
    """Whether a function may give an empty list where a call of the tests takes one value among others."""
    bodies: dict[str, str] = {}
    for found in re.finditer(r"\bsub\s+(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?\{", plain):
        bodies[found[1]] = bodies.get(found[1], "") + plain[found.end() : closing_place(plain, found.end() - 1)]
    todo = [name for name in bodies if is_exposed(name, tests)]
    if todo and re.search(r"\bsub\s*[({]", plain):
        todo = list(bodies)
        if any(_is_empty(value) for value in _returned(plain)):
            return True
    done: set[str] = set()
    while todo:
        name = todo.pop()
        done.add(name)
        if _may_end_empty(bodies[name]) or any(_is_empty(value) for value in _returned(bodies[name])):
            return True
        todo += (set(re.findall(r"\w+", bodies[name])) & set(bodies)) - done
    return False


def is_exposed(name: str, tests: str) -> bool:
    """Whether tests call a function where an empty list would move other values."""
    for found in re.finditer(rf"(?<![\w$@%])((?:\$?\w+(?:::|->))*)\b{name}\b(?!\s*=>)", tests):
        before = tests[max(0, found.start() - 200) : found.start()]
        opening = re.compile(r"\s*\(").match(tests, found.end())
        after = tests[closing_place(tests, opening.end() - 1) + 1 :] if opening else tests[found.end() :]
        is_alone = bool(re.search(r"(?:^|[;{}])\s*$", before)) and after.lstrip().startswith(";")
        is_last = after.lstrip().startswith((")", "]", ";"))
        if not (
            is_alone
            or (is_last and _LISTED_BEFORE_PATTERN.search(before))
            or _SCALAR_BEFORE_PATTERN.search(before)
            or _SCALAR_AFTER_PATTERN.match(after)
        ):
            return True
    return False


def _returned(body: str) -> list[str]:
    """What the `return` statements of a body give."""
    return [
        body[found.end() : statement_end(body, found.end())]
        for found in re.finditer(r"(?<![\w$@%>])return\b(?!\s*=>)", body)
    ]


def statement_end(text: str, place: int) -> int:
    """Where the statement ends that goes on at a place."""
    at = place
    while at < len(text) and text[at] not in ";)]}":
        at = closing_place(text, at) + 1 if text[at] in "([{" else at + 1
    return min(at, len(text))


def _is_empty(value: str) -> bool:
    """Whether the value of a `return` may be an empty list."""
    is_joined = re.search(r"&&|\|\||,|\b(?:and|or)\b", value)
    if not is_joined and re.match(r"\s*(?:!|not\b|scalar\b)", value):
        return False
    if value.strip() and not re.match(rf"\s*{_INFIX}", value):
        value = re.split(r"\b(?:if|unless)\b", value, maxsplit=1)[0]
    return bool(_EMPTY_PATTERN.search(value) or _MATCH_PATTERN.search(value))


def _may_end_empty(body: str) -> bool:
    """Whether what a body ends with may give an empty list."""
    body = body.rstrip().rstrip(";").rstrip()
    if _is_leaving(body):
        return False
    last = body[_statement_start(body, len(body)) :]
    if last.strip():
        return not _LEAVING_PATTERN.match(last) and _is_empty(last)
    is_last = True
    while body.endswith("}"):
        opening = _opening(body, len(body) - 1)
        inside, head = body[opening + 1 : -1], body[:opening].rstrip()
        if head.endswith(")"):
            head = head[: _opening(head, len(head) - 1)].rstrip()
        word = head[-5:] if head.endswith("elsif") else head[-4:] if head.endswith("else") else ""
        if not _is_leaving(inside) or (is_last and word != "else"):
            return True
        if not word:
            return False
        body, is_last = head.removesuffix(word).rstrip(), False
    return True


def _is_leaving(text: str) -> bool:
    """Whether the last statement of a text leaves the function."""
    text = text.rstrip().rstrip(";").rstrip()
    start = _statement_start(text, len(text))
    while start == len(text) and text.endswith("}"):
        text = text[: _opening(text, len(text) - 1)].rstrip()
        start = _statement_start(text, len(text))
        if not _LEAVING_PATTERN.match(text[start:]):
            return False
    while start and text[start - 1] == "}" and not _LEAVING_PATTERN.match(text[start:]):
        text = text[: _opening(text, start - 1)]
        start = _statement_start(text, len(text))
    return bool(_LEAVING_PATTERN.match(text[start:])) and not re.search(r"\b(?:if|unless)\b", text[start:])
