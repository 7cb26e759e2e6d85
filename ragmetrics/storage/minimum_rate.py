"""A client of S3 that gives up replies that drip: slower than a rate, they count as cut.

The timeouts of aiohttp are for a connection, and for the wait between two pieces. A server that
gives a byte a second exceeds neither, and a night would wait for it for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]

GRACE = 10.0
"""Seconds after which the rate of a reply counts."""
LEAST_BYTES = 5_000
"""Least bytes a second. A whole night at this rate is 200 MB: slower is down, in effect."""
ANSWER = 60.0
"""Seconds for a whole answer but for contents of files, and for the beginning of those."""


class TooSlow(OSError):
    """A reply dripped. botocore and s3fs do not know this error: five times five attempts of theirs
    would take 25 minutes. `retry` asks again for as long as its patience lasts.
    """


class SteadySession(AIOHTTPSession):  # type: ignore[misc]
    """Sends requests, and closes the connections of replies that drip."""

    async def send(self, request: Any) -> Any:
        """Send a request as the base class does; raise TooSlow for a slow answer."""
        seconds = ANSWER + int(request.headers.get("Content-Length") or 0) / LEAST_BYTES
        try:
            response = await asyncio.wait_for(super().send(request), seconds)
        except TimeoutError as error:
            raise TooSlow(f"no whole answer in {seconds:.0f} s") from error
        if request.stream_output:
            _watches.add(watch := asyncio.create_task(_watch(response.raw)))
            watch.add_done_callback(_watches.discard)
        return response


_watches: set[asyncio.Task[None]] = set()
"""The event loop holds its tasks only weakly."""


async def _watch(response: aiohttp.ClientResponse) -> None:
    """End a reply whose bytes come too slowly. Whoever reads it gets an error."""
    clock = asyncio.get_running_loop().time
    begun, content = clock(), response.content
    while not content.is_eof():
        await asyncio.sleep(GRACE / 5)
        lasted = clock() - begun
        if content.total_bytes >= (response.content_length or float("inf")) or response.closed:
            return
        if lasted >= GRACE and content.total_bytes < LEAST_BYTES * lasted:
            text = f"only {content.total_bytes:,} bytes in {lasted:.0f} s"
            content.set_exception(TooSlow(text))
            response.close()
            return
