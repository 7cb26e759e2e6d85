"""Makes the learned judge of a data set from the verdicts in its store.

    stored verdicts -> features of their items -> a model for each prompt -> learned/JUDGE/0001.json

Before a model is used, it judges the newest night in the way in which a night would use it.
A model may be good on the items that it was fitted to and wrong where it is used: if the features
are made otherwise there, or if it gives a level too rarely. So its row scores are compared with
those of the judge whose verdicts it predicts.
Nothing depends on the clock or on chance: the same verdicts give the same model.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import InputError
from ragmetrics.judges import Corpus, Features, LearnedJudge, levels_of, make_member, top_level
from ragmetrics.people.calibration.learned_fit import Examples, fit_prompt, refusal
from ragmetrics.people.calibration.stored_verdicts import StoredVerdict, stored_verdicts
from ragmetrics.people.calibration.units import mean_figure
from ragmetrics.records import LastNight, LearnedModel, LearnedPrompt, Prompt
from ragmetrics.scoring import corpus_of
from ragmetrics.stats import Numbers
from ragmetrics.storage import Files, LearnedJudges, RunRef

log = logging.getLogger(__name__)
REFIT_AFTER = 200
"""Verdicts of new nights after which a night fits the model again."""
MOST_WRONG = 0.05
"""Largest difference of the mean row score, unless chance explains it: the limit of the default
alert rules."""


def teacher(settings: Settings) -> JudgeSettings:
    """The judge whose verdicts are learned: the first paid one of the settings.

    For `judge: learned` it is the judge named in `from`. Raises InputError without one.
    """
    if settings.aggregate == "cascade":
        raise InputError("a cascade has verdicts of several judges, which cannot be learned as one")
    for judge in settings.panel:
        if judge.teacher is not None:
            return judge.teacher
    raise InputError("the settings name no judge over a network whose verdicts could be learned")


def learn(settings: Settings, files: Files, *, refit_after: int = 0) -> LearnedModel | None:
    """Fit the learned judge to the verdicts of the newest nights, and store it as a new version.

    None if the newest version has seen all but `refit_after` of the verdicts, or was fitted on
    the same ones. Prompts without enough verdicts are in `refused`. Raises InputError without a
    judge to learn from, StoreError.
    """
    judge = teacher(settings)
    fingerprint = make_member(judge).fingerprint
    before = LearnedJudges(files).newest(fingerprint)
    verdicts = stored_verdicts(settings, judge, files)
    model = LearnedModel(
        version=before.version + 1 if before else 1,
        judge=judge.model,
        judge_fingerprint=fingerprint,
        code_version=LearnedJudge.code_version,
        embeddings=Features.model_of(settings),
        nights=sorted({verdict.run.date for verdict in verdicts}),
        runs=sorted({verdict.run.run for verdict in verdicts}),
    )
    if before and _has_seen(before, model, verdicts, refit_after):
        return None
    return _fitted(files, model, verdicts)


def _has_seen(
    before: LearnedModel, now: LearnedModel, verdicts: Sequence[StoredVerdict], refit_after: int
) -> bool:
    """Whether a model needs no refit: too few verdicts are of nights that it has not seen.

    A question that comes every night has old verdicts on each of them.
    """
    if (before.code_version, before.embeddings) != (now.code_version, now.embeddings):
        return False
    if not before.features:  # it was fitted by an earlier version
        return False
    new = sum(len(verdict.levels) for verdict in verdicts if verdict.since not in before.nights)
    if refit_after:
        return new < refit_after
    return not new and before.runs == now.runs


def _fitted(files: Files, model: LearnedModel, verdicts: Sequence[StoredVerdict]) -> LearnedModel:
    """The model with its prompts, stored if it has any."""
    prompts, refused, made = [], {}, ""
    for prompt, features, examples in _examples(files, model.embeddings, verdicts):
        if why := refusal(examples):
            refused[prompt.name] = why
            log.info("learned judge: no model of the prompt %s: %s", prompt.name, why)
            continue
        top = top_level(prompt) or 1
        prompts.append(fit_prompt(prompt.name, prompt.digest, top, features.names, examples))
        made = features.digest
    model = model.model_copy(update={"prompts": prompts, "refused": refused, "features": made})
    if prompts:
        model = judge_last_night(files, model, verdicts)
        LearnedJudges(files).save(model)
    return model


def _examples(
    files: Files, embeddings: str, verdicts: Sequence[StoredVerdict]
) -> Iterator[tuple[Prompt[Any], Features, Examples]]:
    """The items of each prompt, with features by the word counts of their own night."""
    found: defaultdict[str, list[tuple[StoredVerdict, Numbers]]] = defaultdict(list)
    features = Features(Corpus())
    for _, of_run in groupby(verdicts, key=lambda verdict: verdict.run.run):
        run_verdicts = list(of_run)
        corpus = corpus_of(files, RunRef.of(run_verdicts[0].run)) or Corpus()
        features = Features(corpus, embeddings)
        for verdict in run_verdicts:
            computed = features.of(verdict.ask)
            if len(computed) == len(verdict.levels):
                found[verdict.ask.prompt.digest].append((verdict, computed))
    for _, items in sorted(found.items()):
        sizes = [len(verdict.levels) for verdict, _ in items]
        questions = [verdict.ask.data["question"] for verdict, _ in items]
        examples = Examples(
            np.concatenate([computed for _, computed in items]),
            np.array([level for verdict, _ in items for level in verdict.levels]),
            np.repeat(np.array(questions, dtype=np.str_), sizes),
            np.repeat(np.array([verdict.row for verdict, _ in items], dtype=np.str_), sizes),
        )
        yield items[0][0].ask.prompt, features, examples


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
        _judged(judge, prompt, [item for item in own if item.ask.prompt.digest == prompt.digest])
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
    differences = [row.predicted - row.judged for row in rows]
    night = LastNight(
        night=verdicts[0].run.date,
        rows=len(rows),
        mean=float(np.mean([row.predicted for row in rows])),
        judge_mean=float(np.mean([row.judged for row in rows])),
        difference=mean_figure(differences, [row.question for row in rows]),
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
