"""Posts with a Slack bot token: alerts into a channel, their updates into their thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from ragmetrics.delivery.slack_threads import Thread, find_thread, save_thread
from ragmetrics.delivery.webhook import content, post, refused, said
from ragmetrics.errors import StoreError
from ragmetrics.http import Answer
from ragmetrics.messages import Message
from ragmetrics.storage import Files
from ragmetrics.text import clean

API = "SLACK_API_URL"
"""Variable with another address of Slack's API, for example that of GovSlack."""
log = logging.getLogger(__name__)
_URL = "https://slack.com/api"
_THREAD_GONE = ("thread_not_found", "cannot_reply_to_message", "message_not_found")


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
        answer = self._post(message, thread)
        if thread and said(answer).get("error") in _THREAD_GONE:
            answer = self._post(message, None)
        sent = self._confirmed(answer)
        if message.opens:
            self._save_thread(message, sent.get("ts"))

    def _save_thread(self, message: Message, ts: str | None) -> None:
        """Store the thread. Slack has the message already, so an error here causes no retry."""
        if ts is None:
            log.error("the thread is not stored, updates go to the channel: Slack named no thread")
            return
        try:
            save_thread(self.files, message.about, Thread(channel=self.channel, ts=ts[:100]))
        except StoreError as error:
            log.error("the thread is not stored, updates go to the channel: %s", error)

    def verify(self) -> str:
        """Check the token without a message. Returns whose it is; raises SlackError."""
        team = clean(self._confirmed(self._ask("auth.test", {})).get("team", ""), 80)
        return f"the token is valid for team {team}; the channel {self.channel} was not asked"

    def _post(self, message: Message, thread: Thread | None) -> Answer:
        where: dict[str, Any] = {"channel": self.channel}
        if thread is not None and thread.channel == self.channel:
            where |= {"thread_ts": thread.ts, "reply_broadcast": message.broadcast}
        return self._ask("chat.postMessage", content(message) | where)

    def _ask(self, method: str, body: Mapping[str, Any]) -> Answer:
        url = (os.environ.get(API, "").strip() or _URL).rstrip("/")
        token = self.token.get_secret_value()
        headers = {"Authorization": f"Bearer {token}"}
        return post(f"{url}/{method}", body, headers, secret=token, timeout=self.timeout)

    def _confirmed(self, answer: Answer) -> dict[str, Any]:
        """What Slack said. Raises SlackError where it is not `ok`."""
        told = said(answer)
        if answer.is_success and told.get("ok") is True:
            return told
        raise refused(answer, self.token.get_secret_value())


__all__ = ["API", "Bot"]
