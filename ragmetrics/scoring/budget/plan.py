"""The budget of a run: which questions are judged for it, and what each part brings of it.

    rows/dt=DATE/run=ID/budget.json      written once, before anything is judged

Where a run would cost more than its budget, the same questions are judged every night: those whose
hash is below a share. All metrics of a row go together, and whether its answers are known already
plays no part, so that the sample says of all rows what they would say.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from ragmetrics.config import Settings
from ragmetrics.errors import SettingsError, StoreError
from ragmetrics.judges import Spend, SpendLimiter
from ragmetrics.model import Record, SpendLimits, Usage, explain_validation_error
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.storage import Files, RunRef

PLACES = 1_024
"""A question has one of so many places, by its hash; the sample is a number of them."""
RESERVE = 0.05
"""Of a budget that binds, what the sample leaves for attempts that come to nothing."""

Costs = npt.NDArray[np.float64]
"""Requests, tokens and US dollars (columns) of the questions at each place (rows); and in three
more columns what of that is for embeddings.
"""
Population = npt.NDArray[np.int64]
"""Questions and rows (columns) of a log at each place (rows)."""


def no_costs() -> Costs:
    """Of nothing."""
    return np.zeros((PLACES, 6))


def nobody() -> Population:
    """Of an empty log."""
    return np.zeros((PLACES, 2), dtype=np.int64)


def place_of(question_key: str) -> int:
    """The place of a question, the same every night."""
    digest = hashlib.blake2b(f"sample {question_key}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") * PLACES >> 32


class Allowance(Record):
    """What a part brings of the limits; None: there is no such limit."""

    requests: int | None = None
    tokens: float | None = None
    usd: float | None = None
    embeddings: tuple[float, float, float] = (0, 0, 0)
    """What of the requests, tokens and US dollars is kept for embeddings."""

    @property
    def money(self) -> Spend:
        """All that it brings."""
        return Spend(self.requests or 0, self.tokens or 0, self.usd or 0)

    @property
    def kept(self) -> Spend:
        """What of it is kept for embeddings."""
        return Spend(*self.embeddings)


class BudgetPlan(Record):
    """What was decided before a run, for all its parts and their retries."""

    limits: SpendLimits
    estimated: Usage
    places: int = PLACES
    """Questions at places below this are judged."""
    questions: int = 0
    judged: int = 0
    """Of the questions, those that are judged,"""
    rows: int = 0
    """and the rows that have them."""
    parts: dict[str, Allowance] = Field(default_factory=dict)
    """By the part's first metric and its shard, as in `context_recall/3`."""

    @property
    def share(self) -> float:
        """Of the questions, those that are judged."""
        return self.judged / self.questions if self.questions else 1.0

    def judges(self, question_key: str) -> bool:
        """Whether a question is in the sample."""
        return place_of(question_key) < self.places

    def purse(self) -> SpendLimiter:
        """A purse with nothing in it yet of what is limited."""
        limits = (self.limits.max_requests, self.limits.max_tokens, self.limits.max_usd)
        requests, tokens, usd = (math.inf if limit is None else 0.0 for limit in limits)
        return SpendLimiter(requests, tokens, usd)


def part_key(names: Sequence[str], shard: int) -> str:
    """The name of a part, by its family of metrics."""
    return f"{names[0]}/{shard}"


@dataclass(frozen=True)
class _Limit:
    name: str
    column: int
    most: float


def divide(
    limits: SpendLimits, estimated: Usage, costs: Mapping[str, Costs], population: Population
) -> BudgetPlan:
    """Choose the sample that fits into the limits, and divide them among the parts.

    `costs` are those of each part, by `part_key`.
    """
    names = ("requests", "tokens", "usd")
    most = (limits.max_requests, limits.max_tokens, limits.max_usd)
    bounds = [
        _Limit(name, column, limit)
        for column, (name, limit) in enumerate(zip(names, most, strict=True))
        if limit is not None
    ]
    # From place to place, what all before it cost; a run may have no part.
    running = np.cumsum(sum(costs.values(), no_costs()), axis=0)
    places = min([_places(running[:, one.column], one.most) for one in bounds], default=PLACES)
    kept = {key: part[:places, 3:].sum(axis=0).tolist() for key, part in costs.items()}
    given: dict[str, dict[str, Any]] = {key: {"embeddings": kept[key]} for key in costs}
    for one in bounds:
        expected = np.array([part[:places, one.column].sum() for part in costs.values()])
        for key, amount in zip(costs, _dealt(one, expected), strict=True):
            given[key][one.name] = amount
    parts = {key: Allowance.model_validate(allowed) for key, allowed in given.items()}
    judged, rows = population[:places].sum(axis=0)
    return BudgetPlan(
        limits=limits,
        estimated=estimated,
        places=places,
        questions=int(population[:, 0].sum()),
        judged=int(judged),
        rows=int(rows),
        parts=parts,
    )


def _places(running: npt.NDArray[np.float64], most: float) -> int:
    """How many places fit: all, or as many as leave a reserve."""
    if running[-1] <= most:
        return PLACES
    return int(np.searchsorted(running, most * (1 - RESERVE), side="right"))


def _dealt(limit: _Limit, expected: npt.NDArray[np.float64]) -> list[float]:
    """The limit in portions as expected; whole requests, and never more than there are."""
    total = expected.sum()
    weights = expected / total if total else np.full(len(expected), 1 / max(len(expected), 1))
    portions = weights * limit.most
    if limit.name != "requests":
        return [float(one) for one in portions]
    whole = np.floor(portions + 1e-9)  # a third of three is one
    left = int(limit.most - whole.sum())
    for part in np.argsort(whole - portions, kind="stable")[:left]:
        whole[part] += 1
    return [int(one) for one in whole]


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/budget.json"


def save_plan(files: Files, ref: RunRef, plan: BudgetPlan) -> None:
    """Write what was decided."""
    files.write(_path(ref), plan.model_dump_json(indent=1).encode())


def load_plan(files: Files, ref: RunRef) -> BudgetPlan | None:
    """What was decided for a run; None where there is no budget. Raises StoreError."""
    found = files.find(_path(ref))
    try:
        return None if found is None else BudgetPlan.model_validate_json(found)
    except ValidationError as error:
        raise StoreError(
            f"{files.uri(_path(ref))} is damaged: {explain_validation_error(error)}"
        ) from error


def pays_for_embeddings(settings: Settings) -> bool:
    """Whether embeddings come from an endpoint."""
    name = settings.embeddings.name
    return name == "openai" or (name is None and any(one.remote for one in settings.panel))


def is_paid(settings: Settings) -> bool:
    """Whether anybody is reached over a network, and paid: their replies are worth keeping."""
    return pays_for_embeddings(settings) or any(one.remote for one in settings.panel)


def check_prices(settings: Settings) -> None:
    """Raise SettingsError where a budget in money meets a price that nobody told."""
    if settings.budget.max_usd is None:
        return
    for one in settings.panel:
        if one.remote and one.usd(0, 0) is None:
            missing = [
                f"usd_per_million_{kind}_tokens"
                for kind in ("prompt", "completion")
                if getattr(one, f"usd_per_million_{kind}_tokens") is None
            ]
            raise SettingsError(
                f"budget: max_usd: what {one.name}:{one.model} costs is not known; the settings of "
                f"the judge lack {' and '.join(missing)}"
            )
    embeds = pays_for_embeddings(settings) and any(one.embeds for one in chosen_metrics(settings))
    if embeds and settings.embeddings.usd_per_million_tokens is None:
        raise SettingsError(
            "budget: max_usd: what embeddings cost is not known; the settings lack "
            "embeddings: usd_per_million_tokens"
        )
