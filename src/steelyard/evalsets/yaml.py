"""YAML as plain data, and the lines its keys stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.evalsets.schema import KeyPath, ProblemCollector, dotted_key_path
from steelyard.text import short_quote

if TYPE_CHECKING:
    from collections.abc import Callable

    import yaml

MAX_YAML_DEPTH = 20
"""Levels of lists and tables in each other."""
MAX_YAML_VALUES = 10_000
"""Values, keys among them, that one file may hold: the library takes its time over each."""
MAX_EVAL_SET_YAML_VALUES = 200_000
"""The same for a file of cases."""
MAX_YAML_NUMBER_CHARACTERS = 100
YAML_SCALAR_TYPES = ("null", "bool", "int", "float", "str")
"""The types of a value; a timestamp, and every other type of YAML, becomes its text."""
YAML_TAG_PREFIX = "tag:yaml.org,2002:"


class LocatedDocument(NamedTuple):
    """What a file holds, and where."""

    value: Any
    line: Callable[[KeyPath], int]
    """The line of a key, otherwise of the table around it; 0 when no line can be named."""


def nearest_line(lines: dict[KeyPath, int]) -> Callable[[KeyPath], int]:
    """The line of a key, otherwise of the table around it."""

    def line(keys: KeyPath) -> int:
        while keys and keys not in lines:
            keys = keys[:-1]
        return lines.get(keys, 0)

    return line


def yaml_document(
    text: str, path: str, problems: ProblemCollector, max_values: int = MAX_YAML_VALUES
) -> LocatedDocument | None:
    r"""The one document of a text, by the safe part of YAML 1.1; None after naming everything that is wrong with it.

    Keys are texts as they are written, so that `on` and `1.0` are themselves. Anchors, aliases and tags are refused: with
    them a short text can be a huge one, or more than data.

    >>> found = yaml_document("a:\n  - on: 1\n", "some.yaml", ProblemCollector())
    >>> found.value, found.line(("a", 0, "on"))
    ({'a': [{'on': 1}]}, 2)
    """
    import yaml

    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)
        refused = _first_forbidden_event(yaml.parse(text, Loader=yaml.SafeLoader), max_values)
        if refused:
            problems.error(path, *refused)
            return None
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "broken"
        where = f" (column {mark.column + 1})" if mark else ""
        problems.error(path, mark.line + 1 if mark else 0, f"not YAML: {short_quote(what)[1:-1]}{where}")
        return None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problems.error(path, line, f"not YAML: U+{ord(text[error.position]):04X} is not allowed in a YAML file")
        return None
    finally:
        if loader:
            loader.dispose()
    lines: dict[KeyPath, int] = {}
    before = len(problems.errors)
    value = None if node is None else _YamlNodeReader(path, lines, problems, yaml.SafeLoader("")).value(node, ())
    return LocatedDocument(value, nearest_line(lines)) if len(problems.errors) == before else None


def _first_forbidden_event(events: Any, max_values: int) -> tuple[int, str] | None:
    """The line and the reason of the first thing that must not be composed, found without composing anything."""
    import yaml

    depth = values = 0
    for event in events:
        line = event.start_mark.line + 1
        values += isinstance(event, yaml.NodeEvent)
        if values > max_values:
            return line, f"more than {max_values} values; shorten the file"
        if isinstance(event, yaml.AliasEvent):
            return line, f"an alias *{event.anchor}; write out its value"
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            return line, f"an anchor &{event.anchor}; leave it out, and write out what refers to it"
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                return line, f"nested more than {MAX_YAML_DEPTH} levels deep; nest lists and tables less deeply"
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


class _YamlNodeReader(NamedTuple):
    path: str
    lines: dict[KeyPath, int]
    problems: ProblemCollector
    constructor: Any

    def value(self, node: yaml.Node, keys: KeyPath) -> Any:
        """What a node holds; None after saying what is wrong with it."""
        import yaml

        self.lines.setdefault(keys, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{YAML_TAG_PREFIX}map":
            return self._table(node, keys)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{YAML_TAG_PREFIX}seq":
            return [self.value(inner, (*keys, number)) for number, inner in enumerate(node.value)]
        if not isinstance(node, yaml.ScalarNode) or not node.tag.startswith(YAML_TAG_PREFIX):
            self._error(node, keys, f"the tag {short_quote(node.tag)} is not plain data; leave it out")
            return None
        return self._scalar(node, keys)

    def _table(self, node: yaml.MappingNode, keys: KeyPath) -> dict[str, Any]:
        import yaml

        table: dict[str, Any] = {}
        for key, inner in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._error(key, keys, "a key that is a list or a table; write it as text")
                continue
            here = (*keys, key.value)
            if key.value in table:
                self._error(
                    key, keys, f"the key {short_quote(key.value)} appears twice, first in line {self.lines[here]}"
                )
                continue
            self.lines[here] = key.start_mark.line + 1
            table[key.value] = self.value(inner, here)
        return table

    def _scalar(self, node: yaml.ScalarNode, keys: KeyPath) -> Any:
        kind = node.tag.removeprefix(YAML_TAG_PREFIX)
        if kind == "str" or kind not in YAML_SCALAR_TYPES:
            return node.value
        try:
            if len(node.value) > MAX_YAML_NUMBER_CHARACTERS:
                raise ValueError
            return self.constructor.construct_object(node)
        # the library lets numbers through that Python cannot read, such as 0b_, and words that are not flags
        except (ValueError, LookupError, OverflowError):
            words = "true or false" if kind == "bool" else "a number"
            self._error(node, keys, f"{short_quote(node.value)} cannot be read as {words}; put text in quotes")
            return None

    def _error(self, node: yaml.Node, keys: KeyPath, what: str) -> None:
        key = dotted_key_path(keys)
        self.problems.error(self.path, node.start_mark.line + 1, f"{key}: {what}" if key else what)
