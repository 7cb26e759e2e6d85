"""HTTP endpoints in the settings: their addresses, keys, headers, and the prices of their models.

An address contains no secret. A key is in an environment variable; a header with a secret names the
variable that holds it.

The prices of OpenAI's models are known without settings: `prices.json`, with their date. They are
those of standard requests of up to 272,000 tokens. A price in the settings wins, and other servers
have none: what a proxy charges is not known.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from ragmetrics.errors import SettingsError

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VARIABLES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Names of variables in a text such as `Bearer {SEARCH_TOKEN}`."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SNAPSHOT = re.compile(r"-\d{4}-\d\d-\d\d$")
_FILE = Path(__file__).with_name("prices.json")


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


class Prices(NamedTuple):
    """US dollars of a million tokens; None: not known."""

    prompt: float | None = None
    cached: float | None = None
    """Of prompt tokens from the cache. None: that of other prompt tokens."""
    completion: float | None = None

    def or_else(self, other: Prices) -> Prices:
        """These prices, and others where they are not known."""
        pairs = zip(self, other, strict=True)
        return Prices(*(theirs if own is None else own for own, theirs in pairs))

    def usd(self, prompt: float, completion: float, cached: float = 0) -> float | None:
        """Cost of tokens, of which `cached` ones of the prompt. None: a price is not known."""
        if self.prompt is None or self.completion is None:
            return None
        of_cached = self.prompt if self.cached is None else self.cached
        paid = (prompt - cached) * self.prompt + cached * of_cached
        return (paid + completion * self.completion) / 1e6

    def usd_saved(self, cached: int) -> float | None:
        """How much less cached tokens cost. None: none was cached, or a price is not known."""
        if not cached or self.cached is None or self.prompt is None:
            return None
        return round(cached * (self.prompt - self.cached) / 1e6, 6)


def listed_prices(model: str, base_url: str | None, *, batch: bool = False) -> Prices:
    """The listed prices of a model at an address (None: OpenAI's); a batch costs its share."""
    address, table = base_url or url_of_environment(), _table()
    if address and urlsplit(address).hostname != table["host"]:
        return Prices()
    share = table["batch_share"] if batch else 1.0
    known = table["usd_per_million_tokens"].get(_SNAPSHOT.sub("", model), {})
    return Prices(**{kind: price * share for kind, price in known.items()})


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table
