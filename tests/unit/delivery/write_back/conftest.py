"""Tools for scores that the tests of write-back talk to, and their keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.tracing import (
    KEYS,
    LangfuseServer,
    OtlpReceiver,
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def langfuse() -> Iterator[LangfuseServer]:
    """A Langfuse that takes every score of its schema."""
    with LangfuseServer().running() as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """A receiver of OpenTelemetry's logs."""
    with OtlpReceiver().running() as server:
        yield server
