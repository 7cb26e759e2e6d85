"""Assigns questions to topics: a question of the fit has its group, another one that of its words.

So a question has the same topic on every night, whatever is retrieved for it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ragmetrics.config import Settings
from ragmetrics.records import TOPIC, LogRow, TopicModel, question_key
from ragmetrics.text import weigh, words_of


class Assigner:
    """Finds the topic of a question."""

    def __init__(self, model: TopicModel) -> None:
        self._rarity, self._known = model.rarity, model.known
        self._topics: dict[str, list[tuple[int, float]]] = {}
        for topic in model.topics:
            for word, weight in topic.weights.items():
                self._topics.setdefault(word, []).append((topic.id, weight))

    def topic_of(self, question: str) -> int | None:
        """The number of a question's topic; None for a question without a known word."""
        known = self._known.get(question_key(question))
        return self.score(question)[0] if known is None else known

    def score(self, question: str) -> tuple[int | None, float]:
        """The topic whose words the question has most of, and how much."""
        scores: dict[int, float] = {}
        for word, weight in weigh(Counter(words_of(question)), self._rarity).items():
            for topic, share in self._topics.get(word, ()):
                scores[topic] = scores.get(topic, 0.0) + weight * share
        best = max(scores, key=lambda topic: (scores[topic], -topic), default=None)
        return (best, scores[best]) if best is not None else (None, 0.0)


def model_digest(model: TopicModel) -> str:
    """What the tags of rows depend on."""
    data = model.model_dump_json().encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def tagger(settings: Settings, model: TopicModel) -> Callable[[LogRow], LogRow]:
    """A function that gives a row the tag of its topic. A tag of the log itself stays."""
    assigner = Assigner(model)
    names = {topic.id: topic.label(redact=settings.redacts_messages) for topic in model.topics}

    def tag(row: LogRow) -> LogRow:
        topic = assigner.topic_of(row.user_input)
        if topic is None or TOPIC in row.tags:
            return row
        return replace(row, tags={**row.tags, TOPIC: names[topic]})

    return tag
