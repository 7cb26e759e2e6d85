"""An account: one judge's replies, paid for from the purse of a part."""

from __future__ import annotations

from collections import defaultdict

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.judges.spend_limit import Expectation, SpendLimiter
from ragmetrics.model import Ask


class MeteredJudge:
    """Sets aside what a request is expected to cost by the judge's prices, and pays its reply."""

    def __init__(self, purse: SpendLimiter, chosen: JudgeSettings) -> None:
        self._purse, self._chosen = purse, chosen
        self._expected: defaultdict[str, Expectation] = defaultdict(Expectation)

    async def reply(self, judge: Judge, request: Ask, attempt: int) -> Reply:
        """The judge's reply. Raises OverBudget where the purse does not have what it may cost,
        and JudgeError like a judge.
        """
        expected = self._expected[request.prompt.name]
        characters = len(request.prompt.system) + len(request.text)

        def expect() -> tuple[float, float]:
            tokens = characters * expected.per_character, expected.completion
            return sum(tokens), self._chosen.usd(*tokens) or 0.0

        async with self._purse.set_aside(expect) as bill:
            reply = await judge.reply(request, attempt)
            tokens = reply.prompt_tokens, reply.completion_tokens
            bill.paid_tokens = sum(tokens)
            bill.paid_usd = self._chosen.usd(*tokens, cached=reply.cached_tokens) or 0.0
        expected.learn(characters, *tokens)
        return reply
