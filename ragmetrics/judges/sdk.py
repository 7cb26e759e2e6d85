"""The openai SDK's client: it knows where to ask, and as whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmetrics.errors import JudgeRefused

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic import SecretStr

    from ragmetrics.judge_settings import JudgeSettings


def make_client(
    settings: JudgeSettings, base_url: str | None, key: SecretStr | None
) -> AsyncOpenAI:
    """A client of the endpoint; JudgeRefused where it cannot be made, as without a key."""
    from openai import AsyncOpenAI

    if key is None and base_url is None:
        raise JudgeRefused(
            f"the judge openai needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    return AsyncOpenAI(
        # Servers at home need no key, but the SDK does.
        api_key=key.get_secret_value() if key else "none",
        base_url=base_url,
        timeout=settings.timeout_seconds,
        max_retries=settings.retries,
    )
