"""`min` rules: a mean compared with a fixed limit."""

from __future__ import annotations

from ragmetrics.alerts.context import NightContext
from ragmetrics.alerts.firing_history import was_firing
from ragmetrics.alerts.judge_drift import mean_without_drift
from ragmetrics.alerts.rule_check import Limit, RuleCheck, of_segment, start_finding, too_few
from ragmetrics.alerts.stale_labels import mean_without_stale_labels
from ragmetrics.config import Rule, least_name
from ragmetrics.model import Level, Segment, Summary


def check_min(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Breach where the mean and its whole interval are below the limit, suspect where only the mean
    is.

    A firing alert stays suspect until the mean is back at `clear`.
    """
    named = Limit(limit, least_name(limit), f"below {limit:g}")
    finding = start_finding(rule, named, segment, night, now)
    if (short := too_few(rule, finding, night, now)) or now is None or now.mean is None:
        return short or RuleCheck(rule, finding)
    firing, explained, drift = was_firing(night.earlier, finding.key), None, ""
    level = _level(rule, limit, now, firing)
    if level != "ok" and (lifted := mean_without_drift(now, night)):
        level, explained = _level(rule, limit, lifted.without, firing), lifted.explained
        drift = f"; {lifted.text}"
    if level != "ok" and (live := mean_without_stale_labels(rule, now, night)):
        left, drift = live
        level = _level(rule, limit, left, firing) if left else "ok"
        explained = (left.mean or 0.0) - now.mean if left else None
    interval = "" if now.low is None or now.high is None else f" [{now.low:.3f}, {now.high:.3f}]"
    text = f"{finding.metric}{of_segment(segment)} is {now.mean:.3f}{interval}, limit {limit:g}"
    result = {"level": level, "message": text + drift, "mde": now.mde, "explained": explained}
    return RuleCheck(rule, finding.model_copy(update=result))


def _level(rule: Rule, limit: float, now: Summary, firing: bool) -> Level:
    mean = now.mean or 0.0
    if mean < limit:
        return "breach" if now.significantly_worse_than(limit) else "suspect"
    return "suspect" if firing and rule.clear is not None and mean < rule.clear else "ok"
