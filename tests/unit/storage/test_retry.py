"""Failures of a store: which may pass, and how long one waits for it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
)
from s3fs.errors import translate_boto_error

from ragmetrics.errors import StoreError
from ragmetrics.storage import Files, do_all, expect, retry as failures
from ragmetrics.storage.retry import RetryPolicy, is_transient, translate_errors

URL = "http://127.0.0.1:9"


def answered(status: int, code: str) -> Exception:
    """An error as s3fs raises it for an answer of the endpoint."""
    error = {
        "Error": {"Code": code, "Message": "m"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    raised: Exception = translate_boto_error(ClientError(error, "GetObject"))
    return raised


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses made, on a clock that only they move; no place was reached before."""
    pauses: list[float] = []
    monkeypatch.setattr(failures.time, "sleep", pauses.append)
    monkeypatch.setattr(failures.time, "monotonic", lambda: sum(pauses))
    monkeypatch.setattr(failures, "_reached", set())
    yield pauses


def failing(*errors: Exception) -> Callable[[], str]:
    """Raises one error after the other, then succeeds."""
    left = list(errors)

    def act() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return act


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (answered(500, "InternalError"), True),
        (answered(500, "500"), True),  # of HEAD, which has no body
        (answered(503, "SlowDown"), True),
        (answered(429, "TooManyRequests"), True),
        (answered(400, "BadDigest"), True),
        (answered(400, "RequestTimeout"), True),
        (answered(404, "NoSuchUpload"), True),
        (answered(501, "NotImplemented"), False),
        (answered(404, "NoSuchKey"), False),
        (answered(404, "NoSuchBucket"), False),
        (answered(403, "AccessDenied"), False),
        (answered(400, "InvalidArgument"), False),
        (answered(412, "PreconditionFailed"), False),
        (EndpointConnectionError(endpoint_url=URL), True),
        (ConnectTimeoutError(endpoint_url=URL), True),
        (HTTPClientError(error="closed"), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (OSError(errno.ENOSPC, "no space"), True),
        (NoCredentialsError(), False),
        (ParamValidationError(report="bad"), False),
        (FileNotFoundError("a"), False),
        (PermissionError("a"), False),
        (ValueError("a bug"), False),
    ],
)
def test_what_may_pass(error: Exception, passes: bool) -> None:
    """Overload, server errors and broken connections; never a refusal, a mistake or a bug."""
    assert is_transient(error) is passes


def test_what_passes_is_waited_out(slept: list[float]) -> None:
    """With pauses that grow, each somewhat by chance, up to a bound."""
    patience = RetryPolicy("here", 1_000)
    assert patience.run("reading", failing(*[answered(503, "SlowDown")] * 9)) == "done"
    bounds = [0.5, 1, 2, 4, 8, 8, 8, 8, 8]
    assert len(slept) == len(bounds)
    for pause, middle in zip(slept, bounds, strict=True):
        assert middle / 2 <= pause <= middle * 1.5


def test_patience_ends(slept: list[float]) -> None:
    """With a last attempt at its very end, and what was raised then."""
    last = answered(500, "InternalError")
    endless = [answered(503, "SlowDown")] * 100
    with pytest.raises(OSError, match="m"):
        RetryPolicy("here", 20).run("reading", failing(*endless, last))
    assert sum(slept) == pytest.approx(20)


def test_what_does_not_pass_is_raised_at_once(slept: list[float]) -> None:
    """A wrong key does not get better by asking again."""
    expect("here")
    with pytest.raises(PermissionError):
        RetryPolicy("here").run("reading", failing(answered(403, "AccessDenied")))
    assert slept == []


def test_nobody_waits_for_an_endpoint_that_never_answered(slept: list[float]) -> None:
    """Its address is more likely wrong; once it answered, whatever it said, it is waited for."""
    gone = EndpointConnectionError(endpoint_url=URL)
    with pytest.raises(EndpointConnectionError):
        RetryPolicy("here").run("reading", failing(gone))
    with pytest.raises(FileNotFoundError):
        RetryPolicy("here").run("reading", failing(answered(404, "NoSuchKey")))
    assert slept == []
    assert RetryPolicy("here").run("reading", failing(gone, gone)) == "done"
    with pytest.raises(EndpointConnectionError):
        RetryPolicy("there").run("reading", failing(gone))


def test_waiting_is_logged_once(slept: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """When it begins, and when it is over."""
    RetryPolicy("here").run("reading s3://b/a", failing(*[answered(503, "SlowDown")] * 4))
    began, over = (record.getMessage() for record in caplog.records)
    assert began == "reading s3://b/a: [Errno 16] m; retrying for up to 60 s"
    assert over.startswith("reading s3://b/a: succeeded after ")


def test_a_failure_is_told_with_what_was_done_and_to_what() -> None:
    """And says whether a later attempt may help."""
    with (
        pytest.raises(StoreError, match="reading s3://b/a: ") as error,
        translate_errors("reading", "s3://b/a"),
    ):
        raise answered(503, "SlowDown")
    assert error.value.transient
    with pytest.raises(StoreError, match="no such file") as error, translate_errors("reading", "a"):
        raise answered(404, "NoSuchKey")
    assert not error.value.transient
    with pytest.raises(KeyError), translate_errors("reading", "a"):
        raise KeyError("a bug stays a bug")


@pytest.mark.parametrize("seconds", ["long", -1, True])
def test_patience_that_is_no_number_is_told(seconds: object) -> None:
    """With the key to look at."""
    with pytest.raises(StoreError, match="storage_options: patience_seconds should be a number"):
        Files("memory://x", {"patience_seconds": seconds}).read("a")


def test_an_answer_without_a_message_is_told_by_its_code() -> None:
    """S3 answers a HEAD with a status alone, which s3fs tells as None."""
    said = {"Error": {"Code": "403"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    error = PermissionError(None)
    error.__cause__ = ClientError(said, "HeadObject")  # type: ignore[arg-type]
    words = r"^reading s3://b/a: access denied \(403, HTTP 403\)$"
    with pytest.raises(StoreError, match=words), translate_errors("reading", "s3://b/a"):
        raise error


def test_all_acts_are_done_whichever_fails() -> None:
    """What each said is in one error, which may pass where one of them may."""
    done: list[str] = []

    def refused(reason: str, *, transient: bool = False) -> None:
        raise StoreError(reason, transient=transient)

    with pytest.raises(StoreError, match=r"^a; b$") as error:
        do_all(
            lambda: refused("a"),
            lambda: done.append("one"),
            lambda: refused("b", transient=True),
            lambda: refused("a"),
        )
    assert done == ["one"]
    assert error.value.transient
    do_all(lambda: done.append("two"))
