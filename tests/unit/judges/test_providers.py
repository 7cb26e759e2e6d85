"""With how many requests an endpoint is asked at first."""

from __future__ import annotations

import pytest

from ragmetrics.judges.adaptive_concurrency import CAREFUL_START, START
from ragmetrics.judges.providers import first_in_flight


@pytest.mark.parametrize(
    ("address", "first"),
    [
        ("https://api.openai.com/v1/", START),
        ("https://team.openai.azure.com/openai/v1/", START),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/", START),
        ("http://localhost:11434/v1/", CAREFUL_START),
        ("http://10.0.0.7:8000/v1/", CAREFUL_START),
        ("https://notopenai.com/v1/", CAREFUL_START),
        ("https://openai.com.example/v1/", CAREFUL_START),
        ("", CAREFUL_START),
    ],
)
def test_a_known_provider_is_asked_more_at_once(address: str, first: int) -> None:
    """By its host; a server that nobody knows may answer one request at a time."""
    assert first_in_flight(address) == first
