"""The Batch API of an OpenAI-compatible endpoint, through the openai SDK."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.http import CONNECT_SECONDS, ENCODINGS, BadBody, TooLarge, Unpacker
from ragmetrics.judges.base import Access, Reply
from ragmetrics.judges.batch_files import ENDPOINT, Fault, add_outcome, is_refusing, read_outputs
from ragmetrics.judges.responses import incompatible
from ragmetrics.storage import temporary_file
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError, AsyncOpenAI
    from openai.pagination import AsyncCursorPage
    from openai.types import Batch

    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.batch_records import BatchRecord

NONCE = "ragmetrics"
"""Metadata key of a batch that holds its nonce."""
ENDED = ("completed", "failed", "expired", "cancelled")
T = TypeVar("T")
_UPLOAD_SECONDS = 600.0
_CONNECT_PAUSE = 0.25  # seconds before the second and last try, before the server was ever reached
_PAGE = 100
_MOST_PAGES = 50
# Most difference between the clocks of two machines.
_CLOCK = timedelta(hours=1)
_NO_MOMENT = 1 << 36  # seconds since 1970, in the year 4147
MOST_FILE_BYTES = 1_000_000_000
"""Most bytes of a batch's output, decompressed; it is streamed to the disk."""


class BatchApi:
    """Files and batches. Every method raises JudgeError, transient if a retry may help."""

    def __init__(self, client: AsyncOpenAI, most_reply_bytes: int = 10_000_000) -> None:
        self._client, self._most_reply_bytes = client, most_reply_bytes
        self._reached = False

    async def upload(self, path: Path) -> str:
        """Upload an input file as a stream; return its id."""
        from openai import Timeout

        timeout = Timeout(_UPLOAD_SECONDS, connect=CONNECT_SECONDS)
        with self._translate_errors(), path.open("rb") as file:

            async def send(client: AsyncOpenAI) -> str:
                file.seek(0)
                named = (path.name, file, "application/jsonl")
                sent = await client.files.create(file=named, purpose="batch", timeout=timeout)
                return _id(sent)

            return await self._call(send)

    async def create(self, record: BatchRecord) -> str:
        """Create the batch of an uploaded file; return its id.

        It is tried once: after an error the batch may exist; `find` finds it.
        """
        if record.input_file is None:
            raise ValueError("a batch needs an uploaded file")
        with self._translate_errors():
            batch = await self._client.with_options(max_retries=0).batches.create(
                input_file_id=record.input_file,
                endpoint=ENDPOINT,  # type: ignore[arg-type]  # a plain str to mypy
                completion_window="24h",
                metadata={NONCE: record.nonce},
            )
            return _id(batch)

    async def find(self, record: BatchRecord) -> str | None:
        """The id of a record's batch, if the batch was created."""
        since = (record.sent_at or record.created_at) - _CLOCK

        async def first(client: AsyncOpenAI) -> AsyncCursorPage[Batch]:
            return await client.batches.list(limit=_PAGE)

        with self._translate_errors():
            page = await self._call(first)
            for _ in range(_MOST_PAGES):
                for batch in page.data:
                    if (batch.metadata or {}).get(NONCE) == record.nonce:
                        return _id(batch)
                # The newest come first.
                if not page.data or page.data[-1].created_at < since.timestamp():
                    return None
                if not page.has_next_page():
                    return None
                page = await page.get_next_page()
        return None

    async def look(self, name: str) -> Batch | None:
        """Current state of a batch; None if there is none with this id."""
        from openai import NotFoundError

        with self._translate_errors():
            try:
                return _batch(await self._call(lambda client: client.batches.retrieve(name)))
            except NotFoundError:
                return None

    async def cancel(self, name: str) -> Batch:
        """Cancel a batch: its open requests are neither answered nor charged."""
        with self._translate_errors():
            return _batch(await self._call(lambda client: client.batches.cancel(name)))

    async def outcomes(self, batch: Batch) -> dict[str, Reply | Fault]:
        """Outcomes of the requests that an ended batch has processed."""
        outcomes: dict[str, Reply | Fault] = {}
        for name in (batch.error_file_id, batch.output_file_id):
            if name:
                for request, outcome in (await self._lines(name)).items():
                    add_outcome(outcomes, request, outcome)
        return outcomes

    async def _lines(self, name: str) -> dict[str, Reply | Fault]:
        """Outcomes in a file; none if it is deleted, as after 30 days."""
        from openai import NotFoundError

        with (
            temporary_file(),
            tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder,
            self._translate_errors(),
        ):
            path = Path(folder) / "output.jsonl"
            try:
                async with self._client.files.with_streaming_response.content(name) as response:
                    with path.open("wb") as file:
                        async for chunk in response.iter_bytes(1 << 20):
                            file.write(chunk)
            except NotFoundError:
                return {}
            key = self._client.api_key
            return await asyncio.to_thread(read_outputs, path, self._most_reply_bytes, [key])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _call(self, call: Callable[[AsyncOpenAI], Awaitable[T]]) -> T:
        """Make a call. The SDK's own retries begin after the server was reached once: they would
        retry a closed port for half a minute.
        """
        import openai

        if not self._reached:
            no_retries = self._client.with_options(max_retries=0)
            for last in (False, True):
                try:
                    return await call(no_retries)
                except openai.APIStatusError as error:
                    if not _may_pass(error.status_code):
                        raise
                    break
                except openai.APIConnectionError as error:
                    if not _is_no_connection(error):
                        break
                    if last or isinstance(error, openai.APITimeoutError):
                        raise
                    await asyncio.sleep(_CONNECT_PAUSE)
            self._reached = True
        return await call(self._client)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate errors of the SDK: JudgeRefused if no request can succeed, else JudgeError."""
        import openai

        try:
            yield
            self._reached = True
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise JudgeRefused(f"the judge refused the key: {self._said(error)}") from error
        except openai.NotFoundError as error:
            raise JudgeRefused(
                f"{self._address} has no Batch API: {self._said(error)}; use `judge: openai`"
            ) from error
        except (openai.APIConnectionError, TooLarge, BadBody) as error:
            if body_error := _body_error(error):
                message = f"an answer of {self._address} cannot be read: {body_error}"
                raise JudgeError(message, transient=isinstance(body_error, BadBody)) from error
            if isinstance(error, openai.APITimeoutError) and not _is_no_connection(error):
                raise JudgeError("the judge did not answer in time", transient=True) from error
            cause = str(error.__cause__ or "") or type(error.__cause__).__name__
            raise self._connection_error(f"no connection to {self._address}: {cause}") from error
        except openai.APIStatusError as error:
            raise _refused(error, self._said(error)) from error
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise self._connection_error(incompatible(self._address, None, error)) from error
        except Exception as error:
            # During a download the SDK passes on errors of its HTTP library.
            if not type(error).__module__.startswith("httpx"):
                raise
            message = f"the connection to {self._address} was lost: {error}"
            raise JudgeError(message, transient=True) from error

    @property
    def _address(self) -> str:
        return str(self._client.base_url)

    def _said(self, error: APIStatusError) -> str:
        """The endpoint's message."""
        body = error.body.get("message") if isinstance(error.body, Mapping) else error.body
        return shorten(body or "") or f"{self._address} gives no reason"

    def _connection_error(self, message: str) -> JudgeError:
        """JudgeRefused if the address was never reached, as for a wrong one."""
        return JudgeError(message, transient=True) if self._reached else JudgeRefused(message)


def _id(response: Any) -> str:
    """The id of a new object. The SDK passes on any answer, even a page of HTML."""
    name = None if isinstance(response, str) else response.id
    if not name or not isinstance(name, str):
        raise ValueError(response)
    return name


def _batch(batch: Batch) -> Batch:
    """The batch, if its fields are valid. Raises ValueError."""
    moments = (batch.created_at, batch.expires_at or 0) if _id(batch) else ()
    if not isinstance(batch.status, str) or not all(0 <= moment < _NO_MOMENT for moment in moments):
        raise ValueError(batch)
    return batch


def _body_error(error: Exception) -> TooLarge | BadBody | None:
    """The cause of an SDK error, if the answer was too large or damaged."""
    cause = error.__cause__ or error
    return cause if isinstance(cause, TooLarge | BadBody) else None


def _refused(error: APIStatusError, message: str) -> JudgeError:
    status = error.status_code
    if status == 402 or is_refusing(error.code or ""):
        return JudgeRefused(f"the judge answered {status}: {message}")
    return JudgeError(f"the judge answered {status}: {message}", transient=_may_pass(status))


def _may_pass(status: int) -> bool:
    return status in (408, 409, 429) or status >= 500


def _is_no_connection(error: APIConnectionError) -> bool:
    """Whether no connection was made: unknown host, closed port or timeout."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")


def counted(batch: Any) -> str:
    """Progress of a batch as text."""
    counts = batch.request_counts
    if counts is None:
        return str(batch.status)
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{batch.status}, {counts.completed} of {counts.total} answered{failed}"


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
