"""Whether an answer in Go names nothing but what its list has."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.tokens import Token, closing, text_at, tokens


def unlisted_in_go(code: str, asked: AskedNames) -> str:
    """The first thing in an answer that the list does not have; empty if there is none."""
    if re.search(r"//\s*(?:go:|export\b|line\b)|/\*\s*line\b|\+build", code):
        return "a directive to the compiler"
    if problem := (
        _go_shadows(code, asked)
        or _go_assignment(code)
        or _go_constants(code, asked.test_words)
        or _go_empty_type(code, asked.tests)
    ):
        return problem
    found = tokens(code, "go")
    is_concurrent = bool(vocabulary.GO_CONCURRENCY_PATTERN.search(asked.prompt))
    packages = vocabulary.GO_PACKAGES | (vocabulary.GO_CONCURRENT_PACKAGES if is_concurrent else frozenset())
    for package in _go_imports(found):
        if package not in packages:
            return f'import "{package}"'
    depth = 0
    for place, token in enumerate(found):
        before = text_at(found, place - 1)
        depth += (token.text in ("{", "(") and token.kind == "sign") - (
            token.text in ("}", ")") and token.kind == "sign"
        )
        if token.kind != "name":
            continue
        if token.text in ("go", "select", "chan") and not is_concurrent:
            return token.text
        if before == "." and text_at(found, place - 2) == "fmt":
            allowed = (
                vocabulary.GO_FORMATTING if asked.is_printed else vocabulary.GO_FORMATTING | vocabulary.GO_PRINTING
            )
            if token.text not in allowed:
                return f"fmt.{token.text}"
        if before == "." and text_at(found, place - 2) == "time" and token.text in vocabulary.GO_LATER:
            return f"time.{token.text}"
        if token.text in ("print", "println") and before != "." and asked.is_printed:
            return token.text
        if problem := _go_declaration(found, place, depth, asked):
            return problem
    return ""


def _go_shadows(code: str, asked: AskedNames) -> str:
    """A name of the language, or of a package that the tests import, in a block of declarations."""
    for block in re.findall(r"^\s*(?:var|const|type)\s*\((.*?)^\s*\)", code, re.DOTALL | re.MULTILINE):
        declared = {line.split()[0].rstrip(",") for line in re.split(r"[\n;]", block) if line.split()}
        listed = {
            name for line in re.split(r"[\n;]", block) for name in re.findall(r"(\w+)\s*,", line.partition("=")[0])
        }
        if taken := (declared | listed) & {*vocabulary.GO_PREDECLARED, *_go_imports_of(asked.tests)}:
            return f"its own {min(taken)}"
    return ""


def _go_assignment(code: str) -> str:
    """A variable of a package that is set, or whose address is taken."""
    packages = "|".join(sorted({path.rpartition("/")[2] for path in vocabulary.GO_PACKAGES}))
    found = re.search(
        rf"(?:[&*]\s*|\b)(?:{packages})\.[A-Z]\w*(?:\.\w+|\[[^\]]*\])*\s*(?:[-+*/|&^]?=(?!=)|\+\+|--|,[^()\n]*[^:=!<>]=[^=])|[&]\s*(?:{packages})\.[A-Z]\w*(?![\w{{(]|\.\w+\{{)",
        code,
    )
    return found[0].strip() if found else ""


def _go_constants(code: str, used: Collection[str]) -> str:
    """Constants and variables that the tests use and that have no value, or one that is not plainly their own."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.DOTALL)
    declared = re.findall(r"^(var|const)[ \t]+(?:\((.*?)^\)|([^\n]*))", plain, re.DOTALL | re.MULTILINE)
    values: set[tuple[str, str]] = set()
    for keyword, block, single in declared:
        is_counted = True
        for line in re.split(r"[\n;]", block or single):
            found = re.match(r"\s*([\w, \t]*?\w)((?<=\w)[ \t]+[^=\n,]+)?[ \t]*(?:=(.*))?$", line)
            if not found:
                continue
            value = (found[3] or "").strip()
            is_counted = "iota" in value if value else is_counted
            if not set(re.findall(r"\w+", found[1])) & set(used):
                continue
            if (not value and (keyword == "var" or not is_counted)) or (value and (keyword, value) in values):
                return f"{found[1].strip()[:40]} without a value of its own"
            if not value.endswith(("{", "(", "[")):
                values.add((keyword, value))
    for name, value in re.findall(r"\b(Err[A-Z]\w*)[ \t]*(?:error[ \t]*)?=[ \t]*([^=\n][^\n]*)", plain):
        if name in used and not re.match(r"(?:errors\.New|fmt\.Errorf)\(|&?\w+\{", value):
            return f"{name} = {value[:40]}"
    return ""


def _go_empty_type(code: str, tests: str) -> str:
    """A type that tests name and of which all values are the same."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", code, flags=re.DOTALL)
    empty = re.search(r"^type\s+([A-Z]\w*)\s+(?:struct\s*\{\s*\}|bool\s*$)", plain, re.MULTILINE)
    is_named = empty and re.search(rf"\b{empty[1]}\b|[!=]=\s*New{empty[1]}\b", tests)
    return f"a type {empty[1]} of which all values are the same" if empty and is_named else ""


def _go_declaration(found: Sequence[Token], place: int, depth: int, asked: AskedNames) -> str:
    """What the name after `func`, `var`, `const` or `type` at the top level takes from the tests."""
    keyword = found[place].text
    if keyword not in ("func", "var", "const", "type") or depth:
        return ""
    if keyword == "func" and text_at(found, place + 1) == "(":
        end = closing(found, place + 1)
        owners = [token.text for token in found[place + 2 : end] if token.kind == "name" and token.text[0].isupper()]
        name = text_at(found, end + 1)
        is_asked = name in asked.called or (name == "String" and bool(set(owners) & asked.called))
        return f"a method {name} of its own" if name in vocabulary.GO_JUDGING_METHODS and not is_asked else ""
    if keyword != "func" and text_at(found, place + 1) == "(":
        end = closing(found, place + 1)
        names = {found[at].text for at in range(place + 2, end) if found[at].kind == "name"}
    else:
        names = {text_at(found, place + 1)}
        if keyword in ("var", "const"):
            at = place + 2
            while text_at(found, at) == "," and at + 1 < len(found):
                names.add(found[at + 1].text)
                at += 2
    if "init" in names and keyword == "func":
        return "init"
    # in a block of several, what is declared stands beside the types that it has
    is_block = keyword != "func" and text_at(found, place + 1) == "("
    taken = set() if is_block else names & {*vocabulary.GO_PREDECLARED, *_go_imports_of(asked.tests)}
    return f"its own {min(taken)}" if taken else ""


def _go_imports_of(tests: str) -> Iterator[str]:
    for block in re.findall(r"\bimport\s*(?:\(([^()]*)\)|(\"[^\"\n]*\"))", tests):
        for path in re.findall(r"\"([\w/.]+)\"", " ".join(block)):
            yield path.rpartition("/")[2]


def _go_imports(found: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(found):
        if token.kind == "name" and token.text == "import":
            end = closing(found, place + 1) if text_at(found, place + 1) == "(" else min(place + 3, len(found))
            names = [each for each in found[place + 1 : end] if each.kind in ("text", "name")]
            if any(each.kind == "name" for each in names if not each.text.isidentifier() or each.text == "_"):
                yield "_"
            yield from (each.text for each in names if each.kind == "text")
