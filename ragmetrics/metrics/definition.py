"""What a metric is, and which there are.

A metric is a generator function with its declaration, one file in `metrics/bundled/` or an entry
point of another package. In every output it has the name of the function that `@metric` decorates.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from textwrap import dedent
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ragmetrics.errors import InputError
from ragmetrics.metrics.prompt_overrides import PromptOverrides
from ragmetrics.plugins import Kind, UnknownPlugin, UnusablePlugin
from ragmetrics.records import (
    Ask,
    LogRow,
    Prompt,
    Request,
    Score,
    Status,
    Steps,
    dump_json,
    explain_validation_error,
    fingerprint,
)

_BUNDLED = "ragmetrics.metrics.bundled."


@dataclass(frozen=True)
class Metric:
    """A metric with its parameters bound."""

    name: str
    version: int
    steps: Callable[..., Steps[Score]]
    prompts: tuple[Prompt[Any], ...]
    needs: tuple[str, ...]
    calls: str
    embeds: bool = False
    higher_is_better: bool | None = True
    """None: neither direction is better. Rules on it find a change in either one."""
    label_target: str = ""
    """The target of the labels that its verdicts can be compared with; empty: there is none."""
    declared_range: tuple[float, float] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    overrides: PromptOverrides | None = None
    """The user's prompts; None: the built-in ones are sent."""
    decided: Metric | None = None
    """Its form for judges that write no text, where it is not the same; see `by_decisions`."""
    display: str = ""
    """Its name in front of people; empty: the code's name with spaces."""
    unit: str = ""
    """What its values count, as `ms`; `%`: they are shares, shown in percent."""
    least_change: float = 0.0
    """The smallest change for the worse that is worth an alert, as a share of the mean, in
    proposed rules; a metric in percent has it in its own scale. 0: that of the default rules."""
    looks_back: bool = False
    """Whether it reads what the nights before say of a row (`last_contexts` and the like)."""
    problem: str = ""
    """Why it cannot be used: the package that it is of could not be loaded. All rows fail then."""

    def check_limit(
        self,
        max_drop: float | None,
        where: str,
        least: float | None = None,
        *,
        name: str = "max_drop",
    ) -> None:
        """Raise InputError for a drop that is impossible, or a minimum that all or no means reach.

        Only bundled metrics with scores in [0, 1] are checked: the scale of others is unknown.
        `where` is the settings key of the rules, `name` that of the drop.
        """
        if self.is_share and max_drop is not None and max_drop >= 1:
            raise InputError(
                f"{where}: rules: {name} of {self.name!r} is {max_drop:g}, and its scores end at "
                "1: say how much of that it may fall, as 0.05"
            )
        if self.is_share and least is not None and not 0 < least <= 1:
            raise InputError(
                f"{where}: rules: min of {self.name!r} is {least:g}, and its scores are from 0 to "
                "1: say a mean between them, as 0.7"
            )

    @property
    def bundled(self) -> bool:
        """Whether it is a metric of this package, and not of another one."""
        return self.steps.__module__.startswith(_BUNDLED)

    def least_drop(self, mean: float) -> float:
        """The smallest change of a mean that is worth an alert; 0: that of the default rules."""
        return self.least_change * (1.0 if self.unit == "%" else abs(mean))

    @property
    def is_share(self) -> bool:
        """Whether it is a metric of this package with scores from 0 to 1."""
        return self.bundled and self.score_range == (0.0, 1.0)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The lowest and the highest value that it may give; None: any number."""
        return self.declared_range or ((0.0, 1.0) if self.bundled else None)

    @property
    def title(self) -> str:
        """First line of the docstring."""
        return self.description.split("\n", 1)[0]

    @property
    def description(self) -> str:
        """The whole docstring: formula, range, each empty case, source."""
        return inspect.getdoc(self.steps) or ""

    @property
    def formula(self) -> str:
        """The indented block of the docstring."""
        lines = self.description.splitlines()
        return dedent("\n".join(line for line in lines if line.startswith("    ")))

    @property
    def digest(self) -> str:
        """Digest that changes if the same replies may give another value."""
        parameters = dict(sorted(self.parameters.items()))
        prompts = [prompt.digest for prompt in self.prompts]
        if self.overrides is not None:
            prompts = self.overrides.digest(self.prompts)
        parts = [self.name, self.version, parameters, prompts]
        return hashlib.blake2b(dump_json(parts).encode(), digest_size=6).hexdigest()

    def fingerprint(self, judge: str, embedder: str) -> str:
        """A digest of judge, embedder, prompts, version and parameters. Scores with different
        fingerprints are not comparable.
        """
        asked = judge if self.prompts else "", embedder if self.embeds else ""
        return fingerprint(self.digest, *asked)

    def fits(self, filled: Collection[str]) -> bool:
        """Whether a row with these fields has all required ones."""
        return not self.lacks(filled)

    def lacks(self, filled: Collection[str]) -> list[str]:
        """The required fields that a row with these fields lacks."""
        return [
            need
            for need in self.needs
            if not any(set(fields.split(" + ")) <= set(filled) for fields in need.split(" | "))
        ]

    def play(self, row: LogRow) -> Steps[Score]:
        """Start the metric's steps on one row. Where the retriever failed, only a metric that reads
        the error has a score: nothing retrieved is no answer then.
        """
        if row.retrieval_error and not any("retrieval_error" in need for need in self.needs):
            return _not_retrieved()
        return self.steps(row, **self.parameters)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Metric:
        """Bind parameters. Raises InputError for an unknown parameter or a wrong type."""
        if not isinstance(parameters, Mapping):
            raise InputError(f"{self.name}: parameters are a mapping, not {parameters!r}")
        if not parameters:
            return replace(self, parameters={})  # a run chooses its metrics dozens of times
        known = [p.name for p in inspect.signature(self.steps).parameters.values()][1:]
        unknown = sorted(set(parameters) - set(known))
        if unknown:
            raise InputError(
                f"{self.name} has no parameter {unknown[0]!r}; it has: {', '.join(known) or 'none'}"
            )
        hints = get_type_hints(self.steps)
        for name, value in parameters.items():
            try:
                TypeAdapter(hints.get(name, Any)).validate_python(value, strict=True)
            except ValidationError as error:
                raise InputError(
                    f"{self.name}: {name}: {explain_validation_error(error)}"
                ) from None
        return replace(self, parameters=dict(parameters))

    def by_decisions(self) -> Metric:
        """The metric as decision models are asked for it."""
        if self.decided is None:
            return self
        return replace(
            self.decided,
            name=self.name,
            display=self.display,
            needs=self.needs,
            higher_is_better=self.higher_is_better,
            label_target=self.label_target,
            parameters=self.parameters,
            overrides=self.overrides,
        )

    def overridden(self, request: Request, language: str | None) -> Request:
        """A request of this metric with the prompt for a row's language."""
        if self.overrides is None or not isinstance(request, Ask):
            return request
        prompt = self.overrides.of(request.prompt, language)
        return request if prompt is request.prompt else replace(request, prompt=prompt)


def _not_retrieved() -> Steps[Score]:
    yield from ()
    return Score.not_applicable("the retriever failed")


def metric(
    *,
    version: int,
    calls: str,
    prompts: Sequence[Prompt[Any]] = (),
    needs: Sequence[str] = ("user_input", "retrieved_contexts"),
    embeds: bool = False,
    higher_is_better: bool | None = True,
    label_target: str = "",
    score_range: tuple[float, float] | None = None,
    by_decisions: Metric | None = None,
    display: str = "",
    unit: str = "",
    least_change: float = 0.0,
    looks_back: bool = False,
) -> Callable[[Callable[..., Steps[Score]]], Metric]:
    """Declare a generator function as a metric named like the function.

    `version` rises when the same replies may give another value. `calls` describes the number of
    requests per row. `needs` lists the required fields of a row, with alternatives as
    `this + that | other`. `label_target` names the labels that its verdicts can be compared with.
    A row with a value outside `score_range` is `metric_failed`. None: any number is allowed.
    `by_decisions` is another metric with the same parameters, which takes its place under its name
    where all judges are decision models; it needs no text that a judge writes. `display` is its
    name in front of people; empty: that of the function with spaces. `unit` is what its values
    count; `%` shows shares in percent. `least_change`, `looks_back`: see `Metric`.
    """

    def declare(steps: Callable[..., Steps[Score]]) -> Metric:
        return Metric(
            steps.__name__,
            version,
            steps,
            tuple(prompts),
            tuple(needs),
            calls,
            embeds,
            higher_is_better,
            label_target,
            score_range,
            decided=by_decisions,
            display=display,
            unit=unit,
            least_change=least_change,
            looks_back=looks_back,
        )

    return declare


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


def display_name(name: str) -> str:
    """The name of a metric in front of people: `Context recall`.

    One that declares none, or is not installed, has the code's name with spaces: `Answer length`.
    """
    known = find_metric(name)
    spaced = name.replace("_", " ").strip()
    return (known.display if known else "") or f"{spaced[:1].upper()}{spaced[1:]}"


def unit_of(name: str) -> str:
    """The unit of a metric's values; empty for plain numbers and for unknown metrics."""
    known = find_metric(name)
    return known.unit if known else ""


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


def prompts_of(chosen: Iterable[Metric]) -> dict[str, Prompt[Any]]:
    """The built-in prompts of metrics, by name, in alphabetical order."""
    prompts = {prompt.name: prompt for one in chosen for prompt in one.prompts}
    return dict(sorted(prompts.items()))
