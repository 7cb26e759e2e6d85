"""What the pages say of a night, as blocks of a message, for an agent that asks.

Each answer is made from `Shown`, as the pages are, so that texts are hidden where pages hide them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragmetrics.dashboard.formatting import MarkedText
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.dashboard.page import Shown
from ragmetrics.dashboard.pages.rows import row_details
from ragmetrics.dashboard.row_claims import Claims
from ragmetrics.dashboard.row_detail import Context, MetricLine, RowDetail
from ragmetrics.dashboard.row_expected import ExpectedPassage
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.dashboard.summaries import links_of, night_blocks
from ragmetrics.errors import InputError
from ragmetrics.messages import (
    Block,
    Header,
    Note,
    Quote,
    Section,
    Text,
    bullets,
    comparison_report,
    comparison_story,
    incident_block,
    links,
    table,
)
from ragmetrics.metrics import display_name
from ragmetrics.records import Comparison, alert_id
from ragmetrics.rules import Incident
from ragmetrics.text import clean, number, plural

_MOST_MATCHES = 20
_MOST_LINES, _ROOM = 40, 20_000
_GRADES = ("of no use", "of some use", "answers it")


def night_answer(shown: Shown) -> list[Block]:
    """The state of a night: what happened, where and why, and the mean of each metric."""
    state = find_night_status(shown.night)
    blocks = night_blocks(shown.night, shown.earlier, state, links_of(shown.night))
    return [Header(state.sentence), *blocks]


def incidents_answer(shown: Shown) -> list[Block]:
    """What fires or is pending, each with its numbers, and the id of its alert."""
    state = find_night_status(shown.night)
    if not state.incidents:
        return [Header(state.sentence), Note("There is no incident.")]
    return [Header(state.sentence), *(_incident(shown, one) for one in state.incidents)]


def _incident(shown: Shown, incident: Incident) -> Section:
    told, cause = incident_block(incident, shown.night, titled=True), incident.cause
    since = f", since {cause.since}" if cause.since else ""
    facts = {
        "State": f"{incident.state}, {incident.severity}{since}",
        "Alert": alert_id(cause.key),
        "Silenced": str(cause.silence or ""),
    }
    known = tuple((label, value) for label, value in facts.items() if value)
    lines = tuple(Quote(line) if isinstance(line, str) else line for line in told.lines)
    return replace(told, lines=lines, facts=(*known, *told.facts))


def why_answer(shown: Shown) -> list[Block]:
    """Why a night is as it is: its story, and how it differs from the night before."""
    state, comparison = find_night_status(shown.night), shown.comparison
    alone = Note("No earlier night compares with this one.")
    before = comparison_answer(comparison) if comparison else [alone]
    return [Header(state.sentence), *state.blocks, *before]


def comparison_answer(comparison: Comparison) -> list[Block]:
    """What differs between two sides: a line for each metric, and the questions that fell most."""
    worse = comparison.significantly_worse()
    conclusions = {
        one.metric: "failed"
        if one.significantly_worse()
        else "inconclusive"
        if one.difference is None
        else "passed"
        for one in comparison.metrics
    }
    said = comparison_story(comparison).headline
    return comparison_report(comparison, "Comparison", said, conclusions, worse, "")


def question_answer(shown: Shown, words: str) -> list[Block]:
    """One question of a night, by its id or by words in it: scores, and what was retrieved.

    A list of the questions where several have the words. Raises InputError where none has them.
    """
    wanted = words.casefold().split()
    exact = [kept for kept in shown.rows if words in (kept.key, kept.row.id)]
    matches = exact or [
        kept
        for kept in shown.rows
        if wanted and all(map(kept.row.user_input.casefold().count, wanted))
    ]
    if not matches:
        raise InputError(
            f"none of the {plural(len(shown.rows), 'question')} that the night of "
            f"{shown.night.date} keeps (the worst, the fallen, a sample) has that id or these words"
        )
    if len(matches) > 1:
        lines = [_match(kept) for kept in matches]
        return bullets("Questions with these words", lines, most=_MOST_MATCHES, room=_ROOM)
    (detail,) = row_details(shown.night, matches)
    return list(_question(detail))


def _match(kept: KeptRow) -> Text:
    values = [f"{display_name(why.metric)} {number(why.value)}" for why in kept.why if why.metric]
    return ("id ", Quote(kept.key), ": ", _cut(kept.row.user_input), " ".join(["", *values[:3]]))


def _question(detail: RowDetail) -> Iterator[Block]:
    kept, row = detail.kept, detail.kept.row
    facts = {
        "Id": kept.key,
        "Index build": row.index_build or "",
        "Logged": f"{row.timestamp:%Y-%m-%d %H:%M}" if row.timestamp else "",
        **{f"Tag {clean(tag, 60)}": value for tag, value in list(row.tags.items())[:12]},
    }
    yield Header(_text(detail.question))
    yield Section(facts=tuple((label, value) for label, value in facts.items() if value))
    headers = ("metric", "value", "before", "nights before", "note")
    yield from table("Scores", headers, map(_scores, detail.metrics))
    needed = map(_expected, detail.expected)
    yield from bullets("Expected passages", needed, most=_MOST_LINES, room=_ROOM)
    yield from _passage("Reference answer", detail.reference)
    for group in detail.referred:
        yield from _claims(group, "Sentences of the reference")
    for hop in detail.hops:
        what = f"Hop {hop.number}, retrieved" if hop.query else "Retrieved"
        yield from _passage(f"Hop {hop.number}, query", hop.query)
        title = f"{what}: {plural(hop.found, 'passage')}"
        yield from bullets(title, map(_context, hop.contexts), most=_MOST_LINES, room=_ROOM)
    yield from _passage("Response", detail.response)
    for group in detail.stated:
        yield from _claims(group, "Claims of the response")
    nights = [
        f"{', '.join(str(n.date) for n in e.nights)}: {e.nights[0].words}" for e in detail.earlier
    ]
    yield from bullets("Retrieved on earlier nights", nights)
    yield from links([("trace", kept.trace)])


def _scores(line: MetricLine) -> Sequence[Text]:
    score = line.score
    why = "" if score.status.value == "scored" else score.status.value
    note = (why, *([": "] if why and score.reason else []), _cut(score.reason, 300))
    return display_name(line.metric), number(score.value), number(line.before), line.told, note


def _expected(passage: ExpectedPassage) -> Text:
    where = f"rank {passage.rank}" if passage.rank else "not retrieved"
    return f"{where} ", _cut(passage.id, 120), f", {passage.told}: ", *_text(passage.passage)


def _context(context: Context) -> Text:
    grade = context.grade
    said = [
        f"grade {grade}, {_GRADES[grade]}{context.surely}" if grade is not None else "",
        "expected" if context.expected else "",
        "new since the night before" if context.new else "",
        context.needed,
    ]
    about = "".join(f", {one}" for one in said if one)
    name = (" ", _cut(context.id, 120)) if context.id else ()
    return (f"rank {context.rank}", *name, f"{about}: ", *_text(context.passage))


def _claims(group: Claims, title: str) -> list[Block]:
    lines = ((f"{claim.verdict}: ", *_text(claim.passage)) for claim in group.claims)
    return bullets(group.title or title, lines, most=_MOST_LINES, room=_ROOM)


def _passage(title: str, passage: MarkedText | None) -> list[Block]:
    return [Section(title, lines=(_text(passage),))] if passage else []


def _text(passage: MarkedText | None) -> tuple[str, ...]:
    """A text of a log as it is shown, with what is left out."""
    if passage is None:
        return ()
    shown = Quote("".join(piece.text for piece in passage.pieces))
    return (shown, f" ({passage.note})") if passage.note else (shown,)


def _cut(text: str, longest: int = 200) -> Quote:
    return Quote(clean(text, longest))


__all__ = [
    "comparison_answer",
    "incidents_answer",
    "night_answer",
    "question_answer",
    "why_answer",
]
