"""What the operands of listed commands of a shell do that is not listed: files, programs of other languages, variables by a made-up name."""

from __future__ import annotations

import re

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.shell.numbers import ShellCommand, ShellWord

_AWK_PATTERN = re.compile(
    r"\b(?:system|getline|ENVIRON|ARGV|ARGIND|PROCINFO|FILENAME|close|fflush)\b|>>?\s*[\"\w(]*[\"/]|\|\s*[\"\w&]|@\w"
)
_SED_PATTERN = re.compile(r"(?:^|[;{}\n]|\d|\$|/)\s*[rwReW](?:\s|$)|/[gpI\d]*[we]\b|\be$")
_OPTION_WITH_VALUE_PATTERN = re.compile(r"-[a-zA-Z]*[dfcntkFvwsebj]")


ASSIGNMENT_PATTERN = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
SPECIAL_VARIABLES = re.compile(r"IFS|PATH|ENV|BASH\w*|LC_\w+|LANG|PS\d|HOME|PWD|OPTIND|SHELLOPTS|TMOUT|GLOBIGNORE|FUNCNEST|POSIXLY_CORRECT|EXECIGNORE|CDPATH|FIGNORE|PROMPT_COMMAND")  # fmt: skip


def unlisted_operands(command: ShellCommand, is_about_files: bool) -> str:
    """What the operands of a listed command do that is not listed."""
    name, *words = command.words
    if name.text in ("declare", "typeset", "local", "read", "mapfile", "readarray"):
        options = "".join(word.text for word in words if word.text.startswith("-") and not word.is_quoted)
        if set(options) - set("-arAdnptsi" if name.text in ("read", "mapfile", "readarray") else "-aA"):
            return f"{name.text} {options}"
        for word in words:
            found = ASSIGNMENT_PATTERN.match(word.text) or re.fullmatch(r"([A-Za-z_]\w*)()", word.text)
            if found and SPECIAL_VARIABLES.fullmatch(found[1]) and not (name.text == "local" and found[1] == "IFS"):
                return found[1]
        return f"{name.text} of a name that is made up" if _has_made_up_name(name.text, words) else ""
    if name.text in ("for", "select") and words and SPECIAL_VARIABLES.fullmatch(words[0].text):
        return words[0].text
    if name.text == "set" and [word.text for word in words[:1]] != ["--"]:
        return "set"
    if name.text == "printf" and words and words[0].text == "-v":
        return "printf -v"
    if name.text in ("[", "test") and any(word.text == "-v" for word in words):
        return f"{name.text} -v"
    if name.text in ("[", "test", "case", "for", "expr", "let", "echo", "printf", "return", "shift", "tr", "seq"):
        is_globbing = any(
            word.has_glob and not word.is_quoted and word.text != "]" and not word.is_built for word in words
        )
        return "a pattern of file names" if is_globbing and name.text != "tr" else ""
    if name.text not in vocabulary.SHELL_FILE_READERS:
        return ""
    return _reader_operands(name.text, words, is_about_files)


def _has_made_up_name(command: str, words: list[ShellWord]) -> bool:
    """Whether a command that sets variables takes the name of one from somewhere, or builds it."""
    is_value = False
    with_value = {"read": "dpntNiu", "mapfile": "dnOsu", "readarray": "dnOsu"}.get(command, "")
    for word in words:
        is_option = word.text.startswith("-") and not word.is_built
        name = word.text if not word.is_built else word.prefix
        is_plain = bool(ASSIGNMENT_PATTERN.match(name)) or (
            not word.is_built and bool(re.fullmatch(r"[A-Za-z_]\w*(?:\[.*\])?", name))
        )
        if not (is_value or is_option or is_plain):
            return True
        is_value = is_option and word.text[-1] in with_value
    return False


def _reader_operands(name: str, words: list[ShellWord], is_about_files: bool) -> str:
    operands = []
    is_value = False
    for word in words:
        is_option = word.text.startswith("-") and len(word.text) > 1 and not word.is_built
        if is_value:
            is_value = False
        elif is_option:
            if (
                re.match(r"-\w*[fi]", word.text)
                and name in ("sed", "awk", "gawk", "mawk")
                and not word.text.startswith("-F")
            ):
                return f"{name} {word.text}"
            if re.match(r"-\w*[rRf]|--", word.text) and name in ("grep", "egrep", "fgrep"):
                return f"{name} {word.text}"
            is_value = bool(_OPTION_WITH_VALUE_PATTERN.fullmatch(word.text)) and name not in (
                "wc",
                "sort",
                "uniq",
                "cat",
                "sed",
                "grep",
            )
            is_value = (
                is_value
                or (name == "sort" and word.text in ("-t", "-k"))
                or (name in ("sed", "grep") and word.text == "-e")
            )
        else:
            operands.append(word)
    skipped = vocabulary.SHELL_FILE_READERS[name]
    if name in ("awk", "gawk", "mawk", "sed") and operands:
        program = operands[0]
        if program.is_built and re.fullmatch(r"\$\{?\w+\}?", program.text):
            return f"a program of {name} in a variable"
        if (_SED_PATTERN if name == "sed" else _AWK_PATTERN).search(program.text):
            return f"a command of {name} that is not listed"
    if any(word.has_glob and not word.is_quoted for word in words):
        return "a pattern of file names"
    for word in operands[skipped:]:
        is_given = re.fullmatch(r"\$(?:\{?\d\}?|@|\*)", word.text) and word.is_built
        if not (
            is_given
            or word.text.isdigit()
            or word.text == "-"
            or (is_about_files and word.is_built and re.fullmatch(r"\$\{?\w+\}?", word.text) and word.is_quoted)
        ):
            return f"{name} of a file"
    return ""
