"""Charges the requests of one judge to the budget of a part."""

from __future__ import annotations

from collections import defaultdict

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.judges.spend_limit import Expectation, SpendLimiter
from ragmetrics.model import Ask


class MeteredJudge:
    """Reserves the expected cost of each request, and charges the cost of its reply."""

    def __init__(self, budget: SpendLimiter, settings: JudgeSettings) -> None:
        self._budget, self._settings = budget, settings
        self._expected: defaultdict[str, Expectation] = defaultdict(Expectation)

    async def reply(self, judge: Judge, request: Ask, attempt: int) -> Reply:
        """The judge's reply. Raises OverBudget if the budget is too low, and JudgeError."""
        expected = self._expected[request.prompt.name]
        characters = len(request.prompt.system) + len(request.text)

        def expect() -> tuple[float, float]:
            tokens = characters * expected.per_character, expected.completion
            return sum(tokens), self._settings.usd(*tokens) or 0.0

        async with self._budget.reserve(expect) as reservation:
            reply = await judge.reply(request, attempt)
            tokens = reply.prompt_tokens, reply.completion_tokens
            reservation.paid_tokens = sum(tokens)
            reservation.paid_usd = self._settings.usd(*tokens, cached=reply.cached_tokens) or 0.0
        expected.learn(characters, *tokens)
        return reply
