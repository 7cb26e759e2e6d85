"""`prompt_layout: auto`: which judges get prompts that begin with the row.

Providers are listed here if their documentation says that they cache an equal beginning of 1,024
tokens or more, and nothing shorter:

    OpenAI   https://developers.openai.com/api/docs/guides/prompt-caching
    Azure    https://learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching
"""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

PromptLayout = Literal["auto", "task_first", "row_first"]
_HOSTS = ("openai.com", "openai.azure.com")
_GPT = re.compile(r"\bgpt-(\d)(?:\.?(\d+))?")  # Azure's names have no dot: gpt-41
_FIRST_WITH_BREAKPOINTS = (5, 6)


def caches_from_1024_tokens(base_url: str | None) -> bool:
    """True if the provider at an address caches equal beginnings so. None: OpenAI's own API."""
    host = urlsplit(base_url).hostname or "" if base_url else _HOSTS[0]
    return any(host == one or host.endswith(f".{one}") for one in _HOSTS)


def needs_breakpoints(model: str) -> bool:
    """True for OpenAI's models from GPT-5.6: their cache finds an equal beginning only where a
    request marks its end, and ours mark none.
    """
    found = _GPT.search(model.casefold())
    if found is None:
        return False
    return (int(found[1]), int(found[2] or 0)) >= _FIRST_WITH_BREAKPOINTS
