"""The HTTP API described in OpenAPI, made from the functions that answer it and the records that they return."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import msgspec

from steelyard.evalsets.schema import field_descriptions
from steelyard.text import short_quote
from steelyard.viewer.api_records import ErrorEnvelope
from steelyard.viewer.query_params import QueryParameters, ViewerRequestError

API_VERSION = "1.0.0"
"""Of this description; `/healthz` shows the version of steelyard. The first number is the one in the paths."""


class AddressParameter(NamedTuple):
    """A parameter of an address, as the function that answers it declares it."""

    name: str
    about: str
    schema: dict[str, Any]
    is_in_path: bool
    is_required: bool
    default: Any

    def value(self, asked: QueryParameters) -> Any:
        """What a request gives for it, held to its schema."""
        name, schema = self.name, self.schema
        if self.is_required and not asked.text(name):
            raise ViewerRequestError(400, f'"{name}" is missing: {self.about}')
        if "enum" in schema:
            return asked.choice(name, schema["enum"], self.default)
        if schema["type"] == "integer":
            return asked.whole(name, self.default, least=schema["minimum"], most=schema["maximum"])
        given = asked.text(name)
        if asked.is_given(name) and "pattern" in schema and not re.fullmatch(schema["pattern"], given, re.ASCII):
            raise ViewerRequestError(400, f'"{name}" cannot be {short_quote(given)}: {self.about}')
        return given or self.default


@cache
def address_parameters(path: str, answer: Callable[..., Any]) -> tuple[AddressParameter, ...]:
    """The parameters of a function that answers an address, but for its first, which is the runs."""
    hints = get_type_hints(answer, include_extras=True)
    found = []
    for given in list(inspect.signature(answer).parameters.values())[1:]:
        schema = msgspec.json.schema(hints[given.name])
        about, is_required = schema.pop("description"), given.default is given.empty
        default = "" if is_required else given.default
        found.append(AddressParameter(given.name, about, schema, f"{{{given.name}}}" in path, is_required, default))
    return tuple(found)


def api_document(answers: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The description of what answers these addresses."""
    returned = {path: get_type_hints(answer)["return"] for path, answer in answers.items()}
    kinds = [kind for kind in returned.values() if kind is not str]
    (envelope, *found), components = msgspec.json.schema_components(
        [ErrorEnvelope, *kinds], ref_template="#/components/schemas/{name}"
    )
    _explain(components)
    schemas = iter(found)
    paths = {
        path: {"get": _operation(path, answer, {"type": "string"} if returned[path] is str else next(schemas))}
        for path, answer in answers.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "steelyard",
            "version": API_VERSION,
            "description": "Runs of steelyard, to be read. Started by `steelyard view`; it listens on this machine alone.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
            "responses": {
                "trouble": {
                    "description": "What is wrong: 400 a value that cannot be, 401 no key or a wrong one, 404 no such thing, "
                    "405 another method than GET and HEAD, 414 too long, 421 another host, 409 a run that cannot be read, or two that cannot be compared.",
                    "content": {"application/json": {"schema": envelope}},
                }
            },
        },
    }


def _operation(path: str, answer: Callable[..., Any], schema: dict[str, Any]) -> dict[str, Any]:
    about = " ".join((answer.__doc__ or "").split())
    media_type = "text/markdown" if path.endswith(".md") else "application/json"
    return {
        "operationId": answer.__name__,
        "summary": about,
        "parameters": [
            {
                "name": each.name,
                "in": "path" if each.is_in_path else "query",
                "description": each.about,
                "required": each.is_required,
                "schema": each.schema | ({"default": each.default} if each.default else {}),
            }
            for each in address_parameters(path, answer)
        ],
        # whether the viewer is there can be asked by anybody
        **({"security": []} if path == "/healthz" else {}),
        "responses": {
            "200": {"description": about, "content": {media_type: {"schema": schema}}},
            "default": {"$ref": "#/components/responses/trouble"},
        },
    }


def _explain(components: dict[str, Any]) -> None:
    """Say of each field what the string beneath it says, in its class or in the one that this extends."""
    kinds = {kind.__name__: kind for kind in _structs(msgspec.Struct)}
    described = cache(field_descriptions)
    for name, component in components.items():
        fields: dict[str, str] = {}
        # `Page_RunEntry_` is a page of runs
        for kind in reversed(getattr(kinds.get(name.partition("_")[0]), "__mro__", ())):
            if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
                fields |= described(sys.modules[kind.__module__]).get(kind.__name__, {})
        for field, schema in component.get("properties", {}).items():
            if field in fields:
                schema["description"] = " ".join(fields[field].split())


def _structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Our own records; no two have the same name."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("steelyard."):
            yield each
        yield from _structs(each)
