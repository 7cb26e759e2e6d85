"""Posting to any service that Apprise knows: confirmed, or an error that gives no address away."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ragmetrics.alerts.alert_store import Message
from ragmetrics.alerts.formats import generic as rendering
from ragmetrics.alerts.timeouts import Unconfirmed, redact_secrets
from ragmetrics.text import clean

if TYPE_CHECKING:
    from apprise.plugins.base import NotifyBase

_LOGGER = "apprise"
_REFUSED = re.compile(r"\berror=4(?!08|29)\d\d\b")
"""As Apprise's services log the status of an answer that no repeat will change."""


class ChannelError(Unconfirmed):
    """A service did not confirm a message."""


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
        said = "; ".join(lines)
        reason = clean(redact_secrets(said, [url]), 300) or "no reason given"
        raise ChannelError(
            f"{name} did not take the message: {reason}", transient=not _REFUSED.search(said)
        )


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


__all__ = ["ChannelError", "send"]
