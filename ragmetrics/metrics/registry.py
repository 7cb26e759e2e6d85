"""Registry of metrics: the modules of `metrics/bundled/`, plus installed entry points.

A metric is one file. In every output it has the name of the function that `@metric` decorates.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

import ragmetrics.metrics.bundled
from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import Metric
from ragmetrics.metrics.plugins import load_plugin, plugin_points
from ragmetrics.model import Prompt


@cache
def bundled_metrics() -> Mapping[str, Metric]:
    """The metrics of this package by name, in alphabetical order."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(ragmetrics.metrics.bundled.__path__)
    )
    return {
        name: getattr(importlib.import_module(f"ragmetrics.metrics.bundled.{name}"), name)
        for name in names
        if not name.startswith("_")
    }


@cache
def label_targets() -> Mapping[str, str]:
    """The bundled metrics whose verdicts can be compared with labels, and the labels' target."""
    targets = {name: one.label_target for name, one in bundled_metrics().items()}
    return {name: target for name, target in targets.items() if target}


@cache
def _plugins() -> tuple[dict[str, EntryPoint], list[str]]:
    return plugin_points(bundled_metrics())


def plugin_names() -> list[str]:
    """The names of the metrics of other packages, in alphabetical order. None is loaded."""
    return sorted(_plugins()[0])


def find_metric(name: str) -> Metric | None:
    """The metric of a name; None for an unknown one. One of another package is loaded."""
    if (bundled := bundled_metrics().get(name)) is not None:
        return bundled
    point = _plugins()[0].get(name)
    if point is None:
        return None
    if point not in _loaded:
        _loaded[point] = load_plugin(point, prompts_of(bundled_metrics().values()))
    return _loaded[point]


_loaded: dict[EntryPoint, Metric] = {}
"""The metrics of other packages that this process has loaded."""


def used_metrics() -> Mapping[str, Metric]:
    """The bundled metrics and those of other packages that this process has loaded, by name."""
    found = {**bundled_metrics(), **{metric.name: metric for metric in _loaded.values()}}
    return dict(sorted(found.items()))


def metrics(named: Iterable[str] | None = None) -> Mapping[str, Metric]:
    """The bundled metrics and those of other packages by name, in alphabetical order.

    `named` limits the other packages to those of these metrics: no other one is loaded.
    """
    wanted = plugin_names() if named is None else [n for n in plugin_names() if n in set(named)]
    found = {name: metric for name in wanted if (metric := find_metric(name)) is not None}
    return dict(sorted({**bundled_metrics(), **found}.items()))


def plugin_problems(named: Iterable[str]) -> list[str]:
    """What is wrong with installed packages of metrics, of which only the `named` are loaded."""
    found = [metrics(named)[name].problem for name in plugin_names() if name in set(named)]
    return [*_plugins()[1], *filter(None, found)]


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
                names = sorted([*bundled_metrics(), *plugin_names()])
                raise InputError(f"no metric {name!r}; there are: {', '.join(names)}")
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

    With `together`, all metrics with prompts are one family: the requests of a row are fused, or
    share their beginning.
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
