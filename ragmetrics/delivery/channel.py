"""What a channel of `alerts: channels` is: one function that sends, and one that looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import SecretStr

from ragmetrics.config import ChannelSettings
from ragmetrics.messages import Message

Send: TypeAlias = Callable[[Message, Any, SecretStr], None]
Verify: TypeAlias = Callable[[Any, SecretStr], str]


@dataclass(frozen=True)
class ChannelKind:
    """How a service is reached, by its settings and the address in the variable `url_env`."""

    name: str
    send: Send
    """Sends a message. Returns only when the service confirmed it; else raises Unconfirmed, which
    is `transient` if a repetition may succeed."""
    verify: Verify
    """Looks at an address without a message, and says what it is. Raises Unconfirmed."""
    sample: str
    """An address that can be used, with `{host}` for a server's host and port."""
    settings: type[ChannelSettings] = ChannelSettings
    """The entry of `alerts: channels`, where it has more keys."""


__all__ = ["ChannelKind", "ChannelSettings"]
