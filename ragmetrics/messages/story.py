"""What fell in a night, where, why and since when: the same lines on page, Slack, mail, terminal.

One sentence a line, numbers with two significant digits. Intervals are in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from ragmetrics.messages.blocks import Block, Place, Quote, Section, Text
from ragmetrics.messages.display_names import in_display_names
from ragmetrics.messages.users_noticed import users_noticed
from ragmetrics.metrics import display_name, unit_of
from ragmetrics.records import (
    BUILDS,
    ContributorShare,
    Finding,
    Manifest,
    Segment,
    UnwatchedDrop,
    fallen_topic_text,
)
from ragmetrics.rules import Incident
from ragmetrics.scoring import worse_segments
from ragmetrics.text import clean, short, short_change, with_unit

_MOST_INCIDENTS, _MOST_FALLS, _MOST_PLACES = 6, 4, 3
_LONGEST, _LONGEST_HEADLINE = 600, 200


@dataclass(frozen=True)
class NightStory:
    """What happened, in lines; without any, nothing fell."""

    headline: str = ""
    """What matters most in one sentence; empty where nothing fires, is pending or fell."""
    metric: str = ""
    """The metric of the headline; empty where it is about none."""
    what: tuple[Text, ...] = ()
    where: tuple[Text, ...] = ()
    why: tuple[Text, ...] = ()
    when: tuple[Text, ...] = ()
    """Since when, of what the headline is about."""
    also: tuple[Text, ...] = ()
    """What happened beside, and explains no fall."""

    @property
    def parts(self) -> list[tuple[str, tuple[Text, ...]]]:
        """The lines by their labels, those that there are."""
        labels = ("What", "Where", "Why", "When", "Also")
        parts = zip(labels, (self.what, self.where, self.why, self.when, self.also), strict=True)
        return [(label, lines) for label, lines in parts if lines]

    @property
    def blocks(self) -> list[Block]:
        """The same as neutral blocks."""
        return [Section(f"{label}:", lines[0], lines[1:]) for label, lines in self.parts]


Link: TypeAlias = Callable[[str, Segment], str]
"""The address of a metric's questions in a segment; empty: there is none."""


def no_link(metric: str, segment: Segment) -> str:
    """Where nothing can be opened."""
    return ""


def night_story(
    manifest: Manifest, incidents: Sequence[Incident], link: Link = no_link
) -> NightStory:
    """The story of the incidents that need a reader, and of what fell beside them; on a page, its
    segments have a `link`.
    """
    causes = [incident.cause for incident in incidents]
    falls = manifest.falls
    measured = [cause for cause in causes if is_measured(cause)]
    measured.sort(key=_least_important)
    fell = [cause for cause in causes if cause.is_rule and cause.level != "no_data"]
    also = any(cause.drop is not None for cause in measured)
    left = len(incidents) - _MOST_INCIDENTS
    lead = _lead(incidents)
    headline, metric = _headline(lead, manifest)
    since = lead.cause.since if lead else falls[0].since if falls else None
    why = tuple(_why(measured, manifest))
    return NightStory(
        headline=headline,
        metric=metric,
        what=(
            *(_what(incident, manifest, since) for incident in incidents[:_MOST_INCIDENTS]),
            *([f"And {left} more: see the rules."] if left > 0 else []),
            *(_fall(fall, since, also=also) for fall in falls[:_MOST_FALLS]),
            *users_noticed(measured, falls, manifest),
        ),
        where=tuple(_places(fell[:_MOST_PLACES], manifest, link)),
        why=why if fell or falls else (),
        when=tuple(_when(lead, manifest)),
        also=() if fell or falls else why,
    )


def is_measured(cause: Finding) -> bool:
    """Whether a rule measured it, so that it is told by its numbers: a drop by both compared means,
    which no drop without a comparison has, nor one of earlier versions.
    """
    if not cause.is_rule or cause.level == "no_data" or cause.mean is None:
        return False
    return is_limit_of_mean(cause) or (cause.drop is not None and cause.means is not None)


def is_limit_of_mean(cause: Finding) -> bool:
    """Whether its limit is the lowest allowed mean, and not the largest allowed drop."""
    return cause.key.rpartition("/")[2].startswith("min")


def _least_important(cause: Finding) -> tuple[bool, bool]:
    return cause.segment is not None, cause.drop is None


def _lead(incidents: Sequence[Incident]) -> Incident | None:
    """What matters most of what fires, else of what is pending."""
    firing = [one for one in incidents if one.state == "firing" or one.cause.level == "breach"]
    urgent = firing or [one for one in incidents if one.state == "pending"]
    if not urgent or not is_measured(urgent[0].cause):
        return next(iter(urgent), None)
    return min(
        (incident for incident in urgent if is_measured(incident.cause)),
        key=lambda incident: _least_important(incident.cause),
    )


def _headline(lead: Incident | None, manifest: Manifest) -> tuple[str, str]:
    """The lead in one sentence, else what no rule watches; its metric."""
    if lead is None:
        return next(((_of_fall(fall), fall.metric) for fall in manifest.falls), ("", ""))
    cause = lead.cause
    if not is_measured(cause):
        told = in_display_names(lead.message, manifest)
        return sentence(told, _LONGEST_HEADLINE), cause.metric or ""
    return f"{_name(cause.metric)}{_in_segment(cause)} {_moved(cause)}.", cause.metric or ""


def _when(lead: Incident | None, manifest: Manifest) -> Iterator[str]:
    """`Fell on 2026-11-18 (possibly 2026-11-17).`, or since when its alert fires."""
    if lead is None:
        for fall in manifest.falls[:1]:
            rose = fall.means is not None and fall.means.now > fall.means.before
            yield f"{'Rose' if rose else 'Fell'} on {fall.since or manifest.date}."
        return
    change, since = lead.cause.change, lead.cause.since
    if change:
        yield f"{change.sentence}."
    if since and not (change and change.first == since):
        tonight = ", this night" if since == manifest.date else ""
        yield f"{_state(lead.cause)} since {since}{tonight}."


def _state(cause: Finding) -> str:
    return "Pending" if cause.state == "pending" else "Firing"


def _moved(cause: Finding) -> str:
    if cause.drop is not None and cause.means:
        unit = unit_of(cause.metric or "")
        return short_change(cause.means.before, cause.means.now, fell=True, unit=unit)
    limit = "" if cause.limit is None else f" (limit {short(cause.limit)})"
    return f"is {with_unit(cause.mean, unit_of(cause.metric or ''))}{limit}"


def _of_fall(fall: UnwatchedDrop) -> str:
    before, now = (fall.means.before, fall.means.now) if fall.means else (fall.before, fall.now)
    return (
        f"{_name(fall.metric)} {short_change(before, now, fell=True, unit=unit_of(fall.metric))}."
    )


def _what(incident: Incident, manifest: Manifest, told_since: date | None) -> Text:
    """One incident in one sentence, with what its reader has to know of it."""
    cause = incident.cause
    pending = "Pending: " if cause.state == "pending" else ""
    if not is_measured(cause):
        message = in_display_names(incident.sentence, manifest)
        told: Text = (pending, Quote(clean(sentence(message), _LONGEST)))
    else:
        told = (pending, *_measured(cause))
    since = cause.since if cause.since != told_since else None
    worse = cause.escalation if cause.transition == "escalated" else None
    unit = unit_of(cause.metric or "")
    change = f" {short_change(worse.before, worse.now, unit=unit)}" if worse else ""
    return (
        *told,
        *([f" Since the last message ({worse.label}):{change}."] if worse else []),
        *([f" {_state(cause)} since {since}."] if since else []),
    )


def _measured(cause: Finding) -> tuple[str, ...]:
    """`Context recall fell from 0.88 to 0.64 over the same 80 questions (allowed drop 0.05).`"""
    where = (" in ", Quote(clean(str(cause.segment), 80))) if cause.segment else ()
    what = (_name(cause.metric), *where, f" {_moved(cause)}")
    if cause.drop is None or cause.means is None:
        return (*what, ".")
    same = "the same " if cause.means.paired else ""
    over = f" over {same}{cause.means.questions:,} questions"
    allowed = "" if cause.limit is None else f" ({_allowed(cause)})"
    return (*what, f"{over}{allowed}.")


def _allowed(cause: Finding) -> str:
    unit = unit_of(cause.metric or "")
    limit = with_unit(cause.limit, unit) if unit else f"{cause.limit or 0.0:.3g}"
    return f"allowed {'rise' if cause.rise else 'drop'} {limit}"


def back_to_normal(cause: Finding) -> str:
    """`Context recall is unchanged at 0.88 (80 questions asked on both; allowed drop 0.05).` Empty
    for what has not resolved, and where nothing was compared.
    """
    means = cause.means
    if cause.transition != "resolved" or cause.level != "ok" or means is None or not cause.limit:
        return ""
    name, both = (
        f"{_name(cause.metric)}{_in_segment(cause)}",
        " asked on both" if means.paired else "",
    )
    unit = unit_of(cause.metric or "")
    ends = with_unit(means.before, unit), with_unit(means.now, unit)
    went = f"went {short_change(means.before, means.now, unit=unit)}"
    told = f"is unchanged at {ends[1]}" if ends[0] == ends[1] else went
    firing = f"; was firing since {cause.since}" if cause.since else ""
    allowed = _allowed(cause)
    return f"{name} {told} ({means.questions:,} questions{both}; {allowed}{firing})."


def _fall(fall: UnwatchedDrop, told_since: date | None, *, also: bool) -> str:
    """`Context precision also fell, by 0.13 (no alert rule).`"""
    before, now = (fall.means.before, fall.means.now) if fall.means else (fall.before, fall.now)
    moved = "fell" if now < before else "rose"
    why = "within its alert rule" if fall.watched else "no alert rule"
    since = f", not back since {fall.since}" if fall.since not in (None, told_since) else ""
    name, unit = _name(fall.metric), unit_of(fall.metric)
    by, ends = with_unit(fall.drop, unit), short_change(before, now, unit=unit)
    if also:
        return f"{name} also {moved}, by {by} ({why}{since})."
    return f"{name} {moved} by {by}, {ends} ({why}{since})."


def _places(measured: Sequence[Finding], manifest: Manifest, link: Link) -> Iterator[Text]:
    """The places of each metric, after its name where there are several."""
    whole = [cause for cause in measured if not cause.segment]
    for cause in whole:
        name = (f"{_name(cause.metric)}: ",) if whole[1:] else ()
        if pieces := _where(cause, manifest, link):
            yield (*name, *pieces, ".")


def _where(cause: Finding, manifest: Manifest, link: Link) -> list[str]:
    """The segments that lost most; without a significant one, those that are lowest tonight."""
    shares = [share for share in cause.carriers or () if share.tag != BUILDS]
    metric = cause.metric or ""
    places = [_carrier(metric, share, link) for share in shares[:_MOST_PLACES]]
    if not places and (whole := manifest.summary(metric)):
        lower = [one for one in worse_segments(manifest) if one.metric == cause.metric]
        lower.sort(key=lambda one: -one.loss(whole.mean or 0.0))
        places = [
            (
                _place(metric, summary.segment, link),
                f" ({with_unit(summary.mean, unit_of(metric))}"
                f"{', estimated' if summary.sample else ''})",
            )
            for summary in lower[:_MOST_PLACES]
            if summary.segment
        ]
    return [piece for place in places for piece in (", ", *place)][1:]


def _carrier(metric: str, share: ContributorShare, link: Link) -> tuple[str, ...]:
    if share.value is None:
        return (Quote(clean(str(share), 80)),)
    place = _place(metric, Segment(tag=share.tag, value=share.value), link)
    if share.before is None or share.now is None:
        return (place,)
    return place, f" ({short_change(share.before, share.now, unit=unit_of(metric))})"


def _place(metric: str, segment: Segment, link: Link) -> Place:
    return Place(clean(str(segment), 80), link(metric, segment))


def _why(measured: Sequence[Finding], manifest: Manifest) -> list[Text]:
    """What happened to the passages, since which build, and what is not the retriever."""
    lost, topics = manifest.lost_passages, manifest.topics
    lines: list[Text] = []
    if lost:
        lines += [(Quote(sentence(text)),) for text in (lost.sentence, lost.edited) if text]
    for cause in measured[:1]:
        builds = [one for one in cause.carriers or () if one.tag == BUILDS and one.is_new]
        lines += [("It came with the ", Quote(clean(str(build), 100)), ".") for build in builds[:1]]
    for cause in measured:
        if cause.explained:
            part = short(cause.explained)
            drop = f"the drop of {_name(cause.metric)}"
            lines.append(f"Judge drift or stale labels explain {part} of {drop}.")
    for topic in topics.fallen if topics else ():
        named = topic.model_copy(update={"metric": display_name(topic.metric)})
        lines.append((Quote(sentence(fallen_topic_text(named))),))
    return lines


def _name(metric: str | None) -> str:
    return clean(display_name(metric), 80) if metric else "Rows"


def _in_segment(cause: Finding) -> str:
    return f" in {clean(str(cause.segment), 80)}" if cause.segment else ""


def sentence(text: str, longest: int = _LONGEST) -> str:
    """A text as a sentence: with a capital letter and a full stop."""
    line = clean(text, longest).rstrip(".")
    return f"{line[:1].upper()}{line[1:]}."


__all__ = [
    "Link",
    "NightStory",
    "back_to_normal",
    "is_limit_of_mean",
    "is_measured",
    "night_story",
    "no_link",
    "sentence",
]
