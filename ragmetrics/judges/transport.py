"""Address and key of an OpenAI-compatible endpoint, and its connections.

Address and key come from the same environment variables as in the openai SDK. The SDK is not
imported, because that takes a second of CPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from ragmetrics.config import JudgeSettings, url_of_environment
from ragmetrics.errors import JudgeRefused
from ragmetrics.http import Answer, HttpClient

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
            **named,
        }


def find_access(settings: JudgeSettings, base_url: str | None, key: SecretStr | None) -> Access:
    """The access according to settings and environment.

    Raises JudgeRefused for a key that is missing or malformed, SettingsError if OPENAI_BASE_URL is
    not a URL.
    """
    base_url = base_url or url_of_environment()
    if key is None and base_url is None:
        raise JudgeRefused(
            f"the judge openai needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    secret = key.get_secret_value() if key else "none"
    if not (secret.isascii() and secret.isprintable()):
        raise JudgeRefused(f"the key in {settings.api_key_env} holds characters that no key has")
    return Access((base_url or _OPENAI).rstrip("/") + "/", secret)


class Transport:
    """Connections to one endpoint. No answer holds the key: replies are stored and shown."""

    def __init__(self, access: Access, most_bytes: int) -> None:
        self._client = HttpClient(
            access.address, access.headers, secrets=[access.key], most_bytes=most_bytes
        )

    @property
    def address(self) -> str:
        """The address without its last slash."""
        return self._client.address

    async def post(self, path: str, body: bytes) -> Answer:
        """Send JSON and read the answer, of any status, without a timeout.

        Raises Unreachable, also after `close`, Dropped, and TooLarge if the answer is larger than
        allowed.
        """
        return await self._client.send("POST", path, body=body)

    async def close(self) -> None:
        """Close the connections, for good."""
        await self._client.aclose()
