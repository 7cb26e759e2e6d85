"""The stage at which a passage was lost, from the logs alone.

evidence     what is seen now                              stage

text         under the same id there is another text       source edited, or re-chunked
retrieval    another question retrieves it now             still in the index
other texts  its text is in new texts under other ids      under another id, or re-chunked
chance       no question retrieves it, and many had it     probably gone from the index

Is a passage still in the index? The questions that retrieve it now and retrieved it before tell.
A passage that some question retrieves now is in the index. For one that no question retrieves now
there are two explanations: it is gone, or it is in the index and every question that had it lost it
by chance. The second is the less likely the more questions had it:

    P(not seen | in index) = prod over its pairs (1 - s_rank)
    P(gone | not seen)     = g / (g + (1 - g) P(not seen | in index))

s_rank is the share of pairs of this rank that are retained, among passages that another question
retrieves now, which are in the index. g, the share of passages that are gone, is estimated from all
passages by expectation maximisation.
Source: Dempster, Laird and Rubin 1977.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import Ids, is_in
from ragmetrics.passages.diagnosis.losses import Pairs
from ragmetrics.passages.diagnosis.passage_texts import Holder, TextEvidence
from ragmetrics.passages.diagnosis.retrievals import Retrievals, pair_keys
from ragmetrics.records import Stage, enumerated
from ragmetrics.text import clean, plural

_SAME = 0.95
"""Share of both texts that an equal text under another id has in common with a passage."""
_MOST = 0.5
"""Share of a passage that other texts must hold, so that it was cut otherwise."""
_LONGEST_ID = 60
SURE = 0.8
"""Probability from which a passage is said to be probably gone, or probably in the index."""
_RANKS = (1, 2, 4)
"""First ranks of the groups of ranks."""
_MOST_STEPS = 200
_STILL = 1e-6


@dataclass(frozen=True)
class Verdict:
    """The stage of one passage, and why."""

    stage: Stage
    evidence: str
    proven: bool = False
    asked: bool = False
    """Whether the retriever decided it."""


def stage_from_logs(
    texts: TextEvidence | None, before: int, now: int, gone: float, chance: float
) -> Verdict:
    """The stage of a passage.

    `before` and `now` count the questions that retrieved it then and retrieve it now. `gone` is the
    probability that it is gone from the index, `chance` that every question lost it by chance.
    `texts` is None for a passage whose text is not looked for.
    """
    if texts and texts.own is not None and texts.own < 1:
        return _changed(texts)
    if now:
        return Verdict("in_index", f"retrieved now for {plural(now, 'question')}", proven=True)
    if texts and (found := stage_of_texts(texts)):
        return found
    asked = f"no question retrieves it any more; {plural(before, 'question')} did before"
    if gone >= SURE and chance <= 1 - SURE:
        return Verdict("not_in_index", asked)
    return Verdict("undecided", f"{asked}, too few to tell")


def _changed(texts: TextEvidence) -> Verdict:
    """The stage of a passage whose id has another text now."""
    kept = f"its id has another text now, with {texts.own or 0:.0%} of the old one"
    if texts.total >= _MOST and texts.total > (texts.own or 0) + 1 - _SAME:
        return Verdict("rechunked", f"{kept}; {texts.total:.0%} is in {_named(texts.holders)}")
    return Verdict("edited", kept, proven=True)


def stage_of_texts(texts: TextEvidence) -> Verdict | None:
    """The stage of a passage whose text is in new texts; None where it is not."""
    best = texts.holders[0] if texts.holders else None
    if best and best.share >= _SAME and best.back >= _SAME and not best.id:
        return Verdict("in_index", "its text is retrieved now, in a row without ids", proven=True)
    if best and best.share >= _SAME and best.back >= _SAME:
        return Verdict("renamed", f"its text is retrieved as {_named([best])}", proven=True)
    if texts.total >= _MOST:
        share = f"{texts.total:.0%} of its text is in {_named(texts.holders)}"
        return Verdict("rechunked", share, proven=True)
    return None


def _named(holders: Sequence[Holder]) -> str:
    names = [clean(holder.id, _LONGEST_ID) for holder in holders if holder.id]
    return enumerated(names) if names else "new texts"


@dataclass(frozen=True)
class IndexEvidence:
    """What the questions say about passages."""

    passages: Ids
    """Distinct passages of the earlier pairs, ascending; so are the other arrays."""
    before: NDArray[np.intp]
    """Questions asked now that had retrieved it before."""
    now: NDArray[np.intp]
    """Questions that retrieve it now."""
    chance: NDArray[np.float64]
    """Probability that no question retrieves it by chance, if it is in the index."""
    gone: NDArray[np.float64]
    """Probability that it is gone from the index; 0 where a question retrieves it now."""

    def at(self, passages: Ids) -> NDArray[np.intp]:
        """The places of passages in the arrays."""
        return np.searchsorted(self.passages, passages)


def weigh_index_evidence(now: Retrievals, pairs: Pairs) -> IndexEvidence:
    """The evidence on all passages of the earlier pairs."""
    passages, of_pair = np.unique(pairs.passage, return_inverse=True)
    seen = _seen_now(now, passages)
    level = np.searchsorted(_RANKS, pairs.rank, side="right") - 1
    others = seen[of_pair] - pairs.retained  # questions beside the pair's own
    kept = _retained_shares(pairs.retained[others > 0], level[others > 0])
    chance = np.bincount(of_pair, weights=np.log1p(-kept[level]), minlength=len(passages))
    unseen = np.exp(chance)
    return IndexEvidence(passages, np.bincount(of_pair), seen, unseen, _gone(unseen, seen > 0))


def _seen_now(now: Retrievals, passages: Ids) -> NDArray[np.intp]:
    """The number of questions that retrieve each passage now."""
    question = now.question[now.row]
    _, first = np.unique(pair_keys(question, now.passage), return_index=True)
    found = now.passage[first]
    found = found[is_in(found, passages)]
    return np.bincount(np.searchsorted(passages, found), minlength=len(passages))


def _retained_shares(retained: NDArray[np.bool_], level: NDArray[np.intp]) -> NDArray[np.float64]:
    """The share of retained pairs by group of ranks, with one pair of either kind added."""
    counts = np.bincount(level, minlength=len(_RANKS))
    kept = np.bincount(level, weights=retained, minlength=len(_RANKS))
    shares: NDArray[np.float64] = (kept + 1) / (counts + 2)
    return shares


def _gone(unseen_by_chance: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The probability of each passage to be gone."""
    share, gone = 0.5, np.zeros(len(seen))
    for _ in range(_MOST_STEPS):
        gone = share / (share + (1 - share) * unseen_by_chance)
        gone[seen] = 0.0
        # One passage of either kind is added, so that the share is never 0 or 1.
        new = float((gone.sum() + 1) / (len(gone) + 2))
        if abs(new - share) < _STILL:
            break
        share = new
    return gone
