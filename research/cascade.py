"""What a cascade saves, and how far it is from its last judge: `python -m research cascade`.

Labels stand for the grades of the last judge. There is no reranker here: the lexical judge's
evidence stands for its scores, which is a weak one. Thresholds are fitted to half of the questions
of each set, and the other half is graded by the cascade; then the halves change places.

The sets are those of the folder in `RAGMETRICS_DATA`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from research.moving_world import data_folder
from ragmetrics.config import make_settings
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.people.calibration.labelled_sets import LabelledSet, read_sets, targets
from ragmetrics.people.calibration.thresholds import fit_certain_thresholds
from ragmetrics.people.calibration.units import Unit
from ragmetrics.stats import mean_interval, share_interval

SETS = ("chunkeval_bm25", "hotpot_multihop", "xquad_multilingual")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Graded:
    """The contexts of a set, in one order."""

    name: str
    units: list[Unit]

    @property
    def halves(self) -> NDArray[np.bool_]:
        """Whether the question of each context belongs to the first half."""
        digests = [hashlib.blake2b(one.question.encode(), digest_size=1) for one in self.units]
        return np.array([one.digest()[0] < 128 for one in digests])


@dataclass(frozen=True)
class Outcome:
    """The cascade on one set."""

    certain: NDArray[np.bool_]
    grades: Floats
    labels: Floats


def read(folder_sets: tuple[str, ...] = SETS) -> Iterator[Graded]:
    """The graded contexts of the sets."""
    places = [str(data_folder() / f"{name}.jsonl") for name in folder_sets]
    for one in read_sets(make_settings({}), places):
        yield Graded(one.name, list(_units(one)))


def _units(labelled: LabelledSet) -> Iterator[Unit]:
    corpus = Corpus()
    for one in labelled.rows:
        corpus.add(one.labelled.row.retrieved_contexts, one.labelled.row.user_input)
    judge = LexicalJudge(corpus)
    (target,) = targets(["context_relevance"])
    for row in labelled.rows:
        for asked in row.questions[target.metric]:
            (label,), (score,) = asked.labels, judge.evidence(asked.ask) or (0.0,)
            question = asked.ask.data["question"]
            yield Unit("", question, "", "", label, None, strength=score)


def cascaded(graded: Graded) -> Outcome:
    """Each half by thresholds that the other half fitted."""
    labels = np.array([one.label for one in graded.units])
    scores = np.array([one.strength for one in graded.units], dtype=np.float64)
    first, certain, grades = graded.halves, np.zeros(len(labels), dtype=bool), labels.copy()
    for half in (first, ~first):
        others = [one for one, own in zip(graded.units, half, strict=True) if not own]
        found = fit_certain_thresholds(others)
        if found is None:
            continue
        low, high = found.thresholds
        certain |= half & ((scores < low) | (scores >= high))
        grades = np.where(half & (scores < low), 0.0, grades)
        grades = np.where(half & (scores >= high), 1.0, grades)
    return Outcome(certain, grades, labels)


def report() -> Iterator[str]:
    """All figures, line by line."""
    yield "| set | contexts | graded by the last judge | wrong, of the others | mean less labels |"
    yield "|---" * 5 + "|"
    for one in read():
        found = cascaded(one)
        count, certain = len(found.labels), int(found.certain.sum())
        wrong = int((found.grades != found.labels)[found.certain].sum())
        low, high = share_interval(wrong, certain)
        bias = mean_interval(found.grades - found.labels, np.array([u.question for u in one.units]))
        assert bias is not None
        yield (
            f"| {one.name} | {count:,} | {1 - certain / count:.1%} "
            f"| {wrong / max(certain, 1):.1%} [{low:.1%}, {high:.1%}] "
            f"| {bias.mean:+.4f} [{bias.low:+.4f}, {bias.high:+.4f}] |"
        )
