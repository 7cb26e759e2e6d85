"""Slack by a bot token: alerts into a channel, their updates into their thread."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import Field, SecretStr

from ragmetrics.config import ChannelSettings
from ragmetrics.delivery.channel import ChannelKind
from ragmetrics.delivery.channel_kinds.slack_webhook import (
    content,
    in_any_form,
    post,
    refused,
    said,
)
from ragmetrics.http import Answer
from ragmetrics.messages import Message
from ragmetrics.text import clean

API = "SLACK_API_URL"
"""Variable with another address of Slack's API for all bots."""
_URL = "https://slack.com/api"
_THREAD_GONE = ("thread_not_found", "cannot_reply_to_message", "message_not_found")


class SlackBotSettings(ChannelSettings):
    """A bot of Slack. The variable that `url_env` names has its token, or for another address of
    Slack's API `https://slack-gov.com/api#TOKEN`."""

    channel: str = Field(min_length=1, max_length=100)
    """The name or ID of the channel in which it posts."""

    @property
    def thread_place(self) -> str:
        """The channel: threads of another one are not continued."""
        return self.channel


def _send(message: Message, settings: SlackBotSettings, token: SecretStr) -> None:
    _post(message, settings, token, "")


def _post(message: Message, settings: SlackBotSettings, token: SecretStr, thread: str) -> str:
    """Post a message in a thread, or in the channel where that is gone; return the new thread."""

    def send(form: Message) -> str:
        body = content(form) | {"channel": settings.channel}
        if thread:
            replies = {"thread_ts": thread, "reply_broadcast": form.broadcast}
            answer = _ask("chat.postMessage", body | replies, token)
            if said(answer).get("error") not in _THREAD_GONE:
                return _thread(_confirmed(answer, token))
        return _thread(_confirmed(_ask("chat.postMessage", body, token), token))

    return in_any_form(message, send)


def _verify(settings: SlackBotSettings, token: SecretStr) -> str:
    """Ask Slack whose token it is. Raises SlackError."""
    team = clean(_confirmed(_ask("auth.test", {}, token), token).get("team", ""), 80)
    return f"the token is valid for team {team}; the channel {settings.channel} was not asked"


def _ask(method: str, body: Mapping[str, Any], token: SecretStr) -> Answer:
    place, _, secret = token.get_secret_value().rpartition("#")
    url = (place or os.environ.get(API, "").strip() or _URL).rstrip("/")
    return post(f"{url}/{method}", body, {"Authorization": f"Bearer {secret}"}, secret=secret)


def _confirmed(answer: Answer, token: SecretStr) -> dict[str, Any]:
    """What Slack said. Raises SlackError where it is not `ok`."""
    told = said(answer)
    if answer.is_success and told.get("ok") is True:
        return told
    raise refused(answer, token.get_secret_value())


def _thread(told: Mapping[str, Any]) -> str:
    return str(told.get("ts") or "")


slack_bot = ChannelKind(
    "slack_bot",
    _send,
    _verify,
    "http://{host}/api#xoxb-secret",
    SlackBotSettings,
    title="Slack",
    post=_post,
    sample_keys={"channel": "#alerts"},
)
