"""The sentence of a rule's finding: made once, of the decision and the notes of the corrections."""

from __future__ import annotations

from ragmetrics.records import Finding, compared_words, mix_text, movement_text
from ragmetrics.rules.corrections import Corrected, JudgeFall, Note, StaleRows
from ragmetrics.stats import Drop
from ragmetrics.text import drop_text, number, short_change

_SHOWN_UNMATCHED = 0.05
"""From this share on, the message shows the share of questions without similar earlier ones."""


def drop_words(
    what: str, finding: Finding, drop: Corrected, label: str, *, beyond: bool, remark: str = ""
) -> str:
    """The sentence of a drop of something; `label` names the nights before, `remark` ends it.

    Both compared means are over the same questions; the mean of all rows, or of the segment's rows,
    stands beside them where it differs.
    """
    fell = drop.left is not None and finding.level != "ok"
    sentence = (_fell if fell else _stays)(what, finding, drop.measured, label)
    notes = [_note(note, beyond=beyond) for note in drop.notes]
    return "; ".join(part for part in (sentence, *notes, remark) if part)


def _fell(what: str, finding: Finding, drop: Drop, label: str) -> str:
    """`context_recall fell from 0.851 to 0.720 over the same 138 questions (7 nights before); drop
    0.131 [0.091, 0.171], allowed 0.05; mean of all rows 0.714`.
    """
    change = "; ".join(_mix(drop, _change(finding, drop)))
    means = finding.means
    # The mix may have raised the mean.
    verb = "rose" if means and means.now > means.before else "fell"
    moved = f"{verb} from {compared_words(means, ' to ')}"
    whole = number(finding.mean)
    mean = f"; mean of {'its' if finding.segment else 'all'} rows {whole}"
    mean = "" if means and whole == number(means.now) else mean
    return f"{what} {moved} ({label}); {change}, allowed {finding.limit or 0.0:.3g}{mean}"


def _stays(what: str, finding: Finding, drop: Drop, label: str) -> str:
    """`context_recall is unchanged at 0.88 (against 7 nights before: 80 questions asked on both;
    allowed drop 0.05)`. A drop beyond its limit that is no alarm has its interval.
    """
    sign = -1 if finding.rise else 1
    moved = short_change(sign * drop.before, sign * drop.now, fell=True)
    moved = moved if moved.startswith("is ") else f"went {moved.split(' ', 1)[1]}"
    change, limit = _change(finding, drop), finding.limit or 0.0
    parts = _mix(drop, change)
    parts = parts if len(parts) > 1 or drop.drop > limit else []
    both = " asked on both" if drop.paired else ""
    asked = f"against {label}: {drop.questions:,} questions{both}"
    allowed = f"allowed {'rise' if finding.rise else 'drop'} {limit:.3g}"
    return f"{what} {moved} ({'; '.join((asked, *parts, allowed))})"


def _change(finding: Finding, drop: Drop) -> str:
    text = drop_text(drop.drop, drop.low, drop.high)
    return text.replace("drop ", "rise ", 1) if finding.rise else text


def _mix(drop: Drop, change: str) -> list[str]:
    """The change, after the part of the drop that is the mix, where that is not 0."""
    mix = mix_text(drop.before - drop.now, drop.mix, drop.mix_tags)
    if not mix:
        return [change]
    alone = f"{drop.alone:.0%} of questions have tags that are new or were rare before"
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
