"""The state of a night and of a rule: one word, one sentence, and the findings behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ragmetrics.records import Finding, Manifest
from ragmetrics.report.words import finite, plural

RuleState = Literal["firing", "pending", "no_data", "ok"]
NightState = Literal["firing", "no_data", "pending", "incomplete", "unwatched", "ok"]

LABELS: dict[str, str] = {
    "firing": "firing",
    "pending": "pending",
    "no_data": "no data",
    "incomplete": "incomplete",
    "unwatched": "no rules",
    "ok": "ok",
}
_ORDER: tuple[RuleState, ...] = ("firing", "pending", "no_data", "ok")


@dataclass(frozen=True)
class Condition:
    """What to know of a night in five seconds."""

    date: date
    state: NightState
    sentence: str
    findings: tuple[Finding, ...] = ()
    """Those that explain the state, worst first."""
    notes: tuple[str, ...] = ()


def rule_state(finding: Finding) -> RuleState:
    """The state of one rule; a breach fires at once, and no data is never ok."""
    if finding.state == "firing" or finding.level == "breach":
        return "firing"
    if finding.level == "no_data":
        return "no_data"
    return "pending" if finding.state == "pending" or finding.level == "suspect" else "ok"


def by_state(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those that need a reader first."""
    return sorted(findings, key=lambda f: (_ORDER.index(rule_state(f)), f.severity, f.rule))


def has_numbers(manifest: Manifest) -> bool:
    """Whether the night was read and anything in it was scored."""
    return manifest.source.problem is None and any(
        finite(summary.mean) is not None for summary in manifest.metrics
    )


def condition(manifest: Manifest) -> Condition:
    """The state of a night."""
    night = f"Night of {manifest.date}"
    found: dict[RuleState, tuple[Finding, ...]] = {
        state: tuple(f for f in by_state(manifest.findings) if rule_state(f) == state)
        for state in _ORDER
    }
    firing, pending = found["firing"], found["pending"]
    notes = _notes(manifest)
    if not has_numbers(manifest):
        why = manifest.source.problem or "No row could be scored."
        return Condition(manifest.date, "no_data", f"{night}: no data.", firing, (why, *notes))
    if firing:
        also = f", {len(pending)} pending" if pending else ""
        sentence = f"{night}: {plural(len(firing), 'alert')} firing{also}."
        return Condition(manifest.date, "firing", sentence, firing + pending, notes)
    if pending:
        sentence = f"{night}: {plural(len(pending), 'alert')} pending, none firing."
        return Condition(manifest.date, "pending", sentence, pending, notes)
    # A small segment has too few rows on many nights: that alone does not spoil a good one.
    blind = tuple(f for f in found["no_data"] if f.segment is None)
    if blind:
        sentence = f"{night}: nothing firing, but {plural(len(blind), 'rule')} without data."
        return Condition(manifest.date, "incomplete", sentence, blind, notes)
    if manifest.source.broken:
        return Condition(manifest.date, "incomplete", f"{night}: nothing firing, but not all was read.", (), notes)
    if not manifest.findings:
        return Condition(manifest.date, "unwatched", f"{night}: scored, but no rule watches it.", (), notes)
    return Condition(manifest.date, "ok", f"{night}: fine.", (), notes)


def _notes(manifest: Manifest) -> tuple[str, ...]:
    notes = []
    if manifest.source.broken:
        files = plural(len(manifest.source.broken), "file")
        notes.append(f"{files} could not be read to the end.")
    resolved = [f for f in manifest.findings if f.transition == "resolved"]
    if resolved:
        notes.append(f"{plural(len(resolved), 'alert')} resolved this night.")
    return tuple(notes)
