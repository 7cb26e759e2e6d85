"""Takes secrets out of what a server said: some servers repeat the key that they were sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

_LEAST = 4
"""Characters of the shortest secret that is looked for in errors; a shorter one is a word."""
_LEAST_IN_BODY = 8
"""The same for answers that are stored: a shorter secret occurs in texts by chance."""
_SHOWN = "***"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?)(_|$)")
_LOGIN = re.compile(r"://[^\s/@]{1,300}@")
"""User and password in an address. The repetition is bounded: the text is anybody's."""


def environment_redactor(environment: Mapping[str, str]) -> Redactor:
    """Takes out the values of environment variables that are named as secrets are.

    For errors of code that is not ours: it has its keys from there, and may say them.
    """
    named = {
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper()) and len(value) >= _LEAST_IN_BODY
    }
    return Redactor(named)


class Redactor:
    """Replaces secrets, also as JSON and URLs escape them. Other disguises are not seen."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((one for one in set(secrets) if one.strip()), key=len, reverse=True)
        self._plain = [secret.encode() for secret in self._secrets if len(secret) >= _LEAST_IN_BODY]
        self._escaped = [
            re.compile(_escaped(secret).encode())
            for secret in self._secrets
            if len(secret) >= _LEAST_IN_BODY and secret.isascii()
        ]

    def text(self, text: str) -> str:
        """A text for people, without secrets of four characters or more, and without logins in
        addresses.
        """
        for secret in self._secrets:
            if len(secret) >= _LEAST:
                for form in dict.fromkeys([secret, quote(secret, safe=""), quote_plus(secret)]):
                    text = text.replace(form, _SHOWN)
                text = re.sub(_escaped(secret), _SHOWN, text) if "\\" in text else text
        return _LOGIN.sub(f"://{_SHOWN}@", text)

    def body(self, body: bytes) -> bytes:
        """A body without secrets of eight characters or more."""
        for secret in self._plain:
            body = body.replace(secret, _SHOWN.encode())
        if b"\\" in body:
            for pattern in self._escaped:
                body = pattern.sub(_SHOWN.encode(), body)
        return body


def _escaped(secret: str) -> str:
    r"""A pattern of a secret in JSON, also in JSON inside JSON: `\u0073k`, `\/`.

    Its only repetition is bounded, and each position of a text is tried once.
    """
    return "".join(
        rf"(?:\\{{1,4}}u(?i:{ord(sign):04x})|\\{{0,4}}{re.escape(sign)})" for sign in secret
    )
