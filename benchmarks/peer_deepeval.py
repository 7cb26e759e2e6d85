"""DeepEval over a log, for the engine's benchmarks: runs under the Python of its own environment.

    python peer_deepeval.py http://127.0.0.1:PORT/v1 log.jsonl

`evaluate` with 20 test cases at a time (its default), without progress and report, on its model
for local endpoints. That makes a client for each request, which takes tens of milliseconds; here it
keeps one, with the aiohttp transport. It knows nothing of ragmetrics, and prints JSON: seconds of
scoring (imports apart) and, by metric, the rows that got a score.
"""

# mypy: disable-error-code="import-not-found, import-untyped, unused-ignore"
from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
os.environ["DEEPEVAL_UPDATE_WARNING_OPT_IN"] = "0"

from deepeval import evaluate
from deepeval.evaluate.configs import (
    AsyncConfig,
    CacheConfig,
    DisplayConfig,
    ErrorConfig,
)
from deepeval.metrics import (
    AnswerRelevancyMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
)
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI, DefaultAioHttpClient

_CASES = 20


class OneClient(LocalModel):  # type: ignore[misc]
    """The model for local endpoints, with one client."""

    @cached_property
    def client(self) -> AsyncOpenAI:
        """Made on first need, in the event loop that uses it."""
        return AsyncOpenAI(
            base_url=self.base_url, api_key="none", http_client=DefaultAioHttpClient()
        )

    def load_model(self, async_mode: bool = False) -> Any:
        """The client; only asynchronous ones are asked for."""
        return self.client


def main() -> None:
    """Score the log."""
    base_url, log = sys.argv[1:]
    logging.disable(logging.ERROR)
    model = OneClient(model="judge", api_key="none", base_url=base_url)
    with Path(log).open(encoding="utf-8") as file:
        cases = [
            LLMTestCase(
                input=row["user_input"],
                actual_output=row["response"],
                expected_output=row["reference"],
                retrieval_context=row["retrieved_contexts"],
            )
            for row in map(json.loads, file)
        ]
    kinds = (ContextualRelevancyMetric, ContextualRecallMetric, AnswerRelevancyMetric)
    start = time.perf_counter()
    result = evaluate(
        test_cases=cases,
        metrics=[kind(model=model) for kind in kinds],
        async_config=AsyncConfig(max_concurrent=_CASES),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, inspect_after_run=False
        ),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    seconds = time.perf_counter() - start
    scored = Counter(
        data.name
        for case in result.test_results
        for data in case.metrics_data or ()
        if data.score is not None and not data.error
    )
    print(json.dumps({"version": version("deepeval"), "seconds": seconds, "scored": scored}))


if __name__ == "__main__":
    main()
