"""Keys of targets, read from environment variables."""

from __future__ import annotations

from collections.abc import Mapping

from ragmetrics.delivery.write_back.target import TargetError


def secret_of(variable: str, environment: Mapping[str, str]) -> str:
    """The value of a variable. Raises TargetError, without the value, if it is missing or cannot be
    a key.
    """
    value = environment.get(variable, "").strip()
    if not value:
        raise TargetError(f"the environment variable {variable} is not set", transient=False)
    if not (value.isascii() and value.isprintable()):
        raise TargetError(f"{variable} holds characters that no key has", transient=False)
    return value
