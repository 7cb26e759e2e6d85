"""A warning that names the rules that cannot fire. Rules without data fire for that already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragmetrics.config import Rule, drop_name
from ragmetrics.records import Finding
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.night_check import Sample, Tonight, check
from ragmetrics.rules.rule_check import RuleCheck, most_rows
from ragmetrics.rules.rule_reach import Known, why_it_cannot_fire

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
