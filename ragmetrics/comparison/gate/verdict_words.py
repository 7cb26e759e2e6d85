"""The reasons of a gate's verdict in sentences, made once, of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.comparison.gate.verdict import too_much_missing
from ragmetrics.config import Settings
from ragmetrics.records import LostPassages, MetricVerdict, Source, StageShare, Verdict, stage_words
from ragmetrics.text import clean, drop_text, short_change

_LONGEST = 500


def reasons(
    verdict: Verdict,
    metrics: Sequence[MetricVerdict],
    obstacles: Sequence[str],
    missing_why: Mapping[str, int],
    settings: Settings,
    gone: Sequence[str] = (),
    *,
    serving: str,
) -> list[str]:
    """The reasons of a verdict: for a hold what was lost, else all that counted. `serving` is the
    title of the side before.
    """
    if verdict == "hold":
        found = [*gone, *(_fell(one) for one in metrics if one.verdict == "hold")]
    elif verdict == "promote":
        found = [_passed(one) for one in metrics]
    else:
        why = ", ".join(f"{count:,} {reason}" for reason, count in missing_why.items())
        alike: dict[str, list[str]] = {}
        for metric in metrics:
            if metric.verdict == "inconclusive":
                text = _undecided(metric, why, settings, serving)
                alike.setdefault(text, []).append(metric.metric)
        found = [*obstacles, *(f"{', '.join(names)}: {text}" for text, names in alike.items())]
    return cleaned(found)


def cleaned(sentences: Sequence[str]) -> list[str]:
    """Sentences without line breaks and escape codes, which may come from a log."""
    return [clean(one, _LONGEST) for one in sentences]


def lost_from_index(lost: LostPassages | None) -> list[str]:
    """The significant losses of passages from the index, each of which holds a build."""
    return cleaned([_gone(one, lost) for one in lost.stages_gone]) if lost else []


def _gone(stage: StageShare, lost: LostPassages) -> str:
    own = [passage for passage in lost.passages if passage.stage == stage.stage]
    words = stage_words(stage.stage, proven=all(passage.proven for passage in own))
    return f"{stage.questions:,} of {stage.of:,} questions lost a passage that they need: {words}"


def unread(side: str, source: Source | None) -> list[str]:
    """The files of a log that were read in part."""
    return [
        f"{side}: {file.file} is read in part: {file.reason}"
        for file in (source.broken if source else [])
    ]


def unchanged_retrieval(before: Source | None, now: Source | None) -> list[str]:
    """The sentence that both builds gave every question the same passages; empty where one did
    not, or where the serving build has no log of its own.
    """
    if not (before and now and now.retrieved and before.retrieved == now.retrieved):
        return []
    return [f"the retrieval is unchanged: all {now.rows:,} rows have the same passages"]


def too_much_quarantined(side: str, source: Source | None, most: float) -> list[str]:
    """The problem of a log with too many unreadable rows; `side` is its title."""
    bad = source.quarantined if source else 0
    rows = bad + (source.rows if source else 0)
    if bad <= most * rows:
        return []
    return [f"{bad:,} of {rows:,} rows of {side} could not be read"]


def _fell(one: MetricVerdict) -> str:
    return (
        f"{one.metric} {short_change(one.before, one.after, fell=True)} over the same "
        f"{one.questions:,} questions (allowed drop {one.max_drop:g})"
    )


def _passed(one: MetricVerdict) -> str:
    change = drop_text(one.drop or 0.0, None, None)
    text = f"{one.metric}: {change} over the same {one.questions:,} questions"
    if one.upper is None or one.upper >= one.max_drop:  # it passed as its rows are the same
        return text
    return f"{text}; with 95% confidence any drop is below {one.upper:.3f}, limit {one.max_drop:g}"


def _undecided(one: MetricVerdict, why: str, settings: Settings, serving: str) -> str:
    if not one.paired:
        return "fewer than two questions are scored on both sides"
    if too_much_missing(one.asked, one.missing, settings.gate.max_missing):
        return (
            f"{one.missing:,} of {one.asked:,} questions of {serving} cannot be compared ({why}); "
            f"--max-missing allows {settings.gate.max_missing:.1%}"
        )
    if one.questions < settings.gate.min_questions:
        return (
            f"{one.questions:,} questions are scored on both sides, "
            f"{settings.gate.min_questions:,} needed{_further_text(one)}"
        )
    drop = f"drop {one.drop:z.3f} over the same {one.questions:,} questions"
    if one.drop is not None and one.drop > one.max_drop:
        return (
            f"{drop} is above the limit {one.max_drop:g}, but not significant{_further_text(one)}"
        )
    return f"{drop} may be up to {one.upper:.3f}, limit {one.max_drop:g}{_further_text(one)}"


def _further_text(one: MetricVerdict) -> str:
    if one.further is None:
        return "; no number of questions would decide"
    return f"; {one.further:,} more questions would decide, with 80% power"
