"""A language model at an OpenAI-compatible endpoint, which answers each request at once."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import date

from ragmetrics.config import JudgeKind, JudgeSettings, api_key
from ragmetrics.errors import JudgeError
from ragmetrics.judges.base import Judge, JudgeParts, find_access

_SECONDS_FOR_DATE = 5.0  # a night needs no date, so it does not wait for a slow server


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.live import LiveJudge

    return LiveJudge(parts.access(judge), judge)


async def _probe(judge: JudgeSettings, *, ask: bool) -> str:
    from ragmetrics.judges.probe import probe_chat

    return await probe_chat(judge, ask=ask)


async def _shutdown_date(judge: JudgeSettings) -> date | None:
    """When the model of a judge is shut down, by `shutdown_date` in the list of models; None if the
    list has no date. Raises JudgeError where there is no such list.
    """
    from ragmetrics.http import Dropped, HttpClient, TooLarge, Unreachable
    from ragmetrics.judges.responses import mapping

    access = find_access(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    client = HttpClient(access.address, access.headers, secrets=[access.key])
    try:
        async with asyncio.timeout(_SECONDS_FOR_DATE):
            answer = await client.send("GET", "/models")
        models = mapping(json.loads(answer.body)).get("data") if answer.status == 200 else None
    except (Unreachable, Dropped, TooLarge, TimeoutError, ValueError) as error:
        raise JudgeError(f"{access.address} lists no models: {type(error).__name__}") from error
    finally:
        await client.aclose()
    if not isinstance(models, list):
        raise JudgeError(f"{access.address} lists no models: it answered {answer.status}")
    named = [mapping(model) for model in models if mapping(model).get("id") == judge.model]
    return _day(named[0].get("shutdown_date")) if named else None


def _day(text: object) -> date | None:
    try:
        return date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


openai = JudgeKind(
    "openai",
    _make,
    JudgeSettings,
    remote=True,
    live=True,
    reads_prompts=True,
    writes=True,
    embedder="openai",
    probe=_probe,
    ends=_shutdown_date,
    sample={"base_url": "{url}"},
)
