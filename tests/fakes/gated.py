"""Gates made to measure: a build that is held for its recall, and others by change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ragmetrics.records import FailedGate, Gate, JudgeInfo, MetricVerdict, Source, WorseQuestion

FINISHED = datetime(2026, 11, 20, 3, 4, tzinfo=UTC)


def metric_verdict(metric: str = "context_recall", **change: Any) -> MetricVerdict:
    """A drop of recall that holds a build."""
    values: dict[str, Any] = {
        "metric": metric,
        "before": 0.821,
        "after": 0.714,
        "drop": 0.107,
        "low": 0.071,
        "high": 0.143,
        "upper": 0.137,
        "p_value": 0.0001,
        "questions": 150,
        "paired": True,
        "max_drop": 0.05,
        "detectable": 0.042,
        "verdict": "hold",
    }
    return MetricVerdict(**{**values, **change})


def passed(metric: str = "context_relevance", **change: Any) -> MetricVerdict:
    """A metric that says nothing against a build."""
    values: dict[str, Any] = {
        "before": 0.9,
        "after": 0.905,
        "drop": -0.005,
        "low": -0.02,
        "high": 0.01,
        "upper": 0.008,
        "p_value": 0.7,
        "verdict": "promote",
    }
    return metric_verdict(metric, **{**values, **change})


def gate(build: str = "idx-43", day: int = 0, say: str | None = None, **change: Any) -> Gate:
    """A held build, so many days after the first; `say` stands in for all text of users."""
    told = (lambda text: say) if say is not None else (lambda text: text)
    values: dict[str, Any] = {
        "dataset": "helpdesk",
        "build": build,
        "serving": "idx-42",
        "verdict": "hold",
        "reasons": [told("context_recall fell by 0.107, more than 0.05")],
        "metrics": [metric_verdict(), passed()],
        "fallen": [
            WorseQuestion(
                metric="context_recall",
                user_input=told(f"How do I get refund {number}?"),
                id=told(f"row-{number}"),
                before=1.0,
                after=number / 10,
            )
            for number in range(5)
        ],
        "logs": told("builds/idx-43/"),
        "serving_logs": told("builds/idx-42/"),
        "judge": JudgeInfo(name=told("lexical"), fingerprint="f", note=told("a baseline")),
        "source": Source(logs="builds/idx-43/", files=1, rows=150),
        "started_at": FINISHED + timedelta(days=day) - timedelta(seconds=75),
        "finished_at": FINISHED + timedelta(days=day),
    }
    return Gate(**{**values, **change})


def promoted(build: str = "idx-44", day: int = 1, **change: Any) -> Gate:
    """A build that may take its place."""
    values: dict[str, Any] = {
        "verdict": "promote",
        "reasons": ["no metric fell"],
        "metrics": [passed("context_recall"), passed()],
        "fallen": [],
    }
    return gate(build, day, **{**values, **change})


def incomparable(build: str = "idx-45", day: int = 2, **change: Any) -> Gate:
    """A build whose log is not where it should be."""
    values: dict[str, Any] = {
        "verdict": "inconclusive",
        "reasons": [f"build {build}: no log at builds/{build}/"],
        "metrics": [],
        "fallen": [],
    }
    return gate(build, day, **{**values, **change})


def undecided(reason: str = "index build: build: not there", **change: Any) -> FailedGate:
    """An event without a build."""
    values: dict[str, Any] = {
        "dataset": "helpdesk",
        "reason": reason,
        "carried": '{"dataset": "helpdesk"}',
        "event_id": "3f0c9e0e-0000-4000-8000-000000000001",
        "at": FINISHED,
    }
    return FailedGate(**{**values, **change})
