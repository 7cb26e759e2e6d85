"""A site served on this machine alone, for somebody who looks at it now.

Not for a network: it listens on 127.0.0.1, answers only who asks for it by that name (so no page of
the web can read it through a name of its own), lends its files to no page of another place (rows
are scripts, which any page could else load as its own), lists no folder and writes nothing.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import BinaryIO, ClassVar

from ragmetrics.errors import InputError
from ragmetrics.storage import CONTENT_TYPES

HOST = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """Files of one folder, with the content types that they have in a bucket."""

    extensions_map: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        **SimpleHTTPRequestHandler.extensions_map,
        **CONTENT_TYPES,
    }

    def send_head(self) -> BinaryIO | None:
        host, _, _ = self.headers.get("Host", "").partition(":")  # of a tunnel it has another port
        if host not in (HOST, "localhost"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        return super().send_head()

    def list_directory(self, path: object) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the terminal has the address, and no line per file."""


def serve(site: Path, tell: Callable[[str], None], port: int = 0) -> None:
    """Serve a folder until Ctrl-C, and open it in the browser where there is one.

    `tell` is given the address, before anything is opened. Port 0 takes one that is free; raises
    InputError where another one is taken.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(site)))
    except OSError as error:
        raise InputError(f"port {port}: cannot be served on: {error.strerror}") from None
    with server:
        server.daemon_threads = True
        address = f"http://{HOST}:{server.server_port}/index.html"
        try:
            tell(address)
            # By itself: a browser of the terminal comes back only when it is left.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            server.serve_forever()
        except KeyboardInterrupt:
            return
