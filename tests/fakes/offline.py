"""Keeps tests off the network and away from the user's own accounts."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import MutableMapping
from typing import Any, NoReturn

import pytest

KEPT = ("RAGMETRICS_DATA", "RAGMETRICS_FUZZ_EXAMPLES")
_FOREIGN = ("AWS_", "OPENAI_", "PREFECT_", "RAGMETRICS_", "SLACK_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOCAL_NAMES = frozenset({None, "", "localhost", socket.gethostname()})


def isolate(environment: MutableMapping[str, str], prefect_home: str) -> None:
    """Take the user's accounts, profiles and proxies out of an environment."""
    for name in list(environment):
        foreign = name.startswith(_FOREIGN) and name not in KEPT
        if foreign or name.lower() in _PROXIES:
            del environment[name]
    environment.update(
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        DO_NOT_TRACK="1",
        PREFECT_HOME=prefect_home,
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
    )


def unplug() -> None:
    """From now on, this process sees no host but its own: it fails as a machine offline does."""
    sys.addaudithook(_refuse_other_hosts)


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test that lacks a real part; in CI, where nothing may lack, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (CI may not skip this)", pytrace=False)
    pytest.skip(reason)


def _refuse_other_hosts(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo" and not _is_resolved(arguments[0]):
        raise socket.gaierror(socket.EAI_NONAME, f"tests are offline: {arguments[0]}")
    if event == "socket.connect" and not _is_local(arguments[1]):
        raise OSError(errno.ENETUNREACH, f"tests are offline: {arguments[1]}")


def _is_local(address: Any) -> bool:
    """Whether a socket address is this machine's; those that are not tuples are Unix sockets."""
    if not isinstance(address, tuple) or address[0] in _LOCAL_NAMES:
        return True
    ip = _ip(address[0])
    return ip is not None and (ip.is_loopback or ip.is_unspecified)


def _is_resolved(host: Any) -> bool:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    return name in _LOCAL_NAMES or _ip(name) is not None


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
