"""The metrics that the settings choose."""

from __future__ import annotations
from ragmetrics.config import Settings
from ragmetrics.metrics import metric_families

from collections.abc import Set
from typing import TYPE_CHECKING

from ragmetrics.config import MetricChoice, Settings
from ragmetrics.metrics import Metric, Wording, metrics, prompts_of, select

if TYPE_CHECKING:
    from ragmetrics.config import Settings


def chosen_metrics(settings: Settings) -> list[Metric]:
    """The metrics that the settings choose, with the settings' prompt overrides.

    Raises InputError for an unknown metric and SettingsError for an invalid prompt.
    """
    found = select(settings.metrics)
    if settings.prompts is None:
        return found
    wording = Wording.load(settings.prompts, prompts_of(metrics().values()))
    return [one.with_wording(wording) for one in found]


def scoring_only(settings: Settings, wanted: Set[str]) -> Settings:
    """The settings with only these metrics, in the settings' order and with their parameters."""
    metrics = tuple(kept for one in settings.metrics if (kept := _of(one, wanted)))
    return settings.model_copy(update={"metrics": metrics})


def _of(choice: MetricChoice, wanted: Set[str]) -> MetricChoice | None:
    if isinstance(choice, str):
        return choice if choice in wanted else None
    return {name: parameters for name, parameters in choice.items() if name in wanted} or None


def score_families(settings: Settings) -> list[list[str]]:
    """The names of the chosen metrics, grouped by family."""
    return [
        [metric.name for metric in family]
        for family in metric_families(chosen_metrics(settings), fused=bool(settings.fuse))
    ]
