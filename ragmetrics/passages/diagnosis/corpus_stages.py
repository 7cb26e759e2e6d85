"""The stages of lost passages by the corpus: source edited, or not in the corpus any more."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.passages.diagnosis.corpus import CorpusEvidence, search_corpus
from ragmetrics.passages.diagnosis.log_stages import Verdict
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.passage_texts import OldPassage
from ragmetrics.passages.diagnosis.text_match import shingles_of
from ragmetrics.text import clean

_WHOLE = 0.95
"""Share of a passage's text in the corpus from which its source is unchanged."""
_PART = 0.5
"""Share from which its source was edited, and not removed."""


def ask_corpus(settings: Settings, lost: LostPairs) -> tuple[LostPairs, list[str]]:
    """The lost pairs with the stages that the corpus decides, and notes; unchanged without one."""
    texts = list(dict.fromkeys(old for old in lost.old if old and old.text))
    if settings.corpus is None or not texts:
        return lost, []
    try:
        found, unreadable = search_corpus(
            settings, [text.id for text in texts], shingles_of([text.text for text in texts])
        )
    except (InputError, StoreError) as error:
        return lost, [clean(f"corpus not read: {error}", 300)]
    evidence = dict(zip(texts, found, strict=True))
    notes = []
    if unreadable:
        notes = [
            f"{unreadable:,} records of the corpus have no text; passages in them look removed"
        ]
    return lost.with_verdicts(_stages(lost.verdicts, lost.old, evidence)), notes


def _stages(
    verdicts: Sequence[Verdict],
    old: Sequence[OldPassage | None],
    evidence: dict[OldPassage, CorpusEvidence],
) -> list[Verdict]:
    return [
        verdict if lost is None or lost not in evidence else _stage(verdict, evidence[lost])
        for verdict, lost in zip(verdicts, old, strict=True)
    ]


def _stage(verdict: Verdict, found: CorpusEvidence) -> Verdict:
    """The stage by the corpus, where the source changed; else as it was."""
    seen = verdict.stage == "in_index" and verdict.proven  # whatever the corpus says
    if found.share >= _WHOLE or seen:
        return verdict
    if found.known or found.share >= _PART:
        what = "its document is in the corpus" if found.known else "the corpus"
        return Verdict("edited", f"{what} with {found.share:.0%} of its text", proven=True)
    evidence = f"{found.share:.0%} of its text is in the corpus"
    return Verdict("not_in_corpus", evidence, proven=True)
