"""What a metric is: a generator function with its declaration."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ragmetrics.errors import InputError
from ragmetrics.metrics.prompt_overrides import NO_OVERRIDES, PromptOverrides
from ragmetrics.records import (
    Ask,
    LogRow,
    Prompt,
    Request,
    Score,
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
    higher_is_better: bool = True
    label_target: str = ""
    """The target of the labels that its verdicts can be compared with; empty: there is none."""
    declared_range: tuple[float, float] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    overrides: PromptOverrides = NO_OVERRIDES
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

        Only bundled metrics are checked: their scores are in [0, 1], and the scale of others is
        unknown. `where` is the settings key of the rules, `name` that of the drop.
        """
        if self.bounded and max_drop is not None and max_drop >= 1:
            raise InputError(
                f"{where}: rules: {name} of {self.name!r} is {max_drop:g}, and its scores end at "
                "1: say how much of that it may fall, as 0.05"
            )
        if self.bounded and least is not None and not 0 < least <= 1:
            raise InputError(
                f"{where}: rules: min of {self.name!r} is {least:g}, and its scores are from 0 to "
                "1: say a mean between them, as 0.7"
            )

    @property
    def bundled(self) -> bool:
        """Whether it is a metric of this package, and not of another one."""
        return self.steps.__module__.startswith(_BUNDLED)

    @property
    def bounded(self) -> bool:
        """Whether its scores are known to be in [0, 1], as those of all bundled metrics are."""
        return self.bundled

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The lowest and the highest value that it may give; None: any number."""
        return self.declared_range or ((0.0, 1.0) if self.bounded else None)

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
        parts = [self.name, self.version, parameters, self.overrides.digest(self.prompts)]
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
        """Start the metric's steps on one row."""
        return self.steps(row, **self.parameters)

    def with_parameters(self, parameters: Mapping[str, Any]) -> Metric:
        """Bind parameters. Raises InputError for an unknown parameter or a wrong type."""
        if not isinstance(parameters, Mapping):
            raise InputError(f"{self.name}: parameters are a mapping, not {parameters!r}")
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

    def with_overrides(self, overrides: PromptOverrides) -> Metric:
        """Use the user's prompt overrides."""
        return replace(self, overrides=overrides)

    def overridden(self, request: Request, language: str | None) -> Request:
        """A request of this metric with the prompt for a row's language."""
        if not isinstance(request, Ask):
            return request
        prompt = self.overrides.of(request.prompt, language)
        return request if prompt is request.prompt else replace(request, prompt=prompt)


def metric(
    *,
    version: int,
    calls: str,
    prompts: Sequence[Prompt[Any]] = (),
    needs: Sequence[str] = ("user_input", "retrieved_contexts"),
    embeds: bool = False,
    higher_is_better: bool = True,
    label_target: str = "",
    score_range: tuple[float, float] | None = None,
) -> Callable[[Callable[..., Steps[Score]]], Metric]:
    """Declare a generator function as a metric named like the function.

    `version` rises when the same replies may give another value. `calls` describes the number of
    requests per row. `needs` lists the required fields of a row, with alternatives as
    `this + that | other`. `label_target` names the labels that its verdicts can be compared with.
    A row with a value outside `score_range` is `metric_failed`. None: any number is allowed.
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
        )

    return declare
