"""The openai SDK's client, for what is asked seldom: files and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.transport import CONNECT_SECONDS

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ragmetrics.judge_settings import JudgeSettings
    from ragmetrics.judges.access import Access


def make_client(access: Access, settings: JudgeSettings) -> AsyncOpenAI:
    """A client of the endpoint. Raises JudgeRefused where the proxies of the environment, as in
    `http_proxy`, cannot be used.
    """
    from openai import AsyncOpenAI, Timeout

    try:
        return AsyncOpenAI(
            api_key=access.key,
            base_url=access.address,
            timeout=Timeout(settings.timeout_seconds, connect=CONNECT_SECONDS),
            max_retries=settings.retries,
        )
    except (ImportError, ValueError) as error:
        raise JudgeRefused(
            f"the proxy that the environment names cannot be used: {error}"
        ) from error
