"""What a target is: a tracing tool that takes evaluation results in batches."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from ragmetrics.config import SettingsModel
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.errors import RagmetricsError
from ragmetrics.text import shorten

log = logging.getLogger(__name__)
Done = TypeVar("Done")


class TargetError(RagmetricsError):
    """A target did not confirm a batch, for a reason that is not in the batch.

    `transient`: a repetition may succeed soon. `wait`: the seconds that the target asks for.
    """

    def __init__(self, message: str, *, transient: bool = False, wait: float | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.wait = wait


class BatchRefused(RagmetricsError):
    """A target refuses a batch for its content, and does not say which of its results it means."""


@dataclass(frozen=True)
class Outcome:
    """What became of a batch that the target answered."""

    refused: Mapping[str, str] = field(default_factory=dict)
    """The digests of results that the target does not take, with the reason. Results that are
    named nowhere were taken."""
    early: Mapping[str, str] = field(default_factory=dict)
    """The digests of results whose span the target does not have yet, with the reason."""
    again: Mapping[str, str] = field(default_factory=dict)
    """The digests of results that may succeed in a repetition, with the reason."""
    unnamed: int = 0
    """Number of results that were refused and must not be repeated, but are not named."""
    reason: str = ""
    """Why the unnamed ones were refused."""


class Target(Protocol):
    """One configured tracing tool."""

    name: str
    """The name of its kind, such as `langfuse`."""
    key: str
    """The name with a digest of the address and project: what was sent to one place was not sent
    to another."""
    documents: bool
    """Whether it also takes results of single documents."""

    def unfit(self, result: EvaluationResult) -> str:
        """Why a result cannot be sent there; empty if it can."""
        ...

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch of fit results. Raises TargetError and BatchRefused."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class GuardedTarget:
    """A target of which whatever its code raises costs only its own scores."""

    def __init__(self, name: str, make: Callable[[], Target]) -> None:
        self.name = name
        self._target = self._run(make)
        self.key, self.documents = self._run(lambda: (self._target.key, self._target.documents))

    def unfit(self, result: EvaluationResult) -> str:
        """Why a result cannot be sent there; empty if it can."""
        return self._run(partial(self._target.unfit, result))

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch. Raises TargetError in place of any other error than BatchRefused."""
        outcome = self._run(partial(self._target.send, batch))
        if not isinstance(outcome, Outcome):
            raise TargetError(f"the target {self.name} gave {type(outcome).__name__}, no Outcome")
        return outcome

    def close(self) -> None:
        """Close the connections; where that fails, a warning says so."""
        try:
            self._target.close()
        except Exception as error:
            log.warning("the target %s cannot be closed: %r", self.name, error)

    def _run(self, work: Callable[[], Done]) -> Done:
        try:
            return work()
        except RagmetricsError:
            raise
        except Exception as error:
            raise TargetError(f"the target {self.name} failed: {shorten(repr(error))}") from error


@dataclass(frozen=True)
class TargetKind:
    """A kind of target: the key `NAME` below `write_back:`, and what sends there."""

    name: str
    settings: type[SettingsModel]
    """The section of the settings. The first line of its docstring says what it is."""
    make: Callable[[Any, float, Mapping[str, str]], Target]
    """The target of some settings, with the timeout of a request in seconds and the environment.
    Raises TargetError where a key is missing."""
    sample: Mapping[str, Any]
    """Settings that can be used, with `{url}` for the address of a server."""
    variables: Sequence[str] = ()
    """The environment variables with the keys of the sample."""


def target_key(name: str, *place: str) -> str:
    """The key of a target, usable as the name of a file."""
    digest = hashlib.blake2b("\0".join(place).encode(), digest_size=4).hexdigest()
    return f"{name}-{digest}"
