"""The sentence of a rule's finding: made once, of the decision and the notes of the corrections."""

from __future__ import annotations

from ragmetrics.records import Finding, compared_words, mix_text, movement_text
from ragmetrics.rules.corrections import Corrected, JudgeFall, Note, StaleRows
from ragmetrics.stats import Drop
from ragmetrics.text import drop_text

_SHOWN_UNMATCHED = 0.05
"""From this share on, the message shows the share of questions without similar earlier ones."""


def drop_words(
    what: str, finding: Finding, drop: Corrected, since: str, *, beyond: bool, remark: str = ""
) -> str:
    """The sentence of a drop of something; `since` says what it is measured from, `remark` ends it.

    Both compared means are over the same questions. The mean of all rows, or of the segment's rows,
    is named as such.
    """
    change = drop_text(drop.measured.drop, drop.measured.low, drop.measured.high)
    parts = [
        f"from {compared_words(finding.means, ' to ')}{since}",
        *_mix(drop.measured, change),
        f"limit {finding.limit or 0.0:.3g}",
    ]
    text = f"{'; '.join(parts[:-1])}, {parts[-1]}"
    notes = [_note(note, beyond=beyond) for note in drop.notes]
    text = "; ".join(part for part in (text, *notes, remark) if part)
    return text if drop.left is None else _in_full(what, finding, text)


def _in_full(what: str, finding: Finding, text: str) -> str:
    mean = f"mean of {'its' if finding.segment else 'all'} rows {finding.mean or 0.0:z.3f}"
    if finding.level != "ok":
        return f"{what} fell {text}; {mean}"
    within = (finding.drop or 0.0) <= (finding.limit or 0.0)
    return f"{what}: {mean}, {'within its limit' if within else 'no alarm'}; {text}"


def _mix(drop: Drop, change: str) -> list[str]:
    """The change, after the part of the drop that is the mix, where that is not 0."""
    mix = mix_text(drop.before - drop.now, drop.mix, drop.mix_tags)
    if not mix:
        return [change]
    alone = f"{drop.alone:.0%} of the questions have tags that are new or were rare before"
    return [mix, *([alone] if drop.alone >= _SHOWN_UNMATCHED else []), f"like for like {change}"]


def _note(note: Note, *, beyond: bool) -> str:
    if note.movement:
        known = beyond and note.movement.sd is not None
        return movement_text(note.movement) if known else ""
    if note.fall and note.left:
        left = f"{note.left.drop:.3f}{_span(note.left)}"
        return f"{_fall(note.fall)}, and {left} remains"
    if note.stale and note.stale.left:
        left = f"{note.stale.left.drop:.3f}{_span(note.stale.left)}"
        return f"{_stale(note.stale)}, without them the drop is {left}"
    return _stale(note.stale) if note.stale else ""


def mean_words(mean: float | None, fall: JudgeFall | None, stale: StaleRows | None) -> str:
    """What a mean was corrected for; `mean` is without it, None where too few rows remain."""
    if fall:
        return f"{_fall(fall)}, and without it the mean is {mean or 0.0:.3f}"
    if stale is None:
        return ""
    return f"{_stale(stale)}{'' if mean is None else f', without them it is {mean:.3f}'}"


def _fall(fall: JudgeFall) -> str:
    new = "" if fall.share == 1 else f", and {fall.share:.0%} of the verdicts are new"
    move = f"{fall.move.drop:.3f}{_span(fall.move)}"
    return (
        f"the judge's level on the labelled set fell by {move}{new}: judge drift explains "
        f"{fall.part:.3f}"
    )


def _stale(stale: StaleRows) -> str:
    few = ", too few questions remain" if stale.too_few else ""
    return f"the labels of {stale.stale:,} of {stale.of:,} questions are stale{few}"


def _span(drop: Drop) -> str:
    return f" [{drop.low:.3f}, {drop.high:.3f}]"


__all__ = ["drop_words", "mean_words"]
