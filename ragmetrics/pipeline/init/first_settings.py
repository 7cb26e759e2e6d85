"""Writes the first settings file from a sample of a team's log, and checks it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from os.path import relpath
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, load_settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet, NightPlace, in_layout, log_set, night_place
from ragmetrics.metrics import bundled_metrics
from ragmetrics.pipeline.evaluation import RowsLost, evaluate
from ragmetrics.pipeline.init.log_layout import Ask, Question, find_layout, read_sample
from ragmetrics.pipeline.init.rule_limits import RuleLimit, rule_limits
from ragmetrics.pipeline.init.settings_file import FirstSettings, settings_text
from ragmetrics.pipeline.log_check import CheckReport, check_logs
from ragmetrics.records import FIELDS, LogRow
from ragmetrics.rules import DEFAULT_RULES, check_rules

_JUDGES = ("lexical", "openai")
_MOST_NIGHTS = 7
"""Nights of the sample that are read, the newest ones."""
_MOST_ROWS = 5_000
"""Rows of the sample whose variance is measured."""


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

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics init --json`."""
        return {
            "settings": str(self.path),
            "found": list(self.found),
            "rules": [vars(limit) for limit in self.limits],
            "night": self.day.isoformat(),
            "check": self.check.as_json(),
        }


def init_settings(
    place: str, path: Path, ask: Ask | None = None, *, overwrite: bool = False
) -> InitReport:
    """Read a sample of a log, write a settings file for it, and check the sample with it.

    `place` is a file, a folder or a glob, local or in a bucket. `ask` answers at most four
    questions: the keys of the question and of the contexts where several can be it, the location
    of a night's logs where no name has a date, and the judge. Raises InputError where the file
    exists already (unless `overwrite`), where there is no log, or where no row can be read.
    """
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; --force replaces it")
    sample = log_set(make_settings({}), place)
    nights = night_place(place, [sample.files.uri(info.path) for info in sample.infos])
    sample = _newest(sample, nights)
    ask = ask or _take_default
    layout = find_layout(sample, ask)
    settings = make_settings(dict(layout.settings))
    places = [sample.files.uri(info.path) for info in sample.infos]
    check = check_logs(settings, places)
    rows = read_sample(in_layout(settings, sample), _MOST_ROWS)
    if not rows:
        raise _unreadable(place, check)
    dated = {nights.days[place] for place in places if place in nights.days}
    days = sorted(dated or _days(rows))
    a_night = (check.rows if dated else len(rows)) / max(len(days), 1)
    logs = nights.logs
    if not dated:
        text = "Where are the logs of one night? Write {date} where the date stands"
        logs = ask(Question(text, place))
    judge = ask(Question(f"Which judge? {' or '.join(_JUDGES)}", _JUDGES[0], _JUDGES))
    limits = _limits(settings, _by_night(places, nights), rows, a_night)
    first = FirstSettings(
        dataset=_dataset(path),
        logs=_beside(path, logs),
        store=_store(place),
        layout=layout.settings,
        judge=judge,
        limits=limits,
        dated="{date" in logs,
        rows=min(check.rows, _MOST_ROWS),
        nights=len(days),
        references=any(row.reference for row in rows),
    )
    path.write_text(settings_text(first), encoding="utf-8")
    check_rules(load_settings(path))
    sentences = [*layout.found, *_found(rows, logs)]
    return InitReport(path, sentences, limits, check, days[-1] if days else _yesterday())


def _take_default(question: Question) -> str:
    """The answer of nobody."""
    return question.default


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


def _found(rows: Sequence[LogRow], logs: str) -> Iterator[str]:
    """Sentences about the rows, and about what is missing in them."""
    if "{date" in logs:
        yield f"The logs of a night are at {logs}"
    else:
        yield "No name has a date: every night reads the same logs, until `logs` has a {date}."
    if tags := sorted({name for row in rows for name in row.tags}):
        yield f"Scores are shown by these tags: {', '.join(tags)}."
    if not any(row.reference for row in rows):
        yield "The rows have no right answers (reference); context_recall needs a golden set."
    if not any(row.response for row in rows):
        yield "The rows have no response; response_relevancy needs it."
    if not any(row.index_build for row in rows):
        yield "The rows name no index_build; with it an alert names the build that is to blame."


def _unreadable(place: str, check: CheckReport) -> InputError:
    reasons = check.reasons.most_common(1)
    why = f"the most frequent reason: {reasons[0][0]}" if reasons else "the log has no record"
    return InputError(f"{place}: no row can be read; {why}")


def _limits(
    settings: Settings, nights: Sequence[Sequence[str]], rows: Sequence[LogRow], rows_a_night: float
) -> list[RuleLimit]:
    """The limits of the default rules, by the lexical judge's scores of each night's files."""
    names = [rule.metric for rule in DEFAULT_RULES]
    filled = {name for name in FIELDS if any(getattr(row, name) for row in rows)}
    scored = [name for name in names if bundled_metrics()[name].fits(filled)]
    if not scored:
        return []
    most = _MOST_ROWS // len(nights)
    summaries = []
    with warnings.catch_warnings(category=RowsLost, action="ignore"):  # the check prints it
        for files in nights:
            manifest = evaluate([*files], scored, settings=settings, limit=most).manifest
            summaries.append({metric.metric: metric for metric in manifest.metrics})
    return rule_limits(summaries, rows_a_night, false_alarms=settings.alerts.rules_level)


def _days(rows: Sequence[LogRow]) -> tuple[date, ...]:
    """The days of the rows' timestamps."""
    return tuple(sorted({row.timestamp.date() for row in rows if row.timestamp}))


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
    beside = relpath(Path(logs).absolute(), folder)
    return (str(Path(logs).absolute()) if beside.startswith("..") else beside) + slash


def _store(place: str) -> str:
    """A store in the bucket of the logs; else a folder beside the settings."""
    scheme, separator, rest = place.partition("://")
    bucket = rest.partition("/")[0]
    return f"{scheme}://{bucket}/ragmetrics" if separator else "ragmetrics-store"
