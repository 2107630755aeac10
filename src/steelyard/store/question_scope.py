"""What a question in SQL is about, as far as its text says it without doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from steelyard.store.database import import_duckdb

if TYPE_CHECKING:
    import duckdb

FACT_TABLES = frozenset({"attempts", "turns", "verdicts", "failures"})
"""The tables whose rows come from copies; each has the columns `run`, `model` and `suite`."""

FactPart = tuple[str | None, str | None]
"""A model and a suite that facts are about; None for facts about several of them."""


class TableLimits(NamedTuple):
    """The rows of a table that a question can use, by the values of three columns; None for all values."""

    runs: frozenset[str] | None = None
    models: frozenset[str] | None = None
    suites: frozenset[str] | None = None

    def allow(self, run: str, part: FactPart = (None, None)) -> bool:
        """Whether the question can use facts of a run about a model and a suite."""
        model, suite = part
        return (
            (self.runs is None or run in self.runs)
            and (self.models is None or model is None or model in self.models)
            and (self.suites is None or suite is None or suite in self.suites)
        )


class QuestionScope(NamedTuple):
    """What a question is about."""

    facts: tuple[TableLimits, ...] = (TableLimits(),)
    """One for each place where it uses facts."""
    cases: tuple[TableLimits, ...] = (TableLimits(),)
    """One for each place where it uses cases."""
    needs_runs: bool = True

    @property
    def case_runs(self) -> frozenset[str] | None:
        """The ids of the runs whose cases it can use; None for all of them."""
        return _united([limits.runs for limits in self.cases])

    @property
    def names_parts(self) -> bool:
        """Whether it says everywhere which runs, models or suites it is about, and somewhere models or suites."""
        return TableLimits() not in self.facts and any(limits.models or limits.suites for limits in self.facts)

    @property
    def names_runs(self) -> bool:
        """Whether it says everywhere which runs it is about."""
        return all(limits.runs is not None for limits in self.facts)

    def needs_facts_of(self, run: str, parts: Iterable[FactPart] | None = None) -> bool:
        """Whether the answer can depend on the facts of a run, which are about these parts if they are known."""
        known = [(None, None)] if parts is None else parts
        return any(limits.allow(run, part) for part in known for limits in self.facts)


EVERYTHING = QuestionScope()


def question_scope(database: duckdb.DuckDBPyConnection, sql: str) -> QuestionScope:
    """What one SELECT is about; everything, where it is written in a way that we do not follow."""
    try:
        ((text,),) = database.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
        (statement,) = msgspec.json.decode(text)["statements"]
        uses = list(_table_uses(statement))
    except (import_duckdb().Error, KeyError, TypeError, ValueError, RecursionError):
        return EVERYTHING
    if not all(isinstance(name, str) for name, _ in uses):
        return EVERYTHING
    facts, cases = (
        tuple(dict.fromkeys(limits for name, limits in uses if name in names)) for names in (FACT_TABLES, {"cases"})
    )
    return QuestionScope(facts, cases, bool(cases) or any(name == "runs" for name, _ in uses))


def _united(sets: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    known = [values for values in sets if values is not None]
    return frozenset().union(*known) if len(known) == len(sets) else None


_TableUse = tuple[str | None, TableLimits]
"""The name of a table, None for what is none of ours, and the rows of it that are used."""


def _table_uses(node: Any) -> Iterator[_TableUse]:
    """Every place in the tree of a statement where rows come from."""
    if isinstance(node, list):
        for each in node:
            yield from _table_uses(each)
    if not isinstance(node, dict):
        return
    kind, source = node.get("type"), node.get("from_table")
    if kind == "SELECT_NODE" and isinstance(source, dict) and source.get("type") == "BASE_TABLE":
        yield _table_name(source), _limits(node, source)
        node = {name: value for name, value in node.items() if name != "from_table"}
    elif kind == "BASE_TABLE":
        yield _table_name(node), TableLimits()
    elif kind in ("TABLE_FUNCTION", "SHOW_REF", "PIVOT"):
        yield None, TableLimits()
    yield from _table_uses(list(node.values()))


def _limits(select: dict[str, Any], source: dict[str, Any]) -> TableLimits:
    """The rows that a SELECT from one table leaves of it."""
    if source["sample"] is not None or source["column_name_alias"]:
        return TableLimits()
    names = [item.get("alias", "").lower() for item in select["select_list"]]
    table, where = (source["alias"] or source["table_name"]).lower(), select["where_clause"]
    # an alias may have the name of a column, and then a condition may mean either
    return TableLimits(
        *(None if column in names else _named_values(where, table, column) for column in ("run", "model", "suite"))
    )


def _table_name(table: dict[str, Any]) -> str | None:
    """The name of a table of ours, or of a part of the question; None for one that is elsewhere."""
    return None if table["schema_name"] or table["catalog_name"] else str(table["table_name"]).lower()


def _named_values(condition: Any, table: str, column: str) -> frozenset[str] | None:
    """The values of a column that a condition leaves of a table; None where it does not say."""
    kind = condition["type"] if condition else ""
    if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
        sets = [_named_values(child, table, column) for child in condition["children"]]
        if kind == "CONJUNCTION_OR":
            return _united(sets)
        return next((values for values in sets if values is not None), None)
    if kind == "COMPARE_EQUAL":
        sides = [condition["left"], condition["right"]]
    elif kind == "COMPARE_IN":
        sides = condition["children"]
    else:
        return None
    texts = [_text_constant(side) for side in sides]
    columns = [side for side, text in zip(sides, texts, strict=True) if text is None]
    # `IN` names its column first
    if len(columns) != 1 or (kind == "COMPARE_IN" and columns[0] is not sides[0]):
        return None
    path = [str(name).lower() for name in columns[0].get("column_names", ())]
    return frozenset(text for text in texts if text is not None) if path in ([column], [table, column]) else None


def _text_constant(node: dict[str, Any]) -> str | None:
    """The text that is written there; None for anything else."""
    if node["type"] != "VALUE_CONSTANT":
        return None
    literal, value = node.get("literal") or {}, node.get("value") or {}
    if literal.get("kind") == "STRING":
        return str(literal["text"])
    # how versions of the database before 1.5 write it
    is_text = value.get("type", {}).get("id") == "VARCHAR" and not value.get("is_null")
    return str(value["value"]) if is_text else None
