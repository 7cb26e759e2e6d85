"""Sending: what no channel may do to a run: hang, raise what it likes, or give its address away."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from urllib.parse import unquote, urlsplit

from ragmetrics.errors import RagmetricsError

CHANNEL_TIMEOUT = 90.0
"""Seconds that all messages of one channel may take in one run."""
_SHORTEST_PART = 6
"""Of an address: shorter ones are words, as `hooks`, except in its user and password."""


class Unconfirmed(RagmetricsError):
    """A channel did not confirm a message; `transient` says if the next try may go through.

    `of_content`: what it refused is the message, as it is written, and not whoever sends it.
    """

    def __init__(self, message: str, *, transient: bool = False, of_content: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.of_content = of_content


def with_timeout(seconds: float, act: Callable[[], None]) -> None:
    """Do something that may hang: in names, in connections, on a server that drips.

    Raises what it raises, and a transient Unconfirmed where it takes longer. Then it is left to
    itself: a message that goes out after all comes a second time.
    """
    done: Future[None] = Future()

    def acting() -> None:
        try:
            act()
        except BaseException as error:  # raised by whoever waits for it
            done.set_exception(error)
        else:
            done.set_result(None)

    if seconds > 0:
        threading.Thread(target=acting, daemon=True).start()
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():  # its own
                raise
    raise Unconfirmed(f"no answer within {CHANNEL_TIMEOUT:.0f} seconds", transient=True)


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text without addresses, tokens, and the parts of them that may be secrets."""
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
