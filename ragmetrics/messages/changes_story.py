"""How two sides differ, or two builds of a gate: what fell, where and why, as a night tells it.

The page, the terminal and the pull request have these lines, and the same count of metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ragmetrics.messages.blocks import Place, Quote, Text
from ragmetrics.messages.display_names import with_display_names
from ragmetrics.messages.story import NightStory, sentence
from ragmetrics.metrics import display_name
from ragmetrics.records import BUILDS, Comparison, Gate, LostPassages, MetricChange
from ragmetrics.text import clean, plural, short_change

_MOST_METRICS, _MOST_PLACES, _MOST_REASONS = 4, 3, 20
_LONGEST = 600
_STANDS_OUT = 1.25
"""How much more than its metric a segment lost that is named."""


def comparison_story(comparison: Comparison) -> NightStory:
    """What fell from before to after."""
    worse = [change for change in comparison.metrics if change.significantly_worse()]
    worse.sort(key=lambda change: -(change.loss or 0.0))
    better = [change for change in comparison.compared if change.significantly_better]
    shown = [*worse[:_MOST_METRICS], *([] if worse else better[:_MOST_METRICS])]
    left = len(worse) - _MOST_METRICS
    return NightStory(
        headline=_headline(comparison, worse, better),
        metric=worse[0].metric if worse else "",
        what=(*map(_moved, shown), *([f"And {plural(left, 'more metric')}."] if left > 0 else [])),
        where=tuple(_places(comparison, [change.metric for change in worse])),
        why=(*_lost_since(comparison.lost_passages), *_new_builds(comparison)),
    )


def gate_story(gate: Gate, comparison: Comparison | None = None) -> NightStory:
    """Why a gate decided so; where, by the comparison of its builds."""
    names = [metric.metric for metric in gate.metrics]
    told = [Quote(_as_sentence(with_display_names(why, names))) for why in gate.reasons]
    left = len(told) - _MOST_REASONS
    further = f"About {gate.further:,} more questions would decide." if gate.further else ""
    return NightStory(
        headline=gate_headline(gate),
        what=(
            *((reason,) for reason in told[:_MOST_REASONS]),
            *([f"And {left} more."] if left > 0 else []),
            *([further] if further else []),
        ),
        where=comparison_story(comparison).where if comparison else (),
        why=tuple(_lost(gate.lost_passages)),
    )


def gate_headline(gate: Gate) -> str:
    """`Hold: 4 of 6 metrics are significantly worse, 3 by more than allowed.`"""
    compared = [metric for metric in gate.metrics if metric.drop is not None]
    verdict = gate.verdict.capitalize()
    if not compared:
        return f"{verdict}: nothing could be compared."
    worse = [metric for metric in compared if metric.significantly_worse]
    held = sum(metric.verdict == "hold" for metric in worse)
    surely = f", {held or 'but not surely'} by more than allowed" if held < len(worse) else ""
    return f"{verdict}: {count_words(len(worse), len(compared))}{surely}."


def count_words(worse: int, compared: int) -> str:
    """`4 of 6 metrics are significantly worse`."""
    if compared == 1:
        return f"the metric is {'' if worse else 'not '}significantly worse"
    verb = "are" if worse > 1 else "is"
    return f"{worse or 'none'} of {plural(compared, 'metric')} {verb} significantly worse"


def _headline(
    comparison: Comparison, worse: Sequence[MetricChange], better: Sequence[MetricChange]
) -> str:
    if not comparison.compared:
        return "Nothing can be compared."
    told = count_words(len(worse), len(comparison.compared))
    told = f"{told[:1].upper()}{told[1:]}"
    segments = {str(one.segment) for one in comparison.segments if one.significantly_worse()}
    if segments and not worse:
        return f"{told} over all rows, but {plural(len(segments), 'segment')} fell."
    return f"{told}, {len(better):,} better." if better else f"{told}."


def _moved(change: MetricChange) -> str:
    """`Context recall fell from 0.88 to 0.64 over the same 80 questions.`"""
    over = f" over the same {change.questions:,} questions" if change.paired else ""
    return f"{_name(change.metric)} {short_change(change.mean_a, change.mean_b, fell=True)}{over}."


def _places(comparison: Comparison, worse: Sequence[str]) -> Iterator[Text]:
    """The segments that fell by more than their metric, those that contribute most first; where no
    metric fell, all that fell.
    """
    whole = {change.metric: change for change in comparison.metrics}
    places: dict[str, list[MetricChange]] = {}
    for change in comparison.segments:
        if change.significantly_worse() and _stands_out(change, whole, worse):
            places.setdefault(change.metric, []).append(change)
    for metric in [*worse, *(places.keys() - set(worse))][:_MOST_PLACES]:
        fell = sorted(places.get(metric, ()), key=lambda one: -contribution(one, whole))
        name = "" if len(places) == 1 and worse else f"{_name(metric)}: "
        pieces = [piece for one in fell[:_MOST_PLACES] for piece in (", ", *_place(one))][1:]
        if pieces:
            yield (name, *pieces, ".")


def _stands_out(
    change: MetricChange, whole: Mapping[str, MetricChange], worse: Sequence[str]
) -> bool:
    if change.metric not in worse:
        return not worse
    return (change.loss or 0.0) > _STANDS_OUT * (whole[change.metric].loss or 0.0)


def contribution(change: MetricChange, whole: Mapping[str, MetricChange]) -> float:
    """How much of the loss of its metric over all questions comes from a segment.

        loss of the segment * its questions / all questions of the metric

    0 where nothing was compared.
    """
    of = whole.get(change.metric)
    if change.loss is None or of is None or not of.questions:
        return 0.0
    return change.loss * change.questions / of.questions


def _place(change: MetricChange) -> tuple[str, ...]:
    means = short_change(change.mean_a, change.mean_b)
    return Place(clean(str(change.segment), 80), ""), f" ({means})"


def _lost(lost: LostPassages | None) -> list[Text]:
    """What became of the lost passages, where a stage stands out."""
    texts = (lost.sentence, lost.edited) if lost else ()
    return [(Quote(_as_sentence(text)),) for text in texts if text]


def _lost_since(lost: LostPassages | None) -> list[Text]:
    """The same of two sides, which may differ from what a night tells: it is compared with several
    nights, and so with more questions.
    """
    if lost is None or not lost.sentence or not lost.earlier_runs:
        return _lost(lost)
    nights = f"compared with the {lost.earlier_runs} nights before"
    of = nights if lost.earlier_runs > 1 else "counting only questions of both sides"
    return _lost(lost.model_copy(update={"sentence": f"{of}, {lost.sentence}"}))


def _new_builds(comparison: Comparison) -> list[Text]:
    """The index builds that only the side after has."""
    new = {
        change.segment.value: None
        for change in comparison.segments
        if change.segment and change.segment.tag == BUILDS
        if not change.questions_a and change.questions_b
    }
    return [("New index build: ", Quote(clean(build, 100)), ".") for build in list(new)[:1]]


def _name(metric: str) -> str:
    return clean(display_name(metric), 80)


def _as_sentence(text: str) -> str:
    return sentence(text, _LONGEST)


__all__ = ["comparison_story", "contribution", "count_words", "gate_headline", "gate_story"]
