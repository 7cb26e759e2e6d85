"""Funds: the one purse of all parts of a run that are scored in this process.

Each part brings its portion of the limits, less what it spent when it was scored before, and all
draw on the whole. Parts in several processes share nothing but the plan, so the portions of one
process are never spent by another: all together never spend more than the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import reduce

from ragmetrics.event_loop import PerLoop
from ragmetrics.judges import Spend
from ragmetrics.model import Usage
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan, part_key
from ragmetrics.storage import Files, RunRef, is_whole, read_notes

Part = tuple[Sequence[str], int]
"""The names of a family of metrics, and a shard."""


class BudgetPool:
    """What a budget has for the parts of this process."""

    def __init__(self, files: Files, ref: RunRef, plan: BudgetPlan) -> None:
        self.plan, self.purse = plan, plan.purse()
        self._files, self._ref = files, ref
        self._brought: set[str] = set()

    async def bring(self, parts: Iterable[Part]) -> None:
        """Put the portions of parts into the purse, each once."""
        await asyncio.gather(*(self._bring(names, shard) for names, shard in parts))

    async def _bring(self, names: Sequence[str], shard: int) -> None:
        key = part_key(names, shard)
        if key in self._brought:
            return
        self._brought.add(key)
        spent = await asyncio.to_thread(self._spent, names[0], shard)
        portion = self.plan.parts[key]
        if spent is None:
            self.purse.add(portion.money, portion.kept)
        else:
            owed = Spend(-spent.requests, -spent.tokens, -spent.usd)
            self.purse.add(portion.money + owed, Spend())

    def _spent(self, name: str, shard: int) -> Spend | None:
        """What a part spent that is finished."""
        path = self._ref.scores(name, shard)
        if not is_whole(self._files, path):
            return None
        notes = read_notes(self._files, path)
        usages = [
            Usage.model_validate(usage)
            for payee in notes.get("paid", ())
            for usage in notes["usage"][payee].values()
        ]
        return reduce(Spend.__add__, (_money(usage) for usage in usages), Spend())


def _money(usage: Usage) -> Spend:
    return Spend(usage.requests, usage.tokens, usage.usd or 0.0)


async def _spend_no_more(_: BudgetPool | None) -> None:
    """Funds need no closing."""


_held: PerLoop[BudgetPool | None] = PerLoop(_spend_no_more)


@asynccontextmanager
async def open_budget_pool(files: Files, ref: RunRef) -> AsyncIterator[BudgetPool | None]:
    """The funds of a run, the same for all who hold them; None where there is no budget."""

    def make() -> BudgetPool | None:
        plan = load_plan(files, ref)
        return BudgetPool(files, ref, plan) if plan else None

    async with _held.hold(f"{files.root} {ref.folder('rows')}", make) as found:
        yield found
