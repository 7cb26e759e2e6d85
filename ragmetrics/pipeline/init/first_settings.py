"""Writes the first settings file from a sample of a team's log, and checks it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from os.path import normpath, relpath
from pathlib import Path
from typing import Any

from yaml import YAMLError

from ragmetrics.config import Settings, load_settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet, NightPlace, in_layout, log_set, night_place
from ragmetrics.metrics import bundled_metrics, display_name, find_metric
from ragmetrics.pipeline.evaluation import RowsLost, evaluate
from ragmetrics.pipeline.init.log_layout import (
    Ask,
    Asker,
    LogLayout,
    Question,
    find_layout,
    read_sample,
)
from ragmetrics.pipeline.init.rule_limits import RuleLimit, rule_limits, rules_for
from ragmetrics.pipeline.init.settings_file import (
    FirstSettings,
    completed_text,
    rules_line,
    settings_text,
)
from ragmetrics.pipeline.log_check import CheckReport, check_logs, has_field
from ragmetrics.records import FIELDS, REQUIRED, LogRow
from ragmetrics.rules import check_rules
from ragmetrics.scoring import chosen_metrics
from ragmetrics.text import load_yaml

_JUDGES = ("lexical", "openai")
_MOST_NIGHTS = 7
"""Nights of the sample that are read, the newest ones."""
_MOST_ROWS = 5_000
"""Rows of the sample whose variance is measured."""
_ROWS_FOR_HEALTH = 100
"""Rules share one bound on false alarms: in smaller nights, those on what every log has would hide
falls that the rules on the judge's metrics see."""
_MOST_BEFORE = 30
"""Nights before the newest one that are proposed for a backfill."""
_OF_LAYOUT = ("preset", "columns", "context_separator")


@dataclass(frozen=True)
class InitReport:
    """What was found, what was written, and what comes next."""

    path: Path
    found: Sequence[str]
    """Sentences about the log."""
    limits: Sequence[RuleLimit]
    check: CheckReport
    day: date
    """The newest night of the sample."""
    before: tuple[date, date] | None = None
    """The first and the last night of the sample before the newest; None without."""
    completed: bool = False
    """True where the file was there already."""

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics init --json`."""
        return {
            "settings": str(self.path),
            "completed": self.completed,
            "found": list(self.found),
            "rules": [vars(limit) for limit in self.limits],
            "night": self.day.isoformat(),
            "nights_before": [day.isoformat() for day in self.before or ()],
            "check": self.check.as_json(),
        }


def init_settings(
    place: str, path: Path, ask: Ask | None = None, *, overwrite: bool = False
) -> InitReport:
    """Read a sample of a log, write a settings file for it, and check the sample with it.

    `place` is a file, a folder or a glob, local or in a bucket. `ask` answers at most six
    questions: which keys are fields, where several can be it or none is for sure, the location of a
    night's logs where no name has a date, and the judge. A file that exists is completed with what
    it lacks; with `overwrite` it is replaced. Raises InputError where there is no log, or where no
    row can be read, and SettingsError for a file that is not valid.
    """
    text, known = _existing(path) if path.exists() and not overwrite else ("", {})
    asker = Asker(ask)
    sample = _read(place, known, asker)
    first = _first_settings(path, sample, known, asker)
    written = completed_text(text, known, first) if known else settings_text(first)
    by_hand = _checked(path, written, first)
    path.write_text(written, encoding="utf-8")
    return InitReport(
        path,
        [*sample.layout.found, *_found(sample, first.logs), *by_hand],
        first.limits,
        sample.check,
        sample.days[-1] if sample.days else _yesterday(),
        sample.before,
        completed=bool(known),
    )


@dataclass(frozen=True)
class _Sample:
    """What was read of a team's log."""

    place: str
    files: Sequence[str]
    nights: NightPlace
    layout: LogLayout
    settings: Settings
    check: CheckReport
    rows: Sequence[LogRow]

    @property
    def dated(self) -> bool:
        """Whether the names of the files have dates."""
        return any(file in self.nights.days for file in self.files)

    @property
    def split(self) -> bool:
        """Whether it is one export of many days."""
        return not self.dated and self.check.has_many_days

    @property
    def days(self) -> list[date]:
        """The days in the names of the files, else those of the rows."""
        named = {self.nights.days[file] for file in self.files if file in self.nights.days}
        return sorted(named or self.check.days)

    @property
    def before(self) -> tuple[date, date] | None:
        """The first and the last night before the newest one."""
        days = self.days[-1 - _MOST_BEFORE : -1] if self.dated or self.split else []
        return (days[0], days[-1]) if days else None


def _read(place: str, known: Mapping[str, Any], ask: Asker) -> _Sample:
    """Read the newest nights at a place. Raises InputError where no row can be read."""
    logs = log_set(make_settings({}), place)
    nights = night_place(place, [logs.files.uri(info.path) for info in logs.infos])
    logs = _newest(logs, nights)
    layout = _layout(logs, known, ask)
    kept = {key: known[key] for key in ("metrics", "time_zone") if key in known}
    settings = make_settings({**kept, **layout.settings})
    files = [logs.files.uri(info.path) for info in logs.infos]
    check = check_logs(settings.model_copy(update={"split_nights": True}), files)
    rows = read_sample(in_layout(settings, logs), _MOST_ROWS)
    if not rows:
        raise _unreadable(place, check)
    return _Sample(place, files, nights, layout, settings, check, rows)


def _first_settings(
    path: Path, sample: _Sample, known: Mapping[str, Any], ask: Asker
) -> FirstSettings:
    """What the file says, with the answers of a person."""
    logs, judge = str(known.get("logs", sample.nights.logs)), _JUDGES[0]
    if not (sample.dated or sample.split or "logs" in known):
        text = "Where are the logs of one night? Write {date} where the date stands"
        logs, _ = ask(Question(text, sample.place))
    if not {"judge", "judges"} & known.keys():
        judge, _ = ask(Question(f"Which judge? {' or '.join(_JUDGES)}", judge, _JUDGES))
    health = [] if "metrics" in known else _health(sample)
    has_rules = "rules" in (known.get("alerts") or {})
    limits = [] if has_rules else _limits(sample, health)
    scored = {limit.metric for limit in limits}
    return FirstSettings(
        dataset=_dataset(path),
        logs=_beside(path, logs),
        store=_store(sample.place),
        layout=sample.layout.settings,
        judge=judge,
        limits=limits,
        dated="{date" in logs,
        split=sample.split and "{date" not in logs,
        rows=min(sample.check.rows, _MOST_ROWS),
        nights=len(sample.days),
        health=[metric for metric in health if metric in scored],
        references=any(row.reference for row in sample.rows),
    )


def _checked(path: Path, text: str, first: FirstSettings) -> list[str]:
    """Check a text before it is written; say which rules it lacks, with their text.

    Raises InputError for a file that cannot be completed, and for invalid rules.
    """
    try:
        values = load_yaml(text)
        check_rules(make_settings(values, str(path)))
    except YAMLError as error:
        raise InputError(
            f"{path} is left as it is, because no lines can be added at its end ({error}): write "
            "each of its keys on a line of its own"
        ) from None
    if not first.limits or (values.get("alerts") or {}).get("rules"):
        return []
    return [f"Please add these rules to `alerts:` of {path} yourself: {rules_line(first)}"]


def _existing(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and the keys of a settings file. Raises SettingsError where it is not valid."""
    load_settings(path)
    text = path.read_text(encoding="utf-8")
    return text, dict(load_yaml(text) or {})


def _layout(sample: LogSet, known: Mapping[str, Any], ask: Asker) -> LogLayout:
    """The layout that the settings have, else the one that is found."""
    settings = {key: known[key] for key in _OF_LAYOUT if key in known}
    if "preset" in settings or "columns" in settings:
        return LogLayout(settings, ["The log is read as the settings say."])
    return find_layout(sample, ask)


def _newest(sample: LogSet, nights: NightPlace) -> LogSet:
    """The files of the newest nights, or all files where no name has a date."""
    days = sorted(set(nights.days.values()))[-_MOST_NIGHTS:]
    if not days:
        return sample
    kept = (info for info in sample.infos if nights.days.get(sample.files.uri(info.path)) in days)
    return replace(sample, infos=tuple(kept))


def _by_night(places: Sequence[str], nights: NightPlace) -> list[list[str]]:
    """The files of each night; all files together where no name has a date."""
    by_night: dict[date | None, list[str]] = {}
    for place in places:
        by_night.setdefault(nights.days.get(place), []).append(place)
    return list(by_night.values())


def _found(sample: _Sample, logs: str) -> Iterator[str]:
    """Sentences about the rows, and about what is missing in them."""
    rows, days = sample.rows, sample.days
    if sample.split:
        yield f"The log has rows of {len(days)} days, {days[0]} to {days[-1]}: each is a night."
    elif "{date" in logs:
        yield f"The logs of a night are at {logs}"
    else:
        yield "No name has a date: every night reads the same logs, until `logs` has a {date}."
    if tags := sorted({name for row in rows for name in row.tags}):
        yield f"Scores are shown by these tags: {', '.join(tags)}."
    if not any(row.reference for row in rows):
        yield (
            f"No row has its right answer (reference). {display_name('context_recall')} needs it: "
            'write a line {"user_input": ..., "reference": ...} for each question into a file, and '
            "name the file under `golden:`."
        )
    if not any(row.index_build for row in rows):
        yield "No row names its index build (index_build). With it, an alert names the bad build."


def _filled(sample: _Sample) -> set[str]:
    """The fields that some row has with a value."""
    some = {name for name in FIELDS if any(getattr(row, name) for row in sample.rows)}
    return {name for name in some if any(has_field(row, name) for row in sample.rows)}


def _unreadable(place: str, check: CheckReport) -> InputError:
    reasons = (check.reasons or check.read.skipped).most_common(1)
    why = reasons[0][0] if reasons else next(iter(check.broken), "the log is empty")
    return InputError(f"{place}: no row can be read: {why}")


def _health(sample: _Sample) -> list[str]:
    """The metrics of retrieval's health that the log can feed: those with a change of their own
    that is worth an alert. In small nights only those that a team logs a field for; metrics that
    look back say nothing in a first week."""
    filled, small = _filled(sample), _rows_a_night(sample) < _ROWS_FOR_HEALTH
    return [
        name
        for name, metric in bundled_metrics().items()
        if metric.least_change and metric.fits(filled) and not metric.looks_back
        if not (small and metric.fits(REQUIRED))
    ]


def _rows_a_night(sample: _Sample) -> float:
    return sample.check.rows / max(len(sample.days), 1)


def _limits(sample: _Sample, health: Sequence[str]) -> list[RuleLimit]:
    """The limits of the rules of the metrics that the settings have and the rows allow, by the
    lexical judge's scores of each night's files."""
    settings, nights = sample.settings, _by_night(sample.files, sample.nights)
    names = {*(metric.name for metric in chosen_metrics(settings)), *health}
    filled = _filled(sample)
    scored = [
        rule.metric
        for rule in rules_for(names)
        if (metric := find_metric(rule.metric)) and metric.fits(filled)
    ]
    if not scored:
        return []
    most, a_night = _MOST_ROWS // len(nights), _rows_a_night(sample)
    summaries = []
    with warnings.catch_warnings(category=RowsLost, action="ignore"):  # the check prints it
        for files in nights:
            manifest = evaluate([*files], scored, settings=settings, limit=most).manifest
            summaries.append({metric.metric: metric for metric in manifest.metrics})
    return rule_limits(summaries, a_night, false_alarms=settings.alerts.rules_level)


def _yesterday() -> date:
    return datetime.now(UTC).date() - timedelta(days=1)


def _dataset(path: Path) -> str:
    """A name for what is evaluated: the folder's, without signs that a name may not have."""
    name = path.absolute().parent.name
    kept = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "-_.") else "-" for sign in name
    )
    return kept.strip("-_.") or "default"


def _beside(path: Path, logs: str) -> str:
    """A local location as the settings file has it: relative to its folder."""
    if "://" in logs:
        return logs
    folder = path.absolute().parent
    slash = "/" if logs.endswith("/") else ""
    beside = relpath(logs, folder)
    return (normpath(Path(logs).absolute()) if beside.startswith("..") else beside) + slash


def _store(place: str) -> str:
    """A store in the bucket of the logs; else a folder beside the settings."""
    scheme, separator, rest = place.partition("://")
    bucket = rest.partition("/")[0]
    return f"{scheme}://{bucket}/ragmetrics" if separator else "ragmetrics-store"
