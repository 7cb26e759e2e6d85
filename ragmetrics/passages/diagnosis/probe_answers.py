"""Finds a passage in an answer of the retriever: by its id, or its text in new texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragmetrics.passages.diagnosis.document_ids import in_order, is_in
from ragmetrics.passages.diagnosis.log_stages import Verdict, stage_of_texts
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.passage_texts import Holder, TextEvidence
from ragmetrics.passages.diagnosis.retrievals import pair_keys
from ragmetrics.passages.diagnosis.text_match import contained, shingles, shingles_of
from ragmetrics.records import LogRow, Stage


@dataclass(frozen=True)
class Sought:
    """A passage that is looked for."""

    passage: int
    """Its hash."""
    id: str
    text: str


@dataclass(frozen=True)
class FoundInAnswer:
    """Where a passage is in an answer: at a rank, or in new texts."""

    rank: int = 0
    """Rank from 1 of the passage itself; 0: it is not there."""
    stage: Stage | None = None
    """The stage that new texts show."""
    evidence: str = ""


def find_in_answer(one: Sought, answer: LogRow, lost: LostPairs) -> FoundInAnswer:
    """Where a passage is in an answer. A text that an earlier run had is no new text."""
    texts = list(answer.retrieved_contexts)
    names = list(answer.retrieved_context_ids or [""] * len(texts))
    digests = in_order(texts) if texts else np.array([], dtype=np.uint64)
    passages = in_order([n or t for n, t in zip(names, texts, strict=True)]) if texts else digests
    hits = np.flatnonzero(passages == np.uint64(one.passage))
    if len(hits):
        return FoundInAnswer(rank=int(hits[0]) + 1)
    verdict = _in_other_texts(one, names, texts, pair_keys(passages, digests), lost)
    return FoundInAnswer(stage=verdict.stage, evidence=verdict.evidence) if verdict else _NOWHERE


def _in_other_texts(
    one: Sought, names: list[str], texts: list[str], identities: np.ndarray, lost: LostPairs
) -> Verdict | None:
    wanted = shingles(one.text)
    parts = shingles_of(texts) if texts else []
    near = [place for place, own in enumerate(parts) if contained(wanted, own) > 0]
    old = is_in(identities, lost.texts_before)
    new = [place for place in near if not old[place]]
    if not new:
        return None
    holders = [
        Holder(names[place], contained(wanted, parts[place]), contained(parts[place], wanted))
        for place in new
    ]
    holders.sort(key=lambda holder: (-holder.share, holder.id))
    total = contained(wanted, np.unique(np.concatenate([parts[place] for place in new])))
    return stage_of_texts(TextEvidence(None, tuple(holders[:3]), total))


_NOWHERE = FoundInAnswer()
