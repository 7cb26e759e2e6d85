"""The rules of a gate, and the settings of its runs."""

from __future__ import annotations

from ragmetrics.config import GateRule, Settings
from ragmetrics.errors import InputError
from ragmetrics.scoring import chosen_metrics, scoring_only
from ragmetrics.storage import GATES, open_store

DEFAULT_RULES = (GateRule(metric="context_relevance"), GateRule(metric="context_recall"))


def gate_rules(settings: Settings) -> tuple[GateRule, ...]:
    """The rules of the settings, or the default ones whose metrics are scored.

    Raises InputError for a rule on a metric that is not scored, or in which lower is better, and
    for a limit that no drop can reach.
    """
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    if settings.gate.rules is None:
        rules = tuple(rule for rule in DEFAULT_RULES if rule.metric in scored)
        if not rules:
            raise InputError(
                "gate: rules: name a metric, as neither context_relevance nor context_recall is "
                f"scored; scored are: {', '.join(scored)}"
            )
        return rules
    for rule in settings.gate.rules:
        if rule.metric not in scored:
            raise InputError(
                f"gate: rules: {rule.metric!r} is not scored; scored are: {', '.join(scored)}"
            )
        if not scored[rule.metric].higher_is_better:
            raise InputError(
                f"gate: rules: in {rule.metric!r} lower is better, and max_drop watches metrics "
                "in which higher is"
            )
        scored[rule.metric].check_limit(rule.max_drop, "gate")
    return settings.gate.rules


def gate_run_settings(settings: Settings) -> Settings:
    """The settings of a gate's runs: store STORE/gates, the rules' metrics, all rows.

    Judge replies stay in the main store: pass that as `kept`.
    """
    store = open_store(settings).at(GATES).root
    named = settings.model_copy(update={"store": store, "sample": None})
    return scoring_only(named, {rule.metric for rule in gate_rules(settings)})
