"""Protects a run from its channels: time-outs, one error class, and no secrets in error texts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from urllib.parse import unquote, urlsplit

from ragmetrics.errors import RagmetricsError

CHANNEL_TIMEOUT = 90.0
"""Seconds for all messages of one channel in one run."""
_SHORTEST_PART = 6
"""Shortest part of an address that may be a secret; shorter ones are words such as `hooks`, except
in user and password."""


class Unconfirmed(RagmetricsError):
    """A channel did not confirm a message; `transient` says whether a retry may succeed.

    `of_content`: the channel refused the content of the message, not its sender.
    """

    def __init__(self, message: str, *, transient: bool = False, of_content: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.of_content = of_content


def with_timeout(seconds: float, act: Callable[[], None]) -> None:
    """Call `act`, which may hang in name resolution, in a connection, or on a slow server.

    Raises the errors of `act`, and a transient Unconfirmed after `seconds`. The call then goes on
    in its thread: if its message is still sent, people get it twice.
    """
    done: Future[None] = Future()

    def acting() -> None:
        try:
            act()
        except BaseException as error:  # raised again in the waiting thread
            done.set_exception(error)
        else:
            done.set_result(None)

    if seconds > 0:
        threading.Thread(target=acting, daemon=True).start()
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():  # a TimeoutError of `act` itself
                raise
    raise Unconfirmed(f"no answer within {CHANNEL_TIMEOUT:.0f} seconds", transient=True)


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets, and without parts of them that may be secret."""
    parts = {part for secret in secrets for part in _parts(secret)}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _SHORTEST_PART:
            text = text.replace(part, "***")
        else:
            text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", "***", text)
    return text


def _parts(secret: str) -> set[str]:
    long = {part for part in re.split(r"[/:@?&=,]+", secret) if len(part) >= _SHORTEST_PART}
    try:
        address = urlsplit(secret)
        login = {address.username or "", address.password or ""} - {""}
    except ValueError:
        login = set()
    return {one for part in {secret, *long, *login} for one in (part, unquote(part)) if one}


__all__ = ["CHANNEL_TIMEOUT", "Unconfirmed", "redact_secrets", "with_timeout"]
