"""Events of Prefect, posted so that an error is seen, and each stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.events.related import related_resources_from_run_context
from prefect.exceptions import PrefectException

from ragmetrics.errors import RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.text import clean


class NotEmitted(RagmetricsError):
    """Prefect did not confirm an event."""

    transient = True


def emit(events: Sequence[dict[str, Any]]) -> None:
    """Post the events whose id the server does not have yet. Raises NotEmitted if it confirmed
    none of them.
    """
    try:
        run_coroutine(_post(events))
    except (httpx.HTTPError, PrefectException) as error:
        names = ", ".join(event["event"] for event in events)
        reason = clean(str(error), 500) or type(error).__name__
        raise NotEmitted(f"Prefect did not take {names}: {reason}") from error


async def _post(events: Sequence[dict[str, Any]]) -> None:
    """Post events with their related resources: the run, its flow, deployment and tags.

    Prefect's `emit_event` returns before it sends, and reports no error.
    """
    async with get_client() as client:
        known = await _known(client, [event["id"] for event in events])
        new = [event for event in events if event["id"] not in known]
        if new:
            related = await related_resources_from_run_context(client)
            more = {"related": [resource.model_dump() for resource in related]}
            await client.request("POST", "/events", json=[{**event, **more} for event in new])


async def _known(client: PrefectClient, ids: Sequence[str]) -> set[str]:
    """Those of the ids that the server has. It would store an event once, but act on it again."""
    where = {"filter": {"id": {"id": list(ids)}}, "limit": len(ids)}
    reply = await client.request("POST", "/events/filter", json=where)
    return {event["id"] for event in reply.json()["events"]}
