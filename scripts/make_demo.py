"""Make the demo's retrieval logs: ten nights of BM25 retrieval over the demo help centre.

Nothing in the logs is invented: the night of the incident is worse because its index really
lacks three sections. The same inputs give the same bytes on every run.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import bm25s
from bm25s.stopwords import STOPWORDS_EN_PLUS

DEMO = Path(__file__).resolve().parents[1] / "ragmetrics" / "pipeline" / "demo"
SEED = "lumenroster"

FIRST_NIGHT = date(2026, 11, 10)
NIGHTS = 10
LOST_SECTIONS = {date(2026, 11, 17): frozenset({"billing", "integrations", "payroll"})}

K1, B = 1.2, 0.75
TOP_K = 4

TRAFFIC_PER_NIGHT = 60
REPEATED_QUESTIONS = (2, 5)
CHANNELS = {"web": 5, "app": 4, "email": 1}
BUSIEST_HOUR = 13

NOT_FOUND = "I could not find that in the help centre."
MIN_MATCH = 0.2
MIN_GAIN = 0.12

# Questions are full of words that the index would otherwise take for rare, telling ones.
QUESTION_WORDS = ("get", "happens", "like", "many", "may", "much", "must", "somebody", "someone")
SUFFIXES = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("s", ""))
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage of the help centre."""

    id: str
    section: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage and its BM25 score."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question as somebody asked it, with where it came from."""

    user_input: str
    section: str
    source: str
    channel: str


def stem(word: str) -> str:
    """Cut the commonest English endings, so that 'swapped' and 'swaps' meet."""
    for suffix, ending in SUFFIXES:
        if word.endswith(suffix) and not word.endswith("ss") and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix) + ending
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeios":
        word = word[:-1]
    return word.removesuffix("e")


def tokenize(texts: Iterable[str]) -> list[list[str]]:
    """Split texts into stemmed words without stop words."""
    tokens: list[list[str]] = bm25s.tokenize(
        list(texts),
        stopwords=[*STOPWORDS_EN_PLUS, *QUESTION_WORDS],
        stemmer=lambda words: [stem(word) for word in words],
        return_ids=False,
        show_progress=False,
    )
    return tokens


class Index:
    """A BM25 index over the passages that one night's build contains."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._bm25 = bm25s.BM25(k1=K1, b=B)
        self._bm25.index(tokenize(f"{p.title}. {p.text}" for p in passages), show_progress=False)

    def scores(self, words: Sequence[str]) -> Any:
        """The BM25 score of each passage for the words of a question."""
        return self._bm25.get_scores(list(words))

    def search(self, question: str) -> list[Hit]:
        """Return the best passages, leaving out those that share no word with the question."""
        (words,) = tokenize([question])
        if not words:
            return []
        scores = (round(float(score), 4) for score in self.scores(words))
        hits = [Hit(p, s) for p, s in zip(self._passages, scores, strict=True) if s > 0]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:TOP_K]


class Responder:
    """Answers with the sentences of the retrieved passages that cover the question best."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._size = len(passages)
        self._documents_with: Counter[str] = Counter()
        for words in tokenize(f"{p.title}. {p.text}" for p in passages):
            self._documents_with.update(set(words))

    def answer(self, question: str, hits: Sequence[Hit]) -> str:
        """Compose one or two sentences, or say that nothing was found."""
        wanted = set(tokenize([question])[0])
        sentences = [
            (sentence, hit.score / hits[0].score)
            for hit in hits
            for sentence in SENTENCE_END.split(hit.passage.text)
        ]
        shared = [wanted.intersection(words) for words in tokenize(s for s, _ in sentences)]
        chosen: list[int] = []
        for least in (MIN_MATCH, MIN_GAIN):
            covered = {word for i in chosen for word in shared[i]}
            matches = [
                rank * self._weight(words - covered) / self._weight(wanted)
                for words, (_, rank) in zip(shared, sentences, strict=True)
            ]
            best = max(matches, default=0.0)
            if best < least:
                break
            chosen.append(matches.index(best))
        return " ".join(sentences[i][0] for i in sorted(chosen)) or NOT_FOUND

    def _weight(self, words: set[str]) -> float:
        # fsum, because the order of a set differs between runs and plain sums would too.
        return math.fsum(math.log(1 + self._size / (1 + self._documents_with[w])) for w in words)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_passages() -> list[Passage]:
    """Read the help centre."""
    return [Passage(**row) for row in read_jsonl(DEMO / "corpus.jsonl")]


def read_golden() -> list[Question]:
    """Read the golden questions; each keeps its channel through all nights."""
    rng = random.Random(f"{SEED}/golden")
    return [
        Question(row["user_input"], row["section"], "golden", pick_channel(rng))
        for row in read_jsonl(DEMO / "golden.jsonl")
    ]


def pick_channel(rng: random.Random) -> str:
    """Draw the channel through which a question came."""
    return rng.choices(list(CHANNELS), weights=list(CHANNELS.values()))[0]


def draw_live(rng: random.Random) -> list[Question]:
    """Draw one night's live questions, a few of them asked again by other users."""
    rows = rng.sample(read_jsonl(DEMO / "traffic.jsonl"), TRAFFIC_PER_NIGHT)
    asked = [Question(r["user_input"], r["section"], "live", pick_channel(rng)) for r in rows]
    repeated = rng.sample(asked, rng.randint(*REPEATED_QUESTIONS))
    again = [
        replace(question, channel=pick_channel(rng))
        for question in repeated
        for _ in range(rng.randint(1, 2))
    ]
    return asked + again


def draw_times(rng: random.Random, night: date, count: int) -> list[datetime]:
    """Draw times of one day in order, densest around the busiest hour."""
    midnight = datetime.combine(night, time(), tzinfo=UTC)
    hours = sorted(rng.triangular(0, 24, BUSIEST_HOUR) for _ in range(count))
    return [midnight + timedelta(seconds=int(hour * 3600)) for hour in hours]


def make_row(question: Question, hits: Sequence[Hit], response: str) -> dict[str, Any]:
    """Build the fields of a log row that come from retrieval."""
    return {
        "user_input": question.user_input,
        "retrieved_contexts": [hit.passage.text for hit in hits],
        "retrieved_context_ids": [hit.passage.id for hit in hits],
        "retrieved_context_scores": [hit.score for hit in hits],
        "response": response,
    }


def make_night(
    night: date, passages: Sequence[Passage], golden: Sequence[Question], responder: Responder
) -> Iterator[dict[str, Any]]:
    """Ask all questions of one night and yield the rows of its log."""
    lost = LOST_SECTIONS.get(night, frozenset())
    index = Index([p for p in passages if p.section not in lost])
    rng = random.Random(f"{SEED}/{night}")
    questions = [*golden, *draw_live(rng)]
    rng.shuffle(questions)
    times = draw_times(rng, night, len(questions))
    for number, (question, asked_at) in enumerate(zip(questions, times, strict=True), 1):
        hits = index.search(question.user_input)
        yield {
            "id": f"{night}-{number:04d}",
            "timestamp": asked_at.isoformat(),
            **make_row(question, hits, responder.answer(question.user_input, hits)),
            "index_build": f"build-{night}",
            "language": "en",
            "tags": {
                "source": question.source,
                "section": question.section,
                "channel": question.channel,
            },
        }


def write_log(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write a log as gzipped JSON Lines without a wall-clock time and return its size."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(lines.encode("utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(buffer.getvalue())


def main() -> None:
    """Write the logs of all nights."""
    parser = argparse.ArgumentParser(description="Make the retrieval logs of the demo.")
    parser.add_argument("--out", type=Path, default=DEMO / "logs", help="where the nights go")
    out: Path = parser.parse_args().out
    passages, golden = read_passages(), read_golden()
    responder = Responder(passages)
    for night in (FIRST_NIGHT + timedelta(days=n) for n in range(NIGHTS)):
        path = out / f"dt={night}" / "retrieval.jsonl.gz"
        size = write_log(path, make_night(night, passages, golden, responder))
        print(f"{path}: {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
