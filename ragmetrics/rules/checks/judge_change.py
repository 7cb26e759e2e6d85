"""A change of judge: how the scores of the new judge compare with those of the old one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ragmetrics.records import Finding, JudgeBridge, JudgeOffset
from ragmetrics.rules.night_check import Sample, Tonight, check

_TOLD = timedelta(days=14)
"""Time after the change in which each night says so: until no baseline of a week has old nights."""


@check(
    "judge_change",
    order=45,
    sample=Sample(
        "Change of judge",
        "scores of the old judge are comparable by an offset",
        "the judge lexical was replaced on 2026-11-19; the new judge scores context_recall +0.041 "
        "[+0.020, +0.062] (180 questions judged by both); earlier nights are shifted by that",
    ),
)
def judge_change(tonight: Tonight) -> Iterator[Finding]:
    """Another judge scores the nights from a day on. By rows that both scored, earlier nights are
    moved by the offset between them; where the judges differ by more, the baseline begins again.

    A finding that never fires, in the first two weeks of a judge with `replaces`.
    """
    bridge = tonight.manifest.bridge
    if bridge and tonight.manifest.date - bridge.since <= _TOLD:
        rule = "scores of the old judge are comparable by an offset"
        yield tonight.finding(
            "ok", rule, _message(bridge, _chained(tonight, bridge)), for_nights=None
        )


def _chained(tonight: Tonight, bridge: JudgeBridge) -> JudgeBridge | None:
    """An earlier change whose old judge still has nights of a baseline: only the last change is
    corrected for. A judge that came back compares with its own nights.
    """
    night = tonight.manifest
    known = {metric.fingerprint for metric in night.metrics}
    known.update(offset.replaced for offset in bridge.offsets)
    for past in reversed(tonight.night.earlier):
        before = past.bridge
        if before is None or before.since >= bridge.since or night.date - before.since > _TOLD:
            continue
        if known.isdisjoint(offset.replaced for offset in before.offsets):
            return before
    return None


def _message(bridge: JudgeBridge, before: JudgeBridge | None) -> str:
    moved = [_moved(offset) for offset in bridge.offsets if not offset.apart]
    parts = [f"the judge {bridge.replaced} was replaced on {bridge.since}"]
    if moved:
        parts.append(f"{', '.join(moved)}; earlier nights are shifted by that")
    if bridge.apart:
        parts.append(f"not compared with earlier nights: {', '.join(bridge.apart)}")
    if before:
        parts.append(f"nights before {before.since}, by {before.replaced}, are not compared")
    if bridge.problem:
        parts.append(f"the old judge gave no further verdicts: {bridge.problem}")
    return "; ".join(parts)


def _moved(one: JudgeOffset) -> str:
    return (
        f"the new judge scores {one.metric} {one.offset:+.3f} [{one.low:+.3f}, {one.high:+.3f}] "
        f"({one.questions:,} questions judged by both)"
    )
