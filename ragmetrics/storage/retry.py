"""Failures of a store: told in one sentence, and waited out where they may pass.

botocore asks again by itself, five times in about seven seconds: enough for a request that
stumbles, not for a bucket that is out for half a minute. Here whatever may pass is done again with
growing pauses. One exception: an endpoint that this process never had a word from, and that
cannot be reached, is told at once; its address is more likely wrong than its bucket out.
"""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ragmetrics.errors import StoreError

RETRY_POLICY = 60.0
"""Seconds for which a failure that may pass is waited out."""

_LONGEST_PAUSE = 8.0
_PERMANENT = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_NOT_DONE = frozenset({501})  # of the statuses from 500 on, the one that says "never"
_MAY_PASS = frozenset(
    {
        "BadDigest",  # damaged on its way
        "IncompleteBody",
        "NoSuchUpload",  # the reply to its completion was lost: the upload begins anew
        "OperationAborted",
        "RequestTimeout",
        "SlowDown",
        "XAmzContentSHA256Mismatch",
    }
)
# By name: importing botocore takes half a second, which a local store need not spend.
_ASKED_AGAIN = frozenset(
    {
        "ClientError",  # aiohttp's; botocore's has a response, which is looked at first
        "ConnectionError",
        "CredentialRetrievalError",  # from the machine's metadata service
        "HTTPClientError",
        "ResponseParserError",
        "ResponseStreamingError",
    }
)
_CLIENTS = ("botocore", "aiobotocore", "aiohttp")
_reached: set[str] = set()
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetryPolicy:
    """Does again what failed and may pass, for so many seconds; `place` names the bucket."""

    place: str
    seconds: float = RETRY_POLICY

    def of(self, doing: str, act: Callable[[], T]) -> T:
        """What `act` returns, or what it raised last."""
        start, pauses, told = time.monotonic(), _pauses(), False
        while True:
            try:
                result = act()
            except Exception as error:
                if _response(error):
                    _reached.add(self.place)
                left = self.seconds - (time.monotonic() - start)
                if left <= 0 or self.place not in _reached or not is_transient(error):
                    raise
                if not told:
                    log.warning("%s: %s; tried again for up to %.0f s", doing, error, left)
                told = True
                time.sleep(min(next(pauses), left))
            else:
                _reached.add(self.place)
                if told:
                    log.warning("%s: done after %.0f s", doing, time.monotonic() - start)
                return result


def expect(place: str) -> None:
    """Wait for a bucket from the first request on: another process had word from it."""
    _reached.add(place)


def _pauses() -> Iterator[float]:
    """Half a second and growing, each by chance longer or shorter, so that many do not knock at
    once.
    """
    pause = 0.5
    while True:
        yield pause * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if response := _response(error):
        code, status = _code(response), _status(response)
        return code in _MAY_PASS or status == 429 or (status >= 500 and status not in _NOT_DONE)
    if isinstance(error, OSError):
        return not isinstance(error, _PERMANENT)
    return is_of_a_client(error) and bool(_ASKED_AGAIN & {kind.__name__ for kind in _kinds(error)})


def is_of_a_client(error: BaseException) -> bool:
    """Whether a library that speaks to buckets raised this."""
    return type(error).__module__.startswith(_CLIENTS)


def lacks_bucket(error: BaseException) -> bool:
    """Whether it is the bucket that is not there."""
    response = _response(error)
    return bool(response) and _code(response) == "NoSuchBucket"


def is_missing(error: StoreError) -> bool:
    """Whether there is no such file."""
    return isinstance(error.__cause__, FileNotFoundError)


def was_replaced(error: StoreError) -> bool:
    """Whether the file was written anew while it was read; s3fs calls that expired."""
    cause = error.__cause__
    return type(cause).__name__ == "FileExpired" and getattr(cause, "errno", 0) == errno.EBUSY


def _kinds(error: BaseException) -> tuple[type, ...]:
    return type(error).__mro__


def _response(error: BaseException | None) -> Mapping[str, Any]:
    """What the endpoint answered, if it did; s3fs keeps botocore's error as the cause."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping) and "Error" in response:
            return response
        error = error.__cause__
    return {}


def _code(response: Mapping[str, Any]) -> str:
    return str(response["Error"].get("Code", ""))


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _said(error: BaseException) -> str:
    """What the server answered, by its code: the message is missing in some answers."""
    response = _response(error)
    if not response:
        return str(error)
    status, message = _status(response), response["Error"].get("Message")
    codes = dict.fromkeys([_code(response), f"HTTP {status}" if status else ""])
    code = ", ".join(filter(None, codes)) or "no code"
    return f"{code}: {message}" if message else code


def do_all(*acts: Callable[[], object]) -> None:
    """Do all of these, whichever of them fails. Raises one StoreError with what each said."""
    errors: list[StoreError] = []
    for act in acts:
        try:
            act()
        except StoreError as error:
            errors.append(error)
    if errors:
        said = "; ".join(dict.fromkeys(map(str, errors)))
        transient = any(one.transient for one in errors)
        raise StoreError(said, transient=transient) from errors[0]


@contextmanager
def translate_errors(doing: str, uri: str) -> Iterator[None]:
    """Turn what fsspec, botocore and the system raise into a StoreError a person can act on."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        what = "no such bucket" if lacks_bucket(error) else "no such file"
        raise StoreError(f"{doing} {uri}: {what}", transient=is_transient(error)) from error
    except PermissionError as error:
        raise StoreError(f"{doing} {uri}: access denied ({_said(error)})") from error
    except (ImportError, ValueError) as error:
        raise StoreError(f"{doing} {uri}: {error}") from error
    except Exception as error:
        if not isinstance(error, OSError) and not is_of_a_client(error):
            raise
        raise StoreError(f"{doing} {uri}: {_said(error)}", transient=is_transient(error)) from error
