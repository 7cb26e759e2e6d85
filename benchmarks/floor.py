"""The least that a client can do: send the requests in a file, so many in flight, and read replies.

    python floor.py http://127.0.0.1:PORT bodies.txt 64

It makes no prompt, checks no reply and keeps nothing. A line of the file is a path and a body, as
the endpoint of the benchmarks wrote them. It prints JSON: seconds from the first request to the
last reply, and requests.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

_HEADERS = {"Content-Type": "application/json"}


async def send_all(server: str, bodies: list[tuple[str, bytes]], in_flight: int) -> float:
    """Send them in order; return the seconds it took."""
    left: Iterator[tuple[str, bytes]] = iter(bodies)
    async with aiohttp.ClientSession(
        server, connector=aiohttp.TCPConnector(limit=0), headers=_HEADERS
    ) as session:

        async def work() -> None:
            for path, body in left:
                async with session.post(path, data=body) as response:
                    response.raise_for_status()
                    await response.read()

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(in_flight)))
        return time.perf_counter() - start


def main() -> None:
    """Send what the file holds."""
    server, file, in_flight = sys.argv[1:]
    lines = Path(file).read_bytes().splitlines()
    bodies = [(path.decode(), body) for path, _, body in (line.partition(b" ") for line in lines)]
    seconds = asyncio.run(send_all(server, bodies, int(in_flight)))
    print(json.dumps({"seconds": seconds, "requests": len(bodies)}))


if __name__ == "__main__":
    main()
