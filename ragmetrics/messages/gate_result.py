"""The whole result of a gate, for a run page and a pull request, and parts of such reports."""

from __future__ import annotations

from collections.abc import Iterable

from ragmetrics.messages.blocks import (
    Block,
    Bullets,
    Header,
    Note,
    Quote,
    Text,
    bullets,
    links,
    table,
)
from ragmetrics.messages.changes_story import gate_story
from ragmetrics.metrics import display_name
from ragmetrics.records import (
    Gate,
    JudgeInfo,
    LostPassage,
    LostPassages,
    MetricVerdict,
    build_words,
    stage_words,
)
from ragmetrics.text import NO_VALUE, clean, drop_words, number

SIGNS = {"promote": "✅", "hold": "❌", "inconclusive": "⚠️", "passed": "✅", "failed": "❌"}
"""Signs of verdicts and conclusions."""
_MOST_METRICS, _MOST_LINES, _MOST_QUESTIONS = 50, 20, 5
_ROOM = 20_000
"""Most characters of a list."""
_HEADERS = ("metric", "verdict", "before", "after", "drop", "allowed drop", "questions")


def gate_report(gate: Gate, place: str, link: str) -> list[Block]:
    """Verdict, reasons, a line for each metric, lost passages, questions, and a link to a place."""
    against = (" compared with ", Quote(clean(gate.serving, 100))) if gate.serving else ()
    build = Quote(clean(gate.build, 100))
    index = f"Index {build_words(build).removesuffix(build)}"
    return [
        Header((f"{SIGNS[gate.verdict]} {index}", build, *against, f": {gate.verdict}")),
        *gate_story(gate).blocks,
        *table("", _HEADERS, map(_row, gate.metrics[:_MOST_METRICS]), (0, 1)),
        *fell_most(
            question(fallen.user_input, fallen.metric, fallen.before, fallen.after)
            for fallen in gate.fallen
        ),
        *quotes("Problems", gate.problems),
        Note((f"{gate.source.rows:,} rows. Judge: ", *judge_words(gate.judge))),
        *links([(place, link)]),
    ]


def quoted(text: str, limit: int = 300) -> tuple[str, ...]:
    """A line, or a cell, that is one text of a log."""
    return (Quote(clean(text, limit)),)


def quotes(title: str, texts: Iterable[str]) -> list[Block]:
    """A list of texts of a log."""
    return bullets(title, (quoted(text, 500) for text in texts), most=_MOST_LINES, room=_ROOM)


def question(text: str, metric: str, before: float, after: float) -> tuple[str, ...]:
    """A question whose value changed."""
    change = f" {number(before)} → {number(after)}"
    return Quote(clean(text, 200)), ": ", Quote(clean(display_name(metric), 80)), change


def fell_most(lines: Iterable[Text]) -> list[Block]:
    """The questions that fell most, each once."""
    shown = tuple(dict.fromkeys(lines))[:_MOST_QUESTIONS]
    return [Bullets("Questions that fell most", shown, folded=True)] if shown else []


def lost_passage_lines(lost: LostPassages, *, redact: bool) -> list[str]:
    """What happened to lost passages, and one example; none where no stage is significant.
    `redact` leaves out the texts.
    """
    if not lost.sentence:
        return []
    first = clean(f"{lost.sentence[:1].upper()}{lost.sentence[1:]}", 400)
    return [first, *(_example(passage, redact=redact) for passage in lost.passages[:1])]


def _example(passage: LostPassage, *, redact: bool) -> str:
    name = f" {clean(passage.id, 80)}" if passage.id else ""
    question = "" if redact else f" of “{clean(passage.user_input, 150)}”"
    stage = stage_words(passage.stage, proven=passage.proven)
    return f"For example{name}{question}: {stage}; {clean(passage.evidence, 200)}"


def judge_words(judge: JudgeInfo) -> tuple[str, ...]:
    """A judge's name and what to know of it."""
    note = (" - ", Quote(clean(judge.note, 400))) if judge.note else ()
    return (Quote(clean(judge.name, 80)), *note)


def _row(one: MetricVerdict) -> tuple[Text, ...]:
    drop = NO_VALUE
    if one.drop is not None:
        drop = " ".join(drop_words(one.drop, one.low, one.high)).rstrip()
    numbers = number(one.before), number(one.after), drop
    limits = f"{one.max_drop:g}", f"{one.questions:,}"
    return quoted(display_name(one.metric), 80), one.verdict, *numbers, *limits
