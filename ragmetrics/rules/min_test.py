"""The test of a `min` where false alarms have a budget in time: is the mean below the limit?

    z = sum_i (limit - m_i) / sqrt(sum_i e_i^2),   p' = P(any p <= min(p_tonight, p_incident))

i are tonight, or tonight and the pending nights of the incident, at most `for` nights. m is the
mean, without what judge drift and stale labels explain. e is its error by the upper end of its
interval, with the movement of the nights. p' counts the correlated tests of one to `for` nights
(`stats.chance_of_any`). Without such a budget a `min` is not tested: it is a line
that somebody drew, and `for` nights below it fire.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from ragmetrics.config import least_name
from ragmetrics.records import Finding
from ragmetrics.rules.context import NightContext, incident_start
from ragmetrics.rules.dependent_tests import chance_of_any, rule_links
from ragmetrics.rules.rule_check import RuleCheck
from ragmetrics.stats import CONFIDENCE

_ERRORS = float(special.ndtri(0.5 + CONFIDENCE / 2))


def with_min_chance(case: RuleCheck, night: NightContext) -> RuleCheck:
    """The check of a `min` with its p'; any other check, and one without data, as it is."""
    rule, finding = case.rule, case.finding
    if rule.min is None or not finding.key.endswith(f"/{least_name(rule.min)}"):
        return case
    if finding.level == "no_data" or finding.mean is None:
        return case
    if finding.level == "ok":
        return replace(case, chance=1.0)
    start = incident_start(night.earlier, finding.key, rule.for_ - 1) or night.manifest.date
    spell = [
        found
        for one in night.comparable(rule.metric)[-(rule.for_ - 1) :]
        if rule.for_ > 1 and one.date >= start
        for found in one.findings
        if found.key == finding.key and found.mean is not None
    ]
    spread = night.spreads.get(rule.metric)
    moved = spread.error if spread else 0.0
    least = min(_p_value(own, rule.min, moved) for own in ([finding], [*spell, finding]))
    links = rule_links(rule.for_, 0, fixed=True)
    return replace(case, chance=float(chance_of_any(np.array(least), links)))


def _p_value(findings: Sequence[Finding], limit: float, moved: float) -> float:
    below, squares = 0.0, 0.0
    for finding in findings:
        mean = finding.mean or 0.0
        end = mean if finding.high is None else finding.high
        below += limit - mean - (finding.explained or 0.0)
        squares += ((end - mean) / _ERRORS) ** 2 + moved**2
    if not squares:
        return 0.0 if below > 0 else 1.0
    return float(special.ndtr(-below / math.sqrt(squares)))


__all__ = ["with_min_chance"]
