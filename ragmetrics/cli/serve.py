"""Serves a site on this machine alone, for the person who runs the command.

It listens on 127.0.0.1 and answers only requests for that name, so that no web page can read it
under another name. No page of another origin can load its files: rows are scripts, which any page
could load otherwise. It lists no folder and writes nothing.
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
        host, _, _ = self.headers.get("Host", "").partition(":")  # a tunnel has another port
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
        """Log nothing: the terminal shows only the address."""


def serve(site: Path, tell: Callable[[str], None], port: int = 0) -> None:
    """Serve a folder until Ctrl-C, and open it in the browser if there is one.

    `tell` gets the address before the browser opens. Port 0 means a free port. Raises InputError if
    the port is taken.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(site)))
    except OSError as error:
        raise InputError(f"port {port}: cannot be used: {error.strerror}") from None
    with server:
        server.daemon_threads = True
        address = f"http://{HOST}:{server.server_port}/index.html"
        try:
            tell(address)
            # In a thread: a text browser returns only when it is closed.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            server.serve_forever()
        except KeyboardInterrupt:
            return
