"""Whether a rule can fire at all, and whether it can see a regression where it stands.

`init`, `doctor` and every night ask the same two functions:

    a rule cannot fire    what it needs is not there, or its limit is as large as all that can fall
    it sees no regression the smallest drop that it finds is as large as all that can fall, and
                          even a fall to 0 would not be significant

What can fall is the mean less the metric's lowest value: 0 for bundled metrics. Of other metrics
the scale is not known, so their limits are taken as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragmetrics.config import Rule
from ragmetrics.records import TOPIC, Finding
from ragmetrics.rules.rule_check import can_fall


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
    rules = [finding for finding in findings if finding.is_rule and finding.segment is None]
    able = [rule.metric for rule in rules if rule.metric and rule.drop is not None and rule.sees]
    seen = {rule.metric for rule in rules if rule.level == "breach"}
    return [
        blind_text(rule.metric, rule.baseline, rule.mde, able)
        for rule in rules
        if not rule.sees and rule.metric not in seen
        if rule.metric and rule.baseline is not None and rule.mde is not None
    ]


__all__ = ["Known", "blind_text", "blind_texts", "can_fall", "why_it_cannot_fire"]
