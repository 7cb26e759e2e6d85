"""Slack's clients with a limit on the size of an answer, and without redirects.

The SDK reads an answer of any length to its end. Only its method that sends one request is
replaced here; retries and everything else are the SDK's.
"""

from __future__ import annotations

import io
from email.message import Message as Headers
from http.client import HTTPResponse
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    ProxyHandler,
    Request,
    build_opener,
)

from slack_sdk import WebClient
from slack_sdk.errors import SlackRequestError
from slack_sdk.webhook import WebhookClient, WebhookResponse

MOST_BYTES = 1_000_000
"""Limit on the size of an answer; Slack's answers have a few hundred bytes."""


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


__all__ = ["MOST_BYTES", "BoundedWebClient", "BoundedWebhook"]
