"""Which metrics are scored: those that are named, in groups that share their requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import METRICS, Metric, find_metric, prompts_of


def select(wanted: Iterable[str | Mapping[str, Mapping[str, Any]]]) -> list[Metric]:
    """Look up metrics by name, or by `{name: parameters}`. Raises InputError for an unknown one."""
    chosen: dict[str, Metric] = {}
    for item in [wanted] if isinstance(wanted, str) else wanted:
        if not isinstance(item, str | Mapping):
            raise InputError(
                f"a metric is a name, or a mapping of name to parameters, not {item!r}"
            )
        for name, parameters in ({item: {}} if isinstance(item, str) else item).items():
            known = find_metric(name)
            if known is None:
                raise InputError(f"no metric {name!r}; there are: {', '.join(METRICS.names)}")
            metric = known if known.problem else known.with_parameters(parameters or {})
            if chosen.setdefault(name, metric).parameters != metric.parameters:
                raise InputError(f"{name}: named twice, with different parameters")
    if not chosen:
        raise InputError("no metric chosen")
    return list(chosen.values())


def metric_families(
    chosen: Sequence[Metric], *, together: bool = False
) -> list[tuple[Metric, ...]]:
    """Group metrics that share a prompt: one task scores a family, so no request is sent twice.

    With `together`, all metrics with prompts are one family: the requests of a row share their
    beginning.
    """
    if together and (judged := tuple(one for one in chosen if one.prompts)):
        return [judged, *((one,) for one in chosen if not one.prompts)]
    groups: list[list[Metric]] = []
    for metric in chosen:
        names = set(prompts_of([metric]))
        mine = [group for group in groups if names & prompts_of(group).keys()]
        merged = [*(m for g in mine for m in g), metric]
        groups = [g for g in groups if g not in mine] + [merged]
    return [tuple(group) for group in groups]
