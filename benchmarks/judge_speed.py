"""How many (question, context) pairs the lexical judge grades in a second, on one core.

Contexts are of the usual lengths of chunks, in characters, of made-up words with a usual spread
of frequencies; none is seen twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask

_SIZES = (400, 600, 1_600)
_CONTEXTS = 5
_VOCABULARY = 20_000


def report(rows: int) -> str:
    """Grade so many questions' contexts of each length."""
    return "\n".join(
        f"{size:>6,} characters: {_rate(rows, size):8,.0f} grades a second" for size in _SIZES
    )


def _rate(rows: int, size: int) -> float:
    pairs = list(_pairs(rows, size))
    corpus = Corpus()
    for question, context in pairs:
        corpus.add([context], question)
    judge = LexicalJudge(corpus)
    asks = [Ask(GRADE, {"question": question, "context": context}) for question, context in pairs]

    async def grade_all() -> float:
        start = time.process_time()
        for ask in asks:
            await judge.reply(ask, 0)
        return time.process_time() - start

    return len(asks) / asyncio.run(grade_all())


def _pairs(rows: int, size: int) -> Iterator[tuple[str, str]]:
    """Questions with their contexts, the same in every run."""
    draw = random.Random(1)
    letters = "aaabcdeeeefghiiijklmnnooopqrrsssttttuuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 11))) for _ in range(_VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(_VOCABULARY)]
    for _ in range(rows):
        question = " ".join(draw.choices(words, weights, k=12)) + "?"
        for _ in range(_CONTEXTS):
            text = " ".join(draw.choices(words, weights, k=size // 4))
            yield question, text[:size]


def main() -> None:
    """Measure and print."""
    print(report(400))


if __name__ == "__main__":
    main()
