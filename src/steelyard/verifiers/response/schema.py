"""JSON Schema without what could hang, reach out or differ between machines.

The commonest keywords are plain functions, for the many replies that meet their schema. Without them
`benchmarks/classify.py --check "json with schema"` classifies less than half as many replies: 2,100 per second and core
instead of 4,800, of 2 KB each, on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from steelyard.verifiers.response.text import compile_re2, surrogates_replaced
from steelyard.verifiers.response.unicode import printable_excerpt

SchemaPredicate = Callable[[Any], bool]

ANNOTATION_KEYWORDS = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format")
)
"""Keywords that assert nothing."""
QUICK_SCHEMA_DRAFTS = ("draft-06", "draft-07", "2019-09", "2020-12")
"""Drafts in which our keywords mean the same."""
SIZE_KEYWORDS: dict[str, tuple[type[list[Any]] | type[str] | type[dict[Any, Any]], int]] = {
    "minItems": (list, 1),
    "maxItems": (list, -1),
    "minLength": (str, 1),
    "maxLength": (str, -1),
    "minProperties": (dict, 1),
    "maxProperties": (dict, -1),
}
JSON_TYPE_PREDICATES: dict[str, SchemaPredicate] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
}


def quick_predicate(schema: Any) -> SchemaPredicate | None:
    """A test that says True exactly for the values that meet the schema; None if a keyword is beyond it."""
    if isinstance(schema, bool):
        return lambda _: schema
    tests: list[SchemaPredicate] = []
    for key, wanted in schema.items():
        if key in ANNOTATION_KEYWORDS or (key == "additionalProperties" and wanted is True):
            continue
        test = _keyword_predicate(key, wanted, schema)
        if test is None:
            return None
        tests.append(test)
    if len(tests) == 1:
        return tests[0]

    # a loop takes half the time of a generator
    def meets_all(value: Any) -> bool:
        for test in tests:  # noqa: SIM110
            if not test(value):
                return False
        return True

    return meets_all


def _keyword_predicate(key: str, wanted: Any, schema: dict[str, Any]) -> SchemaPredicate | None:
    """What one keyword asks; None if it is beyond us."""
    if key == "type":
        names = wanted if isinstance(wanted, list) else [wanted]
        kinds = [JSON_TYPE_PREDICATES[name] for name in names]
        return kinds[0] if len(kinds) == 1 else lambda value: any(kind(value) for kind in kinds)
    if key in ("enum", "const"):
        known = wanted if key == "enum" else [wanted]
        # numbers, flags and lists of them have ways of being equal that only the library knows
        if not all(isinstance(item, str) for item in known):
            return None
        return lambda value: isinstance(value, str) and value in known
    if key == "required":
        needed = frozenset(wanted)
        return lambda value: not isinstance(value, dict) or value.keys() >= needed
    if key in SIZE_KEYWORDS:
        kind, sign = SIZE_KEYWORDS[key]
        return lambda value: not isinstance(value, kind) or sign * len(value) >= sign * wanted
    if key in ("minimum", "maximum"):
        is_number, sign = JSON_TYPE_PREDICATES["number"], 1 if key == "minimum" else -1
        return lambda value: not is_number(value) or sign * value >= sign * wanted
    if key == "items" and isinstance(wanted, dict | bool) and "prefixItems" not in schema:
        item = quick_predicate(wanted)
        return item and (lambda value: not isinstance(value, list) or all(map(item, value)))
    if key == "properties":
        return _properties(wanted)
    if key == "additionalProperties" and "patternProperties" not in schema:
        return _additional_properties(wanted, frozenset(schema.get("properties", ())))
    return None


def _properties(wanted: dict[str, Any]) -> SchemaPredicate | None:
    tests = {name: quick_predicate(inner) for name, inner in wanted.items()}
    known = [(name, test) for name, test in tests.items() if test]
    if len(known) < len(tests):
        return None

    def meets_known(value: Any) -> bool:
        if isinstance(value, dict):
            for name, test in known:
                if name in value and not test(value[name]):
                    return False
        return True

    return meets_known


def _additional_properties(wanted: Any, named: frozenset[str]) -> SchemaPredicate | None:
    if wanted is False:
        return lambda value: not isinstance(value, dict) or value.keys() <= named
    test = quick_predicate(wanted)
    return test and (
        lambda value: (
            not isinstance(value, dict) or all(test(inner) for name, inner in value.items() if name not in named)
        )
    )


SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
SCHEMA_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLE_SCHEMA_KEYWORDS = (
    *("items", "additionalItems", "additionalProperties", "contains", "propertyNames"),
    *("not", "if", "then", "else"),
)
IN_PLACE_KEYWORDS = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keywords that hold the same value against another schema."""
UNSUPPORTED_KEYWORDS = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
MAX_SCHEMA_STACK_FRAMES = 560
"""Calls within calls that checking a value may take, well below the limit of the interpreter."""
STACK_FRAMES_PER_SCHEMA = 4
MAX_SCHEMA_VALUE_NESTING = 100
MAX_SUBSCHEMAS = 10_000
"""Subschemas of one schema."""

_steps: ContextVar[list[int]] = ContextVar("_steps")


class SchemaTooCostlyError(Exception):
    """A schema with so many branches that validating this value would take too long."""


class SchemaViolation(NamedTuple):
    """The first part of a schema that a value does not meet."""

    what: str
    schema: str
    value: str


@dataclass(frozen=True)
class CompiledJsonSchema:
    """A JSON Schema that has been checked; `format` is a remark in it and asserts nothing."""

    validator: Any
    deepest: int
    """The maximum nesting of a value that can be validated."""
    quick: SchemaPredicate | None
    """A faster way to see that a value meets it, where there is one."""

    def unmet(self, value: Any, length: int) -> SchemaViolation | None:
        """The first part that is not met, in the order of the schema; the length of the text bounds the work."""
        if self.quick and self.quick(value):
            return None
        token = _steps.set([10_000 + 2 * length])
        try:
            error = next(self.validator.iter_errors(value), None)
        finally:
            _steps.reset(token)
        if error is None:
            return None
        schema_path, value_path = json_pointer(error.absolute_schema_path), json_pointer(error.absolute_path)
        return SchemaViolation(
            printable_excerpt(str(error.message), 200),
            printable_excerpt(schema_path, 200),
            printable_excerpt(value_path, 200),
        )


def json_pointer(keys: Any) -> str:
    """The JSON pointer of a path (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def compile_schema(given: Any) -> CompiledJsonSchema:
    """A schema ready for use; ValueError with one sentence where it is wrong or asks for what we do not do."""
    import jsonschema

    if not isinstance(given, dict | bool):
        raise ValueError("expected a JSON Schema: a table, true or false")
    root = given if isinstance(given, dict) else {} if given else {"not": {}}
    references, longest = _resolved_references(root)
    named = root.get("$schema")
    draft = jsonschema.validators.validator_for(root, default=jsonschema.Draft202012Validator)
    if named is not None and draft.META_SCHEMA.get("$schema", "").rstrip("#") != str(named).rstrip("#"):
        raise ValueError(f'unknown $schema "{printable_excerpt(str(named))}"')
    try:
        draft.check_schema(root)
    except jsonschema.SchemaError as error:
        raise ValueError(
            f"at {json_pointer(error.absolute_path) or '/'}: {printable_excerpt(error.message, 200)}"
        ) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    extended: Any = jsonschema.validators.extend
    kind = extended(draft, _BoundedKeywords(references, jsonschema.ValidationError).by_name())
    deepest = min(MAX_SCHEMA_VALUE_NESTING, MAX_SCHEMA_STACK_FRAMES // (STACK_FRAMES_PER_SCHEMA * (1 + longest)))
    is_plain = any(name in str(draft.META_SCHEMA.get("$schema")) for name in QUICK_SCHEMA_DRAFTS)
    return CompiledJsonSchema(kind(root), deepest, quick_predicate(root) if is_plain else None)


def _resolved_references(root: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """What each reference refers to, and the longest chain of schemas for one value."""
    references: dict[str, Any] = {}
    edges: dict[int, list[Any]] = {}
    todo: list[tuple[Any, str]] = [(root, "")]
    while todo:
        node, path = todo.pop()
        if not isinstance(node, dict) or id(node) in edges:
            continue
        if len(edges) >= MAX_SUBSCHEMAS or path.count("/") > 200:
            raise ValueError(f"at {path[:80]}: too large or nested too deeply")
        edges[id(node)] = _in_place_schemas(node)
        for key in UNSUPPORTED_KEYWORDS:
            if key in node:
                raise ValueError(f"at {path or '/'}: {key} is not supported")
        if path and isinstance(node.get("$id"), str):
            raise ValueError(f"at {path}: $id is only supported at the top")
        if (reference := node.get("$ref")) is not None:
            references[reference] = _target(root, reference, path)
            edges[id(node)].append(references[reference])
            todo.append((references[reference], str(reference).removeprefix("#")))
        for pattern in (node.get("pattern"), *_keys(node.get("patternProperties"))):
            if isinstance(pattern, str):
                try:
                    compile_re2(pattern)
                except ValueError as error:
                    raise ValueError(
                        f"at {path or '/'}: RE2 cannot use this pattern: {printable_excerpt(str(error))}"
                    ) from None
        todo += _subschemas(node, path)
    return references, _longest_schema_chain(edges)


def _keys(table: Any) -> tuple[Any, ...]:
    return tuple(table) if isinstance(table, dict) else ()


def _subschemas(node: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """The schemas within a schema."""
    for key in SCHEMA_MAP_KEYWORDS:
        if isinstance(node.get(key), dict):
            yield from ((value, path + json_pointer((key, name))) for name, value in node[key].items())
    for key in SCHEMA_LIST_KEYWORDS:
        if isinstance(node.get(key), list):
            yield from ((value, f"{path}/{key}/{number}") for number, value in enumerate(node[key]))
    yield from ((node[key], f"{path}/{key}") for key in SINGLE_SCHEMA_KEYWORDS if key in node)


def _in_place_schemas(node: dict[str, Any]) -> list[Any]:
    """The schemas that the same value is validated against."""
    found: list[Any] = []
    for key in IN_PLACE_KEYWORDS:
        inner = node.get(key)
        if key in ("dependentSchemas", "dependencies"):
            found += inner.values() if isinstance(inner, dict) else []
        else:
            found += inner if isinstance(inner, list) else [inner]
    return found


def _target(root: dict[str, Any], reference: Any, path: str) -> Any:
    if reference != "#" and not (isinstance(reference, str) and reference.startswith("#/")):
        target = printable_excerpt(str(reference))
        raise ValueError(
            f'at {path or "/"}: "$ref" must point into this schema, as "#/$defs/name" does, not at "{target}"'
        )
    node: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and len(key) < 6 and int(key) < len(node):
            node = node[int(key)]
        else:
            raise ValueError(f'at {path or "/"}: "$ref" points at "{printable_excerpt(reference)}", which is not there')
    return node


def _longest_schema_chain(edges: dict[int, list[Any]]) -> int:
    """The longest chain of schemas that hold for one value; ValueError where a chain never ends."""
    lengths: dict[int, int] = {}
    for first in edges:
        todo = [first]
        under_way: set[int] = set()
        while todo:
            node = todo[-1]
            inner = [id(other) for other in edges[node] if isinstance(other, dict)]
            if node in lengths:
                todo.pop()
            elif node in under_way:
                lengths[node] = max((1 + lengths[other] for other in inner), default=0)
                under_way.discard(node)
                todo.pop()
            else:
                under_way.add(node)
                if any(other in under_way for other in inner):
                    raise ValueError("a schema that refers to itself endlessly for the same value")
                todo += inner
    longest = max(lengths.values())
    if longest > 20:
        raise ValueError("more than 20 schemas in a row for one value")
    return longest


@lru_cache(maxsize=1024)
def _compiled_pattern(pattern: str) -> Any:
    return compile_re2(pattern)


def _pattern_matches(pattern: str, text: str) -> bool:
    return _compiled_pattern(pattern).search(surrogates_replaced(text)) is not None


class _BoundedKeywords:
    """The keywords that the library would do in unbounded time, or with another kind of regular expression."""

    def __init__(self, references: dict[str, Any], error: Callable[[str], Exception]) -> None:
        self._references = references
        self._error = error

    def by_name(self) -> dict[str, Any]:
        return {
            "$ref": self._reference,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "anyOf": self._any_of,
            "oneOf": self._one_of,
            "uniqueItems": self._unique_items,
            "multipleOf": self._multiple_of,
        }

    def _reference(self, validator: Any, target: Any, instance: Any, _: Any) -> Iterator[Any]:
        _spend_step()
        yield from validator.descend(instance, self._references[target])

    def _pattern(self, validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[Any]:
        if validator.is_type(instance, "string") and not _pattern_matches(wanted, instance):
            yield self._error(f'"{printable_excerpt(instance)}" does not match {printable_excerpt(wanted)}')

    def _pattern_properties(self, validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[Any]:
        if validator.is_type(instance, "object"):
            for expression, inner in wanted.items():
                for name, value in instance.items():
                    if _pattern_matches(expression, name):
                        yield from validator.descend(value, inner, path=name, schema_path=expression)

    def _additional_properties(self, validator: Any, inner: Any, instance: Any, whole: Any) -> Iterator[Any]:
        if validator.is_type(instance, "object"):
            known, expressions = whole.get("properties", {}), tuple(whole.get("patternProperties", {}))
            for name, value in instance.items():
                if name in known or any(_pattern_matches(expression, name) for expression in expressions):
                    continue
                if inner is False:
                    yield self._error(f'the key "{printable_excerpt(name)}" is not expected')
                else:
                    yield from validator.descend(value, inner, path=name)

    def _any_of(self, validator: Any, options: Any, instance: Any, _: Any) -> Iterator[Any]:
        if not any(_is_met(validator, instance, inner) for inner in options):
            yield self._error("the value meets none of the alternatives")

    def _one_of(self, validator: Any, options: Any, instance: Any, _: Any) -> Iterator[Any]:
        met = sum(_is_met(validator, instance, inner) for inner in options)
        if met != 1:
            yield self._error(f"the value meets {met} of the alternatives, not one")

    def _unique_items(self, validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[Any]:
        if wanted and validator.is_type(instance, "array"):
            seen = set()
            for item in instance:
                if (same := _hashable(item)) in seen:
                    yield self._error("an item appears twice in the list")
                    return
                seen.add(same)

    def _multiple_of(self, validator: Any, divisor: Any, instance: Any, _: Any) -> Iterator[Any]:
        if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(divisor)):
            yield self._error(f"{printable_excerpt(str(instance))} is not a multiple of {divisor}")


def _spend_step() -> None:
    left = _steps.get()
    left[0] -= 1
    if left[0] < 0:
        raise SchemaTooCostlyError


def _is_met(validator: Any, instance: Any, inner: Any) -> bool:
    return next(validator.descend(instance, inner), None) is None


def _hashable(value: Any) -> Any:
    """Something that is equal for values that JSON Schema calls equal."""
    if isinstance(value, dict):
        return "table", frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_hashable, value))
    return ("flag", value) if isinstance(value, bool) else ("plain", value)
