"""Registry of metrics: the modules of `metrics/bundled/`, plus installed entry points.

A metric is one file. In every output it has the name of the function that `@metric` decorates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import Metric
from ragmetrics.plugins import Kind, UnknownPlugin, UnusablePlugin
from ragmetrics.records import LogRow, Prompt, Score, Status, Steps


def _refusal(metric: Metric) -> str:
    """Why a metric of another package cannot be used: the name of its prompt is taken."""
    taken = prompts_of(bundled_metrics().values())
    clash = next((p.name for p in metric.prompts if taken.get(p.name, p) is not p), None)
    return f"the prompt name {clash!r} is taken" if clash else ""


METRICS = Kind("ragmetrics.metrics", "ragmetrics.metrics.bundled", Metric, "metric", _refusal)


def bundled_metrics() -> Mapping[str, Metric]:
    """The metrics of this package by name, in alphabetical order."""
    return METRICS.bundled


@cache
def label_targets() -> Mapping[str, str]:
    """The bundled metrics whose verdicts can be compared with labels, and the labels' target."""
    targets = {name: metric.label_target for name, metric in bundled_metrics().items()}
    return {name: target for name, target in targets.items() if target}


def find_metric(name: str) -> Metric | None:
    """The metric of a name; None for an unknown one. One of another package is loaded.

    One that cannot be loaded is a metric of that name whose rows all fail, with the reason.
    """
    try:
        return METRICS.find(name)
    except UnknownPlugin:
        return None
    except UnusablePlugin as error:
        return _unusable(name, str(error))


@cache
def _unusable(name: str, why: str) -> Metric:
    def steps(row: LogRow) -> Steps[Score]:
        return Score(None, why, status=Status.METRIC_FAILED)
        yield

    steps.__doc__ = f"Not usable: {why}."
    return Metric(name, 0, steps, (), ("user_input",), "0", problem=why)


def used_metrics() -> Mapping[str, Metric]:
    """The bundled metrics and those of other packages that this process has loaded, by name."""
    return metrics(METRICS.used_names)


def metrics(named: Iterable[str] | None = None) -> Mapping[str, Metric]:
    """The bundled metrics and those of other packages by name, in alphabetical order.

    `named` limits the other packages to those of these metrics: no other one is loaded.
    """
    wanted = METRICS.foreign_names if named is None else set(named) & {*METRICS.foreign_names}
    others = {name: metric for name in wanted if (metric := find_metric(name)) is not None}
    return dict(sorted({**bundled_metrics(), **others}.items()))


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
            one = known if known.problem else known.with_parameters(parameters or {})
            if chosen.setdefault(name, one).parameters != one.parameters:
                raise InputError(f"{name}: named twice, with different parameters")
    if not chosen:
        raise InputError("no metric chosen")
    return list(chosen.values())


def prompts_of(chosen: Iterable[Metric]) -> dict[str, Prompt[Any]]:
    """The built-in prompts of metrics, by name, in alphabetical order."""
    found = {prompt.name: prompt for one in chosen for prompt in one.prompts}
    return dict(sorted(found.items()))


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
    for one in chosen:
        mine = [g for g in groups if any(set(_names(one)) & set(_names(other)) for other in g)]
        merged = [*(m for g in mine for m in g), one]
        groups = [g for g in groups if g not in mine] + [merged]
    return [tuple(group) for group in groups]


def _names(one: Metric) -> list[str]:
    return [prompt.name for prompt in one.prompts]
