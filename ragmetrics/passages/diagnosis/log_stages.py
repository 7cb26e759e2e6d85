"""The stage at which a passage was lost, from the logs alone.

evidence     what is seen now                              stage

text         under the same id there is another text       source edited, or re-chunked
retrieval    another question retrieves it now             still in the index
other texts  its text is in new texts under other ids      under another id, or re-chunked
chance       no question retrieves it, and many had it     probably gone from the index
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.passages.diagnosis.index_evidence import SURE
from ragmetrics.passages.diagnosis.passage_texts import Holder, TextEvidence
from ragmetrics.records import Stage, enumerated
from ragmetrics.text import clean

_SAME = 0.95
"""Share of both texts that an equal text under another id has in common with a passage."""
_MOST = 0.5
"""Share of a passage that other texts must hold, so that it was cut otherwise."""
_LONGEST_ID = 60


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
        return Verdict("in_index", f"retrieved now for {_questions(now)}", proven=True)
    if texts and (found := stage_of_texts(texts)):
        return found
    asked = f"no question retrieves it any more; {_questions(before)} did before"
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


def _questions(count: int) -> str:
    return "1 question" if count == 1 else f"{count:,} questions"
