"""Whether a function of Perl may give several values where a call of the tests takes one among others.

What is not plainly one value counts as several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.text import word_set
from steelyard.verifiers.command.allowed.perl.meaning import closing_place, is_exposed, statement_end

_GREEDY = word_set(
    "join sprintf bless push unshift pack die croak confess warn carp sum sum0 max min maxstr minstr product reduce first any all none notall "
    "index rindex substr atan2 pow fmod print printf say vec"
)
"""Functions that give one value, and take all that follows them where they stand without brackets."""
_SINGLE = word_set(
    "abs chr cos defined exists exp fc hex int lc lcfirst length log lock oct ord pop pos quotemeta rand ref scalar shift sin sqrt time uc ucfirst "
    "undef wantarray floor ceil looks_like_number blessed reftype isdigit trunc round lround chomp chop strftime mktime timelocal timegm"
)
"""Functions of one argument that give one value."""
_LISTING = word_set(
    "map grep sort reverse split keys values each splice unpack localtime gmtime shuffle uniq uniqnum uniqint uniqstr pairs pairkeys pairvalues "
    "pairmap head tail zip mesh caller return delete"
)
"""Functions that may give several values."""
_SUB_PATTERN = re.compile(r"\bsub\s+(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?(\{)?")
_CONSTANT_PATTERN = re.compile(r"\buse\s+constant\s+(\w+)\s*=>\s*([^;]*)")
_RETURN_PATTERN = re.compile(r"(?<![\w$@%&>{])return\b(?!\s*=>)")
_COMPOUND_PATTERN = re.compile(
    r"\s*(?:[A-Za-z_]\w*\s*:(?!:)\s*)?(if|unless|while|until|for|foreach|sub\s+\w+|BEGIN|END|package\s+[\w:]+(?=\s*\{)|(?=\{))(?!\s*=>|\w)"
)
_BRANCH_PATTERN = re.compile(r"\s*(?:elsif|else|continue)\b")
_NAME_PATTERN = re.compile(r"(?<![\w$@%&>])(?:\w+(?:::|'))*([A-Za-z_]\w*)\b(?!\s*(?:=>|::|->))")
_OPERAND_PATTERN = re.compile(
    r"\d[\w.]*|\.\d+|\"[^\"]*\"|(?:my|our|state|local)\s+\$\w+|\$\#?\$*\w+|\$\#?\$*(?=\{)|(?=[(\[{])"
)
_OPERATOR_PATTERN = re.compile(
    r"\*\*(?!=)|<=>|[=!<>]=(?!~)|=~|!~|<<|>>|[-+*/%&|^<>](?![=&|])|\.(?!\.)|(?:x|eq|ne|lt|gt|le|ge|cmp|isa)\b"
)
_ASSIGNMENT_PATTERN = re.compile(r"(?<![=!<>~])=(?![=~>])")
_BY_NAME_PATTERN = re.compile(r"\bcan\s*\(|&\s*[{$]|->\s*[$&]\w|\beval\b(?!\s*\{)")
"""A call of a function whose name is a text, so that it cannot be seen which one it is."""
_LOW = ("or", "and", "xor")
_MODIFIERS = ("if", "unless")
_LOOP_MODIFIERS = ("for", "foreach", "while", "until")


def may_give_several(plain: str, tests: str) -> bool:
    """Whether a function that tests call among other arguments may give more than one value.

    >>> may_give_several("sub add { map { 5 } 1 .. 2 }", "check(add(1, 2), 3);")
    True
    >>> may_give_several("sub add { my ($x, $y) = @_; return $x + $y }", "check(add(1, 2), 3);")
    False
    """
    return _Values(plain).has_several(tests)


@dataclass
class _Statement:
    """A statement of a body: an expression, or the blocks of a loop or a condition."""

    text: str
    word: str = ""
    """The word that begins it, if it has blocks."""
    blocks: tuple[str, ...] = ()


class _Values:
    """What the functions of an answer give."""

    def __init__(self, plain: str) -> None:
        self.bodies: dict[str, list[str]] = {}
        for found in _SUB_PATTERN.finditer(plain):
            end = closing_place(plain, found.end() - 1) if found[2] else 0
            # a body that cannot be found may give anything
            self.bodies.setdefault(found[1], []).append(plain[found.end() : end] if found[2] else "@_")
        self.constants = dict(_CONSTANT_PATTERN.findall(plain))
        self.tables = set(re.findall(r"(\w+)\s*=>", " ".join(re.findall(r"\buse\s+constant\s*(\{[^;]*);", plain))))
        self.known: dict[str, bool] = {}

    def has_several(self, tests: str) -> bool:
        is_by_name = bool(_BY_NAME_PATTERN.search(tests))
        exposed = [name for name in (*self.bodies, *self.constants) if is_by_name or is_exposed(name, tests)]
        return not all(map(self.gives_one, exposed))

    def gives_one(self, name: str) -> bool:
        """Whether a function or a constant gives one value; one that calls itself may."""
        if name in self.known:
            return self.known[name]
        self.known[name] = True
        if name in self.bodies:
            one = all(self._body_gives_one(body) for body in self.bodies[name])
        else:
            one = name in self.tables or (name in self.constants and self.is_one(self.constants[name]))
        self.known[name] = one
        return one

    def _body_gives_one(self, body: str) -> bool:
        for found in _RETURN_PATTERN.finditer(body):
            value = body[found.end() : statement_end(body, found.end())]
            if not self.is_one(_before_words(value, (*_MODIFIERS, *_LOOP_MODIFIERS))):
                return False
        return self._ends_with_one(body)

    def _ends_with_one(self, body: str) -> bool:
        """Whether the last statement of a block leaves one value."""
        statements = _statements(body)
        if not statements:
            return True
        last = statements[-1]
        if last.word in ("if", "unless"):
            return all(map(self._ends_with_one, last.blocks))
        if last.word:
            # a loop leaves nothing, or something that nobody knows
            return self._is_endless(last)
        text = last.text.strip()
        if _RETURN_PATTERN.match(text):
            return True
        return text == _before_words(text, _LOOP_MODIFIERS).strip() and self.is_one(_before_words(text, _MODIFIERS))

    def _is_endless(self, loop: _Statement) -> bool:
        """Whether a loop is only left by `return`."""
        return (
            loop.word in ("while", "for")
            and bool(re.match(r"\s*(?:while\s*\(\s*1?\s*\)|for\s*\(\s*;\s*;\s*\))", loop.text))
            and not re.search(r"\blast\b", loop.text)
        )

    def is_one(self, value: str) -> bool:
        """Whether an expression is plainly one value wherever it stands."""
        value = self._swallowed(value).strip()
        if not value:
            return True
        if found := _split_at_words(value, _LOW):
            return self.is_one(found[1])
        if value.startswith(("not ", "not(")):
            return "," not in _flat(value)
        flat = _flat(value)
        if re.search(r",|=>|\.\.", flat):
            return False
        if found_assignment := _ASSIGNMENT_PATTERN.search(flat):
            return self._assigns_one(value[: found_assignment.start()])
        if (place := flat.find("?")) >= 0:
            middle = _ternary_colon(flat, place)
            return middle > 0 and self.is_one(value[place + 1 : middle]) and self.is_one(value[middle + 1 :])
        joined = list(re.finditer(r"\|\||&&|//", flat))
        if joined:
            return self.is_one(value[joined[-1].end() :])
        return self._is_one_term(value)

    def _assigns_one(self, target: str) -> bool:
        target = re.sub(r"(?:\*\*|\|\||&&|//|<<|>>|[-+*/.%x|&^])$", "", target.strip()).strip()
        return bool(re.match(r"(?:(?:my|our|state|local)\s+)?\$", target)) and "?" not in _flat(target)

    def _is_one_term(self, value: str) -> bool:
        """Whether an expression of operators, without those that bind loosely, is one value."""
        value = value.strip()
        is_signed = False
        while found := re.match(r"(?:!(?!~)|~|\\|\+\+|--|-(?!-)|\+(?!\+))\s*", value):
            # a plus changes nothing, and a reference to a list in brackets is many
            is_signed = is_signed or found[0].strip() != "+"
            value = value[found.end() :]
            if found[0].startswith("\\") and not re.match(r"(?:my\s+)?[$@%&]", value):
                return False
            if found[0].startswith("\\") and value.startswith(("@", "%", "&")):
                value = re.sub(r"^[@%&]", "$", value)
        is_one, rest = self._operand(value)
        rest = rest.lstrip()
        rest = rest[2:].lstrip() if rest.startswith(("++", "--")) else rest
        operator = _OPERATOR_PATTERN.match(rest)
        if not operator:
            return (is_one or is_signed) and not rest
        if operator[0] == "x":
            return is_one and not value.startswith("(") and not value.startswith("@") and not value.startswith("%")
        is_matching = bool(re.search(r"=~\s*(?!\s*\"(?:s|tr|y)\")", _flat(rest, keeps_texts=True)))
        if operator[0] in ("=~", "**") or is_signed:
            return not is_matching
        return True

    def _operand(self, value: str) -> tuple[bool, str]:
        """Whether the first operand is one value, and what follows it."""
        if found := re.match(r"(sub)\s*(?=[{(])", value):
            place = value.find("{")
            return place >= 0, value[closing_place(value, place) + 1 :] if place >= 0 else ""
        if value.startswith(("[", "{")):
            return True, value[closing_place(value, 0) + 1 :]
        if value.startswith("("):
            end = closing_place(value, 0)
            inside, rest = value[1:end], value[end + 1 :]
            if rest.lstrip().startswith("["):
                rest = rest.lstrip()
                index = rest[1 : closing_place(rest, 0)]
                return self.is_one(index) and bool(index.strip()), rest[closing_place(rest, 0) + 1 :]
            return self.is_one(inside), rest
        if value.startswith(("@", "%", "&", "<")):
            found = re.match(r"[@%&<]\$*\w*", value)
            return False, self._after_subscripts(value[found.end() if found else 1 :])[1]
        if value[:1] in '$"' or value[:1].isdigit() or value.startswith("."):
            operand = _OPERAND_PATTERN.match(value)
            # what stands for a text with the topic in it may be a match
            is_one = operand is not None and operand[0] != '"$_"'
            subscripts, rest = self._after_subscripts(value[operand.end() if operand else 1 :])
            return is_one and subscripts, rest
        if declared := re.match(r"(?:my|our|state|local)\s+\$\w+", value):
            return True, value[declared.end() :]
        return self._function(value)

    def _after_subscripts(self, rest: str) -> tuple[bool, str]:
        """Whether what is reached by subscripts and methods is one value, and what follows."""
        is_one = True
        while True:
            text = rest.lstrip()
            if text.startswith(("[", "{")):
                rest = text[closing_place(text, 0) + 1 :]
            elif text.startswith("->"):
                text = text[2:].lstrip()
                if text.startswith(("[", "{")):
                    is_one, rest = True, text[closing_place(text, 0) + 1 :]
                elif found := re.match(r"([A-Za-z_][\w:]*)\s*", text):
                    name = found[1].rpartition("::")[2]
                    is_one = name in self.bodies and self.gives_one(name)
                    rest = text[found.end() :]
                    rest = rest[closing_place(rest, 0) + 1 :] if rest.startswith("(") else rest
                elif text.startswith("("):
                    is_one, rest = False, text[closing_place(text, 0) + 1 :]
                else:
                    return False, re.sub(r"^\$?[#@%$]*\*?\w*", "", text)
            else:
                return is_one, rest

    def _function(self, value: str) -> tuple[bool, str]:
        """The value of a function that is called, or of a constant."""
        found = re.match(r"((?:\w+::)*)([A-Za-z_]\w*)\s*", value)
        if not found:
            return False, ""
        name, rest = found[2], value[found.end() :]
        if rest.startswith("->"):
            return self._after_subscripts(rest)
        is_own = name in self.bodies or name in self.constants or name in self.tables
        is_one = self.gives_one(name) if is_own else name in _GREEDY | _SINGLE
        if rest.startswith("("):
            return is_one, self._after_subscripts(rest[closing_place(rest, 0) + 1 :])[1]
        if is_own and (name in self.constants or name in self.tables):
            return is_one, rest
        # without brackets it takes what follows; a comma has been looked for before
        return is_one, "" if is_own or not _OPERATOR_PATTERN.match(rest) else rest

    def _swallowed(self, value: str) -> str:
        """The expression, with one sign for each function that takes all that follows it."""
        flat = _flat(value)
        for found in _NAME_PATTERN.finditer(flat):
            name, after = found[1], flat[found.end() :].lstrip()
            is_greedy = name in _GREEDY and name not in self.bodies
            is_listing = name in _LISTING and name not in self.bodies
            if not (is_greedy or is_listing) or after.startswith("("):
                continue
            end = min(place for place in (_split_place(flat, found.end()), len(flat)) if place >= 0)
            before = re.sub(r"\b(?:scalar|int|lc|uc|length|defined|ref)\s*$", "!", value[: found.start()])
            return f"{before} {'0' if is_greedy else '@L'} {self._swallowed(value[end:])}"
        return value


def _split_place(flat: str, start: int) -> int:
    """Where the arguments of a function without brackets end: at a low operator, or at the `:` of a choice around it."""
    depth = 0
    for found in re.finditer(r"\?|(?<!:):(?!:)|\b(?:or|and|xor)\b", flat[start:]):
        if found[0] == "?":
            depth += 1
        elif found[0] == ":" and depth:
            depth -= 1
        else:
            return start + found.start()
    return -1


def _ternary_colon(flat: str, place: int) -> int:
    depth = 0
    for found in re.finditer(r"\?|(?<!:):(?!:)", flat[place:]):
        depth += 1 if found[0] == "?" else -1
        if not depth:
            return place + found.start()
    return -1


def _split_at_words(value: str, words: tuple[str, ...]) -> tuple[str, str] | None:
    """The parts before and after the last of some words that stand between operands."""
    found = [each for each in _NAME_PATTERN.finditer(_flat(value)) if each[1] in words]
    return (value[: found[-1].start()], value[found[-1].end() :]) if found else None


def _before_words(value: str, words: tuple[str, ...]) -> str:
    """What stands before the first of some words."""
    for found in _NAME_PATTERN.finditer(_flat(value)):
        if found[1] in words:
            return value[: found.start()]
    return value


def _flat(text: str, *, keeps_texts: bool = False) -> str:
    """A text of the same length with blanks for what is in brackets and in quotes."""
    signs = list(text)
    place = 0
    while place < len(text):
        if text[place] in "([{":
            end = closing_place(text, place)
            signs[place + 1 : end] = " " * (min(end, len(text)) - place - 1)
            place = end
        elif text[place] == '"':
            end = text.find('"', place + 1)
            end = len(text) if end < 0 else end
            if not keeps_texts:
                signs[place + 1 : end] = " " * (end - place - 1)
            place = end
        place += 1
    return "".join(signs)


def _statements(body: str) -> list[_Statement]:
    """The statements of a block."""
    statements: list[_Statement] = []
    place = 0
    while place < len(body):
        found = _COMPOUND_PATTERN.match(body, place)
        if not found:
            end = statement_end(body, place)
            statements.append(_Statement(body[place:end]))
            place = end + 1
            continue
        begin, blocks = place, []
        place = found.end()
        while True:
            while place < len(body) and body[place] not in "{;":
                place = closing_place(body, place) + 1 if body[place] in "([" else place + 1
            if body[place : place + 1] != "{":
                break
            end = closing_place(body, place)
            blocks.append(body[place + 1 : end])
            place = end + 1
            branch = _BRANCH_PATTERN.match(body, place)
            if not branch:
                break
            place = branch.end()
        statements.append(_Statement(body[begin:place], found[1].split()[0] if found[1] else "{", tuple(blocks)))
    while statements and not statements[-1].text.strip():
        statements.pop()
    return statements
