"""Joins labels with the judge's scores of the same rows, tonight and on earlier nights.

A label with a date is of the row of that night; its id finds the row, or its question where one row
alone has it. A label without a date is of the newest of the last 14 nights that have its row, if
all of them gave the row the same score. Only nights that the same judge scored in the same way
count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import groupby

from ragmetrics.people.labels.label_file import RowLabel
from ragmetrics.records import Manifest, Status
from ragmetrics.storage import Files, RunRef, StoredPart, passing_over

UNDATED_DAYS = 14
"""Nights before tonight in which rows of labels without a date are looked for."""
_COLUMNS = ["id", "question", "value", "status", "probability"]


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """A row that the judge and people scored."""

    question: str
    id: str
    night: date
    judge: float
    people: Mapping[str, float]
    """The values of each person."""
    weight: float
    """Rows that stand behind this one: 1 / the chance of its label, and of its judge's score."""

    @property
    def value(self) -> float:
        """The mean of what people gave."""
        return sum(self.people.values()) / len(self.people)


@dataclass
class LabelledScores:
    """The labelled rows of one metric, and why other labels are not used."""

    rows: list[LabelledScore] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    value: float | None
    """None where the judge has no score."""
    probability: float
    """Of being judged, with active sampling; else 1."""


def join_scores(
    files: Files,
    metric: str,
    labels: Sequence[RowLabel],
    tonight: Manifest,
    earlier: Sequence[Manifest],
    *,
    dated: bool = True,
) -> LabelledScores:
    """The labelled rows of a metric on `tonight` and `earlier` nights.

    Without `dated`, the dates of labels are not compared: the rows of a log that was named by hand
    are of no night. Raises StoreError where the store is down.
    """
    found = LabelledScores()
    nights = {one.date: one for one in earlier if _compares(one, tonight, metric)}
    if dated:
        others = {one.date for one in earlier} - nights.keys()
    else:
        nights, others = {}, set()
    nights[tonight.date] = tonight
    reader = _NightReader(files, metric, {label.question for label in labels})
    people: dict[tuple[date, str, str], list[tuple[RowLabel, _Row]]] = defaultdict(list)
    for label in labels:
        sought = label if dated else replace(label, night=None)
        place = _find(sought, nights, others, tonight.date, reader)
        if isinstance(place, str):
            found.unused[place] += 1
            continue
        night, row = place
        people[night, label.question, row.id].append((label, row))
    found.rows = [_labelled(*key, own) for key, own in people.items()]
    return found


def _compares(one: Manifest, tonight: Manifest, metric: str) -> bool:
    now, before = tonight.summary(metric), one.summary(metric)
    if now is None or before is None or before.low is None or before.high is None:
        return False
    return before.fingerprint == now.fingerprint


def _labelled(
    night: date, question: str, name: str, own: Sequence[tuple[RowLabel, _Row]]
) -> LabelledScore:
    """One row; a person who named it in two ways counts by the mean."""
    ordered = sorted(own, key=lambda pair: pair[0].person)
    people = {
        person: sum(values) / len(values)
        for person, pairs in groupby(ordered, key=lambda pair: pair[0].person)
        if (values := [label.value for label, _ in pairs])
    }
    row = own[0][1]
    weight = min(label.weight for label, _ in own) / row.probability
    return LabelledScore(question, name, night, row.value or 0.0, people, weight)


def _find(
    one: RowLabel,
    nights: Mapping[date, Manifest],
    others: Collection[date],
    tonight: date,
    reader: _NightReader,
) -> tuple[date, _Row] | str:
    """The row of a label, or why there is none."""
    if one.night is None:
        return _newest(one, nights, tonight, reader)
    if one.night not in nights:
        if one.night in others:
            return "another judge, prompt or metric version scored that night"
        if one.night > tonight:
            return "its night is later than this one"
        return "the store has no such night among the last 60"
    rows = reader.rows(nights[one.night], one.question)
    own = [row for row in rows if row.id == one.id] or (rows if len(rows) == 1 else [])
    if not own:
        return "several rows of that night have its question: add the id" if rows else _GONE
    return _scored(one.night, own)


_GONE = "its night has no such row"


def _newest(
    one: RowLabel, nights: Mapping[date, Manifest], tonight: date, reader: _NightReader
) -> tuple[date, _Row] | str:
    """The row of a label without a date."""
    found: list[tuple[date, list[_Row]]] = []
    for night in sorted(nights, reverse=True):
        if tonight - night > timedelta(days=UNDATED_DAYS):
            break
        rows = reader.rows(nights[night], one.question)
        if own := [row for row in rows if row.id == one.id or not one.id]:
            found.append((night, own))
    if not found:
        return "no row of the last 14 nights has its question and id"
    values = {row.value for _, own in found for row in own}
    if len(values) > 1:
        return "several rows with other scores fit: add the id and the date"
    return _scored(*found[0])


def _scored(night: date, rows: Sequence[_Row]) -> tuple[date, _Row] | str:
    if len({row.value for row in rows}) > 1:
        return "several rows with other scores fit: add the id and the date"
    return (night, rows[0]) if rows[0].value is not None else "the judge has no score of its row"


class _NightReader:
    """The scored rows of some questions, night by night; each night is read once."""

    def __init__(self, files: Files, metric: str, questions: Collection[str]) -> None:
        self._files, self._metric, self._questions = files, metric, questions
        self._nights: dict[date, dict[str, list[_Row]]] = {}

    def rows(self, night: Manifest, question: str) -> list[_Row]:
        """The rows of a night with a question."""
        if night.date not in self._nights:
            rows: dict[str, list[_Row]] = defaultdict(list)
            for key, row in self._read(night):
                rows[key].append(row)
            self._nights[night.date] = rows
        return self._nights[night.date].get(question, [])

    def _read(self, night: Manifest) -> Iterator[tuple[str, _Row]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        ref, wanted = RunRef.of(night), pa.array(sorted(self._questions), pa.string())
        for shard in range(ref.shards):
            path = ref.scores(self._metric, shard)
            with passing_over():
                table = StoredPart(self._files, path).columns(_COLUMNS)
                yield from _rows(table.filter(pc.is_in(table["question"], wanted)).to_pylist())


def _rows(records: Iterable[Mapping[str, object]]) -> Iterator[tuple[str, _Row]]:
    for record in records:
        value = record["value"]
        scored = record["status"] == Status.SCORED.value and isinstance(value, float)
        known = record.get("probability")  # scores of earlier versions have none
        chance = known if isinstance(known, float) and known > 0 else 1.0
        yield str(record["question"]), _Row(str(record["id"]), value if scored else None, chance)  # type: ignore[arg-type]
