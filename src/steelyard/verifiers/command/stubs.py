"""Answers that have the signatures of a prompt and do nothing, so that `validate` can compile tests without a right answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.verifiers.code.extract import canonical_language
from steelyard.verifiers.command.settings import CommandSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.records import Case

C_HEADERS = "".join(f"#include <{name}.h>\n" for name in ("stdbool", "stddef", "stdint", "stdio", "stdlib", "string"))
C_SIGNATURE_PATTERN = re.compile(
    r"\b(?P<result>(?:(?:const|unsigned|signed|long|short|struct|enum|static|inline)\s+)*[A-Za-z_]\w*)(?P<stars>[\s*]+)"
    r"(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^(){};`]*)\)"
)
"""A function of C as a prompt writes it: a type, stars, a name and parameters with types."""
C_PARAMETER_PATTERN = re.compile(r"\s*(?:void|\.\.\.|(?:const\s+)?[A-Za-z_][\w\s]*[\s*]+\w*(?:\[\w*\])*)\s*")
NOT_C_TYPES = frozenset(
    {"else", "function", "return", "Write", "the", "a", "and", "with", "as", "or", "is", "of", "to"}
)
SCRIPT_FUNCTION_PATTERN = re.compile(
    r"\bfunction\s*\*?\s+(?P<name>[A-Za-z_$][\w$]*)|`(?P<called>[A-Za-z_$][\w$]*)\([^`]*\)"
)
SCRIPT_CLASS_PATTERN = re.compile(r"\bclass\s+`?(?P<name>[A-Z][\w$]*)")


def command_stub(case: Case) -> str:
    """A stub in the language of a case; empty if the prompt states no signature, or where nothing compiles the tests."""
    if case.workspace or not CommandSettings.of(case).build or not case.expectations.should_compile:
        return ""
    prompt = "\n".join(message.text for message in case.messages)
    match canonical_language(case.language):
        case "c":
            functions = list(_c_functions(prompt))
            return C_HEADERS + "\n".join(functions) + "\n" if functions else ""
        case "javascript" | "typescript" as language:
            return _script_stub(prompt, case, is_typed=language == "typescript")
    return ""


def _c_functions(prompt: str) -> Iterator[str]:
    """The functions that a prompt states, each with an empty body."""
    seen = set()
    for found in C_SIGNATURE_PATTERN.finditer(prompt):
        parameters = found["parameters"].split(",") if found["parameters"].strip() else []
        is_typed = all(C_PARAMETER_PATTERN.fullmatch(each) for each in parameters)
        if (
            found["name"] in seen
            or found["result"].split()[-1] in NOT_C_TYPES
            or not is_typed
            or found["name"] == "main"
        ):
            continue
        seen.add(found["name"])
        is_empty = found["result"] == "void" and "*" not in found["stars"]
        yield f"{found[0].strip()} {{ {'' if is_empty else 'return 0; '}}}"


def _script_stub(prompt: str, case: Case, *, is_typed: bool) -> str:
    functions = dict.fromkeys(found["name"] or found["called"] for found in SCRIPT_FUNCTION_PATTERN.finditer(prompt))
    classes = dict.fromkeys(found["name"] for found in SCRIPT_CLASS_PATTERN.finditer(prompt))
    names = [*functions, *classes]
    if not names:
        return ""
    bodies = [
        f"function {name}(...given{': any[]' if is_typed else ''}){': any' if is_typed else ''} {{}}"
        for name in functions
    ]
    bodies += [f"class {name} {{{' [name: string]: any; ' if is_typed else ''}}}" for name in classes]
    is_required = any("require(" in text for text in CommandSettings.of(case).files.values())
    end = f"module.exports = {{ {', '.join(names)} }};" if is_required else f"export {{ {', '.join(names)} }};"
    return "\n".join([*bodies, end, ""])
