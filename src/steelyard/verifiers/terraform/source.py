"""Terraform source seen as blocks: where they stand, how one is replaced, and how a repair loses its wrapping.

Nothing here parses HCL. A repair is hostile and may not even be Terraform, so everything is decided on tokens, in one pass
that respects comments, strings, templates in strings and heredocs, and takes time in proportion to the source. What is
never closed runs to its end, except that a string ends with its line, and that a header which can only be at the top
of a file closes everything that was left open above it, if it begins its line.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from steelyard.text import counted
from steelyard.verifiers.code import extract


class TerraformBlockItem(NamedTuple):
    """An argument, or a block, that stands directly in a block."""

    name: str
    """The argument's name or the block's type."""
    line_start: int
    line_end: int
    is_block: bool = False


class TerraformBlock(NamedTuple):
    """A block at the top of a file; its lines count from 1 and are both part of it."""

    address: str
    """Type and labels, such as `resource.aws_instance.web`, `variable.region` or `locals`."""
    line_start: int
    line_end: int
    items: tuple[TerraformBlockItem, ...] = ()

    @property
    def kind(self) -> str:
        """The type of the block, such as `resource`."""
        return self.address.partition(".")[0]


def terraform_blocks(source: str) -> tuple[TerraformBlock, ...]:
    r"""The blocks at the top of a Terraform file, in order; this ends for every source.

    >>> terraform_blocks('variable "a" {}\n\nlocals {\n  b = var.a\n}\n')[1]
    TerraformBlock(address='locals', line_start=3, line_end=5, items=(TerraformBlockItem(name='b', line_start=4, line_end=4, is_block=False),))
    """
    return tuple(_parse_blocks(source).blocks)


# ---- tokens

STATEMENT_TOKEN = re.compile(
    r"""
      (?P<newline> \n )
    | (?P<blank> [^\S\n]+ | \ufeff | \#[^\n]* | //[^\n]* )
    | (?P<comment> /\* )
    | (?P<heredoc> << -? (?P<marker> [^\W\d][\w-]* ) \r? \n )
    | (?P<quote> " )
    | (?P<word> [^\W\d][\w-]* )
    | (?P<opening> [{\[(] )
    | (?P<closing> [}\])] )
    | (?P<assignment> = (?!=) )
    | (?P<other> [^\s\w"\#/<{}\[\]()=\ufeff]+ | == | . )
    """,
    re.VERBOSE,
)
"""What the next thing in a body is."""
EXPRESSION_TOKEN = re.compile(
    r"""
      (?P<blank> [^\n"\#/<{}\[\]()]+ | \#[^\n]* | //[^\n]* )
    | (?P<newline> \n )
    | (?P<comment> /\* )
    | (?P<heredoc> << -? (?P<marker> [^\W\d][\w-]* ) \r? \n )
    | (?P<quote> " )
    | (?P<opening> [{\[(] )
    | (?P<closing> [}\])] )
    | (?P<other> . )
    """,
    re.VERBOSE,
)
"""What the next thing in an expression is, words and signs left out."""
STRING_TOKEN = re.compile(
    r'(?P<text>(?:[^"\\\n$%]+|\\[^\n]|\$\$\{|%%\{|[$%](?!\{)|\\)+)|(?P<template>[$%]\{)|(?P<end>["\n])'
)
HEREDOC_TOKEN = re.compile(r"(?P<text>(?:[^\n$%]+|\$\$\{|%%\{|[$%](?!\{))+)|(?P<template>[$%]\{)|(?P<end>\n)")
DOUBLE_QUOTE = '"'


def _comment_end(source: str, position: int) -> int:
    end = source.find("*/", position)
    return len(source) if end < 0 else end + 2


def _text_end(source: str, opening: re.Match[str]) -> int:
    """Where a string or heredoc ends, templates in it included, and the strings and heredocs in those."""
    # open texts by what closes them, and open templates by the braces that are open in them
    inside: list[str | int] = [opening["marker"] or DOUBLE_QUOTE]
    position = opening.end()
    is_line_start = bool(opening["marker"])
    while inside and position < len(source):
        innermost = inside[-1]
        if isinstance(innermost, int):
            position, is_line_start = _template_step(source, position, inside, innermost)
        elif innermost != DOUBLE_QUOTE and is_line_start:
            is_line_start = False
            end = source.find("\n", position)
            end = len(source) if end < 0 else end
            if source[position:end].strip() == innermost:
                inside.pop()
                position = end
        else:
            match = (STRING_TOKEN if innermost == DOUBLE_QUOTE else HEREDOC_TOKEN).match(source, position)
            if match is None:
                break
            position = match.end()
            if match.lastgroup == "template":
                inside.append(0)
            elif match.lastgroup == "end" and innermost == DOUBLE_QUOTE:
                inside.pop()
                # the newline that cuts a string off ends the argument as well
                position -= match[0] == "\n"
            else:
                is_line_start = match.lastgroup == "end"
    return position


def _template_step(source: str, position: int, inside: list[str | int], braces: int) -> tuple[int, bool]:
    """One step through the code of a template: where it ends, and whether the next line is the first of a heredoc."""
    match = EXPRESSION_TOKEN.match(source, position)
    kind = match.lastgroup if match else None
    if match is None:
        return len(source), False
    if kind == "comment":
        return _comment_end(source, match.end()), False
    if kind in ("quote", "heredoc"):
        inside.append(match["marker"] or DOUBLE_QUOTE)
    elif match[0] == "{":
        inside[-1] = braces + 1
    elif match[0] == "}" and braces:
        inside[-1] = braces - 1
    elif match[0] == "}":
        inside.pop()
    return match.end(), kind == "heredoc"


# ---- blocks

TOP_LEVEL_BLOCK_HEADER = re.compile(
    r'(?:(?:resource|data)[ \t]+"[^"\n]*"[ \t]+"[^"\n]*"'
    r'|(?:module|variable|output|provider)[ \t]+"[^"\n]*"|locals|terraform)[ \t]*\{'
)
BLOCK_BODY = "body"
"""A brace that opened a block; any other open bracket is itself."""
CLOSING_BRACKETS = {"(": ")", "[": "]"}


def _parse_blocks(source: str, *, only_terraform: bool = False) -> _BlockParser:
    """What is in a source, or in the part of it before the first text that is not Terraform."""
    reader = _BlockParser()
    position, line = 0, 1
    while position < len(source) and (reader.is_terraform or not only_terraform):
        match = (EXPRESSION_TOKEN if reader.is_expression else STATEMENT_TOKEN).match(source, position)
        if match is None:
            break
        start, position = position, match.end()
        kind = match.lastgroup
        if kind == "blank":
            continue
        if kind == "newline":
            reader.end_line(line)
            line += 1
            if reader.open and TOP_LEVEL_BLOCK_HEADER.match(source, position):
                reader.close_all(line - 1)
            continue
        if kind == "comment":
            position = _comment_end(source, position)
        elif kind == "quote" or kind == "heredoc":
            position = _text_end(source, match)
            reader.take_text(source[start:position].strip(DOUBLE_QUOTE), line)
        elif kind == "opening":
            reader.take_opening(match[0], line)
        elif kind == "closing":
            reader.take_closing(match[0], line)
        else:
            reader.take(kind or "", match[0], line)
        line += source.count("\n", start, position)
    reader.end(line - source.endswith("\n"))
    return reader


def _is_terraform(source: str) -> bool:
    """Whether the top level has only complete blocks, arguments and comments."""
    return _parse_blocks(source, only_terraform=True).is_terraform


class _BlockParser:
    """Puts tokens together to blocks and the items in them."""

    def __init__(self) -> None:
        self.blocks: list[TerraformBlock] = []
        self.items: list[TerraformBlockItem] = []
        self.is_terraform = True
        self.open: list[str] = []
        """What is open, from the outside in."""
        self.depth = 0
        """How many of these are blocks."""
        self.is_expression = False
        """Whether words mean nothing here: in brackets, behind an equals sign, in a line that is not Terraform."""
        self.words: list[str] = []
        """The words of the statement so far."""
        self.is_argument = False
        """Whether they are the name of an argument."""
        self.is_above = False
        """Whether they stand on the line above."""
        self.address = ""
        self.line = self.block_line = 1
        """Where the statement begins, and the block at the top."""

    def take(self, kind: str, text: str, line: int) -> None:
        """A word or a sign."""
        if self.is_expression:
            return
        if self.is_above:
            self._stray()
            self._begin()
        if kind == "word":
            self.line = self.line if self.words else line
            self.words.append(text)
        elif kind == "assignment" and len(self.words) == 1:
            self.is_argument = self.is_expression = True
        else:
            self._stray()

    def take_text(self, text: str, line: int) -> None:
        """A string, or a heredoc."""
        is_label = self.words and not self.is_above
        self.take("word" if is_label else "other", text, line)

    def take_opening(self, bracket: str, line: int) -> None:
        if bracket == "{" and self.words and not self.is_expression:
            self._open_block(line)
            return
        if not self.is_expression:
            self._stray()
        self.open.append(bracket)

    def take_closing(self, bracket: str, line: int) -> None:
        if bracket != "}":
            if self.open and CLOSING_BRACKETS.get(self.open[-1]) == bracket:
                self.open.pop()
            elif not self.is_expression:
                self._stray()
            return
        # brackets that were never closed end with the braces around them
        while self.open and self.open[-1] in CLOSING_BRACKETS:
            self.open.pop()
        if not self.open:
            self._stray()
        elif self.open.pop() == BLOCK_BODY:
            self._close_block(line)

    def end_line(self, line: int) -> None:
        if self.open and self.open[-1] != BLOCK_BODY:
            return
        if self.is_argument:
            self._end_argument(line)
        elif self.words and not self.is_expression:
            # a brace on the next line is a mistake, but it is clear which block is meant
            self.is_above = True
        else:
            self._begin()

    def close_all(self, line: int) -> None:
        """Close everything that is open."""
        while self.open:
            if self.open.pop() == BLOCK_BODY:
                self._close_block(line)
        self._begin()

    def end(self, line: int) -> None:
        if self.words and not self.is_argument:
            self._stray()
        self.is_terraform = self.is_terraform and not self.open
        self.close_all(line)

    def _begin(self) -> None:
        """Be ready for a statement."""
        self.words = []
        self.is_argument = self.is_above = self.is_expression = False

    def _stray(self) -> None:
        """Text that is not Terraform, to the end of the line."""
        self.is_expression = True
        self.is_terraform = self.is_terraform and bool(self.depth)

    def _open_block(self, line: int) -> None:
        self.open.append(BLOCK_BODY)
        if not self.depth:
            self.address, self.block_line, self.items = ".".join(self.words), self.line, []
            self.is_terraform = self.is_terraform and not self.is_above
        elif self.depth == 1:
            self.items.append(TerraformBlockItem(self.words[0], self.line, line, is_block=True))
        self.depth += 1
        self._begin()

    def _end_argument(self, line: int) -> None:
        if self.depth == 1:
            self.items.append(TerraformBlockItem(self.words[0], self.line, line))
        self._begin()

    def _close_block(self, line: int) -> None:
        if self.is_argument:
            self._end_argument(line)
        self._begin()
        self.depth -= 1
        if self.depth == 1:
            self.items[-1] = self.items[-1]._replace(line_end=line)
        elif not self.depth:
            self.blocks.append(TerraformBlock(self.address, self.block_line, line, tuple(self.items)))


# ---- replacing


def with_block_replaced(source: str, line_start: int, line_end: int, text: str) -> str:
    r"""The source with these lines, both included, replaced by `text`, and every other line as it was.

    The new lines end as those around them do, and a byte order mark stays.

    >>> with_block_replaced("a = 1\r\nb = 2\r\nc = 3\r\n", 2, 2, "b = 4\n")
    'a = 1\r\nb = 4\r\nc = 3\r\n'
    """
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    if line_start < 1 or line_end < line_start:
        raise ValueError(
            f"lines {line_start} to {line_end} are not a range; lines count from 1 and the last is included"
        )
    if line_end > len(lines):
        raise ValueError(
            f"lines {line_start} to {line_end} cannot be replaced in a file of {counted(len(lines), 'line')}"
        )
    before, replaced, after = lines[: line_start - 1], lines[line_start - 1 : line_end], lines[line_end:]
    line_end_here = re.search(r"\r?\n", "".join([*replaced, *lines]))
    ending = line_end_here[0] if line_end_here else "\n"
    new = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").replace("\n", ending)
    if line_start == 1 and source.startswith("\ufeff"):
        new = f"\ufeff{new}"
    if replaced[-1].endswith("\n"):
        new += ending
    return "".join([*before, new, *after])


# ---- repairs

MAX_WRAPPER_LAYERS = 4
"""How deep a repair may be wrapped: tags around a fence around CDATA are three."""
MAX_WRAPPER_TAGS = 16
"""The maximum number of pairs of tags that are examined."""
REPAIR_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|\Z)", re.MULTILINE)
WRAPPER_TAG = re.compile(r"<!\[CDATA\[|\]\]>|</?(?P<name>[A-Za-z_][\w.-]*)(?:[ \t][^<>\n]*)?>")
CLOSING_WRAPPER_TAG = re.compile(r"(?:</[A-Za-z_][\w.-]*>|\]\]>)\Z")
MAX_WRAPPER_TAG_CHARACTERS = 100


def repair_text(raw: str) -> str:
    r"""The code of a repair without fences, XML-like tags and CDATA around it, and without the prose beside those.

    What is Terraform as it stands is handed back as it is, so that a heredoc may hold fences and tags of its own.

    >>> repair_text("Here you are:\n<fixed_code><![CDATA[\nlocals {\n  a = 1\n}\n]]></fixed_code>")
    'locals {\n  a = 1\n}\n'
    """
    if _is_terraform(raw):
        return raw
    text = _unwrapped(extract.without_thinking(raw.replace("\r\n", "\n")))
    wrapped = [*_between_tags(text), *_between_fences(text)] if _is_wrapped(text) else []
    for inner in [text, *wrapped, _without_prose(text)]:
        code = extract.tidy(_unwrapped(inner))
        if code.strip() and _is_terraform(code):
            return code
    found = extract.extract(text, "hcl").code
    return found if found is not None and (REPAIR_FENCE.search(text) or _is_terraform(found)) else text


def _unwrapped(text: str) -> str:
    """The text without the wrappings that go around all of it."""
    certain, is_certain = text, True
    for _ in range(MAX_WRAPPER_LAYERS):
        layer = _unwrap_layer(text)
        if _is_terraform(text) or layer is None:
            break
        text, is_certain = extract.tidy(layer.inner), is_certain and layer.is_certain
        certain = text if is_certain else certain
    return text if is_certain or _is_terraform(text) else certain


class _UnwrappedLayer(NamedTuple):
    inner: str
    is_certain: bool
    """False when what closes it stands inside as well, so that it may be two wrappings, one after the other."""


def _unwrap_layer(text: str) -> _UnwrappedLayer | None:
    """The content of the outermost wrapper, of which only the beginning or the end may be present; None if there is none."""
    text = text.strip()
    tag = WRAPPER_TAG.match(text)
    if tag and tag[0][1] != "/" and tag[0] != "]]>":
        closing = f"</{tag['name']}>" if tag["name"] else "]]>"
        inner = text[tag.end() :].removesuffix(closing)
        return _UnwrappedLayer(inner, closing not in inner)
    if tag := CLOSING_WRAPPER_TAG.search(text[-MAX_WRAPPER_TAG_CHARACTERS:]):
        return _UnwrappedLayer(text[: -len(tag[0])], True)
    fence = REPAIR_FENCE.match(text)
    behind = text[fence.end() :] if fence else text
    # the closing fence may stand right behind the last line of code
    inner = behind.rstrip(behind[-1:]) if behind.endswith(("```", "~~~")) else behind
    return _UnwrappedLayer(inner, not REPAIR_FENCE.search(inner)) if fence or inner != behind else None


def _without_prose(text: str) -> str:
    """What stands from the first block to the last."""
    found = terraform_blocks(text)
    return "\n".join(text.split("\n")[found[0].line_start - 1 : found[-1].line_end]) if found else ""


def _is_wrapped(text: str) -> bool:
    """Whether there are tags or fences that do not stand in a block."""
    inside = {line for block in terraform_blocks(text) for line in range(block.line_start, block.line_end + 1)}
    outside = "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in inside)
    return WRAPPER_TAG.search(outside) is not None or REPAIR_FENCE.search(outside) is not None


def _between_tags(text: str) -> list[str]:
    """What stands between tags that belong together, and in CDATA, the last first: corrections follow drafts."""
    first: dict[str, int] = {}
    since: dict[str, int] = {}
    widest: dict[str, str] = {}
    found: list[str] = []
    for tag in islice(WRAPPER_TAG.finditer(text), 2 * MAX_WRAPPER_TAGS):
        name = tag["name"] or ""
        if tag[0][1] not in "/]":
            since[name] = tag.end()
            first.setdefault(name, tag.end())
        elif name in first:
            found.append(text[since.pop(name, first[name]) : tag.start()])
            # code may hold the very tags that it stands between
            widest[name] = text[first[name] : tag.start()]
    return [*reversed(widest.values()), *reversed(found)]


def _between_fences(text: str) -> list[str]:
    """What stands between the first fence and the last, prose aside."""
    fences = list(REPAIR_FENCE.finditer(text))
    return [text[fences[0].end() : fences[-1].start()]] if len(fences) > 1 else []
