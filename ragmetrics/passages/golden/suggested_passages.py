"""Completes suggestions with the row of the question, and the passages that answered it."""

from __future__ import annotations

from collections.abc import Iterable

from ragmetrics.errors import StoreError
from ragmetrics.passages.golden.live_questions import LiveQuestion
from ragmetrics.records import LogRow, Manifest, Reason, SuggestedPassage, Suggestion
from ragmetrics.storage import Files, RowLocation, RunRef, ScoredRow, by_shard, scored_rows

_GRADES = "context_relevance"


def complete(files: Files, chosen: Iterable[tuple[LiveQuestion, Reason, str]]) -> list[Suggestion]:
    """The suggestions in their order. One whose row is gone from the store is left out."""
    wanted = list(chosen)
    rows: dict[tuple[str, RowLocation], ScoredRow] = {}
    for run, night in {one.night.run: one.night for one, _, _ in wanted}.items():
        places = {one.place for one, _, _ in wanted if one.night.run == run}
        rows |= {(run, place): row for place, row in _rows(files, night, places).items()}
    return [
        _suggestion(question, reason, why, rows[question.night.run, question.place])
        for question, reason, why in wanted
        if (question.night.run, question.place) in rows
    ]


def _rows(files: Files, night: Manifest, places: set[RowLocation]) -> dict[RowLocation, ScoredRow]:
    metrics = [_GRADES] if night.summary(_GRADES) else []
    try:
        return scored_rows(files, RunRef.of(night), metrics, by_shard(places))
    except StoreError as error:
        if error.transient:
            raise
        return {}


def _suggestion(one: LiveQuestion, reason: Reason, why: str, scored: ScoredRow) -> Suggestion:
    row = scored.row
    return Suggestion(
        reason=reason,
        why=why,
        user_input=row.user_input,
        asked=one.asked,
        night=one.night.date,
        response=row.response,
        passages=_passages(row, scored),
        tags=row.tags,
        language=row.language,
    )


def _passages(row: LogRow, scored: ScoredRow) -> list[SuggestedPassage]:
    """The retrieved passages in rank order; relevant are those with the best grade above 0."""
    score = scored.scores.get(_GRADES)
    grades = list((score.details if score else None or {}).get("grades") or [])
    best = max((grade or 0 for grade in grades), default=0)
    ids = row.retrieved_context_ids or ()
    return [
        SuggestedPassage(
            id=ids[rank] if len(ids) == len(row.retrieved_contexts) else "",
            text=text,
            relevant=(grades[rank] or 0) == best > 0
            if len(grades) == len(row.retrieved_contexts)
            else None,
        )
        for rank, text in enumerate(row.retrieved_contexts)
    ]
