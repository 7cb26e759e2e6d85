"""Whether a rule can fire at all, and whether it can see a regression where it stands.

`init`, `doctor` and every night ask the same two functions:

    a rule cannot fire    what it needs is not there, or its limit is as large as all that can fall
    it sees no regression the smallest drop that it finds is as large as all that can fall

What can fall is the mean less the metric's lowest value: 0 for bundled metrics. Of other metrics
the scale is not known, so their limits are taken as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragmetrics.config import Rule, drop_name
from ragmetrics.records import TOPIC, Finding
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.rule_check import RuleCheck, can_fall, most_rows

_SHOWN = 5
"""Most rules named in a message."""


@dataclass(frozen=True)
class Known:
    """What is known of the nights that a rule is about; None: not known."""

    mean: float | None = None
    """The mean that a drop is measured from."""
    rows: int | None = None
    """Most scored rows of a night of the last week."""
    tags: Collection[str] | None = None
    """The tags that rows have."""
    missing: str = ""
    """Why there will be no night to compare with."""


def why_it_cannot_fire(rule: Rule, known: Known) -> str:
    """Why no night can breach a rule, in words; empty where one can, or where it is not known."""
    if rule.by not in (None, TOPIC) and known.tags is not None and rule.by not in known.tags:
        return f"no row has the tag {rule.by}"
    if known.rows is not None and known.rows < rule.min_rows:
        which = f" of each {rule.by}" if rule.by else ""
        return (
            f"it needs {rule.min_rows} scored rows{which}, and no night had more than {known.rows}"
        )
    if rule.max_drop is None:
        return ""
    if known.missing:
        return known.missing
    limit = rule.allowed_drop(known.mean)
    if known.mean is not None and can_fall(rule.metric, known.mean) <= limit:
        far = f" by more than {limit:.2g}" if known.mean > 0 else ""
        return f"the mean is {known.mean:.3f}, which cannot fall{far}"
    return ""


def blind_text(metric: str, mean: float, detects: float, able: Sequence[str]) -> str:
    """A sentence on a metric that cannot see a regression; `able` are metrics that can."""
    instead = f"{', '.join(able[:3])} can" if able else "more rows a night or another judge might"
    finds = f"it finds a drop of {detects:.2g} or more, and its mean is {mean:.3f}"
    if detects > 1:  # beyond every drop of a bundled metric: the number itself says nothing
        finds = f"it may not find even a drop from its mean of {mean:.3f} to the lowest value"
    return f"{metric} cannot see a regression here: {finds}; {instead}"


def blind_texts(findings: Iterable[Finding]) -> list[str]:
    """A sentence for each metric whose rule over all rows cannot see a regression. A metric that
    fell tonight was seen.
    """
    rules = [one for one in findings if one.is_rule and one.segment is None]
    able = [one.metric for one in rules if one.metric and one.drop is not None and one.sees]
    seen = {one.metric for one in rules if one.level == "breach"}
    return [
        blind_text(one.metric, one.baseline, one.mde, able)
        for one in rules
        if not one.sees and one.metric not in seen
        if one.metric and one.baseline is not None and one.mde is not None
    ]


def reach_finding(night: NightContext, cases: Sequence[RuleCheck]) -> Finding:
    """A warning that names the rules that cannot fire. Rules without data fire for that already."""
    by_limit: dict[str, list[RuleCheck]] = {}
    for case in cases:
        by_limit.setdefault(_limit_of(case), []).append(case)
    reasons = [
        f"{limit} cannot fire: {why}"
        for limit, own in by_limit.items()
        if not any(case.finding.level == "no_data" for case in own)
        if (why := _why(night, own))
    ]
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    return Finding(
        key=f"{night.manifest.dataset}/cannot_fire",
        kind="cannot_fire",
        level="breach" if reasons else "ok",
        severity="warning",
        rule="every rule can fire",
        message="; ".join(reasons[:_SHOWN]) + more or "every rule can fire",
        for_nights=None,
    )


def _why(night: NightContext, cases: Sequence[RuleCheck]) -> str:
    """Why a limit of a rule cannot fire in any of its segments; empty where it can in one."""
    rows = max((max(case.finding.n, most_rows(case.finding, night)) for case in cases), default=0)
    reasons = [
        why_it_cannot_fire(_drop_alone(case), Known(mean=_reference(case.finding), rows=rows))
        for case in cases
    ]
    return reasons[0] if reasons and all(reasons) else ""


def _drop_alone(case: RuleCheck) -> Rule:
    """The rule with the one limit that a check is about."""
    is_drop = case.finding.key.endswith(drop_name(case.rule.max_drop or 0.0, case.rule.versus))
    return case.rule if is_drop else case.rule.model_copy(update={"max_drop": None})


def _reference(finding: Finding) -> float | None:
    """The mean that a drop is measured from, and before there is one, tonight's."""
    return finding.mean if finding.baseline is None else finding.baseline


def _limit_of(case: RuleCheck) -> str:
    """`max_drop 0.1 of context_recall by section`."""
    limit = case.finding.key.rpartition("/")[2].partition(" versus ")[0]
    by = f" by {case.rule.by}" if case.rule.by else ""
    return f"{limit} of {case.rule.metric}{by}"


__all__ = ["Known", "blind_text", "blind_texts", "can_fall", "reach_finding", "why_it_cannot_fire"]
