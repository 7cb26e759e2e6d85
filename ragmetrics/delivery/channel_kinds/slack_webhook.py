"""Slack by an incoming webhook: one message a night. No error contains the address or a token."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from ragmetrics.config import ChannelSettings
from ragmetrics.delivery.channel import ChannelKind, Unconfirmed, redact_secrets
from ragmetrics.errors import HttpError, InputError
from ragmetrics.http import Answer, Backoff, HttpClient, retry_after
from ragmetrics.messages import FORMATS, Message
from ragmetrics.text import clean

LONGEST_WAIT = 10
"""Longest Retry-After in seconds that is waited for; after a longer one the next run retries."""
OF_CONTENT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "invalid_payload", "msg_blocks_too_long"}
    | {"msg_too_long", "no_text", "invalid_arguments"}
)
"""Slack's errors for a message with invalid content, which no retry changes."""
_EMPTY = frozenset(
    {"invalid_payload", "no_text", "missing_text_or_fallback_or_attachments", "invalid_arguments"}
)
"""Slack's answers to an empty message for a webhook that exists."""
_BUSY = frozenset([429, 500, 503])
"""Statuses that a second attempt may change."""
_BARE = 3_000
"""Most characters of a message without blocks; Slack truncates much longer ones."""
_TRANSIENT = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error"}
    | {"service_unavailable", "request_timeout"}
)
T = TypeVar("T")
log = logging.getLogger(__name__)


class SlackError(Unconfirmed):
    """Slack did not confirm a message."""

    wait = 0.0
    """Seconds that Slack asks to wait."""


def send(
    message: Message, webhook: SecretStr, *, timeout: int = 10, retries: int = 1, pause: float = 1
) -> None:
    """Post to an incoming webhook; return only when Slack confirmed it.

    `timeout` (seconds) limits one attempt. Rate limits, server errors and lost connections are
    retried `retries` times, after `pause` seconds or the time of the rate limit. Raises SlackError
    otherwise: transient where a later run may succeed. The webhook is in no error text and no log.
    """
    url = webhook.get_secret_value()
    answer = post(url, content(message), timeout=timeout, retries=retries, pause=pause)
    if answer.status != 200 or answer.text.strip() != "ok":
        raise refused(answer, url)


def verify(webhook: SecretStr) -> str:
    """Check a webhook without a message: Slack refuses an empty one, and names a wrong address.

    Returns what was found; raises SlackError for a webhook that cannot be used.
    """
    url = webhook.get_secret_value()
    answer = post(url, {}, retries=0)
    if answer.text.strip() in _EMPTY:
        return "Slack knows the webhook; no message was sent"
    raise refused(answer, url)


def in_any_form(message: Message, send: Callable[[Message], T]) -> T:
    """Send a message; as plain text where Slack refuses its blocks, as a retry would not help."""
    try:
        return send(message)
    except Unconfirmed as error:
        if not (error.of_content and message.blocks):
            raise
        log.warning("sent as text: %s", error)
        words = FORMATS.find("text").render(message.body, _BARE)
        return send(replace(message, text=f"{message.text}\n\n{words}", blocks=[]))


def content(message: Message) -> dict[str, Any]:
    """The body of a message, in Slack's own format."""
    slack = FORMATS.find("slack")
    text = "\n".join(map(slack.escape, message.text.split("\n")))
    blocks = {"blocks": slack.render(message.blocks)} if message.blocks else {}
    return {"text": text, **blocks, "unfurl_links": False}


def post(
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    secret: str = "",
    timeout: float = 10,
    retries: int = 1,
    pause: float = 1,
) -> Answer:
    """The answer to a JSON body, of any status but those of rate limits and server errors.

    An attempt without an answer in time is not repeated: Slack may have the message. Raises
    SlackError, which contains no part of the `secret`; without one, of the address.
    """
    secret = secret or url
    if not _is_web_address(url):
        raise SlackError("the Slack address cannot be used: it is no HTTP address")
    headers = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    backoff = Backoff(first=pause, attempts=retries + 1, longest_wait=LONGEST_WAIT)
    try:
        with HttpClient(url, headers, secrets=[secret], timeout=timeout) as client:
            return backoff.call(lambda: _attempt(client, secret, json.dumps(body).encode()))
    except (HttpError, TimeoutError) as error:
        raise SlackError(f"Slack cannot be reached: {error}", transient=True) from None
    except InputError as error:
        raise SlackError(f"Slack's API cannot be used: {error}") from None


def refused(answer: Answer, secret: str) -> SlackError:
    """The error of an answer that confirms nothing."""
    reason = _reason(answer)
    shown = clean(redact_secrets(reason, [secret]), 200)
    return SlackError(
        f"Slack did not take the message: status {answer.status}, {shown!r}",
        transient=reason in _TRANSIENT or answer.status == 429 or answer.status >= 500,
        of_content=reason in OF_CONTENT,
    )


def _attempt(client: HttpClient, secret: str, data: bytes) -> Answer:
    try:
        answer = client.request("POST", body=data, passing=range(600))
    except HttpError as error:
        reason = redact_secrets(str(error), [secret])
        if error.timed_out:
            raise TimeoutError(reason) from None  # not repeated
        raise HttpError(reason, transient=error.transient) from None
    if answer.status not in _BUSY:
        return answer
    busy = refused(answer, secret)
    busy.wait = retry_after(answer.headers, datetime.now(UTC))
    raise busy


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(
        parts.scheme in ("http", "https") and parts.hostname and url == "".join(url.split())
    )


def _reason(answer: Answer) -> str:
    """The name of the error: the whole text of a webhook, a value in the JSON of the API."""
    return said(answer).get("error") or answer.text.strip() or "no reason given"


def said(answer: Answer) -> dict[str, Any]:
    """The JSON object of an answer of the API, with texts as `error` and `ts`; empty if none."""
    try:
        values = answer.json()
    except HttpError:
        return {}
    if not isinstance(values, dict):
        return {}
    texts = ("error", "ts", "team")
    return {name: one for name, one in values.items() if name not in texts or isinstance(one, str)}


def _send(message: Message, settings: ChannelSettings, address: SecretStr) -> None:
    in_any_form(message, lambda form: send(form, address))


def _verify(settings: ChannelSettings, address: SecretStr) -> str:
    return verify(address)


_SAMPLE = "http://{host}/services/T0/B0/secret"
slack_webhook = ChannelKind("slack_webhook", _send, _verify, _SAMPLE, title="Slack")
