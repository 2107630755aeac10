"""The templates and the style that the HTML report and the viewer share."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from steelyard.analysis.estimates import Estimate
from steelyard.analysis.summary import AttemptText
from steelyard.reports import figures
from steelyard.reports.charts.svg import svg_element
from steelyard.reports.page.highlight import highlighted
from steelyard.text import counted, line, plain

if TYPE_CHECKING:
    import jinja2


class TruncatedText(NamedTuple):
    """A text, or its beginning and its end."""

    head: str
    left_out: int = 0
    """Characters."""
    tail: str = ""


def truncated_text(text: str, most: int) -> TruncatedText:
    """A text cut to a number of characters, with more of its beginning than of its end.

    >>> truncated_text("abcdefghij", 6)
    TruncatedText(head='abcd', left_out=4, tail='ij')
    """
    if len(text) <= most:
        return TruncatedText(text)
    tail = most // 3
    head = most - tail
    return TruncatedText(text[:head], len(text) - most, text[len(text) - tail :])


def code(text: str, language: str) -> Markup:
    """Code in colours, made harmless."""
    return highlighted(plain(text).rstrip("\n"), language)


def code_language(tried: AttemptText) -> str:
    """What the code of an attempt is written in: that of an agent is a patch."""
    # the answer to a case with a workspace is a patch, unless the case names the file to write
    return "diff" if tried.case.workspace and not tried.case.verify.answer else tried.case.language or tried.case.kind


def _percent(share: float) -> str:
    """A position on a scale, as CSS wants it."""
    return f"{min(max(share, 0), 1) * 100:.2f}%"


def _interval(estimate: Estimate) -> str:
    """Only the brackets of a rate."""
    return figures.rate(estimate).partition(" ")[2]


@cache
def environment(*further: jinja2.BaseLoader) -> jinja2.Environment:
    """The templates of reports, with those of further loaders before them; whatever is put into one is escaped."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*further, jinja2.PackageLoader("steelyard", "reports")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "case_figures": figures.case_figures,
        "code": code,
        "code_language": code_language,
        "counted": counted,
        "drawing": svg_element,
        "cut": truncated_text,
        "evidence": figures.evidence_text,
        "interval": _interval,
        "line": line,
        "money": figures.money,
        "obstacle": figures.missing_reason,
        "outcome": figures.outcome,
        "percent": _percent,
        "plain": plain,
        "price": figures.price,
        "response_class": figures.response_class,
        "seconds": figures.seconds,
        "tests_passed": figures.tests_passed,
        "why": figures.attempt_failure_reason,
    }
    return made


@cache
def style() -> Markup:
    """The style that report and viewer share; it is ours alone, so it may stand unescaped."""
    loader = environment().loader
    assert loader is not None  # noqa: S101  it was given one
    return Markup(loader.get_source(environment(), "page.css")[0])  # noqa: S704
