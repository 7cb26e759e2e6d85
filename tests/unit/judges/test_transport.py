"""Connections to an endpoint: who closes them, and what a late request gets."""

from __future__ import annotations

import asyncio

import pytest

from ragmetrics.http import Unreachable
from ragmetrics.judges.transport import Access, Transport
from tests.fakes.clients import JudgeServer


async def late(transport: Transport, *, while_opening: bool) -> None:
    """A request after `close`, or one whose connection is being opened meanwhile."""
    request = asyncio.ensure_future(transport.post("models", b"{}")) if while_opening else None
    await asyncio.sleep(0)
    await transport.close()
    await (request or transport.post("models", b"{}"))


@pytest.mark.parametrize("while_opening", [False, True])
def test_a_late_request_opens_no_connection(judge_server: JudgeServer, while_opening: bool) -> None:
    """Nobody would close it."""
    transport = Transport(Access(judge_server.base_url, "none"), 1_000)
    with pytest.raises(Unreachable, match="the client is closed"):
        asyncio.run(late(transport, while_opening=while_opening))
