"""Messages of gates: a build that is held or not comparable, and a build without a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragmetrics.messages.blocks import Block, Header, Note, Section, bullets, links
from ragmetrics.messages.display_names import with_display_names
from ragmetrics.messages.gate_result import lost_passage_lines
from ragmetrics.messages.message import Message
from ragmetrics.metrics import display_name
from ragmetrics.records import (
    Gate,
    MetricVerdict,
    WorseQuestion,
    build_words,
    redact_quotes,
    redactions,
)
from ragmetrics.text import clean, drop_text, drop_words, number

SHOWN = 4
"""Metrics shown with all their numbers; each other metric has one line."""
FALLEN = 3
"""Questions shown."""
CARRIED = 600
"""Characters shown of an event's payload."""
_HELD = "🔴 Critical", "is held"
_NOT_COMPARED = "🟡 Warning", "cannot be judged"


def compose_gate(
    gate: Gate, *, page: str | None, redact: bool, run_url: str | None = None
) -> Message:
    """The message of a held build, or of one that could not be compared at all.

    `page` and `run_url` become buttons where a browser can open them, else text. `redact` shows
    row ids in place of questions, and hashes of what reasons may quote.
    """
    hidden = _hidden(gate) if redact else {}
    held = [metric for metric in gate.metrics if metric.verdict == "hold"]
    others = [metric for metric in gate.metrics if metric.verdict != "hold"]
    sign, state = _HELD if gate.verdict == "hold" else _NOT_COMPARED
    title = f"{sign}: index {build_words(clean(gate.build, 100))} {state}"
    numbers = (
        f": {display_name(held[0].metric)} {_change(held[0])} {_over(held[0])}" if held else ""
    )
    against = f" against {gate.serving}" if gate.serving else ""
    lost = gate.lost_passages
    blocks: list[Block] = [
        Header(title),
        Note(_what(gate)),
        *map(_section, held[:SHOWN]),
        *bullets("Also significantly worse", map(_line, held[SHOWN:])),
        *bullets("Lost passages", lost_passage_lines(lost, redact=redact) if lost else ()),
        *bullets("Why", _reasons(gate, hidden)),
        *bullets("Other metrics", map(_line, others)),
        *bullets(
            "Rows that got worse" if redact else "Questions that got worse",
            _fallen(gate, held, redact),
        ),
        *links([("builds", page), ("run", run_url)]),
        Note(_judge(gate)),
    ]
    return Message(
        text=clean(f"{title}{numbers} ({gate.dataset}{against})", 300),
        blocks=blocks,
        tone="failure" if gate.verdict == "hold" else "warning",
    )


def compose_failed_gate(
    dataset: str, reason: str, carried: str, event_id: str | None, run_url: str | None = None
) -> Message:
    """The message of a build that got no verdict: an invalid payload, or missing logs.

    `carried` is the payload of the event or call, as text.
    """
    title = "🔴 Critical: an index build got no verdict"
    shown = clean(carried, CARRIED)
    blocks: list[Block] = [
        Header(title),
        Note(f"{clean(dataset, 80)}; until a gate has decided, the build is not to serve"),
        Section("Why", lines=(clean(reason, 600),)),
        *([Section(lines=(f"Payload of the event: {shown}",))] if shown else []),
        *links([("run", run_url)]),
        *([Note(f"Event {clean(event_id, 80)}")] if event_id else []),
    ]
    text = clean(f"{title}: {clean(reason, 150)} ({dataset})", 300)
    return Message(text=text, blocks=blocks, tone="failure")


def _hidden(gate: Gate) -> dict[str, str]:
    return redactions(gate.serving_source, ()) | redactions(gate.source, gate.problems)


def _reasons(gate: Gate, hidden: dict[str, str]) -> Iterable[str]:
    names = [metric.metric for metric in gate.metrics]
    for reason in gate.reasons:
        yield clean(redact_quotes(with_display_names(reason, names), hidden), 250)


def _what(gate: Gate) -> str:
    against = f" against {clean(gate.serving, 100)}" if gate.serving else ""
    parts = [
        f"{clean(gate.dataset, 80)}, {build_words(clean(gate.build, 100))}{against}",
        f"{gate.source.rows:,} rows",
        *([f"{gate.quarantined:,} quarantined"] if gate.quarantined else []),
        *([f"{gate.missing:,} questions missing"] if gate.missing else []),
    ]
    return ", ".join(parts)


def _section(verdict: MetricVerdict) -> Section:
    """One metric that holds the build, with all its numbers."""
    drop = (
        ""
        if verdict.drop is None
        else " ".join(drop_words(verdict.drop, verdict.low, verdict.high)).rstrip()
    )
    fields = {
        "Compared": f"{_change(verdict)} {_over(verdict)}",
        "Drop": drop,
        "Missing": f"{verdict.missing:,} questions" if verdict.missing else "",
        "Limit": f"{verdict.max_drop:g}",
    }
    title = f"{clean(display_name(verdict.metric), 80)} is significantly worse"
    return Section(title, facts=tuple((label, value) for label, value in fields.items() if value))


def _line(one: MetricVerdict) -> str:
    if one.drop is None:
        return f"{clean(display_name(one.metric), 80)}: not compared"
    return (
        f"{clean(display_name(one.metric), 80)}: {_change(one)} {_over(one)}, "
        f"{drop_text(one.drop, one.low, one.high)}, limit {one.max_drop:g}"
    )


def _over(one: MetricVerdict) -> str:
    return f"over the same {one.questions:,} questions"


def _change(one: MetricVerdict) -> str:
    if one.before is None or one.after is None:
        return ""
    return f"{number(one.before)} → {number(one.after)}"


def _fallen(gate: Gate, held: Sequence[MetricVerdict], redact: bool) -> Iterable[str]:
    """The questions with the largest drops, each once, by the metrics that hold the build."""
    metrics = {one.metric for one in held} or {one.metric for one in gate.fallen}
    questions = sorted(
        (one for one in gate.fallen if one.metric in metrics),
        key=lambda one: abs(one.after - one.before),
        reverse=True,
    )
    once: dict[str, WorseQuestion] = {}
    for fallen in questions:
        once.setdefault(fallen.user_input, fallen)
    for fallen in list(once.values())[:FALLEN]:
        question = "" if redact else f"“{clean(fallen.user_input, 150)}” "
        change = f"{number(fallen.before)} → {number(fallen.after)}"
        name = clean(display_name(fallen.metric), 60)
        yield f"{change} {name} {question}({clean(fallen.id, 60)})"


def _judge(gate: Gate) -> str:
    note = f" ({clean(gate.judge.note, 400)})" if gate.judge.note else ""
    return f"Judge: {clean(gate.judge.name, 80)}{note}"
