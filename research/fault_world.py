"""A world whose faults are known: the demo's help centre, its corpus, its index and its retriever.

Each fault changes the corpus, the index or the retriever of one build:

section     the passages of one section are not in the index
chunker     the index has the documents of four sections in other chunks, with other ids
ranker      the scores of the retriever are noisy: right passages rank worse
filter      for questions from the app, the retriever hides the passages of four sections
filter_all  for all questions, it hides those of one section
ids         the documents of three sections have other ids
edited      a third of the documents is rewritten by half
removed     an eighth of the documents is no longer in the corpus

The truth of a lost passage is read from the state of the world, never from the fault's name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from ragmetrics.records import LogRow, Score, Stage
from ragmetrics.storage import (
    Files,
    PartWriter,
    ROW_SCHEMA,
    RunRef,
    SCORE_SCHEMA,
    row_record,
    score_record,
)
from scripts.make_demo import DEMO, Index, Passage, read_jsonl, read_passages, tokenize

K = 4
CHANNELS = ("web", "app", "email")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class World:
    """One build: its corpus, its index and its retriever."""

    corpus: Sequence[Passage]
    chunks: Sequence[Passage]
    noise: float = 0.01
    """Standard deviation of the logarithm of a score's error; a question keeps its errors."""
    hidden: frozenset[str] = frozenset()
    """Sections that are hidden from `channels`."""
    channels: frozenset[str] = frozenset()
    seed: int = 0
    sections: Mapping[str, str] = field(default_factory=dict)
    """Section of each chunk id."""

    @cached_property
    def _index(self) -> Index:
        return Index(self.chunks)

    def search(
        self, question: str, channel: str, k: int = K, *, filters: bool = True
    ) -> list[Passage]:
        """The best chunks for a question that came through a channel."""
        words = _words(question)
        if not words:
            return []
        scores = self._index.scores(list(words))
        errors = np.random.default_rng(_number(f"{self.seed}/{question}")).standard_normal(
            len(scores)
        )
        scores = scores * np.exp(self.noise * errors)
        order = np.argsort(-scores, kind="stable")
        hides = filters and channel in self.channels
        found = [
            self.chunks[place]
            for place in order.tolist()
            if scores[place] > 0 and not (hides and self.chunks[place].section in self.hidden)
        ]
        return found[:k]


@cache
def _words(question: str) -> tuple[str, ...]:
    (words,) = tokenize([question])
    return tuple(words)


def first_world() -> World:
    """The world without a fault."""
    passages = read_passages()
    return World(passages, passages)


def drop_section(world: World, rng: random.Random) -> World:
    """The index without one section."""
    lost = rng.choice(_sections(world))
    return replace(world, chunks=[one for one in world.chunks if one.section != lost])


def change_chunker(world: World, rng: random.Random) -> World:
    """The index with other chunks of four sections: three sentences each, one in common."""
    cut = set(rng.sample(_sections(world), 4))
    chunks: list[Passage] = []
    for one in world.chunks:
        chunks += _cut(one) if one.section in cut else [one]
    return replace(world, chunks=chunks)


def _cut(one: Passage) -> list[Passage]:
    sentences = _SENTENCE.split(one.text)
    starts = range(0, max(1, len(sentences) - 1), 2)
    return [
        Passage(f"{one.id}#{number}", one.section, one.title, " ".join(sentences[at : at + 3]))
        for number, at in enumerate(starts)
    ]


def worsen_ranker(world: World, rng: random.Random) -> World:
    """Noisy scores."""
    return replace(world, noise=0.8, seed=rng.randrange(1_000_000))


def hide_sections(world: World, rng: random.Random) -> World:
    """Four sections are hidden from the app."""
    hidden = frozenset(rng.sample(_sections(world), 4))
    return replace(world, hidden=hidden, channels=frozenset({"app"}))


def hide_section_from_all(world: World, rng: random.Random) -> World:
    """One section is hidden from everybody."""
    return replace(
        world, hidden=frozenset({rng.choice(_sections(world))}), channels=frozenset(CHANNELS)
    )


def rename_ids(world: World, rng: random.Random) -> World:
    """Other ids for three sections."""
    renamed = set(rng.sample(_sections(world), 3))
    return replace(
        world,
        chunks=[
            replace(one, id=f"doc-{_number(one.id) % 10**6:06d}") if one.section in renamed else one
            for one in world.chunks
        ],
    )


def edit_documents(world: World, rng: random.Random) -> World:
    """A third of the documents has half of its sentences from others; the index follows."""
    others = [s for one in world.corpus for s in _SENTENCE.split(one.text)]
    edited = {
        one.id: replace(one, text=_edited(one.text, others, rng))
        for one in rng.sample(list(world.corpus), len(world.corpus) // 3)
    }
    return _with_documents(world, edited)


def _edited(text: str, others: Sequence[str], rng: random.Random) -> str:
    sentences = _SENTENCE.split(text)
    for place in rng.sample(range(len(sentences)), -(-len(sentences) // 2)):
        # Words in another order: no sentence of the corpus twice.
        words = rng.choice(others).split()
        sentences[place] = " ".join(rng.sample(words, len(words)))
    return " ".join(sentences)


def remove_documents(world: World, rng: random.Random) -> World:
    """An eighth of the documents is gone from corpus and index."""
    gone = {one.id for one in rng.sample(list(world.corpus), len(world.corpus) // 8)}
    return replace(
        world,
        corpus=[one for one in world.corpus if one.id not in gone],
        chunks=[one for one in world.chunks if one.id.partition("#")[0] not in gone],
    )


def _with_documents(world: World, edited: Mapping[str, Passage]) -> World:
    return replace(
        world,
        corpus=[edited.get(one.id, one) for one in world.corpus],
        chunks=[edited.get(one.id, one) for one in world.chunks],
    )


FAULTS: Mapping[str, Callable[[World, random.Random], World]] = {
    # The corpus changes first, and the index is built from it.
    "edited": edit_documents,
    "removed": remove_documents,
    "section": drop_section,
    "chunker": change_chunker,
    "ids": rename_ids,
    "ranker": worsen_ranker,
    "filter": hide_sections,
    "filter_all": hide_section_from_all,
}


def _sections(world: World) -> list[str]:
    return sorted({one.section for one in world.corpus})


def _number(text: str) -> int:
    return int.from_bytes(random.Random(text).randbytes(4), "big")


def truths(before: World, now: World, passage: str, question: str, channel: str) -> set[Stage]:
    """The true stages of a passage that a question retrieved before and does not retrieve now.

    More than one where two faults hit the same passage, each of which would have lost it.
    """
    old = next(one for one in before.chunks if one.id == passage)
    document = {one.id: one for one in now.corpus}.get(passage)
    if document is None:
        return {"not_in_corpus"}
    found: set[Stage] = set()
    if document.text != old.text:
        found.add("edited")
    chunk = {one.id: one for one in now.chunks}.get(passage)
    if chunk is None:
        texts = [one for one in now.chunks if one.text == document.text]
        parts = [one for one in now.chunks if one.text in document.text]
        found.add("renamed" if texts else "rechunked" if parts else "not_in_index")
        return found
    if channel in now.channels and chunk.section in now.hidden:
        return found | {"filtered"}
    return found or {"below_cut"}


@dataclass(frozen=True)
class AskedQuestion:
    """A question of the world's traffic."""

    text: str
    section: str
    channel: str
    golden: tuple[str, ...] = ()


def read_questions(rng: random.Random, live: int = 160) -> list[AskedQuestion]:
    """The golden questions, and some of the others, each through one channel."""
    golden = [
        AskedQuestion(
            row["user_input"],
            row["section"],
            rng.choice(CHANNELS),
            tuple(row["reference_context_ids"]),
        )
        for row in read_jsonl(DEMO / "golden.jsonl")
    ]
    traffic = read_jsonl(DEMO / "traffic.jsonl")
    return golden + [
        AskedQuestion(row["user_input"], row["section"], rng.choice(CHANNELS))
        for row in rng.sample(traffic, min(live, len(traffic)))
    ]


def write_night(
    folder: Path, night: date, world: World, questions: Sequence[AskedQuestion]
) -> RunRef:
    """Write the rows of a night into a store, and verdicts: the first passage answers."""
    ref = RunRef(date=night, run="made", shards=1)
    rows = PartWriter(folder, ROW_SCHEMA)
    scores = PartWriter(folder, SCORE_SCHEMA)
    for number, one in enumerate(questions):
        hits = world.search(one.text, one.channel)
        row = LogRow(
            id=f"{night}-{number}",
            user_input=one.text,
            retrieved_contexts=tuple(hit.text for hit in hits),
            retrieved_context_ids=tuple(hit.id for hit in hits),
            reference_context_ids=one.golden or None,
            tags={"section": one.section, "channel": one.channel},
        )
        rows.add(row_record(row))
        grades = [2 if rank == 0 else 0 for rank in range(len(hits))]
        scores.add(score_record(row, Score(1.0, details={"grades": grades})))
    files = Files(str(folder))
    rows.finish(files, ref.rows(0))
    scores.finish(files, ref.scores("context_relevance", 0))
    return ref


asked_world: list[World] = []
"""The world that the retriever of the settings asks."""


def retrieve(
    user_input: str, _build: str, k: int, filters: bool, channel: str
) -> list[dict[str, str]]:
    """The retriever of the world, as the settings name it."""
    hits = asked_world[-1].search(user_input, channel, k, filters=filters)
    return [{"text": hit.text, "id": hit.id} for hit in hits]


def look_up(passage: str, _build: str) -> bool:
    """Whether the index has a passage."""
    return any(one.id == passage for one in asked_world[-1].chunks)
