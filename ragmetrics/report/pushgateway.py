"""Pushing the newest night to a Pushgateway, for a Prometheus that cannot read the bucket.

A push replaces all that the Pushgateway has under the same job and dataset, so repeating one
changes nothing. One that fails is an error in the log and nothing else: the night is published, and
its alert does not wait for a monitoring system.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from urllib.error import HTTPError

from ragmetrics.config import PushSettings, fill_headers
from ragmetrics.model import Manifest
from ragmetrics.report.prometheus import NightMetrics, label
from ragmetrics.text import clean

PAUSES = (1.0, 4.0)
"""Seconds before the second and the third attempt."""

log = logging.getLogger(__name__)


def push_metrics(
    settings: PushSettings, newest: Manifest, environment: Mapping[str, str] = os.environ
) -> str | None:
    """Push the newest night; return why it could not be, which is logged as an error.

    Lost connections and server errors are tried again after each of the PAUSES. No value of an
    environment variable is in the reason.
    """
    secrets: set[str] = set()
    try:
        own, secrets = fill_headers(settings.headers_env, environment)
        _until_taken(lambda: _push(settings, newest, own))
    except (OSError, HTTPException, ValueError) as error:
        reason = clean(_without(secrets, str(error)), 300) or type(error).__name__
        problem = f"metrics of {newest.date} are not pushed to {settings.url}: {reason}"
        log.error("%s", problem)
        return problem
    log.info("metrics of %s pushed to %s", newest.date, settings.url)
    return None


def _until_taken(send: Callable[[], None]) -> None:
    for pause in PAUSES:
        try:
            return send()
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500 and error.code != 429:
                raise
        time.sleep(pause)
    return send()


def _push(settings: PushSettings, newest: Manifest, own: Mapping[str, str]) -> None:
    from prometheus_client import push_to_gateway
    from prometheus_client.exposition import default_handler
    from prometheus_client.openmetrics import exposition as openmetrics

    night = NightMetrics(newest)

    def handler(
        url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        if settings.format == "openmetrics":
            headers = [("Content-Type", openmetrics.CONTENT_TYPE_LATEST)]
            data = openmetrics.generate_latest(night)  # type: ignore[no-untyped-call]
        return default_handler(url, method, timeout, [*headers, *own.items()], data)

    push_to_gateway(
        settings.url,
        job=settings.job,
        registry=night,
        grouping_key={"dataset": label(newest.dataset)},
        timeout=settings.timeout_seconds,
        handler=handler,
    )


def _without(secrets: set[str], text: str) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
