"""Asks the judge that writes texts, outside of the scoring of rows."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import InputError
from ragmetrics.http import run_coroutine
from ragmetrics.judges.client import JudgeClient
from ragmetrics.judges.embeddings import EmbeddingClient
from ragmetrics.judges.factory import make_embedder, make_judge
from ragmetrics.judges.reply_cache import ReplyCache
from ragmetrics.judges.spending import SpendLimiter, use_budget
from ragmetrics.records import Answer, Ask
from ragmetrics.storage import Files

_LEAST_TOKENS = 4_000  # texts are longer than the verdicts that the settings are meant for
_ALL_KEYS = ("00000000", "ffffffff")


def ask_writer(
    settings: Settings, asks: Sequence[Ask], to: str, files: Files | None = None
) -> list[Answer]:
    """The answers of the first judge of the panel that writes texts, within the `budget:`.

    In the reply cache of the store `files` replies are looked up and kept, each as it comes: what
    was answered before is not paid for again. Raises InputError if no judge writes, with what it
    is needed `to` do; JudgeRefused if no request can succeed.
    """
    judge = next((one for one in settings.panel if one.kind.writes), None)
    if judge is None:
        raise InputError(
            f"the {settings.panel[0].name} judge cannot {to}; name another one: "
            "--judge openai --model ..."
        )
    longer = judge.model_copy(update={"max_tokens": max(judge.max_tokens, _LEAST_TOKENS)})
    return run_coroutine(_answers(settings, longer, asks, files))


async def _answers(
    settings: Settings, chosen: JudgeSettings, asks: Sequence[Ask], files: Files | None
) -> list[Answer]:
    async with AsyncExitStack() as stack:
        judge, embedder = make_judge(chosen, files=files), make_embedder(settings)
        stack.push_async_callback(judge.close)
        stack.push_async_callback(embedder.close)
        prompts = sorted({ask.prompt.name for ask in asks})
        cache = ReplyCache(files, judge.fingerprint, *_ALL_KEYS, prompts=prompts) if files else None
        if cache:
            await asyncio.to_thread(cache.load)
            stack.push_async_callback(asyncio.to_thread, cache.compact)
        with use_budget(_limiter(settings)):
            client = JudgeClient.of(chosen, judge, EmbeddingClient(embedder), cache=cache)
            stack.push_async_callback(client.stop)
            return await asyncio.gather(*(client.answer(_ALL_KEYS[0], ask) for ask in asks))


def _limiter(settings: Settings) -> SpendLimiter:
    budget = settings.budget
    limits = (budget.max_requests, budget.max_tokens, budget.max_usd)
    requests, tokens, usd = (math.inf if limit is None else limit for limit in limits)
    return SpendLimiter(requests, tokens, usd)
