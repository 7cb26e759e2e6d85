"""Client of the openai SDK, for files and batches only."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.response_body import ENCODINGS, TooLarge, Unpacker
from ragmetrics.judges.transport import CONNECT_SECONDS

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.endpoint_config import Access

MOST_FILE_BYTES = 1_000_000_000
"""Most bytes of a batch's output, decompressed; it is streamed to the disk."""


def make_client(access: Access, settings: JudgeSettings) -> AsyncOpenAI:
    """A client of the endpoint with a size limit for answers. Raises JudgeRefused if the proxies of
    the environment, such as `http_proxy`, cannot be used.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    try:
        return AsyncOpenAI(
            api_key=access.key,
            base_url=access.address,
            timeout=Timeout(settings.timeout_seconds, connect=CONNECT_SECONDS),
            max_retries=settings.retries,
            default_headers={"Accept-Encoding": ENCODINGS},
            http_client=DefaultAsyncHttpxClient(
                event_hooks={"response": [bounding(settings.max_reply_bytes)]}
            ),
        )
    except (ImportError, ValueError) as error:
        raise JudgeRefused(
            f"the proxy that the environment names cannot be used: {error}"
        ) from error


def bounding(most_bytes: int) -> Callable[[Any], Awaitable[None]]:
    """A response hook that limits the size of the body. Reading raises TooLarge and BadBody."""

    async def bound(response: Any) -> None:
        most = MOST_FILE_BYTES if response.url.path.endswith("/content") else most_bytes
        packed = response.headers.pop("Content-Encoding", "")
        response.stream = _stream(response, Unpacker(packed), most)

    return bound


def _stream(response: Any, unpacker: Unpacker, most: int) -> Any:
    # The SDK uses httpx or httpx2, depending on its version.
    library = sys.modules[type(response).__module__.partition(".")[0]]
    raw = response.stream

    class Bounded(library.AsyncByteStream):  # type: ignore[misc, name-defined]
        """The decompressed body."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in raw:
                for unpacked in unpacker.feed(piece):
                    size += len(unpacked)
                    if size > most:
                        raise TooLarge(most)
                    yield unpacked
            unpacker.finish()

        async def aclose(self) -> None:
            """Release the connection."""
            await raw.aclose()

    return Bounded()
