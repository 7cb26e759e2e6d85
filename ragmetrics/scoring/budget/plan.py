"""The budget of a run: which questions are judged, the portion of each part, and the pool on which
all parts of this process draw.

    rows/dt=DATE/run=ID/budget.json      written once, before anything is judged

When a run would cost more than its budget, only questions in the lower hash buckets are judged. So
the same questions are judged every night. A row is judged by all metrics or by none. Cached replies
play no role in the choice, so the sample is not biased.

Each part adds its portion of the limits to the pool, minus what it used in an earlier attempt.
Processes share only the plan and never use the portions of another process, so all processes
together stay within the limits.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from ragmetrics.http import PerLoop
from ragmetrics.judges import Spend, SpendLimiter
from ragmetrics.records import Record, SpendLimits, Usage
from ragmetrics.storage import Files, RunRef, StoredPart, require_record

BUCKETS = 1_024
"""Number of hash buckets of questions. The sample is the first so many of them."""

RESERVE = 0.05
"""Share of a budget that the sample leaves for failed attempts."""

Costs = npt.NDArray[np.float64]
"""One row per hash bucket. Columns: requests, tokens and US dollars; then the part of these three
that is for embeddings.
"""

Population = npt.NDArray[np.int64]
"""One row per hash bucket. Columns: number of questions, number of rows."""


Spending = npt.NDArray[np.float64]
"""Requests, tokens and US dollars."""


def no_costs() -> Costs:
    """Costs of zero."""
    return np.zeros((BUCKETS, 6))


def empty_population() -> Population:
    """The population of an empty log."""
    return np.zeros((BUCKETS, 2), dtype=np.int64)


def bucket_of(question_key: str) -> int:
    """The hash bucket of a question, the same every night."""
    digest = hashlib.blake2b(f"sample {question_key}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") * BUCKETS >> 32


class Allowance(Record):
    """The portion of a part in the limits. None: there is no such limit."""

    requests: int | None = None
    tokens: float | None = None
    usd: float | None = None
    embeddings: tuple[float, float, float] = (0, 0, 0)
    """Requests, tokens and US dollars of it that are reserved for embeddings."""

    @property
    def total(self) -> Spend:
        """The whole portion."""
        return Spend(self.requests or 0, self.tokens or 0, self.usd or 0)

    @property
    def for_embeddings(self) -> Spend:
        """The amount that is reserved for embeddings."""
        return Spend(*self.embeddings)


class BudgetPlan(Record):
    """The plan that is made before a run. It holds for all parts and their retries."""

    limits: SpendLimits
    estimated: Usage
    places: int = BUCKETS
    """Questions in hash buckets below this number are judged."""
    questions: int = 0
    judged: int = 0
    """Number of questions that are judged."""
    rows: int = 0
    """Number of rows with these questions."""
    parts: dict[str, Allowance] = Field(default_factory=dict)
    """Portions by the part's first metric and its shard, as in `context_recall/3`."""

    @property
    def share(self) -> float:
        """Share of the questions that are judged."""
        return self.judged / self.questions if self.questions else 1.0

    def judges(self, question_key: str) -> bool:
        """True when a question is in the sample."""
        return bucket_of(question_key) < self.places

    def limiter(self) -> SpendLimiter:
        """A limiter without any budget yet."""
        limits = (self.limits.max_requests, self.limits.max_tokens, self.limits.max_usd)
        requests, tokens, usd = (math.inf if limit is None else 0.0 for limit in limits)
        return SpendLimiter(requests, tokens, usd)


def part_key(names: Sequence[str], shard: int) -> str:
    """The key of a part in the plan: the first metric of its family, and its shard."""
    return f"{names[0]}/{shard}"


def divide(
    limits: SpendLimits, estimated: Usage, costs: Mapping[str, Costs], population: Population
) -> BudgetPlan:
    """Choose the sample that fits into the limits, and divide the limits among the parts.

    `costs` are the costs of each part by `part_key`.
    """
    most = (limits.max_requests, limits.max_tokens, limits.max_usd)
    bounds = [(column, limit) for column, limit in enumerate(most) if limit is not None]
    running = np.cumsum(sum(costs.values(), no_costs()), axis=0)
    places = min(
        (_fitting_buckets(running[:, column], limit) for column, limit in bounds), default=BUCKETS
    )
    allowances: dict[str, dict[str, Any]] = {
        key: {"embeddings": part[:places, 3:].sum(axis=0).tolist()} for key, part in costs.items()
    }
    for column, limit in bounds:
        name = ("requests", "tokens", "usd")[column]
        expected = np.array([part[:places, column].sum() for part in costs.values()])
        amounts = _allocated(limit, expected, whole_numbers=name == "requests")
        for key, amount in zip(costs, amounts, strict=True):
            allowances[key][name] = amount
    parts = {key: Allowance.model_validate(allowed) for key, allowed in allowances.items()}
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


def _fitting_buckets(running: npt.NDArray[np.float64], most: float) -> int:
    """The number of hash buckets that fit: all, or as many as leave the reserve."""
    if running[-1] <= most:
        return BUCKETS
    return int(np.searchsorted(running, most * (1 - RESERVE), side="right"))


def _allocated(
    limit: float, expected: npt.NDArray[np.float64], *, whole_numbers: bool
) -> list[float]:
    """Divide a limit in proportion to the expected costs. The sum never exceeds the limit."""
    total = expected.sum()
    weights = expected / total if total else np.full(len(expected), 1 / max(len(expected), 1))
    portions = weights * limit
    if not whole_numbers:
        return [float(portion) for portion in portions]
    whole = np.floor(portions + 1e-9)  # a third of three is one
    left = int(limit - whole.sum())
    for part in np.argsort(whole - portions, kind="stable")[:left]:
        whole[part] += 1
    return [int(one) for one in whole]


def load_plan(files: Files, ref: RunRef) -> BudgetPlan | None:
    """The plan of a run; None without a budget. Raises StoreError."""
    return require_record(files, ref.beside_rows("budget"), BudgetPlan)


class BudgetPool:
    """The budget of the parts of this process."""

    def __init__(self, files: Files, ref: RunRef, plan: BudgetPlan) -> None:
        self.plan, self.limiter = plan, plan.limiter()
        self._files, self._ref = files, ref
        self._added: set[str] = set()

    async def add_parts(self, parts: Iterable[tuple[Sequence[str], int]]) -> None:
        """Add the portions of parts to the limiter, each once. Raises StoreError."""
        await asyncio.gather(*(self._add_part(names, shard) for names, shard in parts))

    async def _add_part(self, names: Sequence[str], shard: int) -> None:
        key = part_key(names, shard)
        if key in self._added:
            return
        self._added.add(key)
        try:
            spent = await asyncio.to_thread(self._spent, names[0], shard)
        except BaseException:
            self._added.discard(key)  # a retry of the part adds its portion
            raise
        portion = self.plan.parts[key]
        if spent is None:
            self.limiter.add(portion.total, portion.for_embeddings)
        else:
            owed = Spend(-spent.requests, -spent.tokens, -spent.usd)
            self.limiter.add(portion.total + owed, Spend())

    def _spent(self, name: str, shard: int) -> Spend | None:
        """What a finished part has used; None when the part is not finished."""
        path = self._ref.scores(name, shard)
        if not StoredPart(self._files, path).is_whole():
            return None
        notes = StoredPart(self._files, path).notes()
        spent = Spend()
        for payee in notes.get("paid", ()):
            for stored in notes["usage"][payee].values():
                usage = Usage.model_validate(stored)
                spent += Spend(usage.requests, usage.tokens, usage.usd or 0.0)
        return spent


async def _close_nothing(_: BudgetPool | None) -> None:
    """A budget pool needs no closing."""


_pools: PerLoop[BudgetPool | None] = PerLoop(_close_nothing)


@asynccontextmanager
async def open_budget_pool(files: Files, ref: RunRef) -> AsyncIterator[BudgetPool | None]:
    """The budget pool of a run, shared by all parts; None without a budget."""

    def make() -> BudgetPool | None:
        plan = load_plan(files, ref)
        return BudgetPool(files, ref, plan) if plan else None

    async with _pools.hold(f"{files.root} {ref.folder('rows')}", make) as pool:
        yield pool
