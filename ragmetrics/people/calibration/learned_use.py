"""Judges the newest night with a fitted model as a night would, before the model is used.

A model may be good on the items that it was fitted to and wrong where it is used: if the features
are made otherwise there, or if it gives a level too rarely. So its row scores are compared with
those of the judge whose verdicts it predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ragmetrics.judges import Corpus, LearnedJudge, levels_of
from ragmetrics.people.calibration.stored_verdicts import StoredVerdict
from ragmetrics.records import Figure, LastNight, LearnedModel, LearnedPrompt
from ragmetrics.scoring import corpus_of
from ragmetrics.stats import mean_interval
from ragmetrics.storage import Files, RunRef

MOST_WRONG = 0.05
"""Largest difference of the mean row score, unless chance explains it: the limit of the default
alert rules."""


@dataclass(frozen=True)
class _Row:
    question: str
    predicted: float
    judged: float


def judge_last_night(
    files: Files, model: LearnedModel, verdicts: Sequence[StoredVerdict]
) -> LearnedModel:
    """The model with the figures of its newest night. A prompt whose mean row score is wrong there
    is not used. Raises StoreError.
    """
    newest = verdicts[0].run
    corpus = corpus_of(files, RunRef.of(newest)) or Corpus()
    judge = LearnedJudge(model, corpus)
    own = [verdict for verdict in verdicts if verdict.run.run == newest.run]
    prompts = [
        _judged(judge, prompt, [one for one in own if one.ask.prompt.digest == prompt.digest])
        for prompt in model.prompts
    ]
    return model.model_copy(update={"prompts": prompts})


def _judged(
    judge: LearnedJudge, prompt: LearnedPrompt, verdicts: Sequence[StoredVerdict]
) -> LearnedPrompt:
    """The prompt with its figures of these verdicts, if it is used and there are any."""
    if not (prompt.used and verdicts):
        return prompt
    rows = _rows(judge, verdicts, prompt.top)
    differences = np.array([row.predicted - row.judged for row in rows])
    interval = mean_interval(differences, [row.question for row in rows])
    difference = Figure(value=float(differences.mean()))
    if interval:
        difference = Figure(value=interval.mean, low=interval.low, high=interval.high)
    night = LastNight(
        night=verdicts[0].run.date,
        rows=len(rows),
        mean=float(np.mean([row.predicted for row in rows])),
        judge_mean=float(np.mean([row.judged for row in rows])),
        difference=difference,
    )
    why = _why_wrong(night)
    return prompt.model_copy(update={"last_night": night, "used": not why, "why": why})


def _rows(judge: LearnedJudge, verdicts: Sequence[StoredVerdict], top: int) -> list[_Row]:
    """The row scores, from 0 to 1: mean levels of the row's items, by both judges."""
    rows = []
    for _, of_row in groupby(verdicts, key=lambda verdict: verdict.row):
        asked = list(of_row)
        predicted = [level for one in asked for level in levels_of(one.ask, judge.verdict(one.ask))]
        judged = [level for one in asked for level in one.levels]
        question = asked[0].ask.data["question"]
        rows.append(_Row(question, float(np.mean(predicted)) / top, float(np.mean(judged)) / top))
    return rows


def _why_wrong(night: LastNight) -> str:
    """Why the mean of the night is wrong, in a few words; empty if it is not."""
    difference = night.difference
    if difference.value is None or difference.low is None or difference.high is None:
        return ""
    surely = difference.low > 0 or difference.high < 0
    if not surely or abs(difference.value) <= MOST_WRONG:
        return ""
    return f"wrong on {night.night}"
