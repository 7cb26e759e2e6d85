"""Sends an index build event to a Prefect server by HTTP, without the package `prefect`.

POST $PREFECT_API_URL/events    [{id, occurred, event, resource, payload}]
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import SecretStr

from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.records import BUILT, IndexBuild
from ragmetrics.text import clean

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 3.0
_TOTAL_SECONDS = 30.0
_ATTEMPTS = 2
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE = 10.0
"""Seconds. If a server requests a longer pause, the attempt fails."""
_MOST_SHOWN = 300
_TRANSIENT = (408, 429, 500, 502, 503, 504)


class EventError(RagmetricsError):
    """The server did not accept an event. `transient`: another attempt may succeed."""

    def __init__(self, message: str, *, transient: bool = False, pause: float = 0.0) -> None:
        super().__init__(message)
        self.transient = transient
        self.pause = pause
        """Seconds to wait, as requested by the server."""


@dataclass(frozen=True)
class EventsApi:
    """The events API of a Prefect server, with its credentials."""

    url: str
    """The URL of the API, as in PREFECT_API_URL: it ends in `/api`, or names a workspace."""
    authorization: SecretStr | None = None
    certificates: str | None = None
    """A file with certificate authorities, in addition to those of the system."""

    @property
    def address(self) -> str:
        """The URL for posting events."""
        return f"{self.url.rstrip('/')}/events"


def events_api(url: str | None = None, environ: Mapping[str, str] = os.environ) -> EventsApi:
    """The API from the environment variables; `url` overrides PREFECT_API_URL.

    As in Prefect's own client, PREFECT_API_AUTH_STRING overrides PREFECT_API_KEY. Raises InputError
    for a missing or invalid URL.
    """
    address = (url or environ.get("PREFECT_API_URL") or "").strip()
    if not address:
        raise InputError(
            "the address of Prefect's API is missing: set PREFECT_API_URL or pass --api-url, such "
            "as http://prefect.example.com:4200/api"
        )
    _check_address(address)
    return EventsApi(address, _authorization(environ), environ.get("PREFECT_API_SSL_CERT_FILE"))


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not (parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable:
        raise InputError("the address of Prefect's API should be http://HOST:PORT/api, or https://")
    if parts.username or parts.password:
        raise InputError(
            "the address of Prefect's API contains a password: set PREFECT_API_AUTH_STRING instead"
        )


def _authorization(environ: Mapping[str, str]) -> SecretStr | None:
    if word := environ.get("PREFECT_API_AUTH_STRING", ""):
        return SecretStr(f"Basic {base64.b64encode(word.encode()).decode('ascii')}")
    if not (key := environ.get("PREFECT_API_KEY", "").strip()):
        return None
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            "PREFECT_API_KEY contains characters that are not allowed in a key: was it truncated "
            "or quoted?"
        )
    return SecretStr(f"Bearer {key}")


def announce_build(build: IndexBuild, api_url: str | None = None) -> dict[str, Any]:
    """Post the event of a new index build, and return it. None: the API of PREFECT_API_URL.

    Raises as `events_api` and `post_event`.
    """
    api, event = events_api(api_url), built_event(build)
    post_event(event, api)
    return event


def built_event(build: IndexBuild) -> dict[str, Any]:
    """The event that requests a gate, with a new id and the current time."""
    return {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": BUILT,
        "resource": {
            "prefect.resource.id": f"rag.index.{build.dataset}.{build.build}",
            "prefect.resource.name": build.build,
            "rag.dataset": build.dataset,
        },
        "payload": build.model_dump(mode="json", exclude_none=True),
    }


def post_event(event: Mapping[str, Any], api: EventsApi, *, pause: float = _PAUSE_SECONDS) -> None:
    """Post an event, and return when the server has accepted it.

    If the server cannot be reached or is busy, there is a second attempt after `pause` seconds, or
    after the time that the server requests. The server recognises a repeated event by its id.
    Raises EventError if that fails. The error contains no key.
    """
    run_coroutine(_post_event(event, api, pause))


def check_api(api: EventsApi) -> str:
    """Ask the server whether it is healthy. Returns what was found; raises EventError."""
    run_coroutine(_check_health(api))
    return f"{api.url} is healthy"


async def _check_health(api: EventsApi) -> None:
    async with _session(api) as session:
        url = f"{api.url.rstrip('/')}/health"
        async with session.get(url, allow_redirects=False) as response:
            text = (await response.content.read(10_000)).decode("utf-8", "replace")
            _check(response.status, response.headers, text, api)


async def _post_event(event: Mapping[str, Any], api: EventsApi, pause: float) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await _send(event, api)
        except EventError as error:
            if not error.transient or attempt == _ATTEMPTS or error.pause > _LONGEST_PAUSE:
                raise
            await asyncio.sleep(max(pause, error.pause))
        else:
            return


async def _send(event: Mapping[str, Any], api: EventsApi) -> None:
    async with (
        _session(api) as session,
        session.post(api.address, json=[event], allow_redirects=False) as response,
    ):
        text = (await response.content.read(10_000)).decode("utf-8", "replace")
        _check(response.status, response.headers, text, api)


@asynccontextmanager
async def _session(api: EventsApi) -> AsyncIterator[ClientSession]:
    """Connections to the API. Errors inside are raised as InputError or EventError."""
    import aiohttp  # the import takes a tenth of a second

    headers = {"Accept": "application/json"}
    if api.authorization:
        headers["Authorization"] = api.authorization.get_secret_value()
    timeout = aiohttp.ClientTimeout(total=_TOTAL_SECONDS, sock_connect=CONNECT_SECONDS)
    try:
        connector = aiohttp.TCPConnector(ssl=_trust(api))
        async with aiohttp.ClientSession(
            timeout=timeout, trust_env=True, connector=connector, headers=headers
        ) as session:
            yield session
    except aiohttp.InvalidURL:
        raise InputError("the address of Prefect's API is not a valid URL") from None
    except aiohttp.ClientSSLError as error:
        raise EventError(f"no secure connection to {api.url}: {error}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        reason = clean(_why(error), _MOST_SHOWN)
        raise EventError(
            f"Prefect cannot be reached at {api.url}: {reason}", transient=True
        ) from None


def _why(error: BaseException) -> str:
    """The reason of a failed connection, in the system's words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    system = getattr(error, "os_error", error)
    number = getattr(system, "errno", None) or 0
    return os.strerror(number) if number > 0 else getattr(system, "strerror", "") or str(error)


def _trust(api: EventsApi) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if api.certificates:
        try:
            context.load_verify_locations(api.certificates)
        except OSError as error:
            raise InputError(f"PREFECT_API_SSL_CERT_FILE cannot be used: {error}") from None
    return context


def _check(status: int, headers: Mapping[str, str], text: str, api: EventsApi) -> None:
    """Raise EventError unless the server accepted the event."""
    is_page = headers.get("Content-Type", "").startswith("text/html")
    if 200 <= status < 300 and not is_page:
        return
    if status in (401, 403):
        raise EventError(f"{api.url} denied access (status {status}): {_access_hint(api)}")
    if status in (404, 405) or is_page:
        raise EventError(
            f"{api.address} does not accept events (status {status}): does the address of "
            "Prefect's API end in /api?"
        )
    if 300 <= status < 400:
        where = clean(headers.get("Location", ""), _MOST_SHOWN)
        raise EventError(f"{api.url} has moved to {where}: set PREFECT_API_URL to the new address")
    reply = clean(text, _MOST_SHOWN)
    if status == 422:
        raise EventError(f"{api.url} cannot read the event: another version of Prefect? {reply}")
    pause = headers.get("Retry-After", "")
    raise EventError(
        f"{api.url} did not accept the event: status {status}, {reply}",
        transient=status in _TRANSIENT,
        pause=float(pause) if pause.isdecimal() else 0.0,
    )


def _access_hint(api: EventsApi) -> str:
    if api.authorization is None:
        return "set PREFECT_API_KEY, or PREFECT_API_AUTH_STRING if the server uses one"
    name = "AUTH_STRING" if api.authorization.get_secret_value()[:5] == "Basic" else "KEY"
    return f"PREFECT_API_{name} is wrong"
