"""Checks logs before scoring: what they contain, and which metrics can be computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any

from ragmetrics.config import Settings, night_before
from ragmetrics.errors import InputError
from ragmetrics.logs import GoldenSet, ReadCounts, golden_set, log_sets
from ragmetrics.metrics import find_metric, metrics
from ragmetrics.people import label_report
from ragmetrics.pipeline.doctor_logs import log_remarks
from ragmetrics.records import FIELDS, LabelReport, LogRow, Rejected
from ragmetrics.rules import check_rules
from ragmetrics.scoring import check_judging, chosen_metrics, wanted_rows

_LONGEST_DAY = timedelta(hours=25)
"""A day on which clocks are put back."""


@dataclass
class CheckReport:
    """The counts of one pass over the logs."""

    files: int = 0
    rows: int = 0
    golden: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    read: ReadCounts = field(default_factory=ReadCounts)
    examples: dict[str, str] = field(default_factory=dict)
    """File, line and excerpt of the first record per reason."""
    broken: list[str] = field(default_factory=list)
    filled: Counter[str] = field(default_factory=Counter)
    """Number of rows per field that have the field."""
    runnable: dict[str, int] = field(default_factory=dict)
    """Number of rows per metric that have all fields the metric needs."""
    judged: dict[str, int] | None = None
    """Number of these rows that a night would judge, per metric that uses a judge. None: all."""
    labels: LabelReport | None = None
    """The labels of people in the settings; None without."""
    judged_at_most: bool = False
    """True when `judged` is an upper bound, as on the first night with a `half_width`."""
    days: Counter[date] = field(default_factory=Counter)
    """Number of rows per day, in the zone of the nights."""
    times: tuple[datetime, datetime] | None = None
    """The first and the last time of a row."""
    remarks: Sequence[str] = ()
    """What `doctor` would say of the log."""
    also: str = ""
    """Which metrics the judge under `also` scores; empty without one."""

    @property
    def quarantined(self) -> int:
        """Rows that cannot be read."""
        return self.reasons.total()

    @property
    def has_many_days(self) -> bool:
        """Whether the rows are of several nights, whatever the zone of the nights."""
        return self.times is not None and self.times[1] - self.times[0] > _LONGEST_DAY

    def not_applicable(self) -> dict[str, list[str]]:
        """The metrics that no row has the fields for, by the fields that no row has."""
        by_reason: dict[str, list[str]] = {}
        for name, rows in self.runnable.items():
            metric = find_metric(name)
            if metric and not rows:
                lacking = metric.lacks(self.filled) or metric.needs
                by_reason.setdefault(" and ".join(lacking), []).append(name)
        return by_reason

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics check --json`."""
        return {
            "files": self.files,
            "rows": self.rows,
            "golden": self.golden,
            "quarantined": self.quarantined,
            "reasons": dict(self.reasons.most_common()),
            "skipped": dict(self.read.skipped.most_common()),
            "dropped": dict(self.read.dropped.most_common()),
            "note": self.read.note,
            "days": {day.isoformat(): rows for day, rows in sorted(self.days.items())},
            "remarks": list(self.remarks),
            "broken_files": self.broken,
            "fields": dict(self.filled),
            "metrics": self.runnable,
            "sample": self.judged,
            "labels": self.labels.model_dump() if self.labels else None,
        }


def check_logs(settings: Settings, places: Sequence[str]) -> CheckReport:
    """Read all logs and count. Raises InputError for a location without logs."""
    logs = log_sets(settings, places)
    golden = GoldenSet(golden_set(settings))
    check_rules(settings)  # this command reports mistakes in the settings too
    also = check_judging(settings)
    everything = metrics([metric.name for metric in chosen_metrics(settings)]).values()
    report = CheckReport(files=sum(len(log.infos) for log in logs), also=also)
    shapes: Counter[tuple[str, ...]] = Counter()  # rows by their fields: few differ
    tags: set[str] = set()
    for item in chain(golden.rejected, *(log.read(report.read) for log in logs)):
        if isinstance(item, Rejected):
            _reject(report, item)
            continue
        row, joined = golden.join(item)
        tags |= row.tags.keys()
        if row.timestamp:
            _date(report, row.timestamp, settings)
        report.rows += 1
        report.golden += joined
        shapes[tuple(name for name in FIELDS if has_field(row, name))] += 1
    for name in FIELDS:
        if name != "id" and (rows := sum(n for shape, n in shapes.items() if name in shape)):
            report.filled[name] = rows  # every row has an id
    report.runnable = {
        metric.name: sum(rows for shape, rows in shapes.items() if metric.fits(shape))
        for metric in everything
    }
    report.read.dropped += golden.counts.dropped
    report.read.note = "\n".join(filter(None, [golden.counts.note, report.read.note]))
    if not report.files:
        raise InputError("no log file to check")
    report.remarks = [*_many_days(report, settings), *log_remarks(settings, report.filled, tags)]
    report.judged = _judged(settings, report.runnable)
    if settings.labels:
        report.labels = label_report(settings)
    report.judged_at_most = settings.sample is not None and settings.sample.half_width is not None
    return report


def _date(report: CheckReport, moment: datetime, settings: Settings) -> None:
    """Count the day of a row, and widen the times of the rows."""
    report.days[night_before(moment, settings.time_zone) + timedelta(days=1)] += 1
    first, last = report.times or (moment, moment)
    report.times = min(first, moment), max(last, moment)


def _many_days(report: CheckReport, settings: Settings) -> Iterator[str]:
    """That fewer files than days have the rows, which then are no nights."""
    if report.has_many_days and report.files < len(report.days) and not settings.split_nights:
        days = f"{len(report.days)} days, {min(report.days)} to {max(report.days)}"
        yield f"the rows are of {days}: `split_nights: true` makes a night of each day"


def _judged(settings: Settings, runnable: Mapping[str, int]) -> dict[str, int] | None:
    """Number of rows of these logs that a night would judge, by metric."""
    sample = settings.sample
    if sample is None or not settings.samples:
        return None
    names = (metric.name for metric in chosen_metrics(settings) if metric.prompts)
    return {name: wanted_rows(sample, runnable[name]) for name in names}


def _reject(report: CheckReport, bad: Rejected) -> None:
    if bad.whole_file:
        report.broken.append(f"{bad.file}: {bad.reason}")
    else:
        report.reasons[bad.reason] += 1
        report.examples.setdefault(bad.reason, f"{bad.file}, line {bad.line}: {bad.excerpt[:80]}")


_MAY_BE_EMPTY = ("retrieved_contexts", "clicked_context_ids")
"""Lists of which an empty one says something: nothing was retrieved, or clicked."""


def has_field(row: LogRow, name: str) -> bool:
    """Whether a row has a value of a field."""
    value = getattr(row, name)
    # An empty list of contexts counts as a value: nothing was retrieved.
    if name == "retrieved_contexts" and value and value == row.retrieved_context_ids:
        return False  # a log without texts shows contexts by their ids
    return value is not None and value != "" and (bool(value) or name in _MAY_BE_EMPTY)
