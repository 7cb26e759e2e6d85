"""Address and credentials of an OpenAI-compatible endpoint.

They come from the same environment variables as in the openai SDK, without importing it, which
takes a second of CPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from ragmetrics.config import JudgeSettings, usable_url
from ragmetrics.errors import JudgeRefused, SettingsError
from ragmetrics.version import __version__

_OPENAI = "https://api.openai.com/v1"
_NAMED = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}


@dataclass(frozen=True)
class Access:
    """Address and key of an endpoint; local servers need no key."""

    address: str
    key: str = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of each request."""
        named = {header: value for name, header in _NAMED.items() if (value := os.getenv(name))}
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"ragmetrics/{__version__}",
            **named,
        }


def find_access(settings: JudgeSettings, base_url: str | None, key: SecretStr | None) -> Access:
    """The access according to settings and environment.

    Raises JudgeRefused for a key that is missing or malformed, SettingsError if OPENAI_BASE_URL is
    not a URL.
    """
    base_url = base_url or _url_of_environment()
    if key is None and base_url is None:
        raise JudgeRefused(
            f"the judge openai needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    secret = key.get_secret_value() if key else "none"
    if not (secret.isascii() and secret.isprintable()):
        raise JudgeRefused(f"the key in {settings.api_key_env} holds characters that no key has")
    return Access((base_url or _OPENAI).rstrip("/") + "/", secret)


def _url_of_environment() -> str | None:
    url = os.getenv("OPENAI_BASE_URL")
    try:
        return usable_url(url) if url else None
    except ValueError as error:
        raise SettingsError(f"OPENAI_BASE_URL: {error}") from None
