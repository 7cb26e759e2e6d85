"""The budget of a run, on which all parts of this process draw.

Each part adds its portion of the budget's limits, minus what it used in an earlier attempt.
Processes share only the plan and never use the portions of another process, so all processes
together stay within the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from ragmetrics.http import PerLoop
from ragmetrics.judges import Spend
from ragmetrics.records import Usage
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan, part_key
from ragmetrics.storage import Files, RunRef, StoredPart


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
