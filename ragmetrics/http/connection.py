"""Connections: certificates, proxies, and the errors of connections."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 3.0
_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more


class Unreachable(Exception):
    """No connection: unknown host, closed port, timeout or invalid certificate."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether an immediate retry would fail too."""


class Dropped(Exception):
    """The connection broke before the answer was complete."""


def open_session(
    address: str, headers: Mapping[str, str], known: ssl.SSLContext | bool
) -> ClientSession:
    """Connections to an address, without a limit on their number: callers have one."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, ssl=known, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=300
        ),
        headers=headers,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        # aiohttp's own `trust_env` would use a thread per request.
        proxy=proxy_of(address),
    )


def certificates(address: str) -> ssl.SSLContext | bool:
    """Certificates of SSL_CERT_FILE and SSL_CERT_DIR, or those of the system and of certifi."""
    import aiohttp  # noqa: F401 - in the thread that this runs in

    if not address.lower().startswith("https:"):
        return True  # no certificate is needed
    return _context(os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"))


@cache
def _context(named: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not named and find_spec("certifi"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address, if any."""
    try:
        url = urlsplit(address)
    except ValueError:  # the request itself says so
        return None
    if not url.hostname or proxy_bypass(url.hostname):
        return None
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Translate errors of aiohttp to Unreachable or Dropped."""
    import aiohttp

    try:
        yield
    except (
        aiohttp.ConnectionTimeoutError,
        aiohttp.InvalidURL,
        aiohttp.NonHttpUrlClientError,
        UnicodeError,  # a host name that cannot be encoded
    ) as error:
        raise Unreachable(str(error), permanent=True) from error
    except aiohttp.ClientConnectorError as error:
        certificate = isinstance(error, aiohttp.ClientSSLError)
        raise Unreachable(str(error.os_error), permanent=certificate) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Dropped(str(error) or type(error).__name__) from error
