"""Every error that ragmetrics raises on purpose.

RagmetricsError
├── InputError               what the user gave cannot be used; exit code 2
│   └── SettingsError        the settings file, by key
├── StoreError               reading or writing files failed; `transient` says if a retry may help
├── UnreadableReply          a judge answered, but not what was asked; asked again
├── Unanswered               a request got no usable answer; the row is left out of the mean
├── RetrieverError           the golden questions could not be replayed; `transient` as above
│   └── RetrieverRefused     wrong key, address or function: no question can be answered
└── JudgeError               the judge could not be asked; `transient` says if a retry may help
    ├── JudgeRefused         wrong key, model or address: no request can succeed, the run ends
    ├── JudgePending         asked, and the answers come later: the same command goes on
    ├── Declined             the judge declines this one request, as a content filter does
    ├── OverBudget           the budget does not allow this request: it is not sent
    └── OverDeadline         the run's deadline has passed: it is not sent, or not waited for
"""

from __future__ import annotations

from collections.abc import Mapping


class RagmetricsError(Exception):
    """Base of all errors raised on purpose; its text is meant for the user."""

    transient = False


class InputError(RagmetricsError):
    """What the user gave (a path, a flag, a row list) cannot be used."""


class SettingsError(InputError):
    """The settings file holds an unknown key or a value out of range."""


class StoreError(RagmetricsError):
    """A file or bucket could not be read or written."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class UnreadableReply(RagmetricsError):
    """The judge's reply is not what was asked for."""


class Unanswered(RagmetricsError):
    """A request has no usable answer, after all attempts."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def __reduce__(self) -> tuple[type[Unanswered], tuple[str, str]]:
        return type(self), (self.status, self.reason)  # by default it is pickled by its text alone


class RetrieverError(RagmetricsError):
    """The retriever could not be asked the golden questions, or answered too few of them."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class RetrieverRefused(RetrieverError):
    """No question to this retriever can be answered: wrong key, address or function."""


class JudgeError(RagmetricsError):
    """The judge could not be asked."""

    def __init__(
        self, message: str, *, transient: bool = False, failures: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.failures = failures or {}
        """Attempts that came to nothing, by kind."""


class JudgeRefused(JudgeError):
    """No request to this judge can succeed: wrong key, model or address."""


class JudgePending(JudgeError):
    """The answers are on their way and will be there later: the run ends, the same command goes on.

    Not one row's affair: it ends the part, and nothing of it is given up.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)


class Declined(JudgeError):
    """The judge declines this one request, as a content filter does; others it may answer."""


class OverBudget(JudgeError):
    """What the budget leaves to a part of the run is used up."""


class OverDeadline(JudgeError):
    """The run's deadline has passed: another run may ask again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)
