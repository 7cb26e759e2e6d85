"""Protocols of judges and embedders, and what they are made from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

from pydantic import BaseModel, SecretStr

from ragmetrics.config import JudgeSettings, url_of_environment
from ragmetrics.errors import JudgeRefused
from ragmetrics.records import Ask, Prompt, Vector

if TYPE_CHECKING:
    from ragmetrics.judges.request_parameters import RequestParameters
    from ragmetrics.judges.word_frequencies import Corpus
    from ragmetrics.storage import Files

_OPENAI = "https://api.openai.com/v1"
_NAMED = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
HEDGED = "hedged"
"""Among the failures of a reply: its requests that were sent a second time (see `hedging`)."""


class Tokens(NamedTuple):
    """Tokens of one request."""

    prompt: int = 0
    cached: int = 0
    """Tokens of the prompt that were in the server's cache."""
    completion: int = 0
    """Tokens of the reply and of the reasoning before it."""
    reasoning: int = 0

    def plus(self, more: Tokens) -> Tokens:
        """The sum of both."""
        return Tokens(*map(add, self, more))


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's answer: text in which `prompt.parse` finds the JSON of a verdict, or, from a judge
    that writes no text, the verdict.
    """

    text: str = ""
    verdict: BaseModel | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of `completion_tokens` that the model used before it began to write."""
    cut_off: bool = False
    """Whether the token limit cut it off."""
    refused: bool = False
    """Whether the endpoint reports that the model or a filter declined to answer."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of failed attempts before it, by kind."""
    known: int = 0
    """Number of requests that it answers at no further cost; 0: it took a request of its own."""
    shares_request: bool = False
    """Whether another reply carries the cost of the request that brought it."""
    more_requests: int = 0
    """In a dry run: the requests that would bring it, besides the first."""

    @property
    def cut_by_reasoning(self) -> bool:
        """Whether the limit cut it off, and the model had reasoned before: more room may do."""
        return self.cut_off and self.reasoning_tokens > 0

    @property
    def tokens(self) -> Tokens:
        """The tokens of its request."""
        return Tokens(
            self.prompt_tokens, self.cached_tokens, self.completion_tokens, self.reasoning_tokens
        )

    def with_tokens(self, tokens: Tokens) -> Self:
        """The reply with other tokens."""
        counts: dict[str, Any] = {f"{name}_tokens": n for name, n in tokens._asdict().items()}
        return replace(self, **counts)


@dataclass(frozen=True)
class Access:
    """Address and key of an endpoint; local servers need no key."""

    address: str
    key: str = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of each request."""
        named = {header: value for name, header in _NAMED.items() if (value := os.getenv(name))}
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **named,
        }


def find_access(settings: JudgeSettings, base_url: str | None, key: SecretStr | None) -> Access:
    """The access according to settings and environment.

    Raises JudgeRefused for a key that is missing or malformed, SettingsError if OPENAI_BASE_URL is
    not a URL.
    """
    base_url = base_url or url_of_environment()
    if key is None and base_url is None:
        name = settings.name if settings.remote else "openai"  # of embeddings, beside a local judge
        raise JudgeRefused(
            f"the judge {name} needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    secret = key.get_secret_value() if key else "none"
    if not (secret.isascii() and secret.isprintable()):
        raise JudgeRefused(f"the key in {settings.api_key_env} holds characters that no key has")
    return Access((base_url or _OPENAI).rstrip("/") + "/", secret)


@dataclass(frozen=True)
class JudgeParts:
    """What a judge may be made from, beside its settings."""

    corpus: Corpus
    """The word frequencies of the night."""
    files: Files | None = None
    """The store: a batch judge records its batches there, a fitted judge
    has its model there."""
    key: SecretStr | None = None
    """The key of its endpoint; None if its variable is not set."""

    def access(self, judge: JudgeSettings) -> Access:
        """The access to the endpoint of a judge. Raises JudgeRefused and SettingsError."""
        return find_access(judge, judge.base_url, self.key)


class Judge(Protocol):
    """Answers requests for verdicts.

    `reply` raises JudgeError: transient if a later attempt may succeed, JudgeRefused if no request
    can. The `fingerprint` covers all that may change a reply, except the prompt. It covers
    `begins_with_row` of the settings if the kind writes, as the prompts then depend on it.
    """

    name: str
    note: str
    fingerprint: str
    concurrency: int
    """Most concurrent requests."""
    cacheable: bool
    """Whether its replies are worth caching."""

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Answer one request; `attempt` counts the repetitions of the request from 0."""

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """Confidence in each item of the verdict; None if there is none."""

    async def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class TracksRequests(Protocol):
    """A judge that stores a record of its requests until their answers are durable."""

    def settled(self, request: Ask) -> None:
        """Note that the final answer to a request is cached, or never will be."""


@runtime_checkable
class ChangesParameters(Protocol):
    """A judge that replaces parameters which its endpoint refuses by name."""

    request_parameters: RequestParameters


@runtime_checkable
class KnowsLayout(Protocol):
    """A judge that can answer prompts in one layout alone, as a recording can."""

    row_first: bool
    """Whether its prompts begin with the row."""


@runtime_checkable
class JoinsRequests(Protocol):
    """A judge that answers several requests by one that it sends."""

    joins: int
    """About how many of them share one."""


def can_answer(judge: Judge, prompts: Iterable[Prompt[Any]]) -> bool:
    """Whether a judge can answer all of some prompts."""
    only = only_of(judge)
    return only is None or all(prompt.name in only for prompt in prompts)


def only_of(judge: Judge) -> Set[str] | None:
    """The names of the prompts that a judge can answer, its `only`. None: it can answer all."""
    only: Set[str] | None = getattr(judge, "only", None)
    return only


@runtime_checkable
class RepliesAtOnce(Protocol):
    """A judge that computes a reply in less time than it takes to wait for one."""

    def reply_at_once(self, request: Ask) -> Reply:
        """Answer one request. Raises JudgeError like `reply`."""


@runtime_checkable
class EmbedsAtOnce(Protocol):
    """An embedder that computes a vector in less time than it takes to wait for one."""

    def embed_at_once(self, text: str) -> Vector:
        """The vector of one text."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector, and its share of the cost of its request."""

    vector: Vector
    requests: int = 0
    tokens: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why the endpoint's answer for this text is not a vector; empty if it is one."""


@runtime_checkable
class Metered(Protocol):
    """An embedder whose requests cost money."""

    async def embed_metered(self, text: str) -> Embedded:
        """The vector of one text, and its cost. Raises JudgeError like a judge."""


class Embedder(Protocol):
    """Turns texts into vectors; the cosine of two vectors measures their similarity."""

    name: str
    fingerprint: str
    concurrency: int
    cacheable: bool

    async def embed(self, text: str) -> Vector:
        """The vector of one text. Raises JudgeError like a judge."""

    async def close(self) -> None:
        """Close the connections."""
