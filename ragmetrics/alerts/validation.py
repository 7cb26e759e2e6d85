"""Validates the alert rules of the settings before anything is scored."""

from __future__ import annotations

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.scoring import chosen_metrics


def check_rules(settings: Settings) -> None:
    """Raise InputError for an alert rule that cannot work: its metric is unknown or not scored, or
    its limit is beyond all means or below all means.
    """
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    for rule in settings.alerts.rules or ():
        if rule.metric not in scored:
            raise InputError(
                f"alerts: rules: {rule.metric!r} is not scored; scored are: {', '.join(scored)}"
            )
        if not scored[rule.metric].higher_is_better:
            raise InputError(
                f"alerts: rules: in {rule.metric!r} lower is better, but min and max_drop are for "
                "metrics in which higher is better"
            )
        scored[rule.metric].check_limit(rule.max_drop, "alerts", rule.min)
        scored[rule.metric].check_limit(rule.worse_by, "alerts", name="worse_by")
