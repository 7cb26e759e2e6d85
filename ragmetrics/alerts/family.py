"""The family: the night's drop rules decided together, so that unchanged nights fire nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.alerts.cases import Case
from ragmetrics.records import Finding, Level
from ragmetrics.stats.comparisons import Drop
from ragmetrics.stats.families import adjusted


def decide(cases: Sequence[Case], false_alarms: float) -> list[Finding]:
    """The findings of all cases, in their order.

        q = Benjamini-Hochberg(min(1, p * comparisons)) over the drop rules

    A rule makes one of several comparisons each night, as its history may lead to: p times their
    number holds whichever it was (Bonferroni).
    """
    chances = (case.drop.p_value * case.comparisons for case in cases if case.drop)
    sure = iter(adjusted([min(1.0, chance) for chance in chances]))
    return [
        _decided(case, case.drop, next(sure), false_alarms) if case.drop else case.finding
        for case in cases
    ]


def _decided(case: Case, drop: Drop, p_value: float, false_alarms: float) -> Finding:
    """Beyond the line and surely: breach. An alert fires as long as its evidence stands."""
    limit, sure = case.rule.max_drop or 0.0, p_value < false_alarms
    level: Level = "ok"
    message = case.finding.message
    if case.beyond and sure:
        level = "breach" if drop.drop > limit else "suspect"
        if drop.low <= 0:
            # The interval is of questions like these; p may be of these questions alone.
            message += f"; surely so by each question's own nights (p {p_value:.4f})"
    elif case.beyond and not case.was_firing:
        level = "suspect"
    elif case.beyond:
        message += "; the nights since do not bear the alarm out"
    update = {"level": level, "p_value": p_value, "message": message}
    return case.finding.model_copy(update=update)
