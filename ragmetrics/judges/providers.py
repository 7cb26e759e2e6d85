"""Endpoints that serve many users, and so many requests at once."""

from __future__ import annotations

from urllib.parse import urlsplit

from ragmetrics.judges.adaptive_concurrency import CAREFUL_START, START

_HOSTS = (
    *("openai.com", "azure.com", "amazonaws.com", "anthropic.com", "googleapis.com", "mistral.ai"),
    *("groq.com", "together.xyz", "together.ai", "fireworks.ai", "deepseek.com", "openrouter.ai"),
    *("cohere.com", "cohere.ai", "jina.ai", "voyageai.com", "x.ai", "perplexity.ai", "cerebras.ai"),
    *("deepinfra.com", "databricks.com", "nebius.com", "sambanova.ai", "upstage.ai"),
)


def first_in_flight(address: str) -> int:
    """Number of requests with which an endpoint is asked at first."""
    host = urlsplit(address).hostname or ""
    known = any(host == provider or host.endswith(f".{provider}") for provider in _HOSTS)
    return START if known else CAREFUL_START
