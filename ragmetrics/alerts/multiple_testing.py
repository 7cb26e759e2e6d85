"""Decides the night's drop rules together, with control of the false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.alerts.rule_check import RuleCheck, of_segment
from ragmetrics.model import Finding, Level
from ragmetrics.stats import Drop, adjust_p_values


def decide(cases: Sequence[RuleCheck], false_alarms: float) -> list[Finding]:
    """The findings of all checks, in their order.

        q = Benjamini-Hochberg(p') over the drop rules
        p' = min(1, p * comparisons) where tonight is beyond the line, else 1

    A rule's history selects one of several comparisons each night, so p is multiplied by their
    number (Bonferroni). A check that is not beyond its line cannot fire, so its p' is 1: otherwise
    small drops of many rules would let false alarms of others pass.
    """
    chances = [chance_of(case, case.drop) for case in cases if case.drop]
    adjusted = iter(adjust_p_values(chances))
    return [
        _in_words(
            _decided(case, case.drop, next(adjusted), false_alarms, len(chances))
            if case.drop
            else case.finding
        )
        for case in cases
    ]


def _in_words(finding: Finding) -> Finding:
    """The finding with its message as a full sentence.

    Both compared means are over the same questions. The mean of all rows, or of the segment's rows,
    is named as such.
    """
    if finding.means is None or finding.mean is None:
        return finding
    what = f"{finding.metric}{of_segment(finding.segment)}"
    mean = f"mean of {'its' if finding.segment else 'all'} rows {finding.mean:z.3f}"
    if finding.level != "ok":
        text = f"{what} fell {finding.message}; {mean}"
    else:
        within = (finding.drop or 0.0) <= (finding.limit or 0.0)
        state = "within its limit" if within else "no alarm"
        text = f"{what}: {mean}, {state}; {finding.message}"
    return finding.model_copy(update={"message": text})


def chance_of(case: RuleCheck, drop: Drop) -> float:
    """The p value of a check's drop, multiplied by the number of possible comparisons."""
    return min(1.0, drop.p_value * case.comparisons) if case.beyond else 1.0


def _decided(
    case: RuleCheck, drop: Drop, p_value: float, false_alarms: float, family: int
) -> Finding:
    """Breach where the drop is beyond the line and significant. An alert fires while this is so.

    `mde` assumes that only this rule finds a drop: its level is that of the smallest p in
    Benjamini-Hochberg.
    """
    limit, significant = case.rule.max_drop or 0.0, p_value < false_alarms
    level: Level = "ok"
    message = case.finding.message
    if case.beyond and significant:
        level = "breach" if drop.drop > limit else "suspect"
        if drop.low <= 0:
            # The interval is for questions like these; p may be for exactly these questions.
            message += f"; significant by each question's own nights (p {p_value:.4f})"
    elif case.beyond and not case.was_firing:
        level = "suspect"
    elif case.beyond:
        message += "; the nights since do not confirm the alarm"
    mde = drop.detectable(false_alarms / (family * case.comparisons), limit)
    update = {"level": level, "p_value": p_value, "mde": mde, "message": message}
    return case.finding.model_copy(update=update)
