"""HTTP headers with secrets: the settings hold only the names of environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VARIABLES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Names of variables in a text such as `Bearer {SEARCH_TOKEN}`."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


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

    found = {}
    for header, text in headers.items():
        if VARIABLE.fullmatch(text):
            found[header] = value_of(header, text)
        else:
            pieces = VARIABLES.split(text)  # every second piece is the name of a variable
            pieces[1::2] = [value_of(header, name) for name in pieces[1::2]]
            found[header] = "".join(pieces)
    return found, secrets
