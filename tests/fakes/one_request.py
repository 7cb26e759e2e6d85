"""One request in a process of its own: prints what became of it, and the memory it took.

python -m tests.fakes.one_request judge http://127.0.0.1:8000/v1 '{"max_reply_bytes": 100000}'
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import SecretStr

from ragmetrics.config import JudgeSettings, RetrieverSettings
from ragmetrics.delivery.channel_kinds.slack_bot import API, slack_bot
from ragmetrics.delivery.channel_kinds.slack_webhook import send
from ragmetrics.errors import RagmetricsError, Unanswered
from ragmetrics.judges import EmbeddingClient, JudgeClient
from ragmetrics.judges.base import find_access
from ragmetrics.judges.batch_api import BatchApi, make_client
from ragmetrics.judges.embeddings import OpenAIEmbedder
from ragmetrics.judges.live import LiveJudge
from ragmetrics.messages import Message
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask
from ragmetrics.retriever.http_retriever import HttpRetriever
from ragmetrics.retriever.questions import NoAnswer, Question
from tests.fakes.scripted import CountingEmbedder

ASK = Ask(GRADE, {"question": "When was it opened?", "context": "It was opened in 1889."})


async def judge(settings: JudgeSettings) -> Unanswered:
    """A request for a verdict."""
    live = LiveJudge(find_access(settings, settings.base_url, None), settings)
    answer = await JudgeClient(live, EmbeddingClient(CountingEmbedder())).answer("00000000", ASK)
    await live.close()
    assert isinstance(answer, Unanswered)
    return answer


async def embeddings(settings: JudgeSettings) -> None:
    """Three vectors in one request."""
    embedder = OpenAIEmbedder(find_access(settings, settings.base_url, None), "e", settings)
    try:
        await asyncio.gather(*(embedder.embed(text) for text in "abc"))
    finally:
        await embedder.close()


async def retriever(settings: JudgeSettings) -> None:
    """A question to a retriever."""
    endpoint = HttpRetriever(RetrieverSettings(url=settings.base_url), "b", {})
    try:
        await endpoint.ask(Question(id="q", user_input="When?", language="en", tags={}))
    finally:
        await endpoint.close()


async def batch(settings: JudgeSettings) -> None:
    """A look at a batch."""
    api = BatchApi(make_client(find_access(settings, settings.base_url, None), settings))
    try:
        await api.look("batch_1")
    finally:
        await api.close()


async def webhook(settings: JudgeSettings) -> None:
    """A message to a webhook."""
    send(Message(text="hello", blocks=[]), SecretStr(settings.base_url or ""), retries=0)


async def bot(settings: JudgeSettings) -> None:
    """A message by a bot."""
    import os

    os.environ[API] = settings.base_url or ""
    entry = slack_bot.settings.model_validate(
        {"kind": "slack_bot", "url_env": "TOKEN", "channel": "#alerts"}
    )
    slack_bot.send(Message(text="hello", blocks=[]), entry, SecretStr("xoxb-x"))


KINDS: Mapping[str, Callable[[JudgeSettings], Any]] = {
    module.__name__: module for module in (judge, embeddings, retriever, batch, webhook, bot)
}


def peak_kb() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Ask, and say what came of it."""
    kind, url, more = sys.argv[1:]
    settings = JudgeSettings(
        name="openai", model="judge", base_url=url, retries=0, **json.loads(more)
    )
    before = peak_kb()
    try:
        told = asyncio.run(KINDS[kind](settings))
    except (RagmetricsError, NoAnswer) as error:
        told = Unanswered(type(error).__name__, str(error))
    grown = peak_kb() - before
    print(json.dumps({"status": told.status, "reason": told.reason, "grown_kb": grown}))


if __name__ == "__main__":
    main()
