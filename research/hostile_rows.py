"""How far hostile rows move the others' `context_relevance` with the lexical judge.

python -m research.hostile_rows LOGS...

To each log a twentieth of rows is added whose words are chosen to shift the weights of words. The
mean of the log's own rows stands beside what it is without them: with the weights as they are, and
with weights that a long text, or a row of many contexts, may shift without bound, and in which each
distinct context counts once.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from unittest.mock import patch

from ragmetrics.config import make_settings
from ragmetrics.judges import Corpus, word_frequencies as word_counts
from ragmetrics.judges.word_frequencies import words
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.logs import log_set
from ragmetrics.metrics.bundled.context_relevance import ANSWERS_FROM, HELPS_FROM
from ragmetrics.records import LogRow

SHARE = 0.05
Row = tuple[str, Sequence[str]]
UNBOUNDED = {
    "CONTEXT_WORDS": 1 << 30,
    "QUESTION_WORDS": 1 << 30,
    "ROW_CONTEXTS": 1 << 30,
    "CONTEXT_TIMES": 1,
}


def report(place: str) -> Iterator[str]:
    """The mean of a log's rows, and how far each kind of hostile rows moves it."""
    log = log_set(make_settings({}), place)
    rows = [
        (one.user_input, one.retrieved_contexts)
        for one in log.read()
        if isinstance(one, LogRow) and one.retrieved_contexts
    ]
    yield f"{place}: {len(rows):,} rows"
    for name, hostile in attacks(rows).items():
        bounded = mean(rows, hostile) - mean(rows, [])
        with patch.dict(vars(word_counts), UNBOUNDED):
            unbounded = mean(rows, hostile) - mean(rows, [])
        yield f"  {name:44}{bounded:+8.4f}   without bounds {unbounded:+8.4f}"


def attacks(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    """Hostile rows by what they are made of."""
    count = max(1, round(SHARE * len(rows)))
    asked = _common(question for question, _ in rows)
    known = list(dict.fromkeys([*asked, *_common(one for _, found in rows for one in found)]))

    def rows_of(question: str, context: str, contexts: int) -> list[Row]:
        return [
            (f"{n} {question}", [f"{n} {m} {context}" for m in range(contexts)])
            for n in range(count)
        ]

    junk = " ".join(f"junk{n}" for n in range(20_000))
    return {
        "questions of every word of the log": rows_of(" ".join(known), "nothing", 1),
        "questions of every word of its questions": rows_of(" ".join(asked), "nothing", 1),
        "5 contexts of every word of the log": rows_of("what", " ".join(known), 5),
        "5 contexts of its rarest words": rows_of("what", " ".join(known[-128:]), 5),
        "5 contexts of 20,000 new words": rows_of("what", junk, 5),
        "500 contexts of its questions' words": rows_of("what", " ".join(asked[:128]), 500),
    }


def mean(rows: Sequence[Row], hostile: Sequence[Row]) -> float:
    """Mean `context_relevance` of the rows, words being weighed by the hostile ones, too."""
    corpus = Corpus()
    for question, contexts in (*rows, *hostile):
        corpus.add(contexts, question)
    judge = Overlap(corpus)

    def value(row: Row) -> float:
        found = [judge.relevance(row[0], context) for context in row[1]]
        return sum((one >= HELPS_FROM) + (one >= ANSWERS_FROM) for one in found) / 2 / len(found)

    return sum(map(value, rows)) / len(rows)


def _common(texts: Iterator[str]) -> list[str]:
    """The words of some texts, those of most texts first."""
    return [
        word for word, _ in Counter(w for text in texts for w in set(words(text))).most_common()
    ]


def main() -> None:
    """Report on each log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+")
    for place in parser.parse_args().logs:
        for line in report(place):
            print(line, flush=True)


if __name__ == "__main__":
    main()
