"""Posting to a Slack webhook: confirmed, or an error that does not give the webhook away."""

from __future__ import annotations

import logging
from http.client import HTTPException, InvalidURL
from urllib.parse import urlsplit

from pydantic import SecretStr
from slack_sdk.errors import SlackClientError
from slack_sdk.http_retry import (
    ConnectionErrorRetryHandler,
    FixedValueRetryIntervalCalculator,
    HttpRequest,
    HttpResponse,
    RateLimitErrorRetryHandler,
    RetryState,
)
from slack_sdk.http_retry.builtin_handlers import ServerErrorRetryHandler
from slack_sdk.webhook import WebhookClient

from ragmetrics.alerts.markup import clean
from ragmetrics.alerts.state import Message
from ragmetrics.errors import RagmetricsError

LONGEST_WAIT = 10
"""Seconds: a longer Retry-After is left to the next run."""


class SlackError(RagmetricsError):
    """Slack did not confirm a message; `transient` says if the next try may go through."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def send(
    message: Message, webhook: SecretStr, *, timeout: int = 10, retries: int = 1, pause: float = 1
) -> None:
    """Post to an incoming webhook; return only when Slack confirmed it.

    `timeout` (seconds) bounds one attempt. Rate limits, server errors and lost connections are
    tried again `retries` times, after `pause` seconds or what a rate limit asks for. Raises
    SlackError otherwise: transient when a later run may get through. The webhook is in no
    error text and no log.
    """
    url = webhook.get_secret_value()
    interval = FixedValueRetryIntervalCalculator(pause)
    try:
        path = urlsplit(url).path
        response = WebhookClient(
            url,
            timeout=timeout,
            logger=logging.Logger("silent", logging.CRITICAL + 1),  # its own would log the URL
            retry_handlers=[
                RateLimit(retries),
                ServerErrorRetryHandler(retries, interval),
                ConnectionErrorRetryHandler(retries, interval),
            ],
        ).send(text=message.text, blocks=message.blocks, unfurl_links=False)
    except (InvalidURL, SlackClientError, ValueError, LookupError) as error:
        raise SlackError(f"the Slack webhook cannot be used: {type(error).__name__}") from None
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise SlackError(f"Slack cannot be reached: {reason}", transient=True) from None
    if response.status_code == 200 and response.body.strip() == "ok":
        return
    answer = response.body.replace(url, "***").replace(path if len(path) > 1 else url, "***")
    raise SlackError(
        f"Slack did not take the message: status {response.status_code}, {clean(answer, 200)!r}",
        transient=response.status_code == 429 or response.status_code >= 500,
    )


class RateLimit(RateLimitErrorRetryHandler):
    """Waits as long as a rate limit asks for, unless that is too long for a nightly."""

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
        return wait.isdecimal() and int(wait) <= LONGEST_WAIT
