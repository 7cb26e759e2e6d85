"""Whether a rule can fire at all, and whether it can see a regression where it stands.

`init`, `doctor` and every night ask the same two functions:

    a rule cannot fire    what it needs is not there, or its limit is as large as all that can fall
    it sees no regression the smallest drop that it finds is as large as all that can fall, and
                          even a fall to 0 would not be significant

What can fall is the mean less the metric's lowest value: 0 for bundled metrics. Of other metrics
the scale is not known, so their limits are taken as they are. The warning of a night names the
rules that cannot fire; rules without data fire for that already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragmetrics.config import Rule, drop_name
from ragmetrics.records import TOPIC, Finding
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.night_check import Sample, Tonight, check
from ragmetrics.rules.rule_check import RuleCheck, can_fall, most_rows

_SHOWN = 5
"""Most rules named in a message."""
_RULE = "every rule can fire"


@check(
    "cannot_fire",
    "a rule that cannot fire",
    stage="rules",
    order=90,
    sample=Sample(
        "A rule that cannot fire",
        _RULE,
        "max_drop 0.1 of context_relevance cannot fire: the mean is 0.070, which cannot fall by "
        "more than 0.1",
        fields={"for_nights": None},
    ),
)
def cannot_fire(tonight: Tonight) -> Iterator[Finding]:
    """The warning that no night can breach a rule: its limit is as large as all that can fall, or
    it needs more rows than a night has.

    One finding on all rules that were evaluated tonight.
    """
    by_limit: dict[str, list[RuleCheck]] = {}
    for case in tonight.cases:
        by_limit.setdefault(_limit_of(case), []).append(case)
    reasons = [
        f"{limit} cannot fire: {why}"
        for limit, cases in by_limit.items()
        if not any(case.finding.level == "no_data" for case in cases)
        if (why := _why(tonight.night, cases))
    ]
    more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    text = "; ".join(reasons[:_SHOWN]) + more or _RULE
    yield tonight.finding("breach" if reasons else "ok", _RULE, text, for_nights=None)


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
    instead = f"use {', '.join(able[:3])}" if able else "try more rows a night or another judge"
    finds = f"smallest detectable drop {detects:.2g}, mean {mean:.3f}"
    if detects > 1:  # beyond every drop of a bundled metric: the number itself says nothing
        finds = f"even a fall from {mean:.3f} to the lowest value may go unseen"
    return f"{metric} cannot show a regression here: {finds}; {instead}"


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
