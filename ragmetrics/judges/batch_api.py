"""The Batch API of an OpenAI-compatible endpoint, through the openai SDK."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_lines import ENDPOINT, Fault, is_refusing, read_outputs
from ragmetrics.judges.told import incompatible, short

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from openai.types import Batch

    from ragmetrics.store.batches import BatchRecord

NONCE = "ragmetrics"
"""The key under which a batch's metadata hold its nonce."""
ENDED = ("completed", "failed", "expired", "cancelled")

_UPLOAD_SECONDS = 600.0
_PAGE = 100
_MOST_PAGES = 50
# Between the clocks of two machines.
_CLOCK = timedelta(hours=1)


class BatchApi:
    """Files and batches. Every method raises JudgeError, transient where trying again may help."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client
        self._reached = False

    async def upload(self, path: Path) -> str:
        """Upload an input file, read as it is sent; return its id."""
        with self._told(), path.open("rb") as file:
            uploaded = await self._client.files.create(
                file=(path.name, file, "application/jsonl"),
                purpose="batch",
                timeout=_UPLOAD_SECONDS,
            )
        return uploaded.id

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
        return batch.id

    async def find(self, record: BatchRecord) -> str | None:
        """The id of the batch that a record is about, if it was created."""
        since = (record.sent_at or record.created_at) - _CLOCK
        with self._told():
            page = await self._client.batches.list(limit=_PAGE)
            for _ in range(_MOST_PAGES):
                for batch in page.data:
                    if (batch.metadata or {}).get(NONCE) == record.nonce:
                        return batch.id
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
                return await self._client.batches.retrieve(name)
            except NotFoundError:
                return None

    async def cancel(self, name: str) -> Batch:
        """Stop a batch: what it has not answered yet is neither answered nor paid for."""
        with self._told():
            return await self._client.batches.cancel(name)

    async def outcomes(self, batch: Batch) -> dict[str, Reply | Fault]:
        """What an ended batch says of its requests, of as many as it got to."""
        found: dict[str, Reply | Fault] = {}
        for name in (batch.error_file_id, batch.output_file_id):
            if name:
                found.update(await self._lines(name))
        return found

    async def _lines(self, name: str) -> dict[str, Reply | Fault]:
        """The lines of a file; none where it is gone, as after 30 days."""
        from openai import NotFoundError

        with tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder, self._told():
            path = Path(folder) / "output.jsonl"
            try:
                async with self._client.files.with_streaming_response.content(name) as response:
                    with path.open("wb") as file:
                        async for chunk in response.iter_bytes(1 << 20):
                            file.write(chunk)
            except NotFoundError:
                return {}
            return await asyncio.to_thread(read_outputs, path)

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the SDK's errors into ours: refused where no request can succeed, else transient."""
        import openai

        try:
            yield
            self._reached = True
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise JudgeRefused(f"the judge refused the key: {short(error)}") from error
        except openai.NotFoundError as error:
            raise JudgeRefused(
                f"the endpoint has no Batch API: {short(error)}; use `judge: openai`"
            ) from error
        except openai.APITimeoutError as error:
            raise JudgeError("the judge did not answer in time", transient=True) from error
        except openai.APIConnectionError as error:
            raise self._unreached(f"no connection to the judge: {error.__cause__}") from error
        except openai.APIStatusError as error:
            raise _refused(error) from error
        except (openai.OpenAIError, ValueError) as error:
            raise self._unreached(incompatible(error)) from error

    def _unreached(self, message: str) -> JudgeError:
        """An address where nothing was reached yet is refused like a wrong one."""
        return JudgeError(message, transient=True) if self._reached else JudgeRefused(message)


def _refused(error: APIStatusError) -> JudgeError:
    status = error.status_code
    if status == 402 or is_refusing(error.code or ""):
        return JudgeRefused(f"the judge answered {status}: {short(error)}")
    transient = status in (408, 409, 429) or status >= 500
    return JudgeError(f"the judge answered {status}: {short(error)}", transient=transient)


def counted(batch: Any) -> str:
    """How far a batch is, in words."""
    counts = batch.request_counts
    if counts is None:
        return str(batch.status)
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"{batch.status}, {counts.completed} of {counts.total} answered{failed}"
