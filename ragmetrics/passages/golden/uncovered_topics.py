"""Topics of the traffic without a golden question.

A question is described by its words and those of the passage that answers it: the one that its
labels name, or else the first one. Both sides are tf-idf vectors of length 1.

    coverage(q) = max over golden questions g of cos(q, g)

A question with less than 0.35 is not covered. Those are grouped by average linkage of the cosine:
a group of at least two questions is a topic without a golden question.
Sources: Salton and Buckley 1988; Sokal and Michener 1958 for average linkage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.logs import GoldenRow
from ragmetrics.passages.topics.clustering import word_matrix
from ragmetrics.passages.topics.fitting import mean_weights, telling_words, word_weights
from ragmetrics.passages.topics.question_texts import PastQuestion, read_questions
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, RunRef

_COVERED = 0.35
_TOGETHER = 0.2
"""Mean cosine from which questions are one topic."""
_FEWEST = 2
_MOST_GROUPED = 3_000
_NAME_WORDS = 3


@dataclass(frozen=True)
class UncoveredTopic:
    """A topic without a golden question."""

    name: str
    """Its most telling words."""
    questions: list[str]
    """Keys of its questions, the most typical first."""
    share: float
    """Share of the distinct questions of the traffic."""


def uncovered_topics(
    files: Files, nights: Sequence[Manifest], golden: Sequence[GoldenRow]
) -> list[UncoveredTopic]:
    """The topics of some nights without a golden question, the largest first.

    Of a golden question that no night asked, only its own words and its `reference_contexts` are
    known. Raises StoreError where the store is down.
    """
    asked = read_questions(files, [RunRef.of(night) for night in nights], answering=True)
    own = {
        row.row.question_key: PastQuestion(row.row.user_input, row.row.reference_contexts or ())
        for row in golden
    }
    own = {key: asked.get(key, one) for key, one in own.items()}
    live = {key: one for key, one in asked.items() if key not in own}
    if not live:
        return []
    rarity, weights = word_weights([*live.values(), *own.values()])
    vectors = word_matrix(weights, list(rarity))
    open_ = np.flatnonzero(_coverage(vectors, len(live)) < _COVERED)
    open_ = np.array([n for n in open_ if weights[n]], dtype=np.intp)[:_MOST_GROUPED]
    keys, everything = list(live), mean_weights(weights)
    found = []
    for members in _groups(vectors[open_]):
        places = open_[members]
        telling = list(telling_words([weights[n] for n in places], everything))[:_NAME_WORDS]
        share = len(members) / len(live)
        found.append(UncoveredTopic(", ".join(telling), [keys[n] for n in places], share))
    return sorted(found, key=lambda one: (-len(one.questions), one.name))


def _coverage(vectors: Any, live: int) -> NDArray[np.float64]:
    """The largest cosine of each live question with a golden one; 0 without golden questions."""
    if vectors.shape[0] == live:
        return np.zeros(live)
    cosines = vectors[:live] @ vectors[live:].T
    best: NDArray[np.float64] = cosines.max(axis=1).toarray().ravel()
    return best


def _groups(vectors: Any) -> list[NDArray[np.intp]]:
    """The places of the questions of each group, those nearest to its middle first."""
    from scipy.cluster.hierarchy import fcluster, linkage

    count = vectors.shape[0]
    if count < _FEWEST:
        return []
    cosines = (vectors @ vectors.T).toarray()
    distances = np.clip(1 - cosines[np.triu_indices(count, 1)], 0, None)
    labels = fcluster(linkage(distances, "average"), 1 - _TOGETHER, "distance")
    found = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) >= _FEWEST:
            central = cosines[np.ix_(members, members)].sum(axis=1)
            found.append(members[np.argsort(-central, kind="stable")])
    return found
