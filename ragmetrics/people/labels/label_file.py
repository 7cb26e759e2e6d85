"""Reads labels: the values that people gave to rows.

    user_input        the question of the row
    id, date          its id, and the night that it is of
    METRIC            a value of the metric of that name, as `context_recall`; or
    metric, value     the same in two columns; or, unit by unit:
    grades            per context 0, 1 or 2     context_relevance = mean / 2
    supported         per sentence of the reference 0 or 1         context_recall = mean
    needed            per sentence of the contexts 0 or 1          context_relevancy = mean
    person            who gave the label; by default the file
    sampling_weight   rows that stand behind this one, as `labels suggest` wrote it

Files are CSV, JSONL or any other format of a log. In a table, a list is JSON, or numbers with
spaces.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import EVERYTHING, LogSet, Place, date_of, find_logs, log_of
from ragmetrics.records import BadRow, Rejected
from ragmetrics.scoring import chosen_metrics
from ragmetrics.text import without_spreadsheet_signs

UNITS: Mapping[str, tuple[str, int]] = {
    "grades": ("context_relevance", 2),
    "supported": ("context_recall", 1),
    "needed": ("context_relevancy", 1),
}
"""Columns with a value per unit: their metric, and the best value of a unit."""
MOST_LABELS = 200_000
_MOST_UNITS = 10_000
_LARGEST = 1e12
_WEIGHTS = (1e-3, 1e3)


@dataclass(frozen=True, slots=True)
class RowLabel:
    """One person's value of one row by one metric."""

    question: str
    """Key of the row's question."""
    id: str
    """Id of the row; empty where the label has none."""
    night: date | None
    metric: str
    value: float
    person: str
    weight: float = 1.0
    """Rows that stand behind this one, relative to a uniform draw."""


@dataclass
class LabelSet:
    """All labels of a place."""

    place: str
    labels: list[RowLabel] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    first: dict[str, Place] = field(default_factory=dict)
    """Where the first label is that was rejected for a reason."""
    empty: int = 0
    problem: str = ""

    def reject(self, reason: str, place: Place, count: int = 1) -> None:
        """Count labels that cannot be read."""
        self.rejected[reason] += count
        self.first.setdefault(reason, place)


def label_metrics(settings: Settings) -> dict[str, bool]:
    """The metrics that can have labels; True where values are from 0 to 1."""
    return {metric.name: metric.bundled for metric in chosen_metrics(settings)}


def read_labels(settings: Settings) -> LabelSet:
    """The labels at the place of the settings.

    One person's equal labels of a row count once, and unequal ones not at all.
    Raises InputError where there is no file, StoreError for a bucket that is down.
    """
    place, metrics = settings.labels or "", label_metrics(settings)
    files, infos = find_logs(place, settings.storage_options)
    if not infos:
        raise InputError(f"labels {place}: no such file")
    found = LabelSet(place)
    reader = _Reader(replace(log_of(settings, files, infos), also=EVERYTHING), metrics, found)
    given: dict[tuple[Any, ...], RowLabel | None] = {}
    for where, label in reader.labels():
        key = (label.question, label.id, label.night, label.metric, label.person)
        before = given.get(key, label)
        if before is None or before.value != label.value:
            count = 1 + (before is not None)
            found.reject("the same person gave this row two values", where, count)
            given[key] = None
        elif key in given:
            found.reject("the same label again", where)
        else:
            given[key] = label
    found.labels = [one for one in given.values() if one]
    return found


class _Reader:
    """Turns the records of some files into labels."""

    def __init__(self, logs: LogSet, metrics: Mapping[str, bool], found: LabelSet) -> None:
        self._logs, self._metrics, self._found = logs, metrics, found

    def labels(self) -> Iterator[tuple[Place, RowLabel]]:
        """All labels and their places; what is no label is counted in the set."""
        count = 0
        for place, item in self._logs.items():
            try:
                if isinstance(item, Rejected):
                    raise _Broken(item.reason) if item.whole_file else BadRow(item.reason)
                for label in self._of(place, item):
                    count += 1
                    if count > MOST_LABELS:
                        self._found.problem = f"only the first {MOST_LABELS:,} labels were read"
                        return
                    yield place, label
            except _Broken as broken:
                self._found.problem = str(broken)
            except BadRow as bad:
                self._found.reject(str(bad), place)

    def _of(self, place: Place, item: Any) -> list[RowLabel]:
        if isinstance(item, BadRow):
            raise BadRow("not a row: neither CSV nor JSON")
        if not isinstance(item, Mapping):
            raise BadRow("not an object")
        record = _plain(item) if ".csv" in place.path else item
        found = self._values(record)
        if not found:
            self._found.empty += 1
            return []
        key = {"user_input": record.get("user_input"), "id": record.get("id")}
        row = self._logs.row(place, {**key, "retrieved_contexts": []})
        if isinstance(row, Rejected):
            raise BadRow(row.reason)
        own_id = "" if key["id"] in (None, "") else row.id
        person = str(record.get("person") or place.path)[:200]
        night, weight = date_of(record.get("date"), "date"), _weight(record.get("sampling_weight"))
        return [
            RowLabel(row.question_key, own_id, night, metric, value, person, weight)
            for metric, value in found.items()
        ]

    def _values(self, record: Mapping[str, Any]) -> dict[str, float]:
        """The values of a record by metric. Raises BadRow for one that is none."""
        found: dict[str, float] = {}
        for column, (metric, best) in UNITS.items():
            if _given(record.get(column)):
                found[self._known(metric)] = _mean_of(record[column], column, best)
        for metric, bounded in self._metrics.items():
            if _given(record.get(metric)):
                found[metric] = _number(record[metric], metric, bounded=bounded)
        if _given(record.get("value")):
            metric = self._known(record.get("metric"))
            found[metric] = _number(record["value"], "value", bounded=self._metrics[metric])
        return found

    def _known(self, metric: Any) -> str:
        if not _given(metric):
            raise BadRow("metric: is missing beside value")
        if not isinstance(metric, str) or metric not in self._metrics:
            raise BadRow("metric: this metric is not scored")
        return metric


class _Broken(Exception):
    """A file that cannot be read to its end."""


def _given(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and value == value


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a table without the signs that protect a spreadsheet."""
    return {
        name: without_spreadsheet_signs(cell) if isinstance(cell, str) else cell
        for name, cell in record.items()
    }


def _number(value: Any, name: str, *, bounded: bool) -> float:
    low, high = (0.0, 1.0) if bounded else (-_LARGEST, _LARGEST)
    number = _float(value)
    if number is None:
        raise BadRow(f"{name}: should be a number")
    if not low <= number <= high:
        raise BadRow(f"{name}: should be a number from {low:g} to {high:g}")
    return number


def _float(value: Any) -> float | None:
    """A finite number; a text may have a decimal comma."""
    text = value.strip().replace(",", ".") if isinstance(value, str) else value
    try:
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _mean_of(value: Any, name: str, best: int) -> float:
    """The mean of the units of a row, from 0 to 1."""
    units = _list(value)
    if not units or len(units) > _MOST_UNITS:
        raise BadRow(f"{name}: should be a list of numbers")
    numbers = [_float(unit) for unit in units]
    if any(number is None or number not in range(best + 1) for number in numbers):
        raise BadRow(f"{name}: should be whole numbers from 0 to {best}")
    return sum(number or 0.0 for number in numbers) / (best * len(numbers))


def _list(value: Any) -> Collection[Any]:
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text) if text.startswith("[") else text.replace(",", " ").split()
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list | tuple) else []


def _weight(value: Any) -> float:
    if not _given(value):
        return 1.0
    number, (least, most) = _float(value), _WEIGHTS
    if number is None or not least <= number <= most:
        raise BadRow(f"sampling_weight: should be a number from {least:g} to {most:g}")
    return number
