"""The HTTP API described in OpenAPI, made from the records that it answers with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgspec

from steelyard.analysis.attempts import AttemptOutcome
from steelyard.analysis.summary import Summary
from steelyard.evalsets.schema import field_descriptions
from steelyard.viewer import api_records
from steelyard.viewer.query_params import MAX_QUERY_VALUE_CHARACTERS
from steelyard.viewer.run_list import RUN_STATES

JSON_MEDIA_TYPE, MARKDOWN_MEDIA_TYPE = "application/json", "text/markdown"


def _parameter(name: str, about: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _text_parameter(
    name: str, about: str, *, where: str = "query", required: bool = False, **more: Any
) -> dict[str, Any]:
    schema = {"type": "string", "maxLength": MAX_QUERY_VALUE_CHARACTERS} | ({"minLength": 1} if required else {}) | more
    return {"name": name, "in": where, "description": about, "required": required, "schema": schema}


def _cursor_parameter(pattern: str = "") -> dict[str, Any]:
    more: dict[str, Any] = {"pattern": pattern} if pattern else {}
    return _text_parameter("cursor", "What the page before gave as `next_cursor`.", **more)


RUN_ID_PARAMETER = _text_parameter("run_id", "The name of the run's folder.", where="path", required=True)
CASE_ID_PARAMETER = _text_parameter("case_id", "Only attempts at this case.")
MODEL_ID_PARAMETER = _text_parameter("model_id", "Only this model, as `model_id` names it.")
LIMIT_PARAMETER = _parameter("limit", "Entries on the page.", type="integer", minimum=1, maximum=200, default=50)
ATTEMPT_CURSOR_SCHEMA_PATTERN = r"^[0-9]{1,7}\.[0-9]{1,4}\.[0-9]{1,7}$"
SHARE_SCHEMA = {"type": "string", "pattern": r"^0\.(?!0{1,6}$)[0-9]{1,6}$", "default": "0.05"}

API_VERSION = "1.0.0"
"""Of this description; `/healthz` shows the version of steelyard. The first number is the one in the paths."""

API_PATHS: dict[str, tuple[str, str, list[dict[str, Any]], type | None]] = {
    "/healthz": ("health", "That the server is there; needs no key.", [], api_records.ServerHealth),
    "/openapi.json": ("description", "This description.", [], None),
    "/api/v1/runs": (
        "runs",
        "The runs, the newest first.",
        [
            LIMIT_PARAMETER,
            _cursor_parameter(),
            MODEL_ID_PARAMETER,
            _text_parameter("eval_set", "Only runs of this eval set."),
            _parameter("state", "Only runs in this state.", enum=["", *RUN_STATES]),
        ],
        api_records.RunsPage,
    ),
    "/api/v1/runs/{run_id}": (
        "run",
        "One run with what it was asked to do.",
        [RUN_ID_PARAMETER],
        api_records.RunDetail,
    ),
    "/api/v1/runs/{run_id}/summary": (
        "summary",
        "What a run adds up to, per model and per case, each number with its interval.",
        [RUN_ID_PARAMETER],
        Summary,
    ),
    "/api/v1/runs/{run_id}/cases": (
        "results",
        "The judged attempts with their replies. A page ends early where the replies are long.",
        [
            RUN_ID_PARAMETER,
            LIMIT_PARAMETER,
            _cursor_parameter(ATTEMPT_CURSOR_SCHEMA_PATTERN),
            CASE_ID_PARAMETER,
            MODEL_ID_PARAMETER,
        ],
        api_records.ResultsPage,
    ),
    "/api/v1/runs/{run_id}/attempts": (
        "attempts",
        "All attempts, also those that are missing, without their texts.",
        [
            RUN_ID_PARAMETER,
            LIMIT_PARAMETER,
            _cursor_parameter(ATTEMPT_CURSOR_SCHEMA_PATTERN),
            CASE_ID_PARAMETER,
            MODEL_ID_PARAMETER,
            _parameter("outcome", "Only attempts with this outcome.", enum=["", *get_args(AttemptOutcome)]),
        ],
        api_records.AttemptsPage,
    ),
    "/api/v1/runs/{run_id}/attempt": (
        "attempt",
        "One attempt with all that is known about it.",
        [
            RUN_ID_PARAMETER,
            _text_parameter("case_id", "The case.", required=True),
            _text_parameter("model_id", "The model, as `model_id` names it.", required=True),
            _parameter("attempt", "Its number.", type="integer", minimum=1, maximum=1_000_000, default=1),
        ],
        api_records.AttemptDetail,
    ),
    "/api/v1/runs/{run_id}/report.md": ("report", "The summary of a run as Markdown.", [RUN_ID_PARAMETER], str),
    "/api/v1/cases/{case_id}": (
        "case",
        "A case as its newest run asked it, and how it came out in each run that has it. A slash in its id may stay.",
        [
            _text_parameter("case_id", "The id of the case.", where="path", required=True),
            _text_parameter("run_id", "Only this run."),
            _cursor_parameter(),
        ],
        api_records.CaseDetail,
    ),
    "/api/v1/compare": (
        "compare",
        "What a gate says of two runs or models, and every case, culprits first. Asking is not a look: it spends no error rate.",
        [
            _text_parameter("baseline", "`RUN` or `RUN@MODEL`: what it was.", required=True),
            _text_parameter("current", "`RUN` or `RUN@MODEL`: what it is now.", required=True),
            _parameter("alpha", "How often nothing may raise an alarm.", **SHARE_SCHEMA),
            _parameter("margin", "A mean drop below this may pass.", **SHARE_SCHEMA),
            LIMIT_PARAMETER,
            _cursor_parameter("^[0-9]{1,9}$"),
        ],
        api_records.ComparisonPage,
    ),
}


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    kinds = [kind for _, _, _, kind in API_PATHS.values() if kind not in (None, str)]
    schemas, components = msgspec.json.schema_components(
        [*kinds, api_records.ErrorEnvelope], ref_template="#/components/schemas/{name}"
    )
    *found, envelope = schemas
    _explain(components)
    by_kind = dict(zip(kinds, found, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "steelyard",
            "version": API_VERSION,
            "description": "Runs of steelyard, to be read. Started by `steelyard view`; it listens on this machine alone.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {"key": []}],
        "paths": {
            path: {"get": _operation(name, about, parameters, by_kind.get(kind) if kind else None, kind)}
            for path, (name, about, parameters, kind) in API_PATHS.items()
        },
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
                    "content": {JSON_MEDIA_TYPE: {"schema": envelope}},
                }
            },
        },
    }


def _explain(components: dict[str, Any]) -> None:
    """Say of each field what the string beneath it says, in its class or in the one that this extends."""
    kinds = {kind.__name__: kind for kind in _structs(msgspec.Struct)}
    described = cache(field_descriptions)
    for name, component in components.items():
        fields: dict[str, str] = {}
        for kind in reversed(kinds[name].__mro__ if name in kinds else ()):
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


def _operation(
    name: str, about: str, parameters: list[dict[str, Any]], schema: dict[str, Any] | None, kind: type | None
) -> dict[str, Any]:
    content = (
        {MARKDOWN_MEDIA_TYPE: {"schema": {"type": "string"}}}
        if kind is str
        else {JSON_MEDIA_TYPE: {"schema": schema or {}}}
    )
    return {
        "operationId": name,
        "summary": about,
        "parameters": parameters,
        # whether the viewer is there can be asked by anybody
        **({"security": []} if name == "health" else {}),
        "responses": {
            "200": {"description": about, "content": content},
            "default": {"$ref": "#/components/responses/trouble"},
        },
    }
