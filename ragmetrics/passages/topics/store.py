"""The models of topics in a store: `topics/model-DATE.json`, made where a night needs a new one."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import date, timedelta

from ragmetrics.config import Settings
from ragmetrics.passages.topics.fitting import fit_topics
from ragmetrics.passages.topics.question_texts import read_questions
from ragmetrics.records import Manifest, TopicModel
from ragmetrics.storage import Files, RunRef, Runs, find_record, save_record

FITTED_NIGHTS = 14
FITTED_QUESTIONS = 3_000
"""Most questions of a fit, at equal distances by their keys."""
_FOLDER = "topics"
_MODEL = re.compile(r"model-(\d{4}-\d{2}-\d{2})\.json$")
log = logging.getLogger(__name__)


def topics_of_night(
    settings: Settings, files: Files, day: date, *, keep: bool = True
) -> TopicModel | None:
    """The topics of a night: the newest model of the store, or a new one where that is older than
    `topics: refit_days:`. None where topics are off, or too little is known.

    A model is fitted on nights before the night that it is named after. So a night that runs again
    has the same topics. A new model is stored, unless `keep` is false.
    """
    if settings.topics is None:
        return None
    known = sorted(one for one in _days(files) if one <= day)
    newest = (
        find_record(files, _path(known[-1]), TopicModel, "not a model of topics") if known else None
    )
    if newest and day - newest.day < timedelta(days=settings.topics.refit_days):
        return newest
    nights = Runs(files).outlines(before=day, last=FITTED_NIGHTS)
    model = _fitted(settings, files, day, nights, newest)
    if model is None:
        log.info("%s: no topics yet: too few questions on the nights before", day)
        return newest
    if keep:
        save_record(files, _path(day), model)
    return model


def _fitted(
    settings: Settings,
    files: Files,
    day: date,
    nights: Sequence[Manifest],
    before: TopicModel | None,
) -> TopicModel | None:
    questions = read_questions(files, [RunRef.of(night) for night in nights])
    count = settings.topics.count if settings.topics else None
    keys = sorted(questions)[:: max(1, -(-len(questions) // FITTED_QUESTIONS))]
    in_order = [questions[key] for key in keys]
    return fit_topics(day, [night.date for night in nights], in_order, count=count, before=before)


def _days(files: Files) -> list[date]:
    found = (_MODEL.search(info.path) for info in files.below(_FOLDER))
    return [date.fromisoformat(one[1]) for one in found if one]


def _path(day: date) -> str:
    return f"{_FOLDER}/model-{day.isoformat()}.json"
