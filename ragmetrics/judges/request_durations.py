"""Durations of requests to judges as a histogram of OpenTelemetry, by its conventions for GenAI.

Without a provider of metrics in the process nothing is recorded. `tasks/tracing.py` sets one up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram

_BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Upper bounds in seconds, as the conventions advise."""

_OPERATIONS = {"completions": "chat", "embeddings": "embeddings", "rerank": "rerank"}
"""By the last word of the path."""


@contextmanager
def timed(model: str, address: str, path: str) -> Iterator[None]:
    """Record how long the block takes, with the kind of its error, if it ends in one.

    Of the address only the host is recorded: an address may hold a password.
    """
    # A process that exports metrics has imported this; others need not look for it.
    if "opentelemetry.sdk.metrics" not in sys.modules:
        yield
        return
    attributes = {
        "gen_ai.operation.name": _OPERATIONS.get(path.rpartition("/")[2], "other"),
        "gen_ai.request.model": model,
        "server.address": urlsplit(address).hostname or "",
    }
    begun = perf_counter()
    try:
        yield
    except BaseException as error:
        attributes["error.type"] = type(error).__name__
        raise
    finally:
        _histogram().record(perf_counter() - begun, attributes)


@cache
def _histogram() -> Histogram:
    from opentelemetry.metrics import get_meter

    return get_meter("ragmetrics").create_histogram(
        "gen_ai.client.operation.duration",
        unit="s",
        description="Duration of requests to judges.",
        explicit_bucket_boundaries_advisory=_BOUNDS,
    )
