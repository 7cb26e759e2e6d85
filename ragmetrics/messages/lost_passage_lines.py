"""Lost passages in a message: what happened to them, and one example."""

from __future__ import annotations

from ragmetrics.records import LostPassage, LostPassages, stage_words
from ragmetrics.text import clean


def lost_passage_lines(lost: LostPassages | None, *, redact: bool) -> list[str]:
    """Two lines; none where no stage is significant. `redact` leaves out the texts."""
    if lost is None or not lost.sentence:
        return []
    first = clean(f"{lost.sentence[:1].upper()}{lost.sentence[1:]}", 400)
    return [first, *(_example(passage, redact=redact) for passage in lost.passages[:1])]


def _example(one: LostPassage, *, redact: bool) -> str:
    name = f" {clean(one.id, 80)}" if one.id else ""
    question = "" if redact else f" of “{clean(one.user_input, 150)}”"
    stage = stage_words(one.stage, proven=one.proven)
    return f"For example{name}{question}: {stage}; {clean(one.evidence, 200)}"
