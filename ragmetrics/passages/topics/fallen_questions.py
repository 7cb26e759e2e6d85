"""The topic that a fall is confined to: its questions, its words, its typical questions.

A test says whether the questions that fell have words in common.

    dc_i = d_i - mean d                                 d: how much each question fell
    Q    = sum over i != j of dc_i dc_j (x_i . x_j)     x_i: weights of the words of a question
    p    = share of the permutations of d over the questions with a Q at least as large

Q is large where questions that fell have words in common, and p is exact: without a topic, any
question could have had any of the drops. A question belongs to the group by the drops of the
others, never by its own:

    s_i   = x_i . (sum over j != i of dc_j x_j)
    group = the questions with s_i >= c                 c: largest (mean drop above) * sqrt(number)

Sources: Goeman et al. 2004, "A global test for groups of genes"; Good 2005, "Permutation,
Parametric and Bootstrap Tests"; Besag and Clifford 1991, "Sequential Monte Carlo p-values".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.topics.clustering import word_matrix
from ragmetrics.passages.topics.fitting import mean_weights, telling_words, word_weights
from ragmetrics.passages.topics.question_texts import PastQuestion

_NAME_WORDS = 3
_TYPICAL = 3
Drops: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
FEWEST_QUESTIONS = 40
_FEWEST = 5
"""Fewest questions of a group."""
_MOST_OF = 1 / 3
"""Largest share of all questions that a group may have: more is no topic."""
_PERMUTATIONS = 1_999
_ENOUGH = 40
"""Permutations with as large a statistic, after which p is known well enough."""
_FIRST, _AT_ONCE = 100, 2_000_000
_SEED = 11
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FallenQuestions:
    """Questions of one topic that fell more than the others."""

    questions: list[str]
    """Their keys."""
    words: list[str]
    """The words that tell them from the others, the most telling first."""
    typical: list[str]
    """Keys of the questions that have most of these words."""
    p_value: float


def find_fallen_questions(
    drops: Mapping[str, float], texts: Mapping[str, PastQuestion]
) -> FallenQuestions | None:
    """The questions that a fall is confined to; `drops` is how much each question fell, by its key.

    None with too few questions, or without a group. See `find_fallen_group` for the test.
    """
    asked = sorted(drops.keys() & texts.keys())
    _, weights = word_weights([texts[question] for question in asked])
    group = find_fallen_group(weights, np.array([drops[one] for one in asked]))
    if group is None:
        return None
    members = np.flatnonzero(group.members).tolist()
    telling = telling_words([weights[member] for member in members], mean_weights(weights))

    def score(number: int) -> float:
        return sum(weight * telling.get(word, 0.0) for word, weight in weights[number].items())

    typical = sorted(members, key=lambda one: (-score(one), asked[one]))[:_TYPICAL]
    return FallenQuestions(
        [asked[member] for member in members],
        list(telling)[:_NAME_WORDS],
        [asked[one] for one in typical],
        group.p_value,
    )


@dataclass(frozen=True)
class FallenGroup:
    """Questions that a fall is confined to."""

    members: Mask
    """Which questions are in the group."""
    p_value: float


def find_fallen_group(weights: Sequence[Mapping[str, float]], drops: Drops) -> FallenGroup | None:
    """The group of questions with the largest drops. `weights` are those of the words of each
    question, of length 1. None with less than 40 questions, or where none changed.
    """
    if len(drops) < FEWEST_QUESTIONS or not drops.any():
        return None
    words = word_matrix(weights, sorted({word for own in weights for word in own}))
    lengths = np.asarray(words.multiply(words).sum(axis=1)).ravel()
    return FallenGroup(_members(words, lengths, drops), _chance(words, lengths, drops))


def _statistic(words: Any, lengths: Drops, drops: Drops) -> Drops:
    """Q of each column of drops."""
    own = drops - drops.mean(axis=0)
    direction = words.T @ own
    found: Drops = np.square(direction).sum(axis=0) - lengths @ np.square(own)
    return found


def _chance(words: Any, lengths: Drops, drops: Drops) -> float:
    """The share of permutations with as large a Q."""
    observed = float(_statistic(words, lengths, drops[:, None])[0])
    rng, reached, done, step = np.random.default_rng(_SEED), 0, 0, _FIRST
    while done < _PERMUTATIONS and reached < _ENOUGH:
        count = min(step, _PERMUTATIONS - done, max(1, _AT_ONCE // len(drops)))
        columns = rng.permuted(np.repeat(drops[:, None], count, axis=1), axis=0)
        found = _statistic(words, lengths, columns)
        reached += int((found >= observed - _ROUNDING * abs(observed)).sum())
        done += count
        step *= 2
    return (1 + reached) / (1 + done)


def _members(words: Any, lengths: Drops, drops: Drops) -> Mask:
    """The questions whose words are those of the questions that fell."""
    own = drops - drops.mean()
    scores = words @ (words.T @ own) - own * lengths
    order = np.argsort(-scores, kind="stable")[: max(_FEWEST, int(_MOST_OF * len(drops)))]
    gain = np.cumsum(own[order]) / np.sqrt(np.arange(1, len(order) + 1))
    gain[: _FEWEST - 1] = -np.inf
    members = np.zeros(len(drops), dtype=bool)
    members[order[: int(np.argmax(gain)) + 1]] = True
    return members
