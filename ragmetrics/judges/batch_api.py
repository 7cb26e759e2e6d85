"""The Batch API of an OpenAI-compatible endpoint, through the openai SDK."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_files import ENDPOINT, Fault, add_outcome, is_refusing, read_outputs
from ragmetrics.judges.http_errors import incompatible
from ragmetrics.judges.response_body import BadBody, TooLarge
from ragmetrics.judges.transport import CONNECT_SECONDS
from ragmetrics.storage import temporary_file
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError, AsyncOpenAI
    from openai.pagination import AsyncCursorPage
    from openai.types import Batch

    from ragmetrics.judges.cache.batches import BatchRecord

NONCE = "ragmetrics"
"""The key under which a batch's metadata hold its nonce."""
ENDED = ("completed", "failed", "expired", "cancelled")

T = TypeVar("T")

_UPLOAD_SECONDS = 600.0
_VAIN_PAUSE = 0.25  # seconds before the second and last try, where nothing was ever reached
_PAGE = 100
_MOST_PAGES = 50
# Between the clocks of two machines.
_CLOCK = timedelta(hours=1)
_NO_MOMENT = 1 << 36  # seconds since 1970, in the year 4147


class BatchApi:
    """Files and batches. Every method raises JudgeError, transient where trying again may help."""

    def __init__(self, client: AsyncOpenAI, most_reply_bytes: int = 10_000_000) -> None:
        self._client, self._most_reply_bytes = client, most_reply_bytes
        self._reached = False

    async def upload(self, path: Path) -> str:
        """Upload an input file, read as it is sent; return its id."""
        from openai import Timeout

        timeout = Timeout(_UPLOAD_SECONDS, connect=CONNECT_SECONDS)
        with self._told(), path.open("rb") as file:

            async def send(client: AsyncOpenAI) -> str:
                file.seek(0)
                named = (path.name, file, "application/jsonl")
                sent = await client.files.create(file=named, purpose="batch", timeout=timeout)
                return _id(sent)

            return await self._reach(send)

    async def create(self, record: BatchRecord) -> str:
        """Create the batch of an uploaded file; return its id.

        It is tried once: after an error the batch may exist all the same, and `find` tells.
        """
        if record.input_file is None:
            raise ValueError("a batch is made of an uploaded file")
        with self._told():
            batch = await self._client.with_options(max_retries=0).batches.create(
                input_file_id=record.input_file,
                endpoint=ENDPOINT,  # type: ignore[arg-type]  # a plain str to mypy
                completion_window="24h",
                metadata={NONCE: record.nonce},
            )
            return _id(batch)

    async def find(self, record: BatchRecord) -> str | None:
        """The id of the batch that a record is about, if it was created."""
        since = (record.sent_at or record.created_at) - _CLOCK

        async def first(client: AsyncOpenAI) -> AsyncCursorPage[Batch]:
            return await client.batches.list(limit=_PAGE)

        with self._told():
            page = await self._reach(first)
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
        """A batch as it stands; None where there is none of this name."""
        from openai import NotFoundError

        with self._told():
            try:
                return _batch(await self._reach(lambda client: client.batches.retrieve(name)))
            except NotFoundError:
                return None

    async def cancel(self, name: str) -> Batch:
        """Stop a batch: what it has not answered yet is neither answered nor paid for."""
        with self._told():
            return _batch(await self._reach(lambda client: client.batches.cancel(name)))

    async def outcomes(self, batch: Batch) -> dict[str, Reply | Fault]:
        """What an ended batch says of its requests, of as many as it got to."""
        found: dict[str, Reply | Fault] = {}
        for name in (batch.error_file_id, batch.output_file_id):
            if name:
                for request, outcome in (await self._lines(name)).items():
                    add_outcome(found, request, outcome)
        return found

    async def _lines(self, name: str) -> dict[str, Reply | Fault]:
        """The lines of a file; none where it is gone, as after 30 days."""
        from openai import NotFoundError

        with (
            temporary_file(),
            tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder,
            self._told(),
        ):
            path = Path(folder) / "output.jsonl"
            try:
                async with self._client.files.with_streaming_response.content(name) as response:
                    with path.open("wb") as file:
                        async for chunk in response.iter_bytes(1 << 20):
                            file.write(chunk)
            except NotFoundError:
                return {}
            return await asyncio.to_thread(read_outputs, path, self._most_reply_bytes)

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()

    async def _reach(self, call: Callable[[AsyncOpenAI], Awaitable[T]]) -> T:
        """What a call brings. The SDK would try an address where nobody listens for half a minute:
        it tries again only where something was reached.
        """
        import openai

        if not self._reached:
            hasty = self._client.with_options(max_retries=0)
            for last in (False, True):
                try:
                    return await call(hasty)
                except openai.APIStatusError as error:
                    if not _may_pass(error.status_code):
                        raise
                    break
                except openai.APIConnectionError as error:
                    if not _is_no_connection(error):
                        break
                    if last or isinstance(error, openai.APITimeoutError):
                        raise
                    await asyncio.sleep(_VAIN_PAUSE)
            self._reached = True
        return await call(self._client)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the SDK's errors into ours: refused where no request can succeed, else transient."""
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
            if spoilt := _spoilt(error):
                told = f"an answer of {self._address} cannot be read: {spoilt}"
                raise JudgeError(told, transient=isinstance(spoilt, BadBody)) from error
            if isinstance(error, openai.APITimeoutError) and not _is_no_connection(error):
                raise JudgeError("the judge did not answer in time", transient=True) from error
            said = str(error.__cause__ or "") or type(error.__cause__).__name__
            raise self._unreached(f"no connection to {self._address}: {said}") from error
        except openai.APIStatusError as error:
            raise _refused(error, self._said(error)) from error
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise self._unreached(incompatible(self._address, None, error)) from error
        except Exception as error:
            # In the midst of a download the SDK lets the errors of its HTTP library out.
            if not type(error).__module__.startswith("httpx"):
                raise
            told = f"the connection to {self._address} was lost: {error}"
            raise JudgeError(told, transient=True) from error

    @property
    def _address(self) -> str:
        return str(self._client.base_url)

    def _said(self, error: APIStatusError) -> str:
        """The endpoint's own words."""
        body = error.body.get("message") if isinstance(error.body, Mapping) else error.body
        return shorten(body or "") or f"{self._address} gives no reason"

    def _unreached(self, message: str) -> JudgeError:
        """An address where nothing was reached yet is refused like a wrong one."""
        return JudgeError(message, transient=True) if self._reached else JudgeRefused(message)


def _id(made: Any) -> str:
    """The id of what was made. The SDK hands on whatever was answered, even a page of HTML."""
    name = None if isinstance(made, str) else made.id
    if not name or not isinstance(name, str):
        raise ValueError(made)
    return name


def _batch(said: Batch) -> Batch:
    """A batch of which all that is asked of it can be read."""
    moments = (said.created_at, said.expires_at or 0) if _id(said) else ()
    if not isinstance(said.status, str) or not all(0 <= one < _NO_MOMENT for one in moments):
        raise ValueError(said)
    return said


def _spoilt(error: Exception) -> TooLarge | BadBody | None:
    """What the SDK's error is about, where the answer was too large or damaged."""
    cause = error.__cause__ or error
    return cause if isinstance(cause, TooLarge | BadBody) else None


def _refused(error: APIStatusError, said: str) -> JudgeError:
    status = error.status_code
    if status == 402 or is_refusing(error.code or ""):
        return JudgeRefused(f"the judge answered {status}: {said}")
    return JudgeError(f"the judge answered {status}: {said}", transient=_may_pass(status))


def _may_pass(status: int) -> bool:
    return status in (408, 409, 429) or status >= 500


def _is_no_connection(error: APIConnectionError) -> bool:
    """Whether nothing was reached: no such host, nobody listens, or no answer from there."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")


def counted(batch: Any) -> str:
    """How far a batch is, in words."""
    counts = batch.request_counts
    if counts is None:
        return str(batch.status)
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{batch.status}, {counts.completed} of {counts.total} answered{failed}"
