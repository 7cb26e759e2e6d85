"""A gate in words: why it decided as it did, one sentence per reason."""

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
    """Why a gate decided as it did: of a hold the metrics that fell, else all that counted."""
    if verdict == "hold":
        told = [_fell(one) for one in metrics if one.verdict == "hold"]
    elif verdict == "promote":
        told = [_passed(one) for one in metrics]
    else:
        undecided = (one for one in metrics if one.verdict == "inconclusive")
        why = ", ".join(f"{count:,} {reason}" for reason, count in missing_why.items())
        told = [*obstacles, *(_undecided(one, why, settings) for one in undecided)]
    return cleaned(told)


def cleaned(sentences: Sequence[str]) -> list[str]:
    """Sentences that may hold what stood in a log: no line break or escape code of it is kept."""
    return [clean(one, _LONGEST) for one in sentences]


def unread(side: str, source: Source | None) -> list[str]:
    """What of a log that was read in part could not be."""
    return [
        f"build {side}: {one.file} is read in part: {one.reason}"
        for one in (source.broken if source else [])
    ]


def too_much_quarantined(side: str, source: Source | None, most: float) -> list[str]:
    """A log most of whose rows are good, but not enough of them; `side` is `new` or `serving`."""
    bad = source.quarantined if source else 0
    rows = bad + (source.rows if source else 0)
    if bad <= most * rows:
        return []
    return [f"{bad:,} of {rows:,} rows of the {side} build could not be read"]


def _fell(one: MetricVerdict) -> str:
    return (
        f"{one.metric} fell from {one.before:.3f} to {one.after:.3f}: drop {one.drop:.3f} "
        f"[{one.low:.3f}, {one.high:.3f}] over {one.questions:,} questions, limit {one.max_drop:g}"
    )


def _passed(one: MetricVerdict) -> str:
    told = drop_text(one.drop or 0.0, None, None)
    return (
        f"{one.metric}: {told}; any drop is surely below {one.upper:.3f}, over "
        f"{one.questions:,} questions, limit {one.max_drop:g}"
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
    drop = f"{one.metric}: drop {one.drop:z.3f} over {one.questions:,} questions"
    if one.drop is not None and one.drop > one.max_drop:
        return f"{drop} is above the limit {one.max_drop:g}, but not surely a drop{_further(one)}"
    return f"{drop} may be up to {one.upper:.3f}, limit {one.max_drop:g}{_further(one)}"


def _further(one: MetricVerdict) -> str:
    if one.further is None:
        return "; no number of questions would decide it"
    return f"; {one.further:,} further questions would decide it"
