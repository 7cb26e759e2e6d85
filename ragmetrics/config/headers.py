"""Headers that hold secrets: in settings by the names of environment variables alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VARIABLES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""In a text such as `Bearer {SEARCH_TOKEN}`."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_header(name: str) -> None:
    """Raise ValueError for what is no name of a header."""
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a header")


def check_named(headers: dict[str, str]) -> dict[str, str]:
    """The headers, where each names its variables; ValueError where one names none."""
    for name, value in headers.items():
        check_header(name)
        if not (VARIABLE.fullmatch(value) or VARIABLES.search(value)):
            raise ValueError(
                f"{name}: should name an environment variable, as SEARCH_TOKEN or "
                "Bearer {SEARCH_TOKEN}"
            )
    return headers


def fill_headers(
    headers: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], set[str]]:
    """Headers with what their variables hold, and the values of those, which are secret.

    Raises ValueError, which gives no value away, where a variable is not set or holds what no
    header can.
    """
    secrets: set[str] = set()

    def value_of(header: str, variable: str) -> str:
        value = environment.get(variable, "").strip()
        if not value:
            raise ValueError(f"header {header} needs the environment variable {variable}: set it")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"header {header}: {variable} holds characters that no header has")
        secrets.add(value)
        return value

    found = {}
    for header, text in headers.items():
        if VARIABLE.fullmatch(text):
            found[header] = value_of(header, text)
        else:
            pieces = VARIABLES.split(text)  # every second is a variable's name
            pieces[1::2] = [value_of(header, name) for name in pieces[1::2]]
            found[header] = "".join(pieces)
    return found, secrets
