"""The questions of the newest nights with their scores, for the page of all questions.

questions.js    globalThis.QUESTIONS = {...};

The page loads this script, and the next night reads it, so that it need not read the nights before.
A night whose run is another one by now is left out. A damaged file is made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragmetrics.dashboard.formatting import brief, clean, script_json
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.records import Manifest, hashed, question_key
from ragmetrics.storage import Files
from ragmetrics.text import finite

FILE = "questions.js"
NIGHTS = 30
"""Newest nights of which questions are shown."""
_HEAD, _FOOT = "globalThis.QUESTIONS = ", ";\n"
_LONGEST = 300
"""Characters of a question."""
_LONGEST_NAME = 80
_MOST_TAGS = 12


@dataclass(frozen=True)
class Asking:
    """A question on one night."""

    row: str
    """The key of its row on the night's page of rows; empty where no row is kept there."""
    build: str
    values: Mapping[str, float]
    """Scores by metric."""


@dataclass(frozen=True)
class Question:
    """A question with its scores on the nights on which it was asked."""

    text: str
    tags: tuple[tuple[str, str], ...]
    """Those of its newest night."""
    askings: Mapping[date, Asking]
    trace: str = ""
    """The address of the newest night's trace; empty if that is not known."""

    @property
    def newest(self) -> date:
        """The newest night on which it was asked."""
        return max(self.askings)

    def values(self, metric: str) -> list[float]:
        """Its scores by a metric, oldest first."""
        by_night = sorted(self.askings.items())
        return [asking.values[metric] for _, asking in by_night if metric in asking.values]


@dataclass(frozen=True)
class QuestionHistory:
    """The questions by key, and the runs of the nights that were read."""

    runs: Mapping[date, str] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)


def asked_on(night: Manifest, rows: Iterable[KeptRow]) -> QuestionHistory:
    """The questions of a night's kept rows, with their scores on the nights before; of a question
    with several rows, the first one that is kept.
    """
    questions: dict[str, Question] = {}
    for kept in rows:
        questions.setdefault(kept.row.question_key, _question(night.date, kept))
    return QuestionHistory({night.date: night.run}, questions)


def _question(day: date, kept: KeptRow) -> Question:
    values = {name: finite(score.value) for name, score in kept.scores.items()}
    earlier = {
        night.date: Asking("", _short(night.index_build or ""), _known(night.values))
        for night in (*kept.earlier, *kept.older)
    }
    asking = Asking(kept.key, _short(kept.row.index_build or ""), _known(values))
    tags = tuple((_short(tag), _short(value)) for tag, value in kept.row.tags.items())
    text = clean(brief(kept.row.user_input, _LONGEST))
    return Question(text, tags[:_MOST_TAGS], {**earlier, day: asking}, kept.trace)


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items() if value is not None}


def _short(name: str) -> str:
    return clean(brief(name, _LONGEST_NAME))


def joined(histories: Iterable[QuestionHistory], nights: Sequence[Manifest]) -> QuestionHistory:
    """The newest of the `nights`, by several histories; a later one replaces what an earlier one
    has of the same night.

    Left out are nights that were run again since, and scores that do not compare with the newest
    of their metric, as the judge or the metric changed.
    """
    window = {night.date: night for night in nights[-NIGHTS:]}
    runs: dict[date, str] = {}
    questions: dict[str, Question] = {}
    for history in histories:
        current = {day: run for day, run in history.runs.items() if _run(window, day) == run}
        runs |= current
        questions = {key: _without(current, known) for key, known in questions.items()}
        for key, question in history.questions.items():
            known = questions.get(key)
            questions[key] = _merged(known, question, current) if known else question
    compared = _compared(list(window.values()))
    kept = ((key, _within(question, compared, runs)) for key, question in questions.items())
    return QuestionHistory(runs, {key: question for key, question in kept if question.askings})


def _run(window: Mapping[date, Manifest], day: date) -> str | None:
    night = window.get(day)
    return night.run if night else None


def _without(nights: Collection[date], question: Question) -> Question:
    """The question on the other nights."""
    askings = {day: one for day, one in question.askings.items() if day not in nights}
    return question if len(askings) == len(question.askings) else replace(question, askings=askings)


def _merged(known: Question, other: Question, current: Mapping[date, str]) -> Question:
    """Both; a night of the other one counts if it was read, or if the known one lacks it."""
    later = {
        day: asking
        for day, asking in other.askings.items()
        if day in current or day not in known.askings
    }
    newest = other if not known.askings or other.newest >= known.newest else known
    return replace(newest, askings={**known.askings, **later})


def _compared(window: Sequence[Manifest]) -> dict[date, set[str]]:
    """By night, the metrics whose scores compare with the newest ones."""
    newest: dict[str, str | None] = {}
    for night in window:
        newest |= {one.metric: one.fingerprint for one in night.metrics if one.scored}
    return {
        night.date: {
            summary.metric
            for summary in night.metrics
            if summary.fingerprint == newest.get(summary.metric) and summary.moved_by is None
        }
        for night in window
    }


def _within(
    question: Question, compared: Mapping[date, set[str]], runs: Mapping[date, str]
) -> Question:
    """The question on the nights that are shown, with the scores that compare."""
    askings = {
        day: replace(
            asking,
            row=asking.row if day in runs else "",
            values={name: value for name, value in asking.values.items() if name in compared[day]},
        )
        for day, asking in sorted(question.askings.items())
        if day in compared
    }
    return replace(question, askings=askings)


def hidden(history: QuestionHistory) -> QuestionHistory:
    """The history with hashes for questions; hashes stay as they are."""
    questions: dict[str, Question] = {}
    for question in history.questions.values():
        text = hashed(question.text)
        questions[question_key(text)] = replace(question, text=text)
    return replace(history, questions=questions)


@dataclass(frozen=True)
class _Packed:
    """The file: nights, metrics and builds once, and numbers for them in questions."""

    nights: list[tuple[date, str]]
    """Each with the run that was read; empty: it was not."""
    metrics: list[str]
    builds: list[str]
    questions: list[_PackedQuestion]


@dataclass(frozen=True)
class _PackedQuestion:
    key: str
    text: str
    tags: list[tuple[str, str]]
    asked: list[tuple[int, str, int]]
    """Night, key of the row, build."""
    values: list[list[float | None]]
    """By metric: the scores of these nights; an empty list if there are none."""
    trace: str = ""


_PACKED = TypeAdapter(_Packed)


def read_history(site: Files) -> QuestionHistory:
    """What an earlier night left; empty if there is nothing or it is damaged."""
    data = site.find(FILE)
    try:
        text = "{}" if data is None else data.decode().removeprefix(_HEAD).removesuffix(_FOOT)
        return _unpacked(_PACKED.validate_json(text))
    except (ValidationError, UnicodeDecodeError, IndexError):
        return QuestionHistory()


def _unpacked(packed: _Packed) -> QuestionHistory:
    questions = {one.key: _unpacked_question(one, packed) for one in packed.questions if one.asked}
    return QuestionHistory({day: run for day, run in packed.nights if run}, questions)


def _unpacked_question(packed: _PackedQuestion, file: _Packed) -> Question:
    askings = {}
    for place, (night, row, build) in enumerate(packed.asked):
        columns = zip(file.metrics, packed.values, strict=False)
        values = {name: column[place] for name, column in columns if column}
        askings[file.nights[night][0]] = Asking(row, file.builds[build], _known(values))
    return Question(packed.text, tuple(packed.tags), askings, packed.trace)


def packed(history: QuestionHistory, metrics: Sequence[str]) -> dict[str, Any]:
    """The content of the file, by the names of `_Packed`."""
    askings = [asking for one in history.questions.values() for asking in one.askings.items()]
    nights = sorted({*history.runs, *(day for day, _ in askings)})
    builds = sorted({asking.build for _, asking in askings})
    places = {day: place for place, day in enumerate(nights)}
    numbers = {build: number for number, build in enumerate(builds)}
    questions = []
    for key, question in history.questions.items():
        by_night = list(question.askings.items())
        questions.append(
            {
                "key": key,
                "text": question.text,
                "tags": question.tags,
                "asked": [(places[day], one.row, numbers[one.build]) for day, one in by_night],
                "values": [_column(question, metric) for metric in metrics],
                "trace": question.trace,
            }
        )
    return {
        "nights": [(str(day), history.runs.get(day, "")) for day in nights],
        "metrics": list(metrics),
        "builds": builds,
        "questions": questions,
    }


def _column(question: Question, metric: str) -> list[float | None]:
    values = [asking.values.get(metric) for asking in question.askings.values()]
    return values if any(value is not None for value in values) else []


def write_history(site: Files, content: Mapping[str, Any]) -> None:
    """Write the file."""
    site.write(FILE, f"{_HEAD}{script_json(content)}{_FOOT}".encode())
