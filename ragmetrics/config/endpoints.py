"""HTTP endpoints in the settings: their addresses, keys and headers.

An address contains no secret. A key is in an environment variable; a header with a secret names the
variable that holds it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from ragmetrics.errors import SettingsError

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VARIABLES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Names of variables in a text such as `Bearer {SEARCH_TOKEN}`."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def usable_url(url: str) -> str:
    """Return the URL of an endpoint. Raises ValueError when no request can be sent to it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in url or parts.port == 0:
        raise ValueError(f"should look like https://llm.example.com/v1, but is {url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:  # secrets, as often as not
        raise ValueError(
            "should end with the path and contain no user, password or query; put the key into an "
            "environment variable (`api_key_env`)"
        )
    return url


def api_key(name: str, environment: Mapping[str, str]) -> SecretStr | None:
    """The secret in an environment variable; None when it is not set or blank."""
    value = environment.get(name, "").strip()
    return SecretStr(value) if value else None


def url_of_environment() -> str | None:
    """The address in OPENAI_BASE_URL, for judges without `base_url`. Raises SettingsError."""
    url = os.getenv("OPENAI_BASE_URL")
    try:
        return usable_url(url) if url else None
    except ValueError as error:
        raise SettingsError(f"OPENAI_BASE_URL: {error}") from None


def check_address(url: str, example: str, secrets: str) -> None:
    """Raise ValueError for an invalid address, and for one that may contain a secret.

    `example` is a valid address; `secrets` says where secrets belong.
    """
    if set(url) & set("@?#"):  # the message does not repeat them
        raise ValueError(
            f"should end with the path and contain no user, password or query: put {secrets}"
        )
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise ValueError(f"should look like {example}, but is {url!r}")


def check_header(name: str) -> None:
    """Raise ValueError for an invalid header name."""
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid header name")


def check_named(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers. Raises ValueError when a header names no environment variable."""
    for name, value in headers.items():
        check_header(name)
        if not (VARIABLE.fullmatch(value) or VARIABLES.search(value)):
            raise ValueError(
                f"{name}: should name an environment variable, such as SEARCH_TOKEN or "
                "Bearer {SEARCH_TOKEN}"
            )
    return headers


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError("should be the name of an environment variable, such as PHOENIX_API_KEY")
    return name


def address(example: str) -> AfterValidator:
    """The validator of an address without a path, a user and a query, such as the example."""

    def check(url: str) -> str:
        check_address(url, example, "the key into an environment variable, and name that here")
        return url.rstrip("/")

    return AfterValidator(check)


BaseUrl = Annotated[str | None, AfterValidator(lambda url: usable_url(url) if url else None)]
"""The URL of an API of OpenAI's kind; an empty text is none."""
VariableName = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable."""
EnvironmentHeaders = Annotated[dict[str, str], AfterValidator(check_named)]
"""Maps a header to an environment variable, or to a text with variables in braces."""


def fill_headers(
    headers: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], set[str]]:
    """The headers with the values of their variables, and these values, which are secret.

    Raises ValueError when a variable is not set, or holds characters that a header cannot hold.
    The error never contains a value.
    """
    secrets: set[str] = set()

    def value_of(header: str, variable: str) -> str:
        value = environment.get(variable, "").strip()
        if not value:
            raise ValueError(f"header {header} needs the environment variable {variable}: set it")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(
                f"header {header}: {variable} holds characters that are not allowed in a header"
            )
        secrets.add(value)
        return value

    values = {}
    for header, text in headers.items():
        if VARIABLE.fullmatch(text):
            values[header] = value_of(header, text)
        else:
            pieces = VARIABLES.split(text)  # every second piece is the name of a variable
            pieces[1::2] = [value_of(header, name) for name in pieces[1::2]]
            values[header] = "".join(pieces)
    return values, secrets
