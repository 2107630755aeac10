"""Whether an answer in a shell names nothing but what its list has."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from steelyard.verifiers.command.allowed import vocabulary
from steelyard.verifiers.command.allowed.asked import AskedNames
from steelyard.verifiers.command.allowed.shell.names import Own, ShellNames, shared_variable
from steelyard.verifiers.command.allowed.shell.numbers import (
    NumberFacts,
    ShellCommand,
    ShellWord,
    Sum,
    keep_declared,
    may_evaluate,
    takes_output_for_sums,
    unlisted_in_sums,
)
from steelyard.verifiers.command.allowed.shell.operands import ASSIGNMENT_PATTERN, SPECIAL_VARIABLES, unlisted_operands
from steelyard.verifiers.command.allowed.tokens import UnreadableCodeError, line_end
from steelyard.verifiers.command.shell_variables import left_to_answer

_CONTINUING_WORDS = frozenset(
    ("if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time", "fi", "done", "esac")
)
_UNLISTED_EXPANSION_PATTERN = re.compile(
    r"\$\{!(?!\w+\[[@*]\]\})|\$\{?(?:0|_|PPID|BASH(?!_REMATCH\b)\w*|FUNCNAME|SHELLOPTS|LINENO)\b|\$[$!-]|@[PEAK]\}"
)
_PIPED_READERS = frozenset((*vocabulary.SHELL_FILE_READERS, "read", "tr", "mapfile", "readarray"))


@dataclass
class _Scope:
    """Where a reader is: in which command, in which branches of `case`, in how many brackets."""

    command: ShellCommand = field(default_factory=ShellCommand)
    cases: list[str] = field(default_factory=list)
    depth: int = 0

    @property
    def is_in_pattern(self) -> bool:
        return bool(self.cases) and self.cases[-1] == "pattern"


class _ShellReader:
    """Reads a script, and keeps its simple commands, its functions and the first thing that is not listed."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.place = 0
        self.commands: list[ShellCommand] = []
        self.functions: set[str] = set()
        self.facts = NumberFacts()
        self.problem = ""
        self.blocks: list[tuple[int, int]] = []
        """Where each open brace began if it is the body of a function, else -1, and how many loops and conditions were open there."""
        self.is_open = 0
        """How many loops, conditions and brackets are open in the innermost function."""
        self.header_end = -1
        self.names = ShellNames()
        self.top_assigned: set[str] = set()
        """The variables that are set outside of functions, in the shell that reads the file."""
        self.heredocs: list[tuple[str, bool, bool]] = []

    def note(self, problem: str) -> None:
        self.problem = self.problem or problem

    def read(self, end: str = "") -> None:
        """Read commands up to the end, or up to the bracket that ends a command in a command."""
        scope = _Scope()
        while self.place < len(self.code):
            if self._skip_blank(scope):
                continue
            if end and self.code.startswith(end, self.place) and not scope.depth and not scope.is_in_pattern:
                self._finish(scope)
                self.place += len(end)
                return
            if not self._separate(scope) and not self._group(scope):
                self._read_word(scope)
        if end:
            raise UnreadableCodeError(f"a {end} is missing")
        self._finish(scope)

    def _skip_blank(self, scope: _Scope) -> bool:
        sign = self.code[self.place]
        if sign == "#":
            begin, self.place = self.place, line_end(self.code, self.place)
            self.names.hidden.append((begin, self.place))
        elif sign == "\n":
            self.place += 1
            self._skip_heredocs()
            self._finish(scope)
        elif sign in " \t\r":
            self.place += 1
        elif self.code.startswith("\\\n", self.place):
            self.place += 2
        else:
            return False
        return True

    def _separate(self, scope: _Scope) -> bool:
        """Read what ends a command."""
        sign = self.code[self.place]
        width = 2 if self.code.startswith(("&&", "||", ";;"), self.place) else 1
        if self.code.startswith(";;", self.place):
            self._finish(scope)
            scope.cases[-1:] = ["pattern"] if scope.cases else []
        elif sign == "|" and scope.is_in_pattern:
            scope.command = ShellCommand()
        elif sign in ";|" or width == 2:
            self._finish(scope)
            scope.command.is_piped = sign == "|" and width == 1
        else:
            return False
        self.place += width
        return True

    def _group(self, scope: _Scope) -> bool:
        """Read a bracket."""
        sign = self.code[self.place]
        is_command_next = [word.text for word in scope.command.words] in ([], ["for"])
        if sign not in "()":
            return False
        if scope.is_in_pattern:
            if sign == ")":
                scope.cases[-1] = "commands"
                scope.command = ShellCommand()
        elif self.code.startswith("((", self.place) and is_command_next:
            self._skip_arithmetic(2)
            return True
        elif sign == "(" and scope.command.words:
            self._function(scope.command)
            scope.command = ShellCommand()
            return True
        else:
            scope.depth += 1 if sign == "(" else -1
            self.is_open += 1 if sign == "(" else -1
            if scope.depth < 0:
                raise UnreadableCodeError("a bracket too many")
            self._finish(scope)
        self.place += 1
        return True

    def _read_word(self, scope: _Scope) -> None:
        sign = self.code[self.place]
        if sign in "<>" or self.code.startswith("&>", self.place):
            self._redirect(scope.command, "")
        elif sign == "&":
            self.note("a command in the background")
            self.place += 1
        else:
            word = self._word()
            if word.text.isdigit() and not word.is_quoted and self.code[self.place : self.place + 1] in ("<", ">"):
                self._redirect(scope.command, word.text)
            else:
                scope.command = self._add(scope.command, word, scope.cases)

    def _add(self, command: ShellCommand, word: ShellWord, cases: list[str]) -> ShellCommand:
        if cases and cases[-1] == "pattern" and not (word.text == "esac" and not command.words):
            return command
        if not command.words and (found := ASSIGNMENT_PATTERN.match(word.prefix)):
            self._assign(found[1])
            if "[" in found[0]:
                self._keep_sum(found[0].partition("[")[2].rpartition("]")[0], found[1])
            self.facts.set_to(found[1], ShellWord(word.text[found.end() :], expansions=word.expansions))
            if word.text.endswith("=") and self.code.startswith("(", self.place):
                self.place += 1
                self._skip_array(found[1])
            elif found[0] == f"{found[1]}=":
                command.assigned.append((word.place, found[1]))
            return command
        if not command.words and not word.is_quoted:
            if word.text == "[[":
                self._skip_condition()
                return command
            if word.text == "esac" and cases:
                cases.pop()
                self.is_open -= 1
                return command
            if word.text in _CONTINUING_WORDS:
                self._block(word)
                return command
            self.is_open += word.text in ("for", "select", "case")
        command.words.append(word)
        first = command.words[0].text
        if (
            first in ("local", "declare", "typeset")
            and word.text.endswith("=")
            and self.code.startswith("(", self.place)
        ):
            self.place += 1
            self._skip_array(word.text.rstrip("+="))
        if first == "case" and len(command.words) == 3 and word.text == "in":
            cases.append("pattern")
            return ShellCommand()
        if first == "function" and len(command.words) == 2:
            self._keep_function(word)
            return ShellCommand()
        return command

    def _block(self, word: ShellWord) -> None:
        """Keep which loops, conditions and functions are open."""
        if word.text == "{":
            is_body = self.header_end >= 0 and re.fullmatch(
                r"\s*(?:\(\s*\))?\s*", self.code[self.header_end : word.place]
            )
            self.blocks.append((self.place if is_body else -1, self.is_open))
            self.is_open = 0 if is_body else self.is_open + 1
        elif word.text == "}" and self.blocks:
            begin, self.is_open = self.blocks.pop()
            if begin >= 0:
                self.names.bodies.append((begin, word.place))
        else:
            self.is_open += (word.text in ("if", "while", "until")) - (word.text in ("fi", "done"))

    def _keep_function(self, word: ShellWord) -> None:
        self.functions.add(word.text)
        self.header_end = self.place
        self.names.hidden.append((word.place, word.place + len(word.text)))

    def _assign(self, name: str) -> None:
        if not self.blocks:
            self.top_assigned.add(name)
        if SPECIAL_VARIABLES.fullmatch(name) and not (
            name == "IFS" and re.match(r"[^\n;]*\bread\b", self.code[self.place :])
        ):
            self.note(name)

    def _finish(self, scope: _Scope) -> None:
        command = scope.command
        if not scope.is_in_pattern:
            if self.blocks and self.blocks[-1][0] >= 0 and not self.is_open:
                self._keep_own(command)
            if command.words:
                self.commands.append(command)
        scope.command = ShellCommand()

    def _keep_own(self, command: ShellCommand) -> None:
        """Keep the variables that a function sets whatever happens."""
        is_piped = self.code.startswith("|", self.place) and not self.code.startswith("||", self.place)
        if is_piped or command.is_piped or command.has_input:
            return
        begin = command.words[0].place if command.words else command.assigned[0][0] if command.assigned else 0
        if not command.words:
            own = [Own(place, name, begin, self.place, is_set=True) for place, name in command.assigned]
        elif command.words[0].text == "local" and not command.words[0].is_quoted:
            found = [(word, re.match(r"([A-Za-z_]\w*)(=|$)", word.prefix)) for word in command.words[1:]]
            own = [
                Own(word.place, name[1], begin, self.place, is_set=bool(name[2]), is_local=True)
                for word, name in found
                if name and (name[2] or word.prefix == word.text)
            ]
        else:
            own = []
        self.names.own += own

    def _function(self, command: ShellCommand) -> None:
        found = re.compile(r"\(\s*\)").match(self.code, self.place)
        if not found or len(command.words) != 1 or command.words[0].is_quoted or command.words[0].is_built:
            raise UnreadableCodeError("a bracket that begins nothing")
        self._keep_function(command.words[0])
        self.place = self.header_end = found.end()

    def _redirect(self, command: ShellCommand, number: str) -> None:
        found = re.compile(r"&>>?|<<<|<<-?|<>|[<>]&|>>|>\||<\(|>\(|<|>").match(self.code, self.place)
        operator = found[0] if found else "<"
        self.place += len(operator)
        if operator.endswith("("):
            self.note("a process as a file")
            self._nested()
            return
        while self.code[self.place : self.place + 1] in (" ", "\t"):
            self.place += 1
        target = self._word()
        if operator.startswith("<<") and operator != "<<<":
            self.heredocs.append((target.text, operator == "<<-", target.is_quoted))
            command.has_input = True
        elif operator == "<<<":
            command.has_input = True
        elif operator == "<":
            command.has_input = True
            is_given = target.is_built and re.fullmatch(r"\$\{?\d\}?", target.text)
            if not is_given and target.text != "/dev/null":
                self.note("a file that is read")
        elif operator == ">&" and target.text == "2" and number in ("", "1"):
            command.is_error = True
        elif not (target.text == "/dev/null" or (operator == ">&" and target.text in ("1", "2"))) or number not in (
            "",
            "1",
            "2",
        ):
            self.note("a file that is written")

    def _word(self) -> ShellWord:
        begin = self.place
        word = ShellWord(place=begin)
        while self.place < len(self.code):
            sign = self.code[self.place]
            if sign in " \t\r\n;|&()<>":
                break
            if not (word.is_quoted or word.is_built) and sign not in "'\"\\$`":
                word.prefix += sign
            if sign == "'":
                close = self.code.find("'", self.place + 1)
                if close < 0:
                    raise UnreadableCodeError("a quote that does not end")
                word.text += self.code[self.place + 1 : close]
                word.quoted.append((self.place + 1, close))
                word.is_quoted, self.place = True, close + 1
            elif sign == '"':
                self.place += 1
                word.is_quoted = True
                self._double(word)
            elif sign == "\\":
                word.text += self.code[self.place + 1 : self.place + 2]
                word.is_quoted = True
                self.place += 2
            elif sign == "$" or sign == "`":
                self._expansion(word)
            else:
                word.has_glob = word.has_glob or sign in "*?" or (sign == "[" and self.place > begin)
                word.text += sign
                self.place += 1
        if self.place == begin:
            raise UnreadableCodeError("a sign that begins nothing")
        return word

    def _double(self, word: ShellWord) -> None:
        while self.place < len(self.code):
            sign = self.code[self.place]
            if sign == '"':
                self.place += 1
                return
            if sign == "\\":
                word.text += self.code[self.place : self.place + 2]
                self.place += 2
            elif sign in "$`":
                self._expansion(word)
            else:
                word.text += sign
                word.quoted.append((self.place, self.place + 1))
                self.place += 1
        raise UnreadableCodeError("a quote that does not end")

    def _expansion(self, word: ShellWord) -> None:
        word.is_built = True
        begin = self.place
        if self.code[self.place] == "`":
            close = self.code.find("`", self.place + 1)
            if close < 0:
                raise UnreadableCodeError("a quote that does not end")
            inner = _ShellReader(self.code[self.place + 1 : close].replace("\\`", "`").replace("\\$", "$"))
            inner.read()
            self._take(inner)
            self.place = close + 1
        elif self.code.startswith("$((", self.place):
            self._skip_arithmetic(3)
        elif self.code.startswith("$(", self.place):
            self.place += 2
            self._nested()
        elif self.code.startswith("${", self.place):
            self._skip_braces()
        elif self.code.startswith("$'", self.place):
            found = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL).match(self.code, self.place)
            self.place = found.end() if found else self.place + 2
            word.is_quoted = True
        else:
            named = re.compile(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])?").match(self.code, self.place)
            self.place = named.end() if named else self.place + 1
        text = self.code[begin : self.place]
        if _UNLISTED_EXPANSION_PATTERN.match(text) or re.search(r"@[PEAK]\}$", text):
            self.note(text[:40])
        word.text += text
        word.expansions.append(text)
        if text == "$" and self.code.startswith("[", self.place):
            self.note("arithmetic in $[ ]")
        self._keep_braces(text)

    def _nested(self) -> None:
        """Read commands in a shell of their own, up to its bracket."""
        self.is_open += 1
        self.read(")")
        self.is_open -= 1

    def _keep_braces(self, text: str) -> None:
        """Keep the arithmetic of an index or of a part of a text, and what a default sets."""
        if found := re.match(r"\$\{[#!]?(\w+)\[(.*?)\](?=[^\]]*$)", text, re.DOTALL):
            self._keep_sum(found[2], found[1])
        if found := re.match(r"\$\{[\w@*]+(?:\[.*\])?:(?![-+=?])(.*)\}$", text, re.DOTALL):
            self._keep_sum(found[1])
        if found := re.match(r"\$\{(\w+):?=", text):
            self.facts.set_to(found[1], ShellWord("text"))

    def _take(self, inner: _ShellReader) -> None:
        for word in (word for command in inner.commands for word in command.words):
            # its places are those of another text
            word.quoted.clear()
        self.commands += inner.commands
        self.functions |= inner.functions
        self.facts.take(inner.facts)
        self.note(inner.problem)

    def _skip_braces(self) -> None:
        depth = 0
        while self.place < len(self.code):
            sign = self.code[self.place]
            if self.code.startswith("$(", self.place) and not self.code.startswith("$((", self.place):
                self.place += 2
                self._nested()
                continue
            if sign == "`":
                self.note("a command in an expansion")
            depth += (sign == "{") - (sign == "}")
            self.place += 2 if sign == "\\" else 1
            if not depth and sign == "}":
                return
        raise UnreadableCodeError("a brace that does not end")

    def _skip_arithmetic(self, width: int) -> None:
        depth, begin, bare, word = 2, self.place, "", ShellWord()
        self.place += width
        while self.place < len(self.code) and depth:
            sign = self.code[self.place]
            if sign in "$`":
                self._expansion(word)
                bare += "\0"
                continue
            bare += sign
            depth += (sign == "(") - (sign == ")")
            self.place += 1
        if depth:
            raise UnreadableCodeError("arithmetic that does not end")
        text = self.code[begin + width : self.place]
        self.facts.sums.append(Sum(bare, tuple(word.expansions)))
        for name in re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%]?=(?!=)|\+\+|--)", text):
            self.facts.counted.add(name)
            self._assign(name)

    def _skip_condition(self) -> None:
        """Skip what stands between `[[` and `]]`; commands in it are read."""
        begin = self.place
        while self.place < len(self.code):
            sign = self.code[self.place]
            if self.code.startswith("]]", self.place) and self.code[self.place - 1].isspace():
                for clause in re.split(r"&&|\|\|", self.code[begin : self.place]):
                    parts = re.split(r"\s-(?:eq|ne|lt|le|gt|ge)\s", clause)
                    for part in parts if len(parts) > 1 else ():
                        self._keep_sum(part)
                    if re.search(r"\s-v\s", clause):
                        self.note("[[ -v")
                self.place += 2
                return
            if sign in "'\"$`":
                self._condition_text(sign)
            else:
                self.place += 2 if sign == "\\" else 1
        raise UnreadableCodeError("a condition that does not end")

    def _condition_text(self, sign: str) -> None:
        word = ShellWord()
        if sign == "'":
            close = self.code.find("'", self.place + 1)
            self.place = len(self.code) if close < 0 else close + 1
        elif sign == '"':
            self.place += 1
            self._double(word)
        else:
            self._expansion(word)

    def _keep_sum(self, raw: str, array: str = "") -> None:
        """Keep a text that is taken for arithmetic."""
        inner = _ShellReader(raw)
        text, word = "", ShellWord()
        while inner.place < len(raw):
            if raw[inner.place] in "$`":
                inner._expansion(word)
                text += "\0"
            else:
                text += raw[inner.place]
                inner.place += 1
        self._take(inner)
        self.facts.sums.append(Sum(text, tuple(word.expansions), array))

    def _skip_array(self, name: str) -> None:
        while self.place < len(self.code):
            sign = self.code[self.place]
            if sign == ")":
                self.place += 1
                return
            if sign.isspace():
                self.place += 1
            elif sign == "#":
                begin, self.place = self.place, line_end(self.code, self.place)
                self.names.hidden.append((begin, self.place))
            elif sign in ";|&(<>":
                raise UnreadableCodeError("a list that does not end")
            else:
                word = self._word()
                self.facts.set_to(name, word)
                if index := re.match(r"\[(.*?)\]\+?=", word.text):
                    put_in = tuple(each for each in word.expansions if each in index[1])
                    bare = index[1]
                    for each in put_in:
                        bare = bare.replace(each, "\0", 1)
                    self.facts.sums.append(Sum(bare, put_in, name))
                if word.has_glob and not word.is_quoted and not word.text.startswith("["):
                    self.note("a pattern of file names")
        raise UnreadableCodeError("a list that does not end")

    def _skip_heredocs(self) -> None:
        for mark, is_indented, is_plain in self.heredocs:
            while True:
                if self.place >= len(self.code):
                    raise UnreadableCodeError("a here-document that does not end")
                end = line_end(self.code, self.place)
                line = self.code[self.place : end]
                self.place = end + 1
                if (line.lstrip("\t") if is_indented else line) == mark:
                    break
                if not is_plain and re.search(r"\$\(|`|\$\[|\$\{[^}]*[\[:=]", line):
                    self.note("a command in a here-document")
        self.heredocs = []


def unlisted_in_shell(code: str, names: AskedNames) -> str:
    """The first thing in a script that the list does not have; empty if there is none."""
    asked, tests = names.words, names.tests
    reader = _ShellReader(code)
    try:
        reader.read()
    except RecursionError:
        return "code that is nested too deep"
    if reader.problem:
        return reader.problem
    if shadowed := reader.functions & vocabulary.SHELL_COMMANDS:
        return f"its own {min(shadowed)}"
    test_words = set(re.findall(r"[^\s;&|(){}\"'$]+", tests))
    if shadowed := reader.functions & test_words - names.called - _called_in(tests, reader.functions):
        return f"its own {min(shadowed)}"
    if taken := reader.top_assigned & set(re.findall(r"\w+", tests)):
        return f"another {min(taken)}"
    if shared := shared_variable(code, reader.names, reader.commands, reader.functions, names):
        return f"{shared}, which the tests set"
    if left := left_to_answer(tests):
        return f"{left} to set, which the tests compare with no plain text"
    is_reading = bool(re.search(r"\b(?:read|mapfile|readarray)\b", tests))
    is_about_files = any(word in asked for word in ("file", "files", "path", "FILE", "filename", "lines", "stdin"))
    for command in reader.commands:
        name = command.words[0]
        if name.is_built or name.is_quoted:
            return "a command whose name is in a variable or in quotes"
        if name.text in reader.functions:
            continue
        if name.text not in vocabulary.SHELL_COMMANDS:
            return name.text
        if is_reading and name.text in _PIPED_READERS and not (command.is_piped or command.has_input):
            return f"{name.text}, which may read what the tests have to read"
        if problem := unlisted_operands(command, is_about_files):
            return problem
    keep_declared(reader.facts, reader.commands)
    return unlisted_in_sums(
        reader.facts, reader.commands, reader.functions, code, tests, is_evaluated=_takes_output_for_sums(tests)
    )


def _takes_output_for_sums(tests: str) -> bool:
    """Whether tests take what an answer prints for arithmetic; a name in it would stand for a variable."""
    reader = _ShellReader(tests)
    try:
        reader.read()
    except (UnreadableCodeError, RecursionError):
        return may_evaluate(tests)
    keep_declared(reader.facts, reader.commands)
    is_integer = re.search(r"\b(?:declare|local|typeset)\s+-\w*i|\$\[", tests)
    return bool(is_integer) or takes_output_for_sums(reader.facts, reader.functions)


def _called_in(tests: str, functions: Collection[str]) -> set[str]:
    """The functions that tests call; nobody but the answer can have them."""
    return {
        name
        for name in functions
        if not re.search(rf"(?:^|[;\s]){re.escape(name)}\s*\(\)|\bfunction\s+{re.escape(name)}\b", tests)
        and re.search(rf"\$\(\s*{re.escape(name)}\b", tests)
    }
