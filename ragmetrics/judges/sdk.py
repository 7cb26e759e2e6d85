"""The openai SDK's client, for what is asked seldom: files and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ragmetrics.judge_settings import JudgeSettings
    from ragmetrics.judges.access import Access


def make_client(access: Access, settings: JudgeSettings) -> AsyncOpenAI:
    """A client of the endpoint."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=access.key,
        base_url=access.address,
        timeout=settings.timeout_seconds,
        max_retries=settings.retries,
    )
