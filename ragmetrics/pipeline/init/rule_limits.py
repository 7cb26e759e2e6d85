"""Alert rules that fit the variance of a team's own log: the default rules with its limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import special

from ragmetrics.config import Rule
from ragmetrics.metrics import bundled_metrics
from ragmetrics.records import Summary
from ragmetrics.rules import DEFAULT_RULES, can_fall
from ragmetrics.stats import POWER, error_of

NIGHTS_BEFORE = 7
"""A rule compares a night with so many nights before."""
FEWEST_ROWS = 20
HURTS = 0.15
"""A loss of this share of the mean hurts: `min` is no lower, unless nights differ by more."""
_FLOOR_ERRORS = 3
"""Standard deviations of a night below the mean in which no `min` lies."""
_FEWEST_NIGHTS = 3
"""Nights that show how much nights differ."""
_LEAST_DROP, _MOST_DROP = 0.03, 0.3
_SMALL = 0.05
"""Rules with a larger `max_drop` are for large drops: they keep it, and have no `min`."""
_COARSE = 0.2
"""From this mean on, `min` is rounded to hundredths."""
_NOISY_SHARE = 0.5
"""The share of the mean that may be lost where a smaller one is lost on many nights by chance."""
_DAYS = 365
_RARE = 0.1
"""Below so many false alarms a year, years are counted."""
_MOST_YEARS = 1_000.0


@dataclass(frozen=True)
class RuleLimit:
    """A rule on one metric, and what it can see."""

    metric: str
    mean: float
    error: float
    """Standard error of the difference between one night and the seven nights before."""
    max_drop: float
    max_share: float | None
    """The limit is no larger share of the mean; None: the unit of the metric has its own limit."""
    severity: str
    least: float | None
    """`min` of the rule; None where nights differ by more than half of the mean."""
    detects: float
    """The drop that is found on the first night with a probability of 80%."""
    sees: bool
    """Whether that is less than all that can fall, or a fall to 0 is found."""
    false_alarms: float
    """Expected number a year on which the rule fires without a change."""

    @property
    def false_alarms_text(self) -> str:
        """`at most 0.24 false alarms a year`, or in how many years there is one."""
        if self.false_alarms >= _RARE:
            return f"at most {self.false_alarms:.2g} false alarms a year"
        years = min(1 / self.false_alarms, _MOST_YEARS) if self.false_alarms else _MOST_YEARS
        step = 10 ** math.floor(math.log10(years))
        return f"less than one false alarm in {years // step * step:,.0f} years"


def rule_limit(
    nights: Sequence[Summary], rows_a_night: float, rule: Rule, *, false_alarms: float
) -> RuleLimit | None:
    """A default rule with the limits that fit the nights of a sample; None without an interval.

        se_night = se of a night's mean * sqrt(scored / rows a night)
        se       = se_night * sqrt(1 + 1/7)
        max_drop = z_(1-a) se, rounded up to a hundredth, from 0.03 (or what the rule has, if that
                   is more than 0.05) to 0.3
        limit    = min(max_drop, max_share * mean),   max_share = 0.5 where the default rule's
                   share of the mean is less than z_(1-a) se
        detects  = max(limit, z_(1-a) se) + z_0.8 se
        sees     if detects, or max(limit, z_(1-a) se_night) + z_0.8 se_night sqrt(1/7), is less
                 than the mean: a night that fell to 0 has no spread
        a year   = 365 (1 - Phi(max(limit / se, z_(1-a))))

    A health metric has the smallest change that is worth an alert (`Metric.least_drop`) in place of
    0.03, and no share; where neither direction is better, a is halved.

    `false_alarms` is the share `a` of nights without a change on which a rule may fire. It takes
    each night's questions for new ones; where questions return, nights are compared in pairs, and
    smaller drops are found.
    """
    known = [night for night in nights if night.mean is not None and night.mde is not None]
    if not known:
        return None
    mean = _mean(known)
    night = math.sqrt(fmean(_error(one, rows_a_night) ** 2 for one in known))
    error = night * math.sqrt(1 + 1 / NIGHTS_BEFORE)
    metric = bundled_metrics().get(rule.metric)
    false_alarms /= 1 if metric is None or metric.higher_is_better is not None else 2
    noise = _z(1 - false_alarms) * error
    usual = rule.max_drop or 0.0
    least = usual if usual > _SMALL else _LEAST_DROP
    max_drop = min(max(math.ceil(noise * 100 - 1e-9) / 100, least), _MOST_DROP)
    share = rule.max_share if noise <= (rule.max_share or 1.0) * mean else _NOISY_SHARE
    if metric and metric.least_change:
        max_drop, share = float(f"{max(noise, metric.least_drop(mean)):.2g}"), None
    fitted = rule.model_copy(update={"max_drop": max_drop, "max_share": share})
    limit = fitted.allowed_drop(mean)
    detects, falls = max(limit, noise) + _z(POWER) * error, can_fall(rule.metric, mean)
    whole = max(limit, _z(1 - false_alarms) * night) + _z(POWER) * night / NIGHTS_BEFORE**0.5
    return RuleLimit(
        metric=rule.metric,
        mean=mean,
        error=error,
        max_drop=max_drop,
        max_share=share,
        severity=rule.severity,
        least=_floor(mean, _spread(known, night)) if usual <= _SMALL else None,
        detects=detects,
        sees=detects < falls or whole < falls < math.inf,
        false_alarms=_DAYS * _chance(max(limit, noise), error),
    )


def _floor(mean: float, spread: float) -> float | None:
    """Where a mean would hurt, whatever it was the night before, rounded down.

    min = mean - max(0.15 mean, 3 spread);   None where that is less than half of the mean
    """
    least = mean - max(HURTS * mean, _FLOOR_ERRORS * spread)
    step = 100 if mean >= _COARSE else 1000
    rounded = math.floor(least * step + 1e-9) / step
    return rounded if rounded > 0 and least >= mean / 2 else None


def _spread(nights: Sequence[Summary], night: float) -> float:
    """The standard deviation of a night's mean: of the nights, and at least that of its rows."""
    means = [night.mean for night in nights if night.mean is not None]
    return max(night, stdev(means)) if len(means) >= _FEWEST_NIGHTS else night


def _mean(nights: Sequence[Summary]) -> float:
    rows = sum(night.scored for night in nights)
    return sum((night.mean or 0.0) * night.scored for night in nights) / rows


def _error(summary: Summary, rows_a_night: float) -> float:
    """The standard error of the mean of a night with so many rows."""
    spread = error_of(summary.mde or 0.0, summary.questions - 1)
    return spread * math.sqrt(summary.scored / max(rows_a_night, 1.0))


def rules_for(metrics: Collection[str]) -> list[Rule]:
    """The default rules of these metrics; a metric without one has the rule of a warning."""
    named = {rule.metric: rule for rule in DEFAULT_RULES}
    others = (
        named["context_precision"].model_copy(update={"metric": metric})
        for metric in sorted({*metrics} - {*named})
    )
    return [rule for rule in (*DEFAULT_RULES, *others) if rule.metric in metrics]


def rule_limits(
    nights: Sequence[Mapping[str, Summary]], rows_a_night: float, *, false_alarms: float
) -> list[RuleLimit]:
    """The limits of a rule for each metric, from the summaries of some nights by metric: of those
    that have an interval and at least 20 scored rows. `false_alarms` is for all of them together.
    """
    rules = rules_for({metric for night in nights for metric in night})
    scored = {
        rule.metric: [
            night[rule.metric]
            for night in nights
            if rule.metric in night and night[rule.metric].scored >= FEWEST_ROWS
        ]
        for rule in rules
    }
    watched = [rule for rule in rules if scored[rule.metric]]
    limits = (
        rule_limit(
            scored[rule.metric], rows_a_night, rule, false_alarms=false_alarms / len(watched)
        )
        for rule in watched
    )
    return [one for one in limits if one]


def _z(share: float) -> float:
    return float(special.ndtri(share))


def _chance(drop: float, error: float) -> float:
    return float(special.ndtr(-drop / error)) if error > 0 else 0.0
