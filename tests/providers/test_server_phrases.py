"""Fields of an error decide; the known phrases of servers only where no field does."""

from typing import Any

import pytest

from steelyard.errors import Rejected, Unavailable
from steelyard.providers.faults import PhraseMeaning, provider_error, server_phrase, server_phrases


def test_every_phrase_finds_its_example_and_no_other_meaning_does() -> None:
    assert {row.meaning for row in server_phrases()} == set(PhraseMeaning)
    for row in server_phrases():
        assert row.server
        assert row.seen
        others = set(PhraseMeaning) - {row.meaning}
        assert server_phrase(row.meaning, row.example), row
        assert not [other for other in others if server_phrase(other, row.example)], row


@pytest.mark.parametrize(
    ("content", "is_token_limit"),
    [
        ({"error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow down."}}, True),
        ({"error": {"type": "requests", "message": "Limit: 3 requests; 900 tokens per min are left."}}, False),
        ({"error": {"details": [{"violations": [{"quotaId": "InputTokensPerModelPerMinute"}]}]}}, True),
        ({"error": {"details": [{"violations": [{"quotaId": "RequestsPerDay"}]}], "message": "token limit"}}, False),
        (
            {"type": "error", "error": {"type": "rate_limit_error", "message": "of 20,000 input tokens per minute"}},
            True,
        ),
        # the advice of this message names tokens, but the limit is on requests
        (
            {"error": {"type": "rate_limit_error", "message": "50 requests per minute; reduce the tokens requested"}},
            False,
        ),
        ({"message": "Too many tokens, please wait before trying again."}, True),
        ("Too Many Requests", False),
    ],
)
def test_a_limit_on_tokens_is_known_by_its_type_or_quota_and_else_by_a_phrase(
    content: Any, is_token_limit: bool
) -> None:
    error = provider_error("429", 429, content, parameters=[])
    assert isinstance(error, Unavailable)
    assert error.is_token_limit is is_token_limit


@pytest.mark.parametrize(
    ("content", "about_stream"),
    [
        ({"error": {"param": "stream", "code": "unsupported_value", "message": "Verify your organization."}}, True),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "not permitted"}]}, True),
        ({"error": {"param": "seed", "message": "seed cannot be set when streaming"}}, False),
        ({"error": {"param": None, "message": "This model only supports stream mode."}}, True),
        ({"error": {"message": "property 'stream_options' is unsupported"}}, True),
        ({"error": {"message": "the upstream server refused"}}, False),
        ("no such model", False),
    ],
)
def test_an_error_about_streaming_is_known_by_its_parameter_and_else_by_a_phrase(
    content: Any, about_stream: bool
) -> None:
    error = provider_error("400", 400, content, parameters=[])
    assert isinstance(error, Rejected)
    assert error.about_stream is about_stream
