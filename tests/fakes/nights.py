"""Manifests made to measure: ten nights, the newest worse in one metric and one segment."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from ragmetrics.dashboard.row_selection import KeptRow, SelectionReason
from ragmetrics.records import (
    Finding,
    JudgeInfo,
    LogRow,
    Manifest,
    Score,
    Segment,
    Source,
    Status,
    Summary,
    UnwatchedDrop,
    WorstRow,
)
from ragmetrics.records.judging import Usage
from ragmetrics.storage import ScoredRow

FIRST = date(2026, 11, 10)
METRICS = {"context_recall": 0.93, "context_relevance": 0.78}
HOSTILE = (
    "<script>alert(1)</script> </script> <!channel> "
    '<img src=x onerror="alert(2)"> \u202e\x00|`{{ 7 * 7 }}'
)
WORST = SelectionReason("worst", "context_recall", 0.0)
SPLIT = ["Invoices are sent monthly. A sent invoice cannot be changed.", "Seats can be added."]


def summary(metric: str, mean: float | None, judge: str = "lexical", **change: Any) -> Summary:
    """One metric over 200 rows, none of them scored where there is no mean."""
    scored = 0 if mean is None else 200
    values: dict[str, Any] = {
        "metric": metric,
        "mean": mean,
        "low": None if mean is None else mean - 0.03,
        "high": None if mean is None else min(1.0, mean + 0.03),
        "scored": scored,
        "questions": scored,
        "status": {"scored": scored, "not_applicable": 200 - scored},
        "fingerprint": f"{metric}-{judge}",
        "histogram": [0, 0, 10, 0, 20, 0, 30, 40, 50, 50],
    }
    return Summary(**{**values, **change})


def finding(metric: str | None = "context_recall", level: str = "ok", **change: Any) -> Finding:
    """What a `min` rule says."""
    values: dict[str, Any] = {
        "key": f"{metric}/min",
        "kind": "metric",
        "level": level,
        "rule": f"{metric}: below 0.8",
        "message": f"{metric} fell from 0.930 to 0.700, limit 0.8",
        "metric": metric,
        "limit": 0.8,
        "state": "firing" if level == "breach" else "ok",
    }
    return Finding(**{**values, **change})


def fall(metric: str, before: float = 0.9, now: float = 0.6) -> UnwatchedDrop:
    """A mean that got worse for sure, by 80 questions of both nights."""
    drop = round(abs(now - before), 3)
    return UnwatchedDrop(
        metric=metric,
        before=before,
        now=now,
        label="7 nights before",
        drop=drop,
        low=round(drop - 0.06, 3),
        high=round(drop + 0.06, 3),
        questions=80,
    )


def night(number: int = 0, recall: float | None = 0.93, **change: Any) -> Manifest:
    """A night, so many days after the first; an alert fires below a recall of 0.8."""
    judge = change.pop("judge", JudgeInfo(name="lexical", fingerprint="f1", note="a baseline"))
    regressed = recall is not None and recall < 0.8
    means = {**METRICS, "context_recall": recall}
    started = datetime(2026, 11, 11, 2, tzinfo=UTC) + timedelta(number)
    values: dict[str, Any] = {
        "dataset": "helpdesk",
        "date": FIRST + timedelta(number),
        "run": f"run-{number}",
        "started_at": started,
        "finished_at": started + timedelta(minutes=4, seconds=12),
        "ragmetrics": "0.1.0",
        "source": Source(logs="logs/", files=1, rows=200),
        "judge": judge,
        "shards": 1,
        "metrics": [summary(name, mean, judge.name) for name, mean in means.items()],
        "segments": [
            summary("context_recall", mean, segment=Segment(tag="section", value=value))
            for value, mean in (("billing", 0.5 if regressed else 0.92), ("api", 0.93))
        ],
        "findings": [finding(level="breach", transition="fired") if regressed else finding()],
        "worst": [],
        "usage": Usage(requests=400, answered_from_store=50, prompt_tokens=90_000),
    }
    return Manifest(**{**values, **change})


def ten_nights() -> list[Manifest]:
    """Ten nights, the newest regressed."""
    worst = as_worst(*worst_rows())
    return [*(night(i) for i in range(9)), night(9, recall=0.70, worst=worst)]


def worst_rows() -> list[KeptRow]:
    """The worst rows of the newest of ten nights."""
    return [worst_row("q-1", "How is an invoice changed?"), worst_row("q-2", HOSTILE, position=1)]


def as_worst(*rows: KeptRow) -> list[WorstRow]:
    """Rows as a manifest names them for their recall."""
    return [
        WorstRow(
            id=row.row.id,
            metric="context_recall",
            value=0.0,
            user_input=row.row.user_input,
            position=row.place[1],
        )
        for row in rows
    ]


def worst_row(name: str, question: str, position: int = 0, **change: Any) -> KeptRow:
    """A row with scores, kept for its recall; `details` replaces the details of some scores."""
    details, why = change.pop("details", {}), change.pop("why", (WORST,))
    earlier, scored = change.pop("earlier", ()), change.pop("scores", {})
    values: dict[str, Any] = {
        "id": name,
        "user_input": question,
        "retrieved_contexts": tuple(SPLIT),
        "retrieved_context_ids": ("kb-1", "kb-2"),
        "response": "Under Billing.",
        "reference": "It cannot be changed. Support replaces it.",
    }
    scores = {
        "context_recall": Score(0.0, details={"attributed": [True, False]}),
        "context_relevance": Score(0.5, details={"grades": [2, 0]}),
        "context_relevancy": Score(0.3, details={"needed": [[1], []]}),
        "faithfulness": Score(None, "2 verdicts for 3", status=Status.UNREADABLE),
        **scored,
    }
    for metric, changed in details.items():
        scores[metric] = Score(0.1, details=changed)
    row = LogRow(**{**values, **change})
    return KeptRow((0, position), name, ScoredRow(row, scores), why, earlier)
