"""What a person reads in a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from steelyard.analysis.model_summary import VerificationCount
from steelyard.analysis.summary import RunResults, Summary
from steelyard.records import ToolCall, ToolResult, Turn
from steelyard.reports.figures import money
from steelyard.reports.lists import health_text
from steelyard.reports.terminal import case_text, summary_text
from steelyard.reports.terminal_attempt import attempt_text
from steelyard.text import INVISIBLE_CHARACTER_PATTERN, line, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.reports.lists import MachineHealth

NEXT = ("steelyard show 20260203-040506-ab12 --failed", "steelyard resume 20260203-040506-ab12")


def shown(summary: Summary, width: int = 80, *, color: bool = False) -> str:
    return summary_text(summary, title="Run 20260203-040506-ab12", next_commands=NEXT, width=width, color=color)


@pytest.mark.parametrize("width", [80, 160])
def test_a_summary_reads_as_reviewed(results: RunResults, golden: Callable[[str, str], None], width: int) -> None:
    golden(f"summary-{width}.txt", shown(results.summary, width))


def test_long_arguments_and_results_of_tools_are_cut_on_a_terminal(results: RunResults) -> None:
    call = ToolCall(name="save", arguments="x" * 10_000)
    turn = Turn(tool_calls=(call,), results=(ToolResult(name="save", content="y" * 10_000),))
    tried = results.attempts[4]
    assert tried.reply is not None
    answer = replace(tried.reply.answer, turns=(turn,), tool_calls=(call,))
    text = attempt_text(tried._replace(reply=replace(tried.reply, answer=answer)), width=80, color=False)
    assert text.count("x") < 9_000
    assert text.count("y") < 5_000
    assert text.count("6,000 more characters") == 3


def test_an_attempt_reads_as_reviewed(results: RunResults, golden: Callable[[str, str], None]) -> None:
    golden("attempt.txt", attempt_text(results.attempts[4], width=80, color=False))


def test_a_case_reads_as_reviewed(results: RunResults, golden: Callable[[str, str], None]) -> None:
    tried = [tried for tried in results.attempts if tried.case.id == "borrow" or tried.case.id.startswith("=")]
    texts = [case_text(part, results.summary, width=80, color=False) for part in (tried[:4], tried[4:])]
    golden("case.txt", "".join(texts))


def test_the_health_of_a_machine_reads_as_reviewed(health: MachineHealth, golden: Callable[[str, str], None]) -> None:
    golden("doctor.txt", health_text(health, width=80, color=False))


def test_where_no_level_holds_the_first_screen_says_so(health: MachineHealth) -> None:
    weak = replace(health, level="", levels=health.levels[2:])
    text = health_text(weak, width=80, color=False)
    assert "No level holds: generated code is not run" in text
    assert "  no   no network" in text


def test_no_line_of_a_summary_is_wider_than_the_terminal(results: RunResults) -> None:
    many = replace(results.summary, models=results.summary.models * 4)
    for width in (60, 80, 160):
        assert max(map(len, shown(many, width).splitlines())) <= width


def test_models_that_do_not_fit_side_by_side_go_on_below(results: RunResults) -> None:
    many = replace(results.summary, models=results.summary.models * 4)
    assert shown(many, 80).count("\npass@1") == 4
    assert shown(many, 300).count("\npass@1") == 1


def test_a_command_to_type_is_never_broken_over_lines(results: RunResults) -> None:
    command = "steelyard show latest " + "--option " * 20 + "end"
    text = summary_text(results.summary, title="", next_commands=[command], width=40, color=False)
    assert f"  {command}\n" in text


def test_an_estimate_on_fewer_cases_is_marked_and_explained(results: RunResults) -> None:
    text = shown(results.summary)
    assert "pass@2*" in text
    assert "* openai/gpt-5 (2/3 cases): pass@2" in text


def test_a_complete_estimate_is_not_marked(results: RunResults) -> None:
    strong = replace(results.summary.models[0], pass_at={1: results.summary.models[0].pass_at[1]})
    assert "*" not in shown(replace(results.summary, models=(strong,), cases=(), warnings=()))


def test_forgeries_and_disagreements_are_named(results: RunResults) -> None:
    text = shown(results.summary)
    assert "3 attempts tried to forge their result and count as failed" in text
    assert "evil/<b>=m`1| · add #7: replaced unittest.TestCase.assertEqual" in text
    assert "1 of 4 attempts did not come out the same when verified again" in text
    assert "\n6 of 9 verified; 3 tampered\n" in text
    assert "isolated" not in text


def test_of_imported_attempts_it_says_who_judged_them(results: RunResults) -> None:
    (model, *_) = results.summary.models
    recorded = replace(
        model, verified=(VerificationCount(trust="recorded", isolation="", attempts=5),), tampered=0, flagged={}
    )
    text = shown(replace(results.summary, models=(recorded,)))
    assert f"\n5 of {5 + recorded.missing} judged by another tool\n" in text


def test_how_attempts_were_verified_is_a_detail(results: RunResults) -> None:
    text = summary_text(results.summary, title="", next_commands=[], width=100, color=False, details=True)
    assert "verified: 5 isolated, bubblewrap; 1 in-process, bubblewrap" in text


def test_of_an_honest_and_steady_run_nothing_is_said_about_cheating(results: RunResults) -> None:
    honest = [replace(model, tampered=0, rechecked=0, disagreed=0, verified=()) for model in results.summary.models]
    text = shown(replace(results.summary, models=tuple(honest)))
    assert not re.search(r"forge|tampered|again|disagreed|verified", text)


def test_an_unknown_cost_is_not_shown_as_nothing(results: RunResults) -> None:
    text = shown(replace(results.summary, models=results.summary.models[1:]))
    assert re.search(r"^cost +unknown$", text, re.MULTILINE)
    assert re.search(r"^cost of pass +unknown$", text, re.MULTILINE)


def test_a_partly_known_cost_is_a_lower_bound(results: RunResults) -> None:
    text = shown(replace(results.summary, models=(replace(results.summary.models[0], unpriced=2),)))
    assert re.search(r"^cost +at least \$0.001230$", text, re.MULTILINE)


def test_without_color_the_text_holds_no_escape(results: RunResults) -> None:
    texts = [shown(results.summary), case_text(results.attempts, results.summary, width=80, color=False)]
    texts += [attempt_text(tried, width=80, color=False) for tried in results.attempts]
    for text in texts:
        assert INVISIBLE_CHARACTER_PATTERN.search(text) is None


def test_with_color_the_only_escapes_are_our_colors(results: RunResults) -> None:
    texts = [shown(results.summary, color=True), attempt_text(results.attempts[4], width=80, color=True)]
    for text in texts:
        assert "\x1b[" in text
        assert INVISIBLE_CHARACTER_PATTERN.search(re.sub(r"\x1b\[[0-9;]*m", "", text)) is None


def test_markup_and_emoji_in_a_reply_stay_as_they_are(results: RunResults) -> None:
    assert "[bold]b[/bold] :smile:" in attempt_text(results.attempts[4], width=80, color=False)


def test_the_environment_does_not_change_the_text(results: RunResults, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shown(results.summary, color=True), shown(results.summary)
    for name, value in {"NO_COLOR": "1", "FORCE_COLOR": "1", "COLUMNS": "33", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    assert (shown(results.summary, color=True), shown(results.summary)) == before


def test_an_attempt_that_was_never_answered_says_so(results: RunResults) -> None:
    text = attempt_text(results.attempts[10], width=80, color=False)
    assert "missing: ask: HTTP 503" in text
    assert "Reply" not in text


def test_a_summary_of_nothing_is_still_a_text() -> None:
    nothing = Summary(models=(), cases=(), rule="code")
    assert shown(nothing).startswith("Run ")
    assert case_text((), nothing, width=80, color=False) == "\n"


def test_invisible_characters_become_visible_but_words_of_any_script_stay() -> None:
    assert plain("a\u202eb\x9bc\x00") == "a⟨U+202E⟩b⟨U+009B⟩c⟨U+0000⟩"
    assert plain("x\r\ny\tz é 漢字 عربى 👩\u200d🔬") == "x\ny\tz é 漢字 عربى 👩\u200d🔬"


def test_a_line_is_cut_with_a_mark() -> None:
    assert line("one\n two  three", 9) == "one two…"


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.774, "$0.774"),
        (0.01, "$0.010"),
        (0.009999, "$0.009999"),
        (1e-9, "$0.000000001000"),
    ],
)
def test_money_has_four_significant_digits_below_a_cent(usd: float, text: str) -> None:
    assert money(usd) == text
