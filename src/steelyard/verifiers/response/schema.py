"""JSON Schema by the library `jsonschema`, without what could hang, reach out or differ between machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from steelyard.verifiers.response.text import compile_re2, surrogates_replaced
from steelyard.verifiers.response.unicode import printable_excerpt

UNSUPPORTED_KEYWORDS = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
MIN_REFERENCE_STEPS = 10_000
"""References that are followed for one value, and two more for each character of its text."""
SAMPLE_VALUES: tuple[Any, ...] = (None, True, 0, "", [], {})

_steps: ContextVar[list[int]] = ContextVar("_steps")


class SchemaTooCostlyError(Exception):
    """A schema with so many branches, or a value so deep, that validating it would take too long."""


class SchemaViolation(NamedTuple):
    """The first part of a schema that a value does not meet."""

    what: str
    schema: str
    value: str


@dataclass(frozen=True)
class CompiledJsonSchema:
    """A JSON Schema that has been checked; `format` is a remark in it and asserts nothing."""

    validator: Any

    def unmet(self, value: Any, length: int) -> SchemaViolation | None:
        """The first part that is not met, in the order of the schema; the length of the text bounds the work."""
        token = _steps.set([MIN_REFERENCE_STEPS + 2 * length])
        try:
            error = next(self.validator.iter_errors(value), None)
        except RecursionError:
            raise SchemaTooCostlyError from None
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
    named = root.get("$schema")
    draft: Any = jsonschema.validators.validator_for(root, default=jsonschema.Draft202012Validator)
    if named is not None and draft.META_SCHEMA.get("$schema", "").rstrip("#") != str(named).rstrip("#"):
        raise ValueError(f'unknown $schema "{printable_excerpt(str(named))}"')
    try:
        draft.check_schema(root)
        for schema in _subschemas(root, str(draft.META_SCHEMA["$schema"])):
            _check_keywords(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(
            f"at {json_pointer(error.absolute_path) or '/'}: {printable_excerpt(error.message, 200)}"
        ) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    extended: Any = jsonschema.validators.extend
    compiled = CompiledJsonSchema(
        extended(draft, _BoundedKeywords(draft.VALIDATORS.get("$ref"), jsonschema.ValidationError).by_name())(root)
    )
    try:
        for value in SAMPLE_VALUES:
            compiled.unmet(value, 0)
    except SchemaTooCostlyError:
        raise ValueError("a schema that refers to itself endlessly for the same value") from None
    return compiled


def _subschemas(root: dict[str, Any], dialect: str) -> Iterator[dict[str, Any]]:
    """A schema, the schemas within it, and what they refer to; ValueError where that is not in it."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    resource: Resource[Any] = specification_with(dialect).create_resource(root)
    todo = [(resource, Registry[Any]().resolver_with_root(resource))]
    seen = set[int]()
    while todo:
        resource, resolver = todo.pop()
        schema = resource.contents
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        if (reference := schema.get("$ref")) is not None:
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError, TypeError, AttributeError):
                shown = printable_excerpt(str(reference))
                example = '"$ref" must point into this schema, as "#/$defs/name" does'
                raise ValueError(f'{example}; "{shown}" is not there') from None
            todo.append((specification_with(dialect).create_resource(target.contents), target.resolver))
        todo += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]


def _check_keywords(schema: dict[str, Any]) -> None:
    """Refuse what we do not support."""
    for key in UNSUPPORTED_KEYWORDS:
        if key in schema:
            raise ValueError(f"{key} is not supported")
    for pattern in (*([schema["pattern"]] if "pattern" in schema else ()), *schema.get("patternProperties", ())):
        try:
            compile_re2(pattern)
        except ValueError as error:
            shown = printable_excerpt(pattern, 40)
            raise ValueError(f'RE2 cannot use the pattern "{shown}": {printable_excerpt(str(error))}') from None


@lru_cache(maxsize=1024)
def _compiled_pattern(pattern: str) -> Any:
    return compile_re2(pattern)


def _pattern_matches(pattern: str, text: str) -> bool:
    return _compiled_pattern(pattern).search(surrogates_replaced(text)) is not None


class _BoundedKeywords:
    """The keywords that the library would do in unbounded time, or with another kind of regular expression."""

    def __init__(self, follow: Any, error: type[Exception]) -> None:
        self._follow = follow
        self._error = error

    def by_name(self) -> dict[str, Any]:
        return {
            "$ref": self._reference,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "uniqueItems": self._unique_items,
            "multipleOf": self._multiple_of,
        }

    def _reference(self, validator: Any, target: Any, instance: Any, whole: Any) -> Iterator[Any]:
        left = _steps.get()
        left[0] -= 1
        if left[0] < 0:
            raise SchemaTooCostlyError
        yield from self._follow(validator, target, instance, whole)

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


def _hashable(value: Any) -> Any:
    """Something that is equal for values that JSON Schema calls equal."""
    if isinstance(value, dict):
        return "table", frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_hashable, value))
    return ("flag", value) if isinstance(value, bool) else ("plain", value)
