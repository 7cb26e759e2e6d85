"""Judges whose verdicts are recorded in the labelled rows, under `labels.judge`.

    {"gpt-x": {"reply": "... <answer>not_supported</answer>"}}   read as a verdict on support
    {"gpt-x": {"label": 0.5}}, {"gpt-x": {"label": [1, 0]}}      the verdict, or one a statement
    {"gpt-x": {"chunk_relevance": [1, 0, 0]}}                    one a context, on the labels' scale

Each is calibrated as a separate judge, without any request. A number in place of the object rates
the whole row. There is no label to compare it with, so it is skipped with that reason.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.people.calibration.labelled_sets import (
    AskedRow,
    LabelledSet,
    LabelQuestion,
    LabelTarget,
    read_sets,
    targets,
)
from ragmetrics.people.calibration.run import check_metrics, record
from ragmetrics.people.calibration.run_judges import JudgedSet
from ragmetrics.people.calibration.store import save_calibration
from ragmetrics.people.calibration.units import Unit, units_of
from ragmetrics.records import Calibration, JudgeInfo, Status, fingerprint
from ragmetrics.storage import Files

_NOTE = "verdicts recorded in the labelled rows"
_NO_LABELS = "it rates whole rows, and there are no labels for whole rows"
_VERDICT = re.compile(r"(not|un|partially|partly)?[\s_-]*supported", re.IGNORECASE)
_NEGATED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|hardly|without|cannot)\b|n['’]t\b)(?:[^\w.:;!?<>\n]+\w+){0,4}[^\w.:;!?<>\n]*$",
    re.IGNORECASE,
)
"""A negation a few words before the verdict: the verdict is then ambiguous."""
_WORDS = {"": 1.0, "partially": 0.5, "partly": 0.5, "not": 0.0, "un": 0.0}


def calibrate_replies(
    settings: Settings,
    paths: Sequence[str],
    metrics: Sequence[str] | None = None,
    limit: int | None = None,
    now: datetime | None = None,
    *,
    files: Files | None = None,
) -> list[Calibration]:
    """Calibrate the judges recorded in labelled sets; one record per set and judge.

    Raises InputError for a set without recorded judges.
    """
    check_metrics(metrics)
    at = now or datetime.now(UTC)
    found = []
    for labelled in read_sets(settings, paths, limit):
        raters = _judges(labelled)
        if not raters:
            raise InputError(f"{labelled.source}: no row has labels.judge")
        for name in sorted(raters):
            judged = _judged(labelled, name, metrics)
            calibration = record(labelled, judged, at, metrics, redact=settings.redact)
            if raters[name]:
                reasons = dict.fromkeys(calibration.skipped, _NO_LABELS)
                calibration = calibration.model_copy(update={"skipped": reasons})
            found.append(calibration)
            if files:
                save_calibration(files, calibration, judged.units)
    return found


def read_verdict(reply: str) -> float | None:
    """The last verdict on support in a reply: 1 supported, 0.5 partially, 0 not; None without one.

    Also None where it is negated in other words, as in "not fully supported".
    """
    reply = reply.replace("_", " ")
    last = deque(_VERDICT.finditer(reply), maxlen=1)
    if not last:
        return None
    word = (last[0][1] or "").lower()
    if word != "not" and _NEGATED.search(reply[: last[0].start()]):
        return None
    return _WORDS[word]


def _judges(labelled: LabelledSet) -> dict[str, bool]:
    """The recorded judges, and whether each rates whole rows."""
    found: dict[str, bool] = {}
    for row in labelled.rows:
        for name, verdicts in row.labelled.labels.judge.items():
            if isinstance(verdicts, Mapping | int | float):
                found[name] = found.get(name, False) or not isinstance(verdicts, Mapping)
    return found


def _judged(labelled: LabelledSet, name: str, wanted: Sequence[str] | None) -> JudgedSet:
    units: dict[str, list[Unit]] = {}
    for target in targets(wanted):
        for row in labelled.rows:
            said = row.labelled.labels.judge.get(name)
            if isinstance(said, Mapping):
                for question, values in _said(row, target, said):
                    units.setdefault(target.metric, []).extend(_units(row, question, values))
    info = JudgeInfo(name=name, fingerprint=fingerprint("labels", name), note=_NOTE)
    return JudgedSet(info, units)


def _said(
    row: AskedRow, target: LabelTarget, said: Mapping[str, Any]
) -> list[tuple[LabelQuestion, list[float] | None]]:
    """A recorded judge's values for each question of the row; None where they are unreadable."""
    questions = row.questions[target.metric]
    if target.label == "chunk_relevance" and "chunk_relevance" in said:
        ratings = _numbers(said["chunk_relevance"], len(row.labelled.row.retrieved_contexts))
        low, high = row.labelled.labels.chunk_relevance_scale
        return [
            (question, ratings and [(ratings[int(question.units[0])] - low) / (high - low)])
            for question in questions
        ]
    if target.label == "statement_support" and ("label" in said or "reply" in said):
        return [(question, _support(said, len(question.units))) for question in questions]
    return []


def _support(said: Mapping[str, Any], count: int) -> list[float] | None:
    if "label" in said:
        return _numbers(said["label"], count)
    verdict = read_verdict(said["reply"]) if isinstance(said["reply"], str) else None
    return [verdict] if verdict is not None and count == 1 else None


def _numbers(value: Any, count: int) -> list[float] | None:
    values: list[Any] = value if isinstance(value, list) else [value]
    if len(values) != count or not all(isinstance(value, int | float) for value in values):
        return None
    try:
        return [float(value) for value in values]
    except OverflowError:
        return None


def _units(row: AskedRow, question: LabelQuestion, values: list[float] | None) -> list[Unit]:
    if values is None or not all(0 <= value <= 1 for value in values):
        return units_of(row, question, None, Status.UNREADABLE)
    return units_of(row, question, values)
