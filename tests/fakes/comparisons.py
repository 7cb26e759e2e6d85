"""Comparisons for tests: one metric fell significantly, one got better, one does not compare."""

from __future__ import annotations

from typing import Any

from ragmetrics.records import (
    ComparedSide,
    Comparison,
    JudgeInfo,
    MetricChange,
    MovedContext,
    MovedRow,
    OneSided,
    RowValue,
    Segment,
    UnmatchedQuestion,
)

JUDGE = JudgeInfo(name="lexical", fingerprint="f1", note="a baseline")


def side(name: str, **change: Any) -> ComparedSide:
    """A night of 200 rows."""
    values: dict[str, Any] = {"name": name, "dataset": "helpdesk", "judge": JUDGE, "rows": 200}
    return ComparedSide(**{**values, **change})


def change(metric: str = "context_recall", by: float = -0.2, **more: Any) -> MetricChange:
    """A change of 80 questions by so much, sure where it is more than its interval is wide."""
    sure = abs(by) > 0.06
    values: dict[str, Any] = {
        "metric": metric,
        "mean_a": 0.9,
        "mean_b": 0.9 + by,
        "difference": by,
        "low": by - 0.06,
        "high": by + 0.06,
        "p_value": (0.0001 if by < 0 else 0.9999) if sure else 0.4,
        "p_adjusted": (0.0008 if by < 0 else 1.0) if sure else 0.6,
        "mde": 0.06,
        "paired": True,
        "questions": 80,
        "questions_a": 90,
        "questions_b": 85,
    }
    return MetricChange(**{**values, **more})


def moved_row(number: int = 1, say: str | None = None, **more: Any) -> MovedRow:
    """A question whose best context left; `say` stands in for all that users wrote."""

    def told(text: str) -> str:
        return text if say is None else say

    values: dict[str, Any] = {
        "user_input": told(f"How is invoice {number} changed?"),
        "id": told(f"b-{number}"),
        "id_a": told(f"a-{number}"),
        "values": [
            RowValue(metric="context_recall", value_a=1.0, value_b=0.0),
            RowValue(metric="context_relevance", value_a=0.5, value_b=0.75),
            RowValue(metric="faithfulness", value_a=0.5, value_b=0.5),
        ],
        "contexts": [
            MovedContext(
                text=told("Invoices cannot be changed."), id="kb-1", rank_a=1, rank_b=None
            ),
            MovedContext(text=told("Seats can be added."), id="kb-7", rank_a=None, rank_b=1),
            MovedContext(text=told("We pay monthly."), id="kb-2", rank_a=3, rank_b=2),
            MovedContext(text=told("Ask support."), id="kb-3", rank_a=2, rank_b=3, rewritten=True),
            MovedContext(text=told("Mondays."), id="kb-4", rank_a=4, rank_b=4),
        ],
    }
    return MovedRow(**{**values, **more})


def one_sided(questions: int, say: str = "Where is my bill?", **more: Any) -> OneSided:
    """So many questions of one side alone, the worst of them shown."""
    lone = UnmatchedQuestion(user_input=say, id="q-1", values={"context_recall": 0.25})
    return OneSided(
        **{"questions": questions, "means": {"context_recall": 0.5}, "shown": [lone], **more}
    )


def comparison(say: str | None = None, **more: Any) -> Comparison:
    """Two nights; `say` stands in for all that users wrote."""
    values: dict[str, Any] = {
        "a": side(say or "night 2026-11-18 (run r1)"),
        "b": side(say or "night 2026-11-19 (run r2)"),
        "metrics": [
            change("context_relevance", 0.1),
            change(),
            change("context_precision", -0.02),
            MetricChange(metric="faithfulness", reason="the judge changed"),
        ],
        "segments": [
            change(by=by, segment=Segment(tag=say or "section", value=say or value))
            for value, by in (("api", -0.01), ("billing", -0.4))
        ],
        "rows": [moved_row(1, say), moved_row(2, say)],
        "lost": one_sided(3, say or "Where is my bill?"),
        "gained": one_sided(0, means={}, shown=[]),
        "notices": [say or "A: a sample of 50 rows was judged: only these are compared"],
    }
    return Comparison(**{**values, **more})
