"""Posts to a Slack webhook. Errors never contain the address of the webhook."""

from __future__ import annotations

import logging
from http.client import HTTPException, InvalidURL

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

from ragmetrics.alerts.alert_store import Message
from ragmetrics.alerts.slack_http import BoundedWebhook
from ragmetrics.alerts.timeouts import Unconfirmed, redact_secrets
from ragmetrics.text import clean

LONGEST_WAIT = 10
"""Longest Retry-After in seconds that is waited for; after a longer one the next run retries."""
OF_CONTENT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "invalid_payload", "msg_blocks_too_long"}
    | {"msg_too_long", "no_text", "invalid_arguments"}
)
"""Slack's errors for a message with invalid content, which no retry changes."""


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
    url = webhook.get_secret_value()
    interval = FixedValueRetryIntervalCalculator(pause)
    try:
        response = BoundedWebhook(
            url,
            timeout=timeout,
            logger=logging.Logger("silent", logging.CRITICAL + 1),  # its own would log the URL
            retry_handlers=[
                RateLimit(retries),
                ServerErrorRetryHandler(retries, interval),
                ConnectionErrorRetryHandler(retries, interval),
            ],
        ).send(text=message.text, blocks=message.blocks or None, unfurl_links=False)
    except (InvalidURL, SlackClientError, ValueError, LookupError) as error:
        raise SlackError(f"the Slack webhook cannot be used: {type(error).__name__}") from None
    except (OSError, HTTPException) as error:
        reason = redact_secrets(str(getattr(error, "reason", error)), [url]) or type(error).__name__
        raise SlackError(f"Slack cannot be reached: {reason}", transient=True) from None
    if response.status_code == 200 and response.body.strip() == "ok":
        return
    answer = clean(redact_secrets(response.body, [url]), 200)
    raise SlackError(
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
