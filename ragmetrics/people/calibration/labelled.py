"""Labelled rows: log rows with a `labels` object made by people.

A row whose labels do not fit it is rejected with the reason and counted; the run continues.
A night of the store can be a labelled set too: the grades of its judge are the labels of contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import from_json

from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet
from ragmetrics.records import BadRow, LogRow, Rejected, explain_validation_error, question_key
from ragmetrics.storage import Files, RunRef, Runs, StoredPart, scored_rows

Span = tuple[int, int]
_META_TAGS = ("run",)
_MOST = 1e12
"""Larger numbers are not ratings, and figures made of them would overflow."""
Number = Annotated[float, Field(ge=-_MOST, le=_MOST, allow_inf_nan=False)]
NIGHT = "night:"
_METRIC = "context_relevance"


class LabelledStatement(BaseModel):
    """A statement and its support by the contexts: 1 full, 0.5 partial, 0 none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    label: float = Field(ge=0, le=1)


class Labels(BaseModel):
    """The labels of a row; every part may be missing.

    Spans are `[first character, character after the last]` of a context. Lists have one entry per
    context.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sentence_spans: tuple[tuple[Span, ...], ...] | None = None
    relevant_sentences: tuple[tuple[Span, ...], ...] | None = None
    chunk_relevance: tuple[Number, ...] | None = None
    chunk_relevance_scale: tuple[Number, Number] = (0.0, 1.0)
    statement_support: tuple[LabelledStatement, ...] = ()
    statement_source: Literal["reference", "response"] = "reference"
    judge: dict[str, Any] = Field(default_factory=dict)
    gold: dict[str, Number | None] = Field(default_factory=dict)

    @field_validator("chunk_relevance_scale", mode="before")
    @classmethod
    def _scale(cls, value: object) -> object:
        """Parse `0..3` into its two ends."""
        low, _, high = value.partition("..") if isinstance(value, str) else ("", "", "")
        try:
            ends = float(low), float(high)
        except ValueError:
            raise ValueError("should be two numbers, as in 0..1") from None
        if ends[0] >= ends[1]:
            raise ValueError("should rise, as 0..1 does")
        return ends


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row with its labels; its language and run may come from `meta`."""

    row: LogRow
    labels: Labels
    segments: Mapping[str, str] = field(default_factory=dict)
    """The row's tags, its language, and the run that logged it."""

    @property
    def question(self) -> str:
        """The row's cluster: its question, or its claim where there is no question."""
        row = self.row
        return question_key(next(filter(str.strip, (row.user_input, row.reference or "")), row.id))


def read_labelled(logs: LogSet) -> Iterator[LabelledRow | Rejected]:
    """All labelled rows of some files, in order; a row that cannot be used is a Rejected."""
    logs = replace(logs, also=("labels", "meta"))
    for place, item in logs.items():
        row = item if isinstance(item, Rejected) else logs.row(place, item)
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            yield _labelled(row, item.get("labels"), _decoded("meta", item.get("meta")))
        except BadRow as error:
            yield Rejected(place.path, place.number, str(error))


def _decoded(name: str, value: Any) -> Any:
    """The value of a field. In a table's cell it is JSON text."""
    if not isinstance(value, str) or not value.strip():
        return value
    try:
        return from_json(value)
    except ValueError as error:
        raise BadRow(f"{name}: not JSON: {error}") from None


def _labelled(row: LogRow, labels: Any, meta: Any) -> LabelledRow:
    labels = _decoded("labels", labels)
    if not isinstance(labels, Mapping):
        raise BadRow("labels: there is no such object in the row")
    meta = meta if isinstance(meta, Mapping) else {}
    try:
        # In a table every row has every field; null means that the row has none.
        present = {name: value for name, value in labels.items() if value is not None}
        found = Labels.model_validate(present)
    except ValidationError as error:
        raise BadRow(f"labels: {explain_validation_error(error)}") from None
    _check(found, row.retrieved_contexts)
    language = row.language or meta.get("lang")
    row = replace(row, language=language if isinstance(language, str) else None)
    segments = {name: str(meta[name]) for name in _META_TAGS if meta.get(name) is not None}
    segments |= {"language": row.language} if row.language else {}
    return LabelledRow(row, found, {**row.tags, **segments})


def _check(labels: Labels, contexts: Sequence[str]) -> None:
    """Raise BadRow unless the labels fit the contexts."""
    for name in ("sentence_spans", "relevant_sentences", "chunk_relevance"):
        entries = getattr(labels, name)
        if entries is not None and len(entries) != len(contexts):
            raise BadRow(f"labels: {name}: {len(entries)} entries for {len(contexts)} contexts")
    for name in ("sentence_spans", "relevant_sentences"):
        for context, spans in zip(contexts, getattr(labels, name) or (), strict=False):
            for start, end in spans:
                if not 0 <= start <= end <= len(context):
                    raise BadRow(f"labels: {name}: [{start}, {end}] is not within its context")
    low, high = labels.chunk_relevance_scale
    for label in labels.chunk_relevance or ():
        if not low <= label <= high:
            raise BadRow(
                f"labels: chunk_relevance: {label:g} is not on the scale {low:g}..{high:g}"
            )


def read_judged_night(
    files: Files | None, day: str, by_users: Mapping[str, str] | None = None
) -> Iterator[LabelledRow]:
    """The rows of a night whose contexts were graded, or whose users said what they think.

    `by_users` are the settings' `feedback_labels`: what users said is a gold figure of the metric.
    Raises InputError if there is no such night, or it has no such scores.
    """
    if files is None:
        raise InputError(f"{NIGHT}{day}: a night is in a store: name it with --store or --settings")
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{NIGHT}{day}: should be a date, as in {NIGHT}2026-11-19") from None
    found = Runs(files).current(wanted)
    if found is None:
        raise InputError(f"{NIGHT}{day}: there is no such night in {files.uri()}")
    by_users = {name: by for name, by in (by_users or {}).items() if found.summary(by)}
    if found.summary(_METRIC) is None and not by_users:
        raise InputError(f"{NIGHT}{day}: {_METRIC} was not scored")
    ref = RunRef.of(found)
    for shard in range(ref.shards):
        rows = range(len(StoredPart(files, ref.rows(shard)).columns(["id"])))
        scored = [one for one in {_METRIC, *by_users.values()} if found.summary(one)]
        for row in scored_rows(files, ref, scored, {shard: rows}).values():
            grades = row.scores[_METRIC].details.get("grades") if _METRIC in row.scores else None
            gold = {name: row.scores[by].value for name, by in by_users.items()}
            labels: dict[str, Any] = {name: one for name, one in gold.items() if one is not None}
            labels = {"gold": labels} if labels else {}
            if grades and len(grades) == len(row.row.retrieved_contexts):
                labels |= {"chunk_relevance": grades, "chunk_relevance_scale": "0..2"}
            if labels:
                yield LabelledRow(row.row, Labels.model_validate(labels), dict(row.row.tags))
