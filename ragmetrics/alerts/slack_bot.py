"""Posts with a Slack bot token: alerts into a channel, their updates into their thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from pydantic import SecretStr
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry import FixedValueRetryIntervalCalculator
from slack_sdk.http_retry.builtin_handlers import (
    ConnectionErrorRetryHandler,
    ServerErrorRetryHandler,
)

from ragmetrics.alerts.message import Message
from ragmetrics.alerts.slack_threads import Thread, find_thread, save_thread
from ragmetrics.alerts.webhook import OF_CONTENT, BoundedWebClient, RateLimit, SlackError
from ragmetrics.errors import StoreError
from ragmetrics.storage import Files
from ragmetrics.text import clean

API = "SLACK_API_URL"
"""Variable with another address of Slack's API, for example that of GovSlack."""
log = logging.getLogger(__name__)
_THREAD_GONE = ("thread_not_found", "cannot_reply_to_message", "message_not_found")
_TRANSIENT = (
    "ratelimited",
    "rate_limited",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
)


@dataclass(frozen=True)
class Bot:
    """A bot in one channel. `channel` is its name or id."""

    token: SecretStr
    channel: str
    files: Files
    timeout: int = 10

    def send(self, message: Message) -> None:
        """Post a message; return only when Slack confirmed it.

        A message that opens a thread is stored as the thread of its alerts. Other messages go into
        that thread, and into the channel too where `broadcast` is set. Raises SlackError as the
        webhook does; no error text contains the token.
        """
        follows = message.about and not message.opens
        thread = find_thread(self.files, message.about) if follows else None
        try:
            answer = self._post(message, thread)
        except SlackApiError as error:
            reason = str(error.response.get("error", ""))
            if thread is None or reason not in _THREAD_GONE:
                raise _refused(error) from None
            answer = self._post_again(message)
        if message.opens:
            self._save_thread(message, answer.get("ts"))

    def _save_thread(self, message: Message, ts: object) -> None:
        """Store the thread. Slack has the message already, so an error here causes no retry."""
        if not isinstance(ts, str):
            log.error("the thread is not stored, updates go to the channel: Slack named no thread")
            return
        try:
            save_thread(self.files, message.about, Thread(channel=self.channel, ts=ts[:100]))
        except StoreError as error:
            log.error("the thread is not stored, updates go to the channel: %s", error)

    def verify(self) -> str:
        """Check the token without a message. Returns whose it is; raises SlackError."""
        with _translated_errors():
            try:
                answer = self._client().auth_test()
            except SlackApiError as error:
                raise _refused(error) from None
        team = clean(str(answer.get("team", "")), 80)
        return f"the token is valid for team {team}; the channel {self.channel} was not asked"

    def _client(self) -> BoundedWebClient:
        interval = FixedValueRetryIntervalCalculator(1)
        return BoundedWebClient(
            self.token.get_secret_value(),
            base_url=_base_url(),
            timeout=self.timeout,
            logger=logging.Logger("silent", logging.CRITICAL + 1),
            retry_handlers=[
                RateLimit(1),
                ServerErrorRetryHandler(1, interval),
                ConnectionErrorRetryHandler(1, interval),
            ],
        )

    def _post(self, message: Message, thread: Thread | None) -> Any:
        where: dict[str, Any] = {}
        if thread is not None and thread.channel == self.channel:
            where = {"thread_ts": thread.ts, "reply_broadcast": message.broadcast}
        with _translated_errors():
            return self._client().chat_postMessage(
                channel=self.channel,
                text=message.text,
                blocks=message.blocks or None,
                unfurl_links=False,
                **where,
            )

    def _post_again(self, message: Message) -> Any:
        """Post without a thread, where the thread no longer exists."""
        try:
            return self._post(message, None)
        except SlackApiError as error:
            raise _refused(error) from None


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn errors other than a refusal by Slack's API into SlackError."""
    try:
        yield
    except (SlackApiError, SlackError):
        raise
    except (SlackClientError, ValueError, LookupError) as error:
        raise SlackError(f"Slack's API cannot be used: {type(error).__name__}") from None
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise SlackError(f"Slack cannot be reached: {reason}", transient=True) from None


def _base_url() -> str:
    url = os.environ.get(API, "").strip() or BoundedWebClient.BASE_URL
    return url if url.endswith("/") else f"{url}/"


def _refused(error: SlackApiError) -> SlackError:
    status = int(getattr(error.response, "status_code", 0) or 0)
    reason = clean(str(error.response.get("error", "")), 100) or "no reason given"
    transient = reason in _TRANSIENT or status == 429 or status >= 500
    return SlackError(
        f"Slack did not take the message: status {status}, {reason!r}",
        transient=transient,
        of_content=reason in OF_CONTENT,
    )


__all__ = ["API", "Bot"]
