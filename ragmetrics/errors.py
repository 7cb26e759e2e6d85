"""Every error that ragmetrics raises on purpose.

RagmetricsError
├── InputError               input of the user cannot be used; exit code 2
│   └── SettingsError        the settings file, by key
├── StoreError               reading or writing files failed; `transient` says if a retry may help
├── HttpError                a request got no answer that can be used; `transient` as above
├── UnreadableReply          a judge's reply does not fit the request; the request is repeated
├── Unanswered               a request has no usable answer; the mean leaves out the row
├── RetrieverError           the replay of golden questions failed; `transient` as above
│   └── RetrieverRefused     wrong key, address or function: all questions fail
├── WorkerDied               a process that scores died; the parts that it finished are stored
└── JudgeError               a request to a judge failed; `transient` says if a retry may help
    ├── JudgeRefused         wrong key, model or address: no request can succeed, the run ends
    ├── JudgePending         the answers come later: the same command continues
    ├── Declined             the judge declines this request, as a content filter does
    ├── OverBudget           the budget does not allow this request: it is not sent
    └── OverDeadline         the run's deadline has passed: it is not sent, or not waited for
"""

from __future__ import annotations

from collections.abc import Mapping


class RagmetricsError(Exception):
    """Base of all errors raised on purpose; its text is meant for the user."""

    transient = False


class InputError(RagmetricsError):
    """Input of the user (a path, a flag, a list of rows) cannot be used."""


class SettingsError(InputError):
    """The settings file holds an unknown key or a value out of range."""


class StoreError(RagmetricsError):
    """A file or bucket could not be read or written."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class HttpError(RagmetricsError):
    """A request got no answer, or none that can be used. The text holds no secret."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        *,
        transient: bool = False,
        wait: float = 0.0,
        sent: bool = True,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        """The status of the answer; None if there is none."""
        self.transient = transient
        self.wait = wait
        """Seconds that the server asks to wait."""
        self.sent = sent
        """Whether the server may have got the request."""
        self.timed_out = timed_out
        """Whether there was no answer in time."""


class WorkerDied(RagmetricsError):
    """A worker process died during its work."""

    transient = True


class UnreadableReply(RagmetricsError):
    """The judge's reply does not fit the request."""


class Unanswered(RagmetricsError):
    """A request has no usable answer, after all attempts."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def __reduce__(self) -> tuple[type[Unanswered], tuple[str, str]]:
        return type(self), (self.status, self.reason)  # the default would pickle the text alone


class RetrieverError(RagmetricsError):
    """The replay of golden questions failed, or the retriever answered too few of them."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class RetrieverRefused(RetrieverError):
    """No request to this retriever can succeed: wrong key, address or function."""


class JudgeError(RagmetricsError):
    """A request to a judge failed."""

    def __init__(
        self, message: str, *, transient: bool = False, failures: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.failures = failures or {}
        """Number of failed attempts, by kind."""


class JudgeRefused(JudgeError):
    """No request to this judge can succeed: wrong key, model or address."""


class JudgePending(JudgeError):
    """The answers come later: the run ends, and the same command continues it.

    It ends the whole part and not a row; no request is given up.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)


class Declined(JudgeError):
    """The judge declines this request, as a content filter does; it may answer others."""


class OverBudget(JudgeError):
    """The budget of a part of the run is used up."""


class OverDeadline(JudgeError):
    """The run's deadline has passed; another run may repeat the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)
