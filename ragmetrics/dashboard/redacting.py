"""Replaces logged texts by short hashes before any page shows them; scores stay.

A hash is keyed: whoever guesses a text cannot check the guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.people import History
from ragmetrics.records import (
    TOPIC,
    BrokenFile,
    Calibration,
    Comparison,
    FailedGate,
    FallenTopic,
    Gate,
    LabelReport,
    LogRow,
    LostPassages,
    Manifest,
    Record,
    RisenTopic,
    Score,
    Segment,
    TopicReport,
    TopicWithoutGolden,
    VariantResult,
    hashed,
    hashed_place,
    hashed_quote,
    redact_quotes,
    redactions,
)
from ragmetrics.storage import ScoredRow

R = TypeVar("R", bound=Record)

_TEXTS = {"user_input", "text", "carried"}
"""Fields of records with logged texts."""
_QUOTING = {"problems"}
"""Fields that may quote a logged text after a colon."""
_QUOTING_REASONS = (FailedGate, BrokenFile, VariantResult)
"""Records whose `reason` may quote a logged text."""
_PLACES = {"reasons", "rejected"}
"""Counts by why a row could not be read. A reason may name a key of the log."""
_OWN_WORDS = {"status", "band", "matched_by"}
"""Details of scores with words of the product."""


_TOPICS = (FallenTopic, RisenTopic, TopicWithoutGolden)
_OF_TOPICS = {"topic", "typical"}
"""Fields with words of questions."""
_NUMBERED = re.compile(r"topic \d+")


def redacted(record: R, hide: bool = True) -> R:
    """A record in which every logged text is its hash, if texts are to be hidden, or the record was
    made with `redact: true`; else the record itself.

    The copy of a manifest has that setting, so everything that is made from it is hidden too.
    """
    if not (hide or _is_redacted(record)):
        return record
    names = type(record).model_fields
    fields = {name: _field(record, name, getattr(record, name)) for name in names}
    if isinstance(record, Manifest):
        hidden = redactions(record.source, record.quoting) | _topics(record)
        fields["findings"] = [
            finding.model_copy(
                update={
                    name: redact_quotes(getattr(finding, name), hidden)
                    for name in ("message", "rule", "key")
                }
            )
            for finding in fields["findings"]
        ]
        fields["settings"] = {**record.settings, "redact": True}
    if isinstance(record, Gate):
        hidden = redactions(record.serving_source, ()) | redactions(record.source, record.problems)
        fields["reasons"] = [redact_quotes(reason, hidden) for reason in record.reasons]
    return record.model_copy(update=fields)


def redacted_history(history: History, hide: bool) -> History:
    """Calibrations without the keys of labelled rows and without quotes in error messages."""
    return replace(history, calibrations=[redacted(one, hide) for one in history.calibrations])


def redacted_row(kept: KeptRow) -> KeptRow:
    """A row whose texts, and the judges' words, are hashes; ids, tags and scores stay."""
    scores = {metric: _score(score) for metric, score in kept.scores.items()}
    earlier = [
        replace(retrieval, contexts=tuple(redacted(context) for context in retrieval.contexts))
        for retrieval in kept.earlier
    ]
    return replace(kept, scored=ScoredRow(_row(kept.row), scores), earlier=tuple(earlier))


def _is_redacted(record: Record) -> bool:
    """Whether the record was made with `redact: true`."""
    if isinstance(record, Manifest):
        return record.redacts
    if isinstance(record, Comparison):
        return record.a.redact or record.b.redact
    return isinstance(record, Gate | FailedGate | Calibration) and record.redact


def _field(record: Record, name: str, value: Any) -> Any:
    if isinstance(value, Record):
        return redacted(value)
    if isinstance(value, str):
        return _text(record, name, value)
    if isinstance(value, dict):
        return _keys(record, name, value)
    if isinstance(value, list | tuple):
        return type(value)(_field(record, name, item) for item in value)
    return value


def _text(record: Record, name: str, value: str) -> str:
    if name in _TEXTS:
        return hashed(value)
    if (name in _OF_TOPICS and isinstance(record, _TOPICS)) or (
        name == "value" and isinstance(record, Segment) and record.tag == TOPIC
    ):
        return _topic(value)
    if (
        name in _QUOTING
        or (name == "notes" and isinstance(record, LostPassages))
        or (name == "problem" and isinstance(record, LabelReport))
        or (name == "reason" and isinstance(record, _QUOTING_REASONS))
    ):
        return hashed_quote(value)
    return value


def _keys(record: Record, name: str, value: dict[Any, Any]) -> dict[Any, Any]:
    if name in _PLACES:
        counts: Counter[str] = Counter()
        for reason, count in value.items():
            counts[hashed_place(reason)] += count
        return dict(counts)
    if isinstance(record, TopicReport):
        return {_topic(topic): count for topic, count in value.items()}
    if name == "not_applicable":  # as the reasons of rows
        return {hashed(reason): count for reason, count in value.items()}
    if name == "unanswered":
        return {hashed_quote(reason): count for reason, count in value.items()}
    return value


def _topic(name: str) -> str:
    """The hash of a topic's words, or of a question; a number, as redaction gives topics, stays."""
    return name if _NUMBERED.fullmatch(name) else hashed(name)


def _topics(manifest: Manifest) -> dict[str, str]:
    """The names of the night's topics, each with its hash: findings quote them."""
    segments = [summary.segment for summary in manifest.segments]
    segments += [finding.segment for finding in manifest.findings]
    names = {segment.value for segment in segments if segment and segment.tag == TOPIC}
    return {name: _topic(name) for name in sorted(names) if name != _topic(name)}


def _row(row: LogRow) -> LogRow:
    def maybe(text: str | None) -> str | None:
        return None if text is None else hashed(text)

    def each(texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if texts is None else tuple(map(hashed, texts))

    return replace(
        row,
        user_input=hashed(row.user_input),
        response=maybe(row.response),
        reference=maybe(row.reference),
        retrieved_contexts=tuple(map(hashed, row.retrieved_contexts)),
        reference_contexts=each(row.reference_contexts),
        hop_queries=each(row.hop_queries),
        nuggets=row.nuggets and tuple({**one, "text": hashed(one["text"])} for one in row.nuggets),
    )


def _score(score: Score) -> Score:
    return replace(score, reason=hashed(score.reason), details=_details("", score.details))


def _details(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value if name in _OWN_WORDS else hashed(value)
    if isinstance(value, Mapping):
        return {key: _details(str(key), one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_details(name, item) for item in value]
    return value
