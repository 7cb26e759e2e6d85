"""The reasons of a gate's verdict, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.comparison.gate.verdict import too_much_missing
from ragmetrics.config import GateSettings
from ragmetrics.model import MetricVerdict, Source, Verdict, drop_text
from ragmetrics.text import clean

_LONGEST = 500


def reasons(
    verdict: Verdict,
    metrics: Sequence[MetricVerdict],
    obstacles: Sequence[str],
    missing_why: Mapping[str, int],
    settings: GateSettings,
) -> list[str]:
    """The reasons of a verdict: for a hold the metrics that fell, else all that counted."""
    if verdict == "hold":
        found = [_fell(one) for one in metrics if one.verdict == "hold"]
    elif verdict == "promote":
        found = [_passed(one) for one in metrics]
    else:
        undecided = (one for one in metrics if one.verdict == "inconclusive")
        why = ", ".join(f"{count:,} {reason}" for reason, count in missing_why.items())
        found = [*obstacles, *(_undecided(one, why, settings) for one in undecided)]
    return cleaned(found)


def cleaned(sentences: Sequence[str]) -> list[str]:
    """Sentences without line breaks and escape codes, which may come from a log."""
    return [clean(one, _LONGEST) for one in sentences]


def unread(side: str, source: Source | None) -> list[str]:
    """The files of a log that were read in part."""
    return [
        f"build {side}: {one.file} is read in part: {one.reason}"
        for one in (source.broken if source else [])
    ]


def too_much_quarantined(side: str, source: Source | None, most: float) -> list[str]:
    """The problem of a log with too many unreadable rows; `side` is `new` or `serving`."""
    bad = source.quarantined if source else 0
    rows = bad + (source.rows if source else 0)
    if bad <= most * rows:
        return []
    return [f"{bad:,} of {rows:,} rows of the {side} build could not be read"]


def _fell(one: MetricVerdict) -> str:
    return (
        f"{one.metric} fell significantly from {one.before:.3f} to {one.after:.3f} over the same "
        f"{one.questions:,} questions: drop {one.drop:.3f} [{one.low:.3f}, {one.high:.3f}], limit "
        f"{one.max_drop:g}"
    )


def _passed(one: MetricVerdict) -> str:
    change = drop_text(one.drop or 0.0, None, None)
    return (
        f"{one.metric}: {change} over the same {one.questions:,} questions; with 95% confidence "
        f"any drop is below {one.upper:.3f}, limit {one.max_drop:g}"
    )


def _undecided(one: MetricVerdict, why: str, settings: GateSettings) -> str:
    if not one.paired:
        return f"{one.metric}: the builds have less than two scored questions in common"
    if too_much_missing(one.asked, one.missing, settings.max_missing):
        return (
            f"{one.metric}: {one.missing:,} of {one.asked:,} questions of the serving build cannot "
            f"be compared ({why}), at most {settings.max_missing:.1%} may be"
        )
    if one.questions < settings.min_questions:
        return (
            f"{one.metric}: {one.questions:,} questions are scored in both builds, "
            f"{settings.min_questions:,} needed{_further(one)}"
        )
    drop = f"{one.metric}: drop {one.drop:z.3f} over the same {one.questions:,} questions"
    if one.drop is not None and one.drop > one.max_drop:
        return f"{drop} is above the limit {one.max_drop:g}, but not significant{_further(one)}"
    return f"{drop} may be up to {one.upper:.3f}, limit {one.max_drop:g}{_further(one)}"


def _further(one: MetricVerdict) -> str:
    if one.further is None:
        return "; no number of questions would decide it"
    return f"; {one.further:,} further questions would decide it"
