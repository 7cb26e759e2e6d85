"""Retries transient errors of a store, and turns errors into one sentence.

botocore retries five times in about seven seconds. That is not enough for a bucket that is down for
half a minute. So transient errors are retried here with growing pauses, until the deadline of the
run. There is one exception: if this process has never reached the endpoint, the error is raised at
once, because its address is probably wrong.
"""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ragmetrics.errors import StoreError
from ragmetrics.records import seconds_left

RETRY_POLICY = 60.0
"""Default time budget for retries, in seconds."""

_LONGEST_PAUSE = 8.0
_PERMANENT = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_NOT_IMPLEMENTED = frozenset({501})  # the only permanent error among the statuses from 500 on
_TRANSIENT_CODES = frozenset(
    {
        "BadDigest",  # damaged in transit
        "IncompleteBody",
        "NoSuchUpload",  # the reply to its completion was lost: the upload starts again
        "OperationAborted",
        "RequestTimeout",
        "SlowDown",
        "XAmzContentSHA256Mismatch",
    }
)
# By name: importing botocore takes half a second, and a local store does not need it.
_TRANSIENT_CLASSES = frozenset(
    {
        "ClientError",  # aiohttp's; botocore's has a response, which is checked first
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
    """Retries transient errors for a number of seconds. `place` is the bucket."""

    place: str
    seconds: float = RETRY_POLICY

    def run(self, doing: str, act: Callable[[], T]) -> T:
        """Run `act` and return its result. Raises the last error when the time is over, and the
        first one after the run's deadline.
        """
        start, pauses, retried = time.monotonic(), _pauses(), False
        while True:
            try:
                result = act()
            except Exception as error:
                if _response(error):
                    _reached.add(self.place)
                left = min(self.seconds - (time.monotonic() - start), seconds_left())
                if left <= 0 or self.place not in _reached or not is_transient(error):
                    raise
                if not retried:
                    log.warning("%s: %s; retrying for up to %.0f s", doing, error, left)
                retried = True
                time.sleep(min(next(pauses), left))
            else:
                _reached.add(self.place)
                if retried:
                    log.warning("%s: succeeded after %.0f s", doing, time.monotonic() - start)
                return result


def expect(place: str) -> None:
    """Retry from the first request on: another process has reached the bucket."""
    _reached.add(place)


def _pauses() -> Iterator[float]:
    """Pauses from half a second, growing, with random jitter so that clients do not retry at the
    same time.
    """
    pause = 0.5
    while True:
        yield pause * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_transient(error: BaseException) -> bool:
    """True when the same request may succeed later."""
    if response := _response(error):
        code, status = _code(response), _status(response)
        unavailable = status >= 500 and status not in _NOT_IMPLEMENTED
        return code in _TRANSIENT_CODES or status == 429 or unavailable
    if isinstance(error, OSError):
        return not isinstance(error, _PERMANENT)
    names = {kind.__name__ for kind in type(error).__mro__}
    return is_of_a_client(error) and bool(_TRANSIENT_CLASSES & names)


def is_of_a_client(error: BaseException) -> bool:
    """True when a client library of buckets raised the error."""
    return type(error).__module__.startswith(_CLIENTS)


def lacks_bucket(error: BaseException) -> bool:
    """True when the bucket does not exist."""
    return _code(_response(error)) == "NoSuchBucket"


def is_missing(error: StoreError) -> bool:
    """True when the file does not exist."""
    return isinstance(error.__cause__, FileNotFoundError)


def is_lasting(error: StoreError) -> bool:
    """True when a repetition would raise the error again: files were removed, or are damaged."""
    return not error.transient


class passing_over(AbstractContextManager[None, bool]):  # noqa: N801 - as those of contextlib
    """Ends its block at an error of the store that is passed over, as `suppress` does."""

    def __init__(self, passed: Callable[[StoreError], bool] = is_lasting) -> None:
        self._passed = passed

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Whether the error is passed over."""
        return isinstance(error, StoreError) and self._passed(error)


def is_condition_refused(error: BaseException) -> bool:
    """True when the file exists that was to be written only if it did not."""
    # Another write of it was under way: "conflict".
    return _code(_response(error)) in {"PreconditionFailed", "ConditionalRequestConflict"}


def was_replaced(error: StoreError) -> bool:
    """True when the file was replaced while it was read; s3fs calls that expired."""
    cause = error.__cause__
    return type(cause).__name__ == "FileExpired" and getattr(cause, "errno", 0) == errno.EBUSY


def _response(error: BaseException | None) -> Mapping[str, Any]:
    """The endpoint's response, if there was one; s3fs has botocore's error as the cause."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping) and "Error" in response:
            return response
        error = error.__cause__
    return {}


def _code(response: Mapping[str, Any]) -> str:
    return str(response.get("Error", {}).get("Code", ""))


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _description(error: BaseException) -> str:
    """The code and message of the server's answer; some answers have no message."""
    response = _response(error)
    if not response:
        return str(error)
    status, message = _status(response), response["Error"].get("Message")
    codes = dict.fromkeys([_code(response), f"HTTP {status}" if status else ""])
    code = ", ".join(filter(None, codes)) or "no code"
    return f"{code}: {message}" if message else code


def do_all(*acts: Callable[[], object]) -> None:
    """Call all functions, even if some fail. Raises one StoreError with all messages."""
    errors: list[StoreError] = []
    for act in acts:
        try:
            act()
        except StoreError as error:
            errors.append(error)
    if errors:
        message = "; ".join(dict.fromkeys(map(str, errors)))
        transient = any(error.transient for error in errors)
        raise StoreError(message, transient=transient) from errors[0]


@contextmanager
def translate_errors(doing: str, uri: str) -> Iterator[None]:
    """Turn errors of fsspec, botocore and the system into a StoreError that a user can act on."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        what = "no such bucket" if lacks_bucket(error) else "no such file"
        raise StoreError(f"{doing} {uri}: {what}", transient=is_transient(error)) from error
    except PermissionError as error:
        raise StoreError(f"{doing} {uri}: access denied ({_description(error)})") from error
    except (ImportError, ValueError) as error:
        raise StoreError(f"{doing} {uri}: {error}") from error
    except Exception as error:
        if not isinstance(error, OSError) and not is_of_a_client(error):
            raise
        message = f"{doing} {uri}: {_description(error)}"
        raise StoreError(message, transient=is_transient(error)) from error
