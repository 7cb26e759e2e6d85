"""Checks that the alert rules of the settings can work, before anything is scored."""

from __future__ import annotations

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.scoring import chosen_metrics


def check_rules(settings: Settings) -> None:
    """Raise InputError for an unknown metric, and for an alert rule that watches nothing: of a
    metric that is not scored, or with a limit that no mean, or every one, is beyond.
    """
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    for rule in settings.alerts.rules or ():
        if rule.metric not in scored:
            raise InputError(
                f"alerts: rules: {rule.metric!r} is not scored; scored are: {', '.join(scored)}"
            )
        if not scored[rule.metric].higher_is_better:
            raise InputError(
                f"alerts: rules: in {rule.metric!r} lower is better, and min and max_drop watch "
                "metrics in which higher is"
            )
        scored[rule.metric].check_limit(rule.max_drop, "alerts", rule.min)
        scored[rule.metric].check_limit(rule.worse_by, "alerts", name="worse_by")
