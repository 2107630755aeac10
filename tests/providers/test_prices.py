"""What answers cost: tokens at somebody's price, and never a price that nobody said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steelyard.errors import InputError
from steelyard.providers.prices import Prices, price_table
from steelyard.records import Answer, Price
from steelyard.tiers.formulas import token_cost

SEED = price_table("worked-examples")


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [("anthropic/claude-opus-4-5", 15, 75), ("anthropic/claude-sonnet-4", 3, 15), ("openai/gpt-4o", 5, 15)],
)
def test_the_example_prices_are_those_of_the_document(model: str, given: float, said: float) -> None:
    cost = Prices(SEED).cost(model, Answer(text="", input_tokens=1234, output_tokens=567))
    assert cost is not None
    assert cost.usd == pytest.approx((1234 * given + 567 * said) / 1e6)
    assert cost.usd == token_cost(1234, 567, input_price=SEED[model].input, output_price=SEED[model].output)
    assert "Metrics Formulas Documentation" in cost.source
    assert cost.date == ""


def test_there_is_no_other_table() -> None:
    assert price_table("") == {}
    with pytest.raises(InputError, match=r'unknown price_table "worked-example" .*did you mean "worked-examples"'):
        price_table("worked-example")


def test_cached_input_has_a_price_of_its_own_where_there_is_one() -> None:
    answer = Answer(text="", input_tokens=1000, cached_tokens=600, output_tokens=10)
    for cached, dollars in (0.5, 400 * 5 + 600 * 0.5 + 10 * 20), (None, 1000 * 5 + 10 * 20):
        cost = Prices({"a/b": Price(input=5, output=20, cached=cached)}).cost("a/b", answer)
        assert cost is not None
        assert cost.usd == pytest.approx(dollars / 1e6)


def test_cached_input_is_cheaper_by_the_list_as_well() -> None:
    prices = Prices({})
    listed = prices.price("openai/gpt-4o")
    assert listed is not None
    assert listed.cached is not None
    cost = prices.cost("openai/gpt-4o", Answer(text="", input_tokens=1000, cached_tokens=600, output_tokens=10))
    assert cost is not None
    assert cost.usd == pytest.approx((400 * listed.input + 600 * listed.cached + 10 * listed.output) / 1e6)


@pytest.mark.parametrize("prices", [Prices({}), Prices(SEED)])
def test_reasoning_is_a_part_of_the_output_and_paid_for_once(prices: Prices) -> None:
    plain, thoughtful = (
        prices.cost("openai/gpt-4o", Answer(text="", input_tokens=10, output_tokens=50, reasoning_tokens=thought))
        for thought in (None, 40)
    )
    assert plain is not None
    assert plain == thoughtful


def test_what_a_provider_says_goes_before_every_table_and_what_nobody_says_is_unknown() -> None:
    assert Prices(SEED).cost("nobody/knows", Answer(text="", input_tokens=10, output_tokens=5)) is None
    assert Prices(SEED).cost("openai/gpt-4o", Answer(text="", input_tokens=10)) is None


def test_the_list_is_not_loaded_for_what_has_no_list_price() -> None:
    script = """
import sys
from steelyard.providers.prices import Prices
for model in ("replay:recordings/monday.jsonl.gz", "command:bin/model --fast", "python:models/one.py:ask", "ollama/a/b"):
    assert Prices({}).price(model) is None
print("genai_prices" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
