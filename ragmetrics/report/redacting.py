"""Redacting: logged texts as short hashes, before any page sees them; what is left are scores.

A hash is keyed (`quoted.py`): it keeps words off a page, and whoever guesses a text cannot tell
that it was this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragmetrics.calibration import History
from ragmetrics.model import (
    BrokenFile,
    Calibration,
    Comparison,
    FailedGate,
    Finding,
    Gate,
    LogRow,
    Manifest,
    Record,
    Score,
    hashed,
    hashed_place,
    hashed_quote,
    redact_quotes,
    redactions,
)
from ragmetrics.report.row_selection import KeptRow
from ragmetrics.storage import ScoredRow

R = TypeVar("R", bound=Record)

_TEXTS = {"user_input", "text", "carried"}
"""Fields of records that hold what was logged, whichever record it is."""
_QUOTING = {"problems"}
"""Fields that may quote it behind a colon,"""
_TELLING = (FailedGate, BrokenFile)
"""and the records whose `reason` may."""
_PLACES = {"reasons", "rejected"}
"""Counts by why a row could not be read, which may name a key of its own."""
_OWN_WORDS = {"status", "band", "matched_by"}
"""Details of scores whose words are ours."""


def redacted(record: R, hide: bool = True) -> R:
    """A manifest, comparison or gate in which every logged text is its hash, where there is
    something to `hide`, or it was made with `redact: true`; else as it is.

    A manifest says so from now on, whatever settings it ran by: what is made of it is hidden, too.
    """
    if not (hide or _for_good(record)):
        return record
    names = type(record).model_fields
    fields = {name: _field(record, name, getattr(record, name)) for name in names}
    if isinstance(record, Manifest):
        hidden = redactions(record.source, record.problems)
        fields["findings"] = [_told(one, hidden) for one in record.findings]
        fields["settings"] = {**record.settings, "redact": True}
    if isinstance(record, Gate):
        hidden = redactions(record.serving_source, ()) | redactions(record.source, record.problems)
        fields["reasons"] = [redact_quotes(one, hidden) for one in record.reasons]
    return record.model_copy(update=fields)


def redacted_history(history: History, hide: bool) -> History:
    """Calibrations in which no key of a labelled row and no word of a library is told."""
    return replace(history, calibrations=[redacted(one, hide) for one in history.calibrations])


def redacted_row(kept: KeptRow) -> KeptRow:
    """A row in which the texts, and what judges wrote, are hashes; ids, tags and scores stay."""
    scores = {metric: _score(score) for metric, score in kept.scores.items()}
    return replace(
        kept,
        scored=ScoredRow(_row(kept.row), scores),
        earlier=tuple(
            replace(one, contexts=tuple(redacted(context) for context in one.contexts))
            for one in kept.earlier
        ),
    )


def _for_good(record: Record) -> bool:
    """Whether a record says of itself that its texts are hidden, whoever shows it and when."""
    if isinstance(record, Manifest):
        return record.redacts
    if isinstance(record, Comparison):
        return record.a.redact or record.b.redact
    return isinstance(record, Gate | FailedGate | Calibration) and record.redact


def _told(finding: Finding, hidden: Mapping[str, str]) -> Finding:
    return finding.model_copy(update={"message": redact_quotes(finding.message, hidden)})


def _field(record: Record, name: str, value: Any) -> Any:
    if isinstance(value, Record):
        return redacted(value)
    if isinstance(value, str) and name in _TEXTS:
        return hashed(value)
    if isinstance(value, str) and (
        name in _QUOTING or (name == "reason" and isinstance(record, _TELLING))
    ):
        return hashed_quote(value)
    if isinstance(value, dict) and name in _PLACES:
        return _counted(value)
    if isinstance(value, list | tuple):
        return type(value)(_field(record, name, one) for one in value)
    return value


def _counted(reasons: Mapping[str, int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for reason, count in reasons.items():
        found[hashed_place(reason)] += count
    return dict(found)


def _row(row: LogRow) -> LogRow:
    return replace(
        row,
        user_input=hashed(row.user_input),
        response=_maybe(row.response),
        reference=_maybe(row.reference),
        retrieved_contexts=tuple(map(hashed, row.retrieved_contexts)),
        reference_contexts=None
        if row.reference_contexts is None
        else tuple(map(hashed, row.reference_contexts)),
    )


def _maybe(text: str | None) -> str | None:
    return None if text is None else hashed(text)


def _score(score: Score) -> Score:
    return replace(score, reason=hashed(score.reason), details=_details("", score.details))


def _details(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value if name in _OWN_WORDS else hashed(value)
    if isinstance(value, Mapping):
        return {key: _details(str(key), one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_details(name, one) for one in value]
    return value


__all__ = ["hashed", "redacted", "redacted_history", "redacted_row"]
