"""Sends messages to any service that Apprise supports. Errors never contain the address."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ragmetrics.config import ChannelSettings
from ragmetrics.delivery.channel import ChannelKind, Unconfirmed, redact_secrets
from ragmetrics.messages import FORMATS, Format, Message
from ragmetrics.text import clean
from ragmetrics.version import install_extra

if TYPE_CHECKING:
    from apprise.plugins.base import NotifyBase

_LOGGER = "apprise"
_REFUSED = re.compile(r"\berror=4(?!08|29)\d\d\b")
"""Log text of Apprise's services for a status that no retry changes."""


def send(message: Message, settings: ChannelSettings, address: SecretStr) -> None:
    """Send to one service; return only when it confirmed.

    The text has the service's preferred format, or that of `?format=` in the address, and is cut to
    the service's limit. Raises Unconfirmed, whose text contains nothing of the address.
    """
    name, url = settings.url_env, address.get_secret_value()
    with _logged() as lines:
        service = _service(name, url)
        from apprise import Apprise, NotifyType  # as _service did

        sender = Apprise(asset=service.asset)
        sender.add(service)
        form = FORMATS.find(service.notify_format.value)
        titled = FORMATS.find("text") if service.title_maxlen > 0 else form
        sent = sender.notify(
            form.render(message.body, _room(service, form, message)),
            title=titled.escape(message.headline),
            notify_type=NotifyType(message.tone),
            body_format=service.notify_format,
        )
    if not sent:
        reasons = "; ".join(lines)
        reason = clean(redact_secrets(reasons, [url]), 300) or "no reason given"
        raise Unconfirmed(
            f"{name} did not take the message: {reason}", transient=not _REFUSED.search(reasons)
        )


def verify(settings: ChannelSettings, address: SecretStr) -> str:
    """Check an address without a message. Raises Unconfirmed for one that cannot be used."""
    with _logged():
        service = _service(settings.url_env, address.get_secret_value())
    return f"an address of {service.service_name}; it was not asked, as that would send a message"


def _service(name: str, url: str) -> NotifyBase:
    try:
        from apprise import Apprise, AppriseAsset
    except ImportError:
        raise Unconfirmed(f"{name}: Apprise is missing: {install_extra('channels')}") from None
    asset = AppriseAsset(app_id="ragmetrics", app_desc="ragmetrics", async_mode=False)
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        raise Unconfirmed(
            f"{name}: not an address that Apprise supports, as mailtos://user:password@host or "
            "msteams://...: see its list of services"
        )
    return service


def _room(service: NotifyBase, form: Format, message: Message) -> int:
    """Characters left for the body, as some services count the title with it."""
    longest = len(form.escape(message.headline))
    taken = longest + 20 if service.title_maxlen <= 0 else 0
    if service.overflow_amalgamate_title:
        taken = max(taken, min(service.title_maxlen, longest) + 20)
    return max(int(service.body_maxlen) - taken, 0)


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collects Apprise's log lines about failures, which it does not return. They may contain the
    address, so they reach no other log.
    """
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


apprise = ChannelKind("apprise", send, verify, "json://{host}/secret")
