"""Posting to any service that Apprise knows: confirmed, or an error that gives no address away."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pydantic import SecretStr

from ragmetrics.alerts import rendering
from ragmetrics.alerts.markup import clean
from ragmetrics.alerts.state import Message
from ragmetrics.errors import RagmetricsError

if TYPE_CHECKING:
    from apprise.plugins.base import NotifyBase

_LOGGER = "apprise"
_SHORTEST_SECRET = 6


class ChannelError(RagmetricsError):
    """A channel did not confirm a message; `transient` says if the next try may go through."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def send(message: Message, name: str, address: SecretStr) -> None:
    """Send to one service; return only when it confirmed.

    The text is of the form that the service shows best, or that `?format=` of the address says, and
    cut to what it takes. Raises ChannelError, whose text has nothing of the address.
    """
    try:
        from apprise import Apprise, AppriseAsset, NotifyType
    except ImportError:
        raise ChannelError(
            f"{name}: Apprise is missing: pip install 'ragmetrics[channels]'"
        ) from None
    url = address.get_secret_value()
    asset = AppriseAsset(app_id="ragmetrics", app_desc="ragmetrics", async_mode=False)
    with _logged() as lines:
        service = Apprise.instantiate(url, asset=asset)
        if service is None:
            raise ChannelError(
                f"{name}: not an address that Apprise knows, as mailtos://user:password@host or "
                "msteams://...: see its list of services"
            )
        sender = Apprise(asset=asset)
        sender.add(service)
        form: rendering.Form = service.notify_format.value
        sent = sender.notify(
            rendering.body(message, form, _room(service, message)),
            title=rendering.title(message, "text" if service.title_maxlen > 0 else form),
            notify_type=NotifyType(message.tone),
            body_format=service.notify_format,
        )
    if not sent:
        reason = clean(_without(url, "; ".join(lines)), 300) or "no reason given"
        raise ChannelError(f"{name} did not take the message: {reason}", transient=True)


def _room(service: NotifyBase, message: Message) -> int:
    """Characters for the body: in some services the title counts with it."""
    taken = len(rendering.title(message, "markdown")) + 20 if service.title_maxlen <= 0 else 0
    if service.overflow_amalgamate_title:
        taken = max(taken, min(service.title_maxlen, len(rendering.title(message))) + 20)
    return max(int(service.body_maxlen) - taken, 0)


@contextmanager
def _logged() -> Iterator[list[str]]:
    """What Apprise says of failures, which is in no return value; kept out of other logs, for it
    may name the address."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(_LOGGER)
    before = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.propagate = before
        logger.removeHandler(handler)


def _without(url: str, text: str) -> str:
    """A text without the parts of an address that may be secrets."""
    parts = {one for part in re.split(r"[/:@?&=,]+", url) for one in (part, unquote(part))}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _SHORTEST_SECRET:
            text = text.replace(part, "***")
    return text


__all__ = ["ChannelError", "send"]
