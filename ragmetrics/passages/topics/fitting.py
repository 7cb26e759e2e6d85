"""Fits topics to the questions of past nights.

A question is described by its own words and by the words that were retrieved for it: contexts have
many words of a topic, and a question few. A topic's words are weighed by how much more often its
questions have them than the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from ragmetrics.passages.topics.clustering import Groups, group_texts
from ragmetrics.passages.topics.question_texts import PastQuestion
from ragmetrics.records import Topic, TopicModel, question_key
from ragmetrics.scoring import Assigner
from ragmetrics.text import clean, rarity_of, weigh, words_of

FEWEST_QUESTIONS = 50
_OWN = 3
"""How often the words of the question count beside those of its contexts."""
_NAME_WORDS = 3
_TYPICAL = 3
_MOST_WEIGHTS = 300
"""Words of a topic that are kept."""
_SAME = 0.5
"""Share of common questions from which a topic is an old one."""
_LONGEST_QUESTION = 200


def fit_topics(
    day: date,
    nights: Sequence[date],
    questions: Sequence[PastQuestion],
    *,
    count: int | None = None,
    before: TopicModel | None = None,
) -> TopicModel | None:
    """Topics for the nights from `day` on, or None with less than 50 questions.

    `before` are the topics so far: a new topic that has most of an old one's questions keeps its
    number and name.
    """
    rarity, weights = word_weights(questions)
    usable = [number for number, one in enumerate(weights) if one]
    if len(usable) < FEWEST_QUESTIONS:
        return None
    words = sorted(rarity)
    groups = group_texts([weights[number] for number in usable], words, count)
    asked = [questions[number].text for number in usable]
    topics, of_group = _topics([weights[number] for number in usable], groups)
    model = TopicModel(
        day=day,
        nights=list(nights),
        questions=len(usable),
        rarity=rarity,
        topics=topics,
        known={question_key(q): of_group[g] for q, g in zip(asked, groups.tolist(), strict=True)},
    )
    return _typical(_continued(model, before, asked), asked)


def word_weights(
    questions: Sequence[PastQuestion],
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """The rarity of each word of some questions, and the weights of each question's words."""
    counts = [word_counts(question) for question in questions]
    rarity = rarity_of(counts)
    return rarity, [weigh(count, rarity) for count in counts]


def word_counts(one: PastQuestion) -> Counter[str]:
    """The words of a question and of its passages; its own words count three times."""
    own = Counter({word: _OWN * n for word, n in Counter(words_of(one.text)).items()})
    for context in one.contexts:
        own.update(words_of(context))
    return own


def _topics(
    weights: Sequence[Mapping[str, float]], groups: Groups
) -> tuple[list[Topic], dict[int, int]]:
    """The topics by size, the largest first, and the topic of each group."""
    found = []
    sizes = np.bincount(groups)
    whole = mean_weights(weights)
    order = [group for group in np.argsort(-sizes, kind="stable").tolist() if sizes[group]]
    for number, group in enumerate(order, 1):
        own = [one for one, mine in zip(weights, groups == group, strict=True) if mine]
        telling = telling_words(own, whole)
        top = list(telling)[:_MOST_WEIGHTS]
        found.append(
            Topic(
                id=number,
                name=clean(", ".join(top[:_NAME_WORDS]), 120),
                questions=[],
                share=len(own) / len(weights),
                weights={word: round(telling[word], 5) for word in top},
            )
        )
    return found, {group: number for number, group in enumerate(order, 1)}


def telling_words(
    own: Sequence[Mapping[str, float]], whole: Mapping[str, float]
) -> dict[str, float]:
    """The words that some questions have more of than all, the most telling first."""
    mean = mean_weights(own)
    more = {word: weight - whole.get(word, 0.0) for word, weight in mean.items()}
    ordered = sorted(more, key=lambda word: (-more[word], word))
    return {word: more[word] for word in ordered if more[word] > 0}


def mean_weights(weights: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean weight of each word."""
    sums: dict[str, float] = {}
    for weight in weights:
        for word, value in weight.items():
            sums[word] = sums.get(word, 0.0) + value
    return {word: value / len(weights) for word, value in sums.items()}


def _continued(model: TopicModel, before: TopicModel | None, asked: Sequence[str]) -> TopicModel:
    """The model with the numbers and names of old topics that it continues."""
    if before is None:
        return model
    now, then = Assigner(model), Assigner(before)
    pairs = Counter((now.topic_of(one), then.topic_of(one)) for one in asked)
    new, old = Counter[int | None](), Counter[int | None]()
    for (a, b), n in pairs.items():
        new[a] += n
        old[b] += n
    continued: dict[int, int] = {}
    for (a, b), n in sorted(pairs.items(), key=lambda pair: (-pair[1], str(pair[0]))):
        if a is None or b is None or a in continued or b in continued.values():
            continue
        if n >= _SAME * (new[a] + old[b] - n):
            continued[a] = b
    names = {topic.id: topic.name for topic in before.topics}
    free = iter(range(max(names, default=0) + 1, 10_000))
    numbers = {topic.id: continued.get(topic.id) or next(free) for topic in model.topics}
    topics = [
        topic.model_copy(
            update={"id": numbers[topic.id], "name": names.get(numbers[topic.id], topic.name)}
        )
        for topic in model.topics
    ]
    known = {key: numbers[topic] for key, topic in model.known.items()}
    return model.model_copy(update={"topics": topics, "known": known})


def _typical(model: TopicModel, asked: Sequence[str]) -> TopicModel:
    """The model with typical questions, and names that differ."""
    assigner = Assigner(model)
    scored: dict[int, list[tuple[float, str]]] = {}
    for question in sorted(set(asked)):
        topic, score = assigner.score(question)
        if topic is not None and topic == assigner.topic_of(question):
            scored.setdefault(topic, []).append((-score, question))
    names: Counter[str] = Counter()
    topics = []
    for fitted in model.topics:
        names[fitted.name] += 1
        again = f" ({names[fitted.name]})" if names[fitted.name] > 1 else ""
        best = sorted(scored.get(fitted.id, []))[:_TYPICAL]
        typical = [clean(question, _LONGEST_QUESTION) for _, question in best]
        topics.append(
            fitted.model_copy(update={"questions": typical, "name": f"{fitted.name}{again}"})
        )
    return model.model_copy(update={"topics": topics})
