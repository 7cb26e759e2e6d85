"""The family: the night's drop rules decided together, so that unchanged nights fire nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.alerts.rule_check import RuleCheck, of_segment
from ragmetrics.model import Finding, Level
from ragmetrics.stats import Drop, adjust_p_values


def decide(cases: Sequence[RuleCheck], false_alarms: float) -> list[Finding]:
    """The findings of all cases, in their order.

        q = Benjamini-Hochberg(p') over the drop rules
        p' = min(1, p * comparisons) where tonight is beyond the line, else 1

    A rule makes one of several comparisons each night, as its history may lead to: p times their
    number holds whichever it was (Bonferroni). One that is not beyond its line cannot fire: counted
    as sure, small drops of many rules would let through false ones of others.
    """
    chances = [chance_of(case, case.drop) for case in cases if case.drop]
    sure = iter(adjust_p_values(chances))
    return [
        _in_words(
            _decided(case, case.drop, next(sure), false_alarms, len(chances))
            if case.drop
            else case.finding
        )
        for case in cases
    ]


def _in_words(finding: Finding) -> Finding:
    """What was compared as a sentence: it leads with a fall only where that is one for the rule.

    The mean of all rows, of a segment of its rows, stands in it by that name, or alone in front.
    """
    if finding.means is None or finding.mean is None:
        return finding
    what, mean = f"{finding.metric}{of_segment(finding.segment)}", f"{finding.mean:z.3f}"
    if finding.level != "ok":
        whose = "its" if finding.segment else "all"
        text = f"{what} fell {finding.message}; mean of {whose} rows {mean}"
    else:
        within = (finding.drop or 0.0) <= (finding.limit or 0.0)
        state = "within its limit" if within else "no alarm"
        text = f"{what} is {mean}, {state}; {finding.message}"
    return finding.model_copy(update={"message": text})


def chance_of(case: RuleCheck, drop: Drop) -> float:
    """The p value of a case's drop, by how many comparisons it is one of."""
    return min(1.0, drop.p_value * case.comparisons) if case.beyond else 1.0


def _decided(
    case: RuleCheck, drop: Drop, p_value: float, false_alarms: float, family: int
) -> Finding:
    """Beyond the line and surely: breach. An alert fires as long as its evidence stands.

    `mde` is that of the rule if it alone of its family finds a drop: at the level of the smallest
    p in Benjamini-Hochberg.
    """
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
    mde = drop.detectable(false_alarms / (family * case.comparisons), limit)
    update = {"level": level, "p_value": p_value, "mde": mde, "message": message}
    return case.finding.model_copy(update=update)
