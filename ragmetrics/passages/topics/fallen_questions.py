"""The topic that a fall is confined to: its questions, its words, its typical questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ragmetrics.passages.topics.fallen_group import find_fallen_group
from ragmetrics.passages.topics.fitting import mean_weights, telling_words, word_counts
from ragmetrics.passages.topics.question_texts import PastQuestion
from ragmetrics.text import rarity_of, weigh

_NAME_WORDS = 3
_TYPICAL = 3


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
    counts = [word_counts(texts[one]) for one in asked]
    rarity = rarity_of(counts)
    weights = [weigh(count, rarity) for count in counts]
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
