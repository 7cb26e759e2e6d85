"""Posts to a Slack webhook. Errors never contain the address of the webhook."""

from __future__ import annotations

import io
import logging
from email.message import Message as Headers
from http.client import HTTPException, HTTPResponse, InvalidURL
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from pydantic import SecretStr
from slack_sdk import WebClient
from slack_sdk.errors import SlackClientError, SlackRequestError
from slack_sdk.http_retry import (
    ConnectionErrorRetryHandler,
    FixedValueRetryIntervalCalculator,
    HttpRequest,
    HttpResponse,
    RateLimitErrorRetryHandler,
    RetryState,
)
from slack_sdk.http_retry.builtin_handlers import ServerErrorRetryHandler
from slack_sdk.webhook import WebhookClient, WebhookResponse

from ragmetrics.alerts.message import Message
from ragmetrics.alerts.timeouts import Unconfirmed, redact_secrets
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

MOST_BYTES = 1_000_000
"""Limit on the size of an answer; Slack's answers have a few hundred bytes."""


class SlackError(Unconfirmed):
    """Slack did not confirm a message."""


def send(
    message: Message, webhook: SecretStr, *, timeout: int = 10, retries: int = 1, pause: float = 1
) -> None:
    """Post to an incoming webhook; return only when Slack confirmed it.

    `timeout` (seconds) limits one attempt. Rate limits, server errors and lost connections are
    retried `retries` times, after `pause` seconds or the time of the rate limit. Raises SlackError
    otherwise: transient where a later run may succeed. The webhook is in no error text and no log.
    """
    response = _ask(webhook, timeout, retries, pause, _content(message))
    if response.status_code == 200 and response.body.strip() == "ok":
        return
    raise _refused(response, webhook)


def verify(webhook: SecretStr, *, timeout: int = 10) -> str:
    """Check a webhook without a message: Slack refuses an empty one, and names a wrong address.

    Returns what was found; raises SlackError for a webhook that cannot be used.
    """
    response = _ask(webhook, timeout, 0, 0, {})
    if response.body.strip() in _EMPTY:
        return "Slack knows the webhook; no message was sent"
    raise _refused(response, webhook)


def _content(message: Message) -> dict[str, Any]:
    body = {"text": message.text, "blocks": message.blocks or None, "unfurl_links": False}
    return {name: value for name, value in body.items() if value is not None}


def _ask(
    webhook: SecretStr, timeout: int, retries: int, pause: float, body: dict[str, Any]
) -> WebhookResponse:
    """Post a body. Raises SlackError where there is no answer."""
    url = webhook.get_secret_value()
    interval = FixedValueRetryIntervalCalculator(pause)
    try:
        return BoundedWebhook(
            url,
            timeout=timeout,
            logger=logging.Logger("silent", logging.CRITICAL + 1),  # its own would log the URL
            retry_handlers=[
                RateLimit(retries),
                ServerErrorRetryHandler(retries, interval),
                ConnectionErrorRetryHandler(retries, interval),
            ],
        ).send_dict(body)
    except (InvalidURL, SlackClientError, ValueError, LookupError) as error:
        raise SlackError(f"the Slack webhook cannot be used: {type(error).__name__}") from None
    except (OSError, HTTPException) as error:
        reason = redact_secrets(str(getattr(error, "reason", error)), [url]) or type(error).__name__
        raise SlackError(f"Slack cannot be reached: {reason}", transient=True) from None


def _refused(response: WebhookResponse, webhook: SecretStr) -> SlackError:
    answer = clean(redact_secrets(response.body, [webhook.get_secret_value()]), 200)
    return SlackError(
        f"Slack did not take the message: status {response.status_code}, {answer!r}",
        transient=response.status_code == 429 or response.status_code >= 500,
        of_content=response.body.strip() in OF_CONTENT,
    )


class RateLimit(RateLimitErrorRetryHandler):
    """Waits for a rate limit, unless the wait is too long for a nightly."""

    def _can_retry(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        if response is None or response.status_code != 429:
            return False
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        wait = headers.get("retry-after", "1")
        return wait.isdecimal() and len(wait) < 5 and int(wait) <= LONGEST_WAIT


class BoundedWebhook(WebhookClient):
    """An incoming webhook."""

    def _perform_http_request_internal(self, url: str, req: Request) -> WebhookResponse:
        status, headers, body = _answer(req, self.timeout, self.ssl, self.proxy)
        return WebhookResponse(url=url, status_code=status, body=body, headers=dict(headers))


class BoundedWebClient(WebClient):
    """Slack's API."""

    def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
        status, headers, body = _answer(req, self.timeout, self.ssl, self.proxy)
        return {"status": status, "headers": headers, "body": body}


class _Unmoved(HTTPRedirectHandler):
    """Refuses redirects: a message goes to its own address only."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """None: not followed."""


def _answer(req: Request, timeout: float, ssl: Any, proxy: str | None) -> tuple[int, Headers, str]:
    """Status, headers and text of an answer. Raises HTTPError with a bounded body, as urllib."""
    if not req.full_url.lower().startswith("http"):
        raise SlackRequestError("the address is not an HTTP URL")
    proxies = [ProxyHandler({"http": proxy, "https": proxy})] if proxy else []
    opener = build_opener(_Unmoved, HTTPSHandler(context=ssl), *proxies)
    try:
        with opener.open(req, timeout=timeout) as response:
            return response.status, response.headers, _text(response)
    except HTTPError as error:
        _raise_bounded(error)


def _raise_bounded(error: HTTPError) -> NoReturn:
    with error:
        body = _text(error).encode()
    headers = error.headers
    del headers["Content-Type"]  # it may name an unknown encoding
    raise HTTPError(error.filename or "", error.code, error.reason, headers, io.BytesIO(body))


def _text(response: HTTPResponse | HTTPError) -> str:
    return response.read(MOST_BYTES).decode("utf-8", "replace")
