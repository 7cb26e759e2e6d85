"""What a lexicon says of labelled sets: its evidence beside the labels, metric by metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.metrics import NEEDED
from ragmetrics.metrics.bundled.context_relevancy import relevances
from ragmetrics.people.calibration.labelled_sets import AskedRow, LabelledSet, LabelTarget, targets
from ragmetrics.records import Ask, Lexicon
from ragmetrics.text import sentences

METRICS = ("context_relevance", "context_relevancy", "context_recall")


@dataclass(frozen=True)
class Evidence:
    """The units of one metric in one set: contexts, sentences or statements."""

    rows: NDArray[np.str_]
    questions: NDArray[np.str_]
    languages: NDArray[np.str_]
    positive: NDArray[np.bool_]
    own: NDArray[np.float64]
    """How strong the evidence of the unit itself is."""
    context: NDArray[np.float64]
    """Of a sentence: how relevant its context is, by the best one; else 0."""

    def strength(self, context_says: float) -> NDArray[np.float64]:
        """The evidence, its context having so much of the say."""
        return (1 - context_says) * self.own + context_says * self.context

    def where(self, language: str) -> Evidence:
        """The units in one language."""
        chosen = self.languages == language
        return Evidence(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Recall:
    """Rows with a gold recall, and the coverage of each sentence of their references."""

    questions: list[str]
    gold: list[float]
    covered: list[NDArray[np.float64]]


def gather(labelled: LabelledSet, lexicon: Lexicon) -> dict[str, Evidence]:
    """The evidence by metric, of the metrics that the set has labels of both classes for."""
    found = {target.metric: _gather(labelled.rows, target, lexicon) for target in targets(METRICS)}
    return {metric: one for metric, one in found.items() if one and 0 < one.positive.mean() < 1}


def _gather(rows: Iterable[AskedRow], target: LabelTarget, lexicon: Lexicon) -> Evidence | None:
    units: list[tuple[str, str, str, bool, float, float]] = []
    for row in rows:
        log_row = row.labelled.row
        names = log_row.id, row.labelled.question, log_row.language or "en"
        for asked in row.questions[target.metric]:
            found = _strengths(asked.ask, lexicon)
            units += [
                (*names, label >= target.label_from, own, context)
                for label, (own, context) in zip(asked.labels, found, strict=True)
            ]
    return Evidence(*(np.array(column) for column in zip(*units, strict=True))) if units else None


def _strengths(ask: Ask, lexicon: Lexicon) -> list[tuple[float, float]]:
    if ask.prompt is NEEDED:
        return relevances(ask.data, lexicon)
    evidence = ask.prompt.evidence
    return [(own, 0.0) for own in evidence(ask.data, lexicon)] if evidence else []


def gather_recall(labelled: LabelledSet, lexicon: Lexicon) -> Recall | None:
    """Gold recall, and how far each sentence of the reference is covered."""
    found = Recall([], [], [])
    for row in labelled.rows:
        gold, log_row = row.labelled.labels.gold.get("char_recall"), row.labelled.row
        claims = sentences(log_row.reference, log_row.language)
        if gold is None or not claims:
            continue
        everything = "\n".join(log_row.retrieved_contexts)
        found.questions.append(row.labelled.question)
        found.gold.append(gold)
        found.covered.append(np.array([lexicon.coverage(one, everything) for one in claims]))
    return found if found.gold else None
