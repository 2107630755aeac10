"""The addresses of the API and their description."""

from __future__ import annotations

from steelyard.viewer import openapi
from steelyard.viewer.app import API_ADDRESSES


def test_the_addresses_of_the_api_are_those_of_its_description() -> None:
    assert {*API_ADDRESSES, "/healthz"} == set(openapi.API_PATHS)
