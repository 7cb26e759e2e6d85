"""The questions of the newest nights: search by text, segment, score, nights, state and build.

questions.html    readable without scripts
questions.js      the same questions with all scores, for the search
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ragmetrics.dashboard.formatting import anchor
from ragmetrics.dashboard.night_status import needing_reader
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.question_history import (
    NIGHTS,
    Asking,
    Question,
    QuestionHistory,
    asked_on,
    hidden,
    joined,
    packed,
    read_history,
    write_history,
)
from ragmetrics.dashboard.question_standing import Standing, Standings
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.row_selection import MOST as MOST_OF_A_NIGHT, KeptRow, tag_values
from ragmetrics.dashboard.svg import sparkline
from ragmetrics.records import Manifest, Summary
from ragmetrics.storage import DamagedPart, Runs

log = logging.getLogger(__name__)

MOST_BYTES = 295_000
"""Size of the page."""
MOST_FILE_BYTES = 1_000_000
"""Size of the script."""
_MOST = 500
_MOST_LINES = 50
"""Questions that the page has without scripts."""


@dataclass(frozen=True)
class QuestionLine:
    """One question as the page lists it."""

    question: Question
    lead: Standing | None
    """The metric that it is listed by; None without a score."""

    @property
    def nights(self) -> list[tuple[date, str, float | None]]:
        """Newest first: each with the address of its row, and the score by that metric."""
        return [
            (day, row_address(day, asking), self._value(asking))
            for day, asking in reversed(list(self.question.askings.items()))
        ]

    @property
    def link(self) -> str:
        """The address of its newest row that is kept; empty without one."""
        return next((address for _, address, _ in self.nights if address), "")

    @property
    def chart(self) -> Markup:
        """The scores by that metric, oldest first."""
        values = [self._value(asking) for asking in self.question.askings.values()]
        return sparkline(values, mark=bool(self.lead and self.lead.fell))

    def _value(self, asking: Asking) -> float | None:
        return asking.values.get(self.lead.metric) if self.lead else None


def row_address(day: date, asking: Asking) -> str:
    """The place of a night's row, for pages of the site; empty if it is not kept."""
    return f"{day}/rows.html#row={quote(asking.row, safe='')}" if asking.row else ""


def render(shown: Shown) -> bytes:
    """The page, after its data."""
    if not shown.nights:
        return shown.render("questions.html", lines=[])
    known = read_history(shown.site)
    history = joined([known, *_unread(shown, known)], shown.nights)
    return _page(shown, hidden(history) if shown.hide else history)


def _unread(shown: Shown, known: QuestionHistory) -> Iterator[QuestionHistory]:
    """The nights that were just written, and others that no night left."""
    yield from shown.asked.values()
    runs = {**known.runs, **{day: asked.runs[day] for day, asked in shown.asked.items()}}
    missing = [one for one in shown.nights[-NIGHTS:] if runs.get(one.date) != one.run]
    for night in missing:
        try:
            yield asked_on(night, _rows(shown, night))
        except DamagedPart as error:
            log.warning("%s: its questions are left out: %s", night.date, error)


def _rows(shown: Shown, night: Manifest) -> Sequence[KeptRow]:
    if night is shown.night:
        return shown.rows
    (full,) = Runs(shown.files).in_full([night])
    return replace(shown, nights=[redacted(full, shown.hide or full.redacts)]).rows


def _page(shown: Shown, history: QuestionHistory) -> bytes:
    metrics = _metrics(shown)
    standings = Standings(history.questions, shown.night, metrics)
    chosen, content = _content(history, standings, list(metrics))
    write_history(shown.site, content)
    lines = [QuestionLine(history.questions[key], standings.lead(key)) for key in chosen]

    def page(shown_lines: Sequence[QuestionLine]) -> bytes:
        return shown.render(
            "questions.html",
            lines=shown_lines,
            count=len(lines),
            is_all=len(lines) == len(history.questions) and _is_whole(shown, history),
            nights=[date.fromisoformat(day) for day, _ in content["nights"]],
            metrics=[(anchor(name), summary) for name, summary in metrics.items()],
            segments=tag_values(tag for line in lines for tag in line.question.tags),
            builds=[build for build in content["builds"] if build],
            states=Counter(line.lead.state for line in lines if line.lead and line.lead.state),
        )

    most = _MOST_LINES
    while len(text := page(lines[:most])) > MOST_BYTES and most:
        most //= 2
    return text


def _metrics(shown: Shown) -> dict[str, Summary]:
    """The newest summary of each metric; those that need a reader first."""
    newest: dict[str, Summary] = {}
    for night in reversed(shown.nights[-NIGHTS:]):
        for summary in night.metrics:
            newest.setdefault(summary.metric, summary)
    return {name: newest[name] for name in sorted(newest, key=needing_reader(shown.night))}


def _content(
    history: QuestionHistory, standings: Standings, metrics: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """The keys of as many questions as the script has room for, and its content."""
    most = _MOST
    while True:
        chosen = standings.chosen(history.questions, most)
        kept = replace(history, questions={key: history.questions[key] for key in chosen})
        content = packed(kept, metrics)
        for entry in content["questions"]:
            entry |= _standing(
                standings.by_question[entry["key"]], standings.lead(entry["key"]), metrics
            )
        size = len(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())
        if size <= MOST_FILE_BYTES:
            return chosen, content
        most = min(len(chosen) - 1, int(len(chosen) * 0.95 * MOST_FILE_BYTES / size))


def _standing(
    by_metric: Mapping[str, Standing], lead: Standing | None, metrics: Sequence[str]
) -> dict[str, Any]:
    """What the search shows besides the scores: by metric the usual one and the state."""
    ordered = [by_metric.get(metric) for metric in metrics]
    return {
        "lead": metrics.index(lead.metric) if lead else -1,
        "usual": [one.usual if one else None for one in ordered],
        "state": [one.state if one else "" for one in ordered],
    }


def _is_whole(shown: Shown, history: QuestionHistory) -> bool:
    """Whether each night kept all of its rows."""
    nights = [night for night in shown.nights[-NIGHTS:] if night.date in history.runs]
    return all(night.source.rows <= MOST_OF_A_NIGHT for night in nights)


questions = Page("questions", "Questions", __doc__, render, "site", place=5)
