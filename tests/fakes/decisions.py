"""Rows judged by the fake decision model."""

from __future__ import annotations

from typing import Any

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.pipeline import Result
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows

DEFAULTS = list(DEFAULT_METRICS)
ASIDES = ["The tower is high. It has a lift.", "Nothing at all."]


def rows(count: int = 20) -> list[dict[str, Any]]:
    """Rows with three contexts each, a response and a reference; each question is asked once."""
    return [
        row
        | {
            "user_input": f"{row['user_input']} ({number})",
            "retrieved_contexts": [*row["retrieved_contexts"], *ASIDES],
            "response": f"{row['retrieved_contexts'][0]} I hope that helps.",
            "reference": f"{row['retrieved_contexts'][0]} It is number {number}.",
        }
        for number, row in enumerate(make_rows(count, good=0.8))
    ]


def scored(
    server: JudgeServer, metrics: list[str] = DEFAULTS, count: int = 20, **more: Any
) -> Result:
    """The rows, judged by a decision model."""
    judge = {"name": "decision", "base_url": server.base_url, "model": "luna", "retries": 2, **more}
    return ragmetrics.evaluate(rows(count), metrics, settings=make_settings({"judge": judge}))


def values(result: Result) -> dict[tuple[str, str], float]:
    """The scores by row and metric."""
    scores = result.scores()
    keys = zip(scores["id"], scores["metric"], strict=True)
    return dict(zip(keys, scores["value"], strict=True))
