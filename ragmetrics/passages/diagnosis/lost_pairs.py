"""The lost passages of a run with their stages, first from the logs alone.

A stage from the logs is one of the passage: all questions that lost it lost it there.
Where only one of two runs has document ids, these cannot be compared, so the texts are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import Ids, in_order, is_in
from ragmetrics.passages.diagnosis.log_stages import Verdict, stage_from_logs, weigh_index_evidence
from ragmetrics.passages.diagnosis.losses import Pairs, find_pairs
from ragmetrics.passages.diagnosis.passage_texts import (
    OldPassage,
    find_texts,
    known_identities,
    old_passages,
)
from ragmetrics.passages.diagnosis.retrievals import Retrievals, Run, pair_keys, read_newest
from ragmetrics.records import Stage

MOST_TRACED = 1_000
"""Lost passages whose texts are looked for; the others are judged by their ids alone."""
_KNOWN_TEXTS = 3
"""Earlier runs, the newest ones, whose texts are not new."""


@dataclass(frozen=True)
class LostPairs:
    """Every pair of a question and a passage that it lost, with the stage."""

    now: Retrievals
    runs: Sequence[Run]
    """The runs of now, newest first: the one that is looked at, and those since a loss began."""
    earlier: Sequence[Run]
    pairs: Pairs
    places: NDArray[np.intp]
    """The lost ones among the pairs."""
    verdicts: list[Verdict]
    """The stage of each lost pair; so are the two below."""
    by_logs: list[Stage]
    old: list[OldPassage | None]
    """Each passage as it was; None where its text was not looked for."""

    @property
    def questions(self) -> NDArray[np.uint32]:
        """The question of each lost pair."""
        return self.pairs.question[self.places]

    def cut(self, question: int) -> int:
        """The number of passages that a question retrieves now."""
        rows = np.flatnonzero(self.now.question == question)
        counts = np.bincount(np.searchsorted(rows, self.now.row[is_in(self.now.row, rows)]))
        return int(counts.max()) if len(counts) else 0

    @cached_property
    def texts_before(self) -> Ids:
        """The identities, of ids with their texts, that the newest earlier run had retrieved."""
        return known_identities(self.earlier[-1]) if self.earlier else np.array([], np.uint64)


def find_lost_pairs(
    run: Run, earlier: Sequence[Run], during: Sequence[Run] = ()
) -> LostPairs | None:
    """The passages that the questions of a run lost since the `earlier` runs, oldest first.

    `during` are runs after these that lost passages. A question that was not asked again since is
    as it was in the newest of them. None where no question with a known needed passage was asked
    before, or no rows are stored.
    """
    runs = [run, *reversed(during)]
    now = read_newest(runs)
    pairs = find_pairs(now, earlier) if now is not None else None
    if now is None or pairs is None or not pairs.needed.any():
        return None
    pairs = with_equal_texts(runs, now, earlier, pairs)
    places = np.flatnonzero(pairs.lost)
    evidence = weigh_index_evidence(now, pairs)
    passages, first, of_pair = np.unique(
        pairs.passage[places], return_index=True, return_inverse=True
    )
    traced = np.arange(len(passages))[:: max(1, -(-len(passages) // MOST_TRACED))]
    old = old_passages(earlier, pairs, places[first[traced]])
    texts = find_texts(runs, earlier[-_KNOWN_TEXTS:], passages[traced], old) if len(traced) else []
    text_of = dict(zip(traced.tolist(), texts, strict=True))
    old_of = dict(zip(traced.tolist(), old, strict=True))
    at = evidence.at(passages)
    verdicts = [
        stage_from_logs(
            text_of.get(number),
            int(evidence.before[place]),
            int(evidence.now[place]),
            float(evidence.gone[place]),
            float(evidence.chance[place]),
        )
        if len(now.row)
        else Verdict("undecided", "nothing was retrieved for any question")
        for number, place in enumerate(at)
    ]
    return LostPairs(
        now,
        runs,
        earlier,
        pairs,
        places,
        [verdicts[number] for number in of_pair],
        [verdicts[number].stage for number in of_pair],
        [old_of.get(int(number)) for number in of_pair],
    )


def sources_of(lost: LostPairs) -> dict[Stage, list[Stage]]:
    """The stages that the passages of each stage have by the logs alone."""
    found: dict[Stage, Counter[Stage]] = {}
    for verdict, before in zip(lost.verdicts, lost.by_logs, strict=True):
        found.setdefault(verdict.stage, Counter())[before] += 1
    return {stage: sorted(own) for stage, own in found.items()}


def with_equal_texts(
    runs: Sequence[Run], now: Retrievals, earlier: Sequence[Run], pairs: Pairs
) -> Pairs:
    """The pairs, of which those with an equal text now are retained."""
    unnamed = np.unique(now.question[~now.named])
    places = np.flatnonzero(pairs.lost & (pairs.named == is_in(pairs.question, unnamed)))
    if not len(places):
        return pairs
    questions = pairs.question[places]
    there = read_newest(runs, np.unique(questions), by_text=True)
    texts = [passage.text if passage else "" for passage in old_passages(earlier, pairs, places)]
    if there is None:
        return pairs
    retained = pairs.retained.copy()
    retained[places] = is_in(pair_keys(questions, in_order(texts)), there.keys)
    return replace(pairs, retained=retained)
