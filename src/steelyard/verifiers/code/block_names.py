"""The names that a block of code binds and uses, by the look of its lines, in any language."""

from __future__ import annotations

import re
from typing import NamedTuple

DEFINITION_PREFIXES = (
    r"^(?:(?:pub(?:\([^)\n]*\))?|export|default|declare|async|unsafe|const|static|public|private"
    r"|abstract|final|sealed|inline|local|data|open|extern(?:[ \t]+\"[^\"\n]*\")?)[ \t]+)*"
)
DEFINITION_PATTERNS = {
    "python": r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)",
    "c": r"^(?:typedef[ \t]+)?(?:struct|enum(?:[ \t]+class)?|union|class|namespace)[ \t]+(\w+)"
    r"[ \t]*(?=$|[:{])|^\}[ \t]*(\w+)[ \t]*;|^#define[ \t]+(\w+)",
    "shell": r"^(?:function[ \t]+)?(\w+)[ \t]*\(\)",
    "hcl": r"^((?:resource|data|module|variable|output|provider|locals|terraform)\b[^\n{]*)\{",
}
DEFINITION_PATTERNS["cpp"] = DEFINITION_PATTERNS["c"]
DEFAULT_DEFINITION_PATTERN = (
    DEFINITION_PREFIXES + r"(?:fn|func|fun|function\*?|def|class|struct|enum|union|trait|interface|type|record"
    r"|object|namespace|mod|module|macro_rules!)[ \t]+(\w+)"
    r"|^(?:export[ \t]+)?(?:const|let|var)[ \t]+(\w+)[ \t]*=[ \t]*(?:async[ \t]*)?"
    r"(?:function\b|\([^\n]*=>|\w+[ \t]*=>)"
    # a file has one package clause, so two blocks that have it are two versions of one file
    r"|^(package)[ \t]+\w"
)
C_FUNCTION_PATTERN = re.compile(r"^([A-Za-z_][^\n(;={}]*)\(([^\n]*)", re.MULTILINE)
ASSIGNMENT_PATTERN = re.compile(
    r"^(?:(?:pub|export|static|const|let|var|val|mut|final)[ \t]+)*(\w+)[ \t]*(?::[^=\n]*)?=(?!=)",
    re.MULTILINE,
)
IMPORT_PATTERN = re.compile(
    r"^(?:from[ \t]+\S+[ \t]+import|import|(?:pub[ \t]+)?use|using|#[ \t]*include)\b"
    r"([ \t]*[({][^(){}]*|[^\n]*)",
    re.MULTILINE,
)
EXTENSION_PATTERN = re.compile(r"^(?:(?:unsafe[ \t]+)?impl\b([^\n{]*)|func[ \t]*\(([^)\n]*)\))", re.MULTILINE)
IDENTIFIER_PATTERN = re.compile(r"\w+")


class BlockNames(NamedTuple):
    """What one block binds at its top level, and every word it says."""

    defined: set[str]
    assigned: set[str]
    imported: set[str]
    extended: set[str]
    words: dict[str, None]

    @property
    def bound(self) -> set[str]:
        """Names that exist once the block has run, imports aside."""
        return self.defined | self.assigned

    @property
    def substance(self) -> set[str]:
        """The definitions that can be an answer, unlike a test or the `main` around an example."""
        side = ("main", "package")
        return {name for name in self.defined if name not in side and not name.lower().startswith("test")}


def block_names(code: str, language: str) -> BlockNames:
    """The names of one block, by the look of its lines."""
    defining = re.compile(DEFINITION_PATTERNS.get(language, DEFAULT_DEFINITION_PATTERN), re.MULTILINE)
    defined = {found[found.lastindex or 0].strip() for found in defining.finditer(code)}
    extended = {
        word
        for found in EXTENSION_PATTERN.finditer(code)
        for word in IDENTIFIER_PATTERN.findall(found[1] or found[2] or "")
    }
    if language in ("c", "cpp"):
        for found in C_FUNCTION_PATTERN.finditer(code):
            words = IDENTIFIER_PATTERN.findall(found[1])
            is_prototype = found[2].rstrip().endswith(";")
            if "::" in found[1]:
                extended.update(words[:-1])
            elif len(words) > 1 and words[0] not in ("else", "return", "using") and not is_prototype:
                defined.add(words[-1])
    imported: set[str] = set()
    for found in IMPORT_PATTERN.finditer(code):
        # `std` in `std::fmt` is common; `fmt` is the name that the line imports
        imported.update(re.findall(r"\b\w+\b(?!::)", found[1]))
        if "*" in found[1]:
            imported.add(found[0])
    imported -= {"as", "from", "self", "type", "h"}
    assigned = set(ASSIGNMENT_PATTERN.findall(code))
    return BlockNames(defined, assigned, imported, extended, dict.fromkeys(IDENTIFIER_PATTERN.findall(code)))
