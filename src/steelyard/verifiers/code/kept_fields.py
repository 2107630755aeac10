"""Whether a type of an answer plainly keeps what its values are made of, and is equal only where all of that is."""

from __future__ import annotations

import ast
import re
import warnings
from itertools import islice
from typing import NamedTuple

_TEXT_OR_COMMENT_PATTERN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|(?<![\w&<])\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/', re.DOTALL
)
_SAME_CONTENT = r"(?:\.\s*(?:into|to_string|to_owned|to_vec|clone|to_lowercase|to_uppercase|to_ascii_lowercase|to_ascii_uppercase|trim|slice|as_ref)\(\))*"
_COPIES = r"(?:String::from|std::move|move|String|List\.copyOf|str)"
_GUARD_PATTERN = re.compile(
    r"if\s*\([^{};]*\)\s*(?:\{\s*)?throw\b[^;]*;\s*\}?|if\s[^{}]*\{\s*(?:return\s+(?:[^{};]*(?:Err|nil|None|error)[^{};]*);?|panic!?\([^;]*\);?)\s*\}"
    r"|\b(?:assert|debug_assert)\w*!?\([^;]*\);|Objects\.requireNonNull\([^;]*\);|super\(\s*\);?|Object\.freeze\(this\);?"
)
"""What refuses a value, and changes nothing."""


_OWN_TYPE_PATTERN = re.compile(r"\b(?:class|struct|union|using|enum)\s+(\w+)|\btypedef\b[^;]*\b(\w+)\s*;")
_PLAIN_BEFORE_EQUALITY_PATTERN = re.compile(
    r"if\s*\(\s*this\s*={2,3}\s*&?\w+\s*\)\s*\{?\s*return true;\s*\}?|if\s*\(\s*!\s*\(\s*\w+ instanceof [\w<>?]+(?: \w+)?\s*\)\s*\)\s*\{?\s*return false;\s*\}?"
    r"|if\s*\(\s*\w+\s*={2,3}\s*null(?:\s*\|\|\s*getClass\(\)\s*!=\s*\w+\.getClass\(\))?\s*\)\s*\{?\s*return false;\s*\}?|\b(?:final\s+)?(\w+)(?:<\?>)?\s+\w+\s*=\s*\(\1(?:<\?>)?\)\s*\w+;"
)
"""What stands before the comparison of the fields in an equality that does nothing else."""


MAX_FUNCTIONS = 64
"""So many places are looked at for a function; a name that stands in more is not plainly read."""


class _Function(NamedTuple):
    parameters: tuple[str, ...]
    written: str
    """The parameters as they are written."""
    between: str
    """What stands between them and the body: a result type, or initial values."""
    body: str


class Maker(NamedTuple):
    """How tests make a value of an answer's."""

    name: str
    """A type, or a function."""
    method: str
    """Empty for the constructor of a type, `{}` for its fields in braces, `()` for a function, otherwise the name of a method of the type."""


def keeps_what_it_is_given(code: str, language: str, maker: Maker) -> bool:
    """Whether a value that is made so has each argument as a field of its own, and is equal only where all of these are."""
    if maker.method == "()":
        return _function_keeps(_TEXT_OR_COMMENT_PATTERN.sub('""', code), language, maker.name)
    if language == "python":
        return not maker.method and _in_python(code, maker.name)
    if language == "perl":
        return maker.method == "new" and _in_perl(code, maker.name)
    plain = _TEXT_OR_COMMENT_PATTERN.sub('""', code)
    if len(re.findall(rf"\b{maker.name}\s*\(", plain)) >= MAX_FUNCTIONS:
        return False
    match language:
        case "rust":
            return _in_rust(plain, maker)
        case "go":
            return maker.method in ("", "{}") and _in_go(plain, maker.name)
        case "cpp" | "java" | "javascript" | "typescript":
            readers = {"cpp": _in_cpp, "java": _in_java}
            is_kept = readers.get(language, _in_javascript)(plain, maker.name)
            is_method = maker.method not in ("", "{}")
            return is_kept and (not is_method or _factory_keeps(plain, maker))
    return False


def _factory_keeps(code: str, maker: Maker) -> bool:
    """Whether a method that makes a value of its type just hands its parameters to the constructor."""
    found = _functions(rf"\b{re.escape(maker.method)}", code)
    for each in found:
        made = re.fullmatch(rf"\s*return\s+(?:new\s+)?(?:{maker.name})?\s*[({{](.*)[)}}]\s*;?\s*", each.body, re.DOTALL)
        if not made or not _all_given(made[1], each.parameters):
            return False
    return bool(found)


def _function_keeps(code: str, language: str, name: str) -> bool:
    """Whether a function in JavaScript or Go just makes a value of its parameters."""
    if language == "go":
        for each in _functions(rf"^func\s+{name}", code):
            made = re.fullmatch(r"\s*\(?\s*\*?([A-Z]\w*)\s*(?:,\s*error\s*\))?\s*", each.between)
            return (
                bool(made) and _go_maker_keeps(each, made[1] if made else "") and _in_go(code, made[1] if made else "")
            )
    if language not in ("javascript", "typescript"):
        return False
    arrow = re.search(rf"\b{name}\s*=\s*(\([^()]*\))\s*=>\s*\(\s*\{{([^{{}}]*)\}}\s*\)", code)
    if arrow:
        return _all_given(arrow[2], _parameters(arrow[1]))
    return any(
        (made := re.fullmatch(r"\s*return\s*\{([^{}]*)\}\s*;?\s*", each.body)) is not None
        and _all_given(made[1], each.parameters)
        for each in _functions(rf"\bfunction\s+{name}", code)
    )


# ---- languages with braces


def _in_cpp(code: str, name: str) -> bool:
    if re.search(rf"\benum\s+(?:class\s+|struct\s+)?{name}\b", code):
        return True
    found = re.search(rf"\b(?:class|struct)\s+{name}\b\s*(?:final\s*)?\{{", code)
    if not found:
        return False
    body = code[found.end() : closing_place(code, found.end() - 1)]
    fields = _cpp_fields(body)
    made = [
        each
        for each in _functions(rf"(?<![\w~.>]){name}", code)
        if not (len(each.parameters) == 1 and re.search(rf"\b{name}\b", each.written))
    ]
    compared: dict[str, str] = {}
    for each in made:
        rest = _GUARD_PATTERN.sub("", each.body)
        kept = _kept_by(each.between, rest, each.parameters, owner=r"(?:this\s*->\s*)?")
        is_open = bool(each.written.strip()) != bool(each.parameters) or "..." in each.written
        if kept is None or not set(kept) <= set(fields) or is_open or re.search(r"\bbool\b", each.written):
            return False
        compared |= dict.fromkeys(kept, "")
    is_made_plainly = bool(made) or not re.search(rf"(?<![\w~]){name}\s*\(\s*[^)\s]", body)
    own = {name for names in _OWN_TYPE_PATTERN.findall(code) for name in names}
    has_own = bool(own & {word for type_name in fields.values() for word in re.findall(r"\w+", type_name)})
    return (
        bool(fields)
        and is_made_plainly
        and not has_own
        and _compares_all(code, r"operator\s*==", compared or fields)
        and bool(re.search(r"\boperator\s*(?:==|<=>)", code))
        and not re.search(r"\boperator\s+(?!bool\b)\w", body)
    )


def _cpp_fields(body: str) -> dict[str, str]:
    """The fields of a class with their types; empty if one of them may hold less than it is given."""
    fields: dict[str, str] = {}
    flat = re.sub(r"\b(?:public|private|protected)\s*:", "", _without_blocks(body))
    for statement in re.split(r"[;}]", flat):
        text = statement.strip()
        if not text or "(" in text or re.match(r"(?:using|typedef|friend|template|struct|class|enum)\b", text):
            continue
        first, *others = (
            re.sub(r"=[^,]*|\{[^{}]*\}?", "", text).split(",") if "<" not in text else [text.partition("=")[0]]
        )
        declared = re.fullmatch(r"([\w:\s<>,*]+[\s>*])(\w+)\s*", first)
        if not declared or re.search(r"\b(?:static|bool|mutable|monostate|nullptr_t)\b|\b0\s*>", declared[1]):
            return {}
        for each in (declared[2], *others):
            fields[each.strip()] = declared[1]
    return fields


def _in_java(code: str, name: str) -> bool:
    if re.search(rf"\benum\s+{name}\b", code):
        return True
    head = re.search(rf"\brecord\s+{name}\b\s*(?:<[^()]*>)?\s*(\([^()]*\))", code)
    if head:
        components = dict.fromkeys(_parameters(head[1]), "")
        return bool(components) and _compares_all(code, r"\bequals", components)
    found = re.search(rf"\bclass\s+{name}\b(?:\s*<[^{{}}]*>)?\s*(?:implements\s+[^{{}}]*)?\{{", code)
    if not found:
        return False
    body = code[found.end() : closing_place(code, found.end() - 1)]
    flat = _without_blocks(body)
    declared = set()
    for statement in re.split(r"[;}]", flat):
        words = re.findall(r"[\w.]+", re.sub(r"<[^<>]*>", "", statement.partition("=")[0]))
        if len(words) > 1 and "(" not in statement and "static" not in words:
            # `int a, b` declares both
            declared |= {words[-1], *re.findall(r"(\w+)\s*,", statement.partition("=")[0])}
    if re.search(r"[;{}]\s*(?:static\s*)?\{", body):
        return False
    made = _functions(rf"(?<![\w.]){name}", re.sub(rf"\bnew\s+{name}\b", "new", body))
    kept: set[str] = set()
    for each in made:
        found_kept = _kept_by("", _GUARD_PATTERN.sub("", each.body), each.parameters, owner=r"this\s*\.\s*|(?<![\w.])")
        if found_kept is None or not set(found_kept) <= set(declared):
            return False
        kept |= set(found_kept)
    return bool(kept) and _compares_all(code, r"\b(?:equals|compareTo)", dict.fromkeys(kept, ""))


def _in_go(code: str, name: str) -> bool:
    found = re.search(rf"^type\s+{name}\s+(struct\s*\{{|[^\n]+)", code, re.MULTILINE) or re.search(
        rf"^\s+{name}\s+(struct\s*\{{)", code, re.MULTILINE
    )
    if not found:
        return False
    if not found[1].startswith("struct"):
        return not re.match(r"=|bool\b|func\b|interface\b|\[0\]|map\b|chan\b", found[1])
    body = code[found.end() : closing_place(code, found.end() - 1)]
    fields = {
        field: ""
        for line in re.split(r"[\n;]", body)
        for field in re.findall(r"(\w+)(?=\s*,|\s+[\w.*\[\]]+\s*$)", re.sub(r"``|\"\"", "", line))
    }
    return bool(fields) and _compares_all(code, r"\)\s*Equals?", fields)


def _go_maker_keeps(function: _Function, name: str) -> bool:
    """Whether a function that gives a value of a type just makes it of its parameters, or has no parameter but such values."""
    if re.search(rf"\b{name}\b", function.written):
        return True
    parameters = tuple(word for part in _parts(function.written) for word in re.findall(r"\w+", part)[:1])
    rest = _GUARD_PATTERN.sub("", function.body).strip()
    made = re.fullmatch(rf"return\s+&?{name}\s*\{{(.*)\}}\s*(?:,\s*nil)?\s*", rest, re.DOTALL)
    return bool(made) and _all_given(made[1] if made else "", parameters)


def _in_rust(code: str, maker: Maker) -> bool:
    name = maker.name
    if re.search(rf"\benum\s+{name}\b", code):
        return not maker.method
    blocks = list(re.finditer(rf"\bimpl\b(?:[^{{}}]*\bfor)?\s*(?:<[^{{}}]*>\s*)?{name}\b[^{{}};]*\{{", code))
    if len(blocks) >= MAX_FUNCTIONS:
        return False
    head = rf"\bfn\s+{maker.method}(?:\s*<[^()]*>)?"
    made = [
        each
        for block in (blocks if maker.method.isidentifier() else ())
        for each in _functions(head, code[block.end() : closing_place(code, block.end() - 1)])
    ]
    if maker.method.isidentifier() and not made:
        return False
    for each in made:
        rest = _GUARD_PATTERN.sub("", each.body).strip().removeprefix("return ").rstrip("; \n")
        rest = re.sub(r"^(?:Ok|Some)\s*\((.*)\)$", r"\1", rest, flags=re.DOTALL).strip()
        value = re.fullmatch(rf"(?:Self|{name})\s*(?:::\s*<[^()]*>)?\s*[({{](.*)[)}}]", rest, re.DOTALL)
        if not value or not _all_given(value[1], each.parameters):
            return False
    struct = re.search(rf"\bstruct\s+{name}\b\s*(?:<[^{{(]*>)?\s*([({{])", code)
    if not struct:
        return False
    inside = code[struct.end() : closing_place(code, struct.end() - 1)]
    pieces = _parts(inside)
    fields = {
        (
            re.split(r"\s*:", re.sub(r"^\s*(?:pub(?:\([^)]*\))?\s+)?", "", piece))[0]
            if struct[1] == "{"
            else str(number)
        ): ""
        for number, piece in enumerate(pieces)
        if piece.strip()
    }
    return bool(fields) and _compares_all(
        code, r"\bfn\s+eq", fields, owner=rf"PartialEq\b(?:\s*<\s*(?:Self|{name})\s*>)?\s+for\s+{name}\b"
    )


def _in_javascript(code: str, name: str) -> bool:
    found = re.search(rf"\bclass\s+{name}\b\s*(?:<[^{{}}]*>)?\s*\{{", code)
    if not found:
        return False
    body = code[found.end() : closing_place(code, found.end() - 1)]
    made = _functions(r"\bconstructor", body)
    if len(made) != 1 or re.search(r"\bset\s+\w+\s*\(|\bstatic\s*\{", body):
        return False
    rest = _GUARD_PATTERN.sub("", made[0].body)
    is_declared = bool(re.search(r"\b(?:public|private|readonly)\s+\w+\s*:", made[0].written))
    kept = list(made[0].parameters) if is_declared else _kept_by("", rest, made[0].parameters, owner=r"this\s*\.\s*")
    accessors = set(re.findall(r"\bget\s+(\w+)\s*\(", body))
    return (
        bool(kept)
        and not accessors & set(kept or ())
        and _compares_all(code, r"\b(?:equals?|isEqual|eq)", dict.fromkeys(kept or (), ""))
    )


def _kept_by(initial: str, body: str, parameters: tuple[str, ...], *, owner: str) -> list[str] | None:
    """The fields that a constructor sets to its parameters; None if a parameter is not kept, or something else is done."""
    fields: list[str] = []
    rest = body
    for parameter in parameters:
        given = rf"(?:{_COPIES}\(\s*{parameter}\s*\)|\[\s*\.\.\.\s*{parameter}\s*\]|{parameter}{_SAME_CONTENT})"
        by_list = re.search(rf"(?<![\w.])(\w+)\s*[({{]\s*{given}\s*[)}}]", initial)
        by_body = re.search(rf"(?:{owner})#?(\w+)\s*=\s*{given}\s*(?:;|$|\n|(?=\}}))", rest)
        found = by_list or by_body
        if not found or found[1] in fields:
            return None
        fields.append(found[1])
        if not by_list and by_body:
            rest = rest[: by_body.start()] + " " + rest[by_body.end() :]
    # fields that start empty are no parameters
    rest = re.sub(rf"(?:{owner})(?!(?:{'|'.join(fields) or '-'})\b)\w+\s*=\s*[\w\[\]{{}}().<> ]*;", "", rest)
    return fields if not rest.strip(" \n\t;") else None


def _all_given(values: str, parameters: tuple[str, ...]) -> bool:
    """Whether each parameter is one of the values in brackets, as it is."""
    given = [re.sub(r"^\s*\w+\s*:(?!:)", "", part).strip() for part in _parts(values)]
    plain = [re.sub(rf"{_SAME_CONTENT}$", "", re.sub(rf"^{_COPIES}\(\s*(\w+)\s*\)$", r"\1", part)) for part in given]
    return bool(parameters) and all(plain.count(parameter) == 1 for parameter in parameters)


def _compares_all(code: str, head: str, fields: dict[str, str], owner: str = "") -> bool:
    """Whether each equality that code defines compares all fields, each with the same one of the other side."""
    whole = code
    if owner:
        block = re.search(rf"\b{owner}[^{{}}]*\{{", code)
        if not block:
            return True
        code = code[block.end() : closing_place(code, block.end() - 1)]
    for each in _functions(head, code):
        before, _, last = each.body.rpartition("return ")
        if _PLAIN_BEFORE_EQUALITY_PATTERN.sub("", before).strip():
            return False
        if re.fullmatch(r"\s*self\.(?:partial_)?cmp\(&?\w+\)\s*==\s*(?:Some\()?(?:\w+::)*Equal\)?\s*", last):
            # a derived order compares all fields
            return bool(re.search(r"derive\([^)]*\bOrd\b", whole))
        compared = {field for term in re.split(r"&&", last) if (field := _same_field(term.strip(" \n;")))}
        if not set(fields) <= compared:
            return False
    return True


def _same_field(term: str) -> str:
    """The field that a term compares on both sides; empty if it does something else."""
    extra = term.count("(") - term.count(")")
    term = term[extra:] if extra > 0 and term.startswith("(" * extra) else term[: extra or None] if extra < 0 else term
    plain = re.sub(rf"{_SAME_CONTENT}(?=\s|$)", "", re.sub(r"\b(?:this|self)\s*(?:\.|->)\s*", "", term))
    sides = (
        re.fullmatch(r"([\w.>-]+)\s*===?\s*([\w.>-]+)", plain)
        or re.fullmatch(
            r"(?:Objects|Arrays|Double|Integer|Long)\s*\.\s*(?:equals|compare)\s*\(\s*([\w.]+)\s*,\s*([\w.]+)\s*\)?(?:\s*==\s*0)?",
            plain,
        )
        or re.fullmatch(r"([\w.]+?)\.(?:equals|compareTo|cmp)\(\s*&?([\w.]+)\s*\)?", plain)
        or re.fullmatch(r"([\w.]+)\s+-\s+([\w.]+)", plain)
    )
    if not sides:
        return ""
    names = [re.split(r"\.|->", side) for side in sides.groups()]
    owners = {tuple(each[:-1]) for each in names}
    return names[0][-1] if names[0][-1] == names[1][-1] and len(owners) == 2 else ""


def _functions(head: str, code: str) -> list[_Function]:
    """The first functions with a body whose names match a pattern."""
    found = []
    for each in islice(re.finditer(rf"{head}\s*\(", code, re.MULTILINE), MAX_FUNCTIONS):
        end = closing_place(code, each.end() - 1)
        opening = re.match(r"(?=\s*[\w:>(*\[{-])[^;{}]*\{", code[end + 1 :])
        if not opening:
            continue
        begin = end + opening.end()
        between = code[end + 1 : begin]
        # `: a{x}, b{y} {}` has blocks before the body
        while between.lstrip().startswith(":") and "->" not in between:
            after = re.match(r"\s*(?:,[^{};]*)?\{", code[closing_place(code, begin) + 1 :])
            if not after:
                break
            begin = closing_place(code, begin) + after.end()
            between = code[end + 1 : begin]
        written = code[each.end() : end]
        found.append(
            _Function(_parameters(f"({written})"), written, between, code[begin + 1 : closing_place(code, begin)])
        )
    return found


def _parameters(written: str) -> tuple[str, ...]:
    """The names of parameters: before a colon, or the last word of each; those of Go stand before their types."""
    names = []
    for part in _parts(written[1:-1]):
        text = part.partition("=")[0].strip()
        if ":" in text and "::" not in text.partition(":")[0] + ":" + text.partition(":")[2][:1]:
            pattern = text.partition(":")[0]
            words = re.findall(r"\w+", pattern)
            names.append(words if pattern.startswith(("[", "(")) else words[-1:])
        elif text:
            names.append(re.findall(r"\w+", re.sub(r"\[\s*\]", "", text))[-1:])
    return tuple(name for each in names for name in each)


def _without_blocks(body: str) -> str:
    """A class without the bodies of its functions."""
    out, depth = [], 0
    for at, sign in enumerate(body):
        depth += sign == "{"
        if not depth:
            out.append(sign)
        if sign == "}":
            depth -= 1
            if not depth and body[max(0, at - 2) : at] != "":
                out.append("}")
    return "".join(out)


def closing_place(text: str, place: int) -> int:
    """Where the bracket at a place is closed; the end of the text if it is not."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return len(text)


def _parts(text: str) -> list[str]:
    depth, begin, parts = 0, 0, []
    for at, sign in enumerate(text):
        depth += (sign in "([{<") - (sign in ")]}>" and text[at - 1 : at] not in ("-", "="))
        if sign == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [*parts, text[begin:]]


# ---- Perl and Python


def _in_perl(code: str, name: str) -> bool:
    package = re.split(r"^package\s+", re.sub(r"(?:^|(?<=\s))#[^\n]*", "", code), flags=re.MULTILINE)
    body = next((each for each in package if re.match(rf"{name}\b", each)), "")
    made = re.search(r"\bsub\s+new\s*\{", body)
    if not made:
        return False
    new = body[made.end() : closing_place(body, made.end() - 1)]
    given = [word for each in re.findall(r"\bmy\s*\(([^()]*)\)\s*=\s*@_", new) for word in re.findall(r"[$%]\w+", each)]
    given += re.findall(r"\bmy\s+([$%]\w+)\s*=\s*(?:shift|@_)\b", new)
    given = [word for word in given if word not in ("$class", "$self", "$proto", "$package", "$type")]
    rest = re.sub(r"\bmy\b[^;]*;", "", new)
    fields: list[str] = []
    for word in given:
        kept = (
            re.findall(rf"(\w+)\s*=>\s*{re.escape(word)}\b(?!\s*[-+*%&x<>=])", new)
            if word[0] == "$"
            else re.findall(rf"(\w+)\s*=>\s*\${word[1:]}\{{\s*\1\s*\}}", new) or re.findall(rf"(%){word[1:]}\b", rest)
        )
        if not kept or re.search(rf"{re.escape(word)}\s*[-+*/.|&x]?=(?![=~>])", rest):
            return False
        fields += [field for field in kept if field != "%"]
    for each in re.finditer(r"\bsub\s+(?:equals?|eq|same|is_equal|compare)\s*\{", body):
        compared = body[each.end() : closing_place(body, each.end() - 1)]
        terms = re.findall(r"->\{(\w+)\}\s*(?:==|eq)\s*\$\w+->\{\1\}", compared)
        if not set(fields) <= set(terms) or "||" in compared or not fields:
            return False
    return bool(given)


def _in_python(code: str, name: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    node = next((each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == name), None)
    if node is None:
        return False
    bases = {getattr(base, "id", getattr(base, "attr", "?")) for base in node.bases}
    if bases & {"Enum", "IntEnum", "StrEnum", "Flag"}:
        return True
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    is_data = "NamedTuple" in bases or any("dataclass" in ast.dump(each) for each in node.decorator_list)
    if bases - {"NamedTuple", "ABC", "object"} or {"__new__", "__setattr__", "__post_init__"} & set(methods):
        return False
    fields = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    if is_data:
        is_plain = bool(fields) and "__init__" not in methods and "'compare'" not in ast.dump(node)
    else:
        kept = _kept_in_python(methods["__init__"]) if "__init__" in methods else set()
        set_here = {
            target.id
            for each in node.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        is_plain = bool(kept) and not kept & (set(methods) | set_here | fields)
        fields = kept
    return is_plain and ("__eq__" not in methods or fields <= _compared_in_python(methods["__eq__"]))


def _kept_in_python(method: ast.FunctionDef) -> set[str]:
    """The fields that `__init__` sets to its parameters; empty if it does anything else."""
    parameters = {each.arg for each in (*method.args.args[1:], *method.args.kwonlyargs)}
    kept: dict[str, str] = {}
    for statement in method.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.If(body=[ast.Raise()], orelse=[]):
                continue
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=field)], value=value)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=field), value=value)
            ):
                match value:
                    case (
                        ast.Name(id=given)
                        | ast.Call(
                            func=ast.Name(id="list" | "tuple" | "dict" | "str"), args=[ast.Name(id=given)], keywords=[]
                        )
                    ) if given in parameters and field not in kept.values():
                        kept[given] = field
                    case ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]) if field not in kept.values():
                        continue
                    case _:
                        return set()
            case _:
                return set()
    return set(kept.values()) if set(kept) == parameters else set()


def _compared_in_python(method: ast.FunctionDef) -> set[str]:
    """The fields that `__eq__` compares in its last statement."""
    last = method.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    terms = value.values if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And) else [value]
    compared: set[str] = set()
    for term in terms:
        match term:
            case ast.Compare(left=ast.Attribute() as left, ops=[ast.Eq()], comparators=[ast.Attribute() as right]):
                pairs = [(left, right)]
            case ast.Compare(left=ast.Tuple(elts=one), ops=[ast.Eq()], comparators=[ast.Tuple(elts=other)]):
                pairs = [
                    (a, b)
                    for a, b in zip(one, other, strict=False)
                    if isinstance(a, ast.Attribute) and isinstance(b, ast.Attribute)
                ]
            case _:
                pairs = []
        compared |= {a.attr for a, b in pairs if a.attr == b.attr and ast.dump(a.value) != ast.dump(b.value)}
    return compared
