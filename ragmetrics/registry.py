"""The metrics there are: every module in `ragmetrics.metrics`, plus installed entry points.

Adding a metric is adding a file. `@metric` gives the function its name in every output.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import ragmetrics.metrics
from ragmetrics.errors import InputError
from ragmetrics.protocol import Prompt, Score, Steps, dumps
from ragmetrics.rows import LogRow

ENTRY_POINTS = "ragmetrics.metrics"


@dataclass(frozen=True)
class Metric:
    """A metric with its parameters bound: what it needs of a row and asks of a judge."""

    name: str
    version: int
    steps: Callable[..., Steps[Score]]
    prompts: tuple[Prompt[Any], ...]
    needs: tuple[str, ...]
    calls: str
    embeds: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """First line of the docstring."""
        return (inspect.getdoc(self.steps) or "").split("\n", 1)[0]

    @property
    def digest(self) -> str:
        """Changes where the same replies may give another value."""
        parameters = dict(sorted(self.parameters.items()))
        parts = [self.name, self.version, parameters, [p.digest for p in self.prompts]]
        return hashlib.blake2b(dumps(parts).encode(), digest_size=6).hexdigest()

    def play(self, row: LogRow) -> Steps[Score]:
        """Start the metric's steps on one row."""
        return self.steps(row, **self.parameters)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Metric:
        """Bind parameters; raise InputError for one that the metric does not have."""
        known = [p.name for p in inspect.signature(self.steps).parameters.values()][1:]
        unknown = sorted(set(parameters) - set(known))
        if unknown:
            raise InputError(
                f"{self.name} has no parameter {unknown[0]!r}; it has: {', '.join(known) or 'none'}"
            )
        return replace(self, parameters=dict(parameters))


def metric(
    *,
    version: int,
    calls: str,
    prompts: Sequence[Prompt[Any]] = (),
    needs: Sequence[str] = ("user_input", "retrieved_contexts"),
    embeds: bool = False,
) -> Callable[[Callable[..., Steps[Score]]], Metric]:
    """Declare a generator function as a metric named like the function.

    `version` rises when the same replies may give another value; `calls` says in words how
    many requests a row makes; `needs` names the row's fields without which nothing is scored.
    """

    def declare(steps: Callable[..., Steps[Score]]) -> Metric:
        return Metric(steps.__name__, version, steps, tuple(prompts), tuple(needs), calls, embeds)

    return declare


@cache
def metrics() -> Mapping[str, Metric]:
    """All metrics by name, in alphabetical order."""
    found: dict[str, Metric] = {}
    for module in pkgutil.iter_modules(ragmetrics.metrics.__path__):
        if not module.name.startswith("_"):
            loaded = importlib.import_module(f"ragmetrics.metrics.{module.name}")
            found[module.name] = getattr(loaded, module.name)
    for point in entry_points(group=ENTRY_POINTS):
        found.setdefault(point.name, point.load())
    return dict(sorted(found.items()))


def select(wanted: Iterable[str | Mapping[str, Mapping[str, Any]]]) -> list[Metric]:
    """Look up metrics by name, or by `{name: parameters}`; raise InputError for an unknown one."""
    chosen: dict[str, Metric] = {}
    for item in wanted:
        pairs = {item: {}} if isinstance(item, str) else item
        for name, parameters in pairs.items():
            if name not in metrics():
                raise InputError(f"no metric {name!r}; there are: {', '.join(metrics())}")
            chosen[name] = metrics()[name].with_parameters(parameters or {})
    if not chosen:
        raise InputError("no metric chosen")
    return list(chosen.values())


def families(chosen: Sequence[Metric]) -> list[tuple[Metric, ...]]:
    """Group metrics that share a prompt: one task scores a family, so nothing is asked twice."""
    groups: list[list[Metric]] = []
    for one in chosen:
        mine = [g for g in groups if any(set(_names(one)) & set(_names(other)) for other in g)]
        merged = [*(m for g in mine for m in g), one]
        groups = [g for g in groups if g not in mine] + [merged]
    return [tuple(group) for group in groups]


def _names(one: Metric) -> list[str]:
    return [prompt.name for prompt in one.prompts]
