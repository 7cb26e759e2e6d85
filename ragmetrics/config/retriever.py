"""Settings of the retriever that replays the golden questions against a new index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator, model_validator

from ragmetrics.config.headers import check_header, check_named
from ragmetrics.config.judge import SettingsModel
from ragmetrics.model import MAX_CONTEXTS

PLACEHOLDER = re.compile(r"\{(user_input|build|id|language)\}")
"""What a template is filled in at; all other braces stand for themselves."""

Param = str | bool | int | float
_DEFAULT_BODY: JsonValue = {"user_input": "{user_input}", "build": "{build}"}
_SECRET = re.compile(r"authorization|cookie|token|secret|passw|api-?_?key|access-?_?key", re.I)
_OF_HTTP = ("method", "headers", "headers_env", "body", "params", "max_answer_bytes")


class RetrieverSettings(SettingsModel):
    """An HTTP endpoint with a request template, or a Python function."""

    url: str | None = None
    """May hold `{build}`."""
    entrypoint: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """`package.module:function`"""
    method: Literal["POST", "GET"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Header -> the environment variable that holds it, or a text with variables in braces, such
    as `Bearer {SEARCH_TOKEN}`."""
    body: JsonValue = None
    """What is sent as JSON; None: question and build, or nothing where there are `params`."""
    params: dict[str, Param | list[Param]] = Field(default_factory=dict)
    """What is appended to the URL."""
    contexts: str | None = None
    """Where the answer has the texts, by dotted path as in `columns`; `.` is the answer itself.
    None, here and below: under our own name."""
    ids: str | None = None
    scores: str | None = None
    response: str | None = None
    concurrency: int = Field(8, ge=1, le=1_000)
    requests_per_second: float | None = Field(None, gt=0)
    timeout_seconds: float = Field(30.0, gt=0)
    """Longest wait for one attempt."""
    deadline_seconds: float = Field(300.0, gt=0)
    """Longest wait for one question with all its attempts."""
    retries: int = Field(4, ge=0, le=20)
    """Attempts after the first for what passes. A 429 is waited out until the deadline."""
    max_failed: float = Field(0.02, ge=0, le=1)
    """Share of the questions that may end without an answer."""
    max_contexts: int = Field(100, ge=1, le=MAX_CONTEXTS)
    max_answer_bytes: int = Field(10_000_000, ge=1_000)

    @property
    def sent(self) -> JsonValue:
        """The template of the body; None: there is none."""
        if self.body is None and self.method == "POST" and not self.params:
            return _DEFAULT_BODY
        return self.body

    @property
    def address(self) -> str:
        """What is asked, for people: the URL or the function."""
        return self.url or self.entrypoint or ""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if set(url) & set("@?#"):  # secrets, as often as not: they are not repeated
            raise ValueError(
                "should end with its path and hold no user, password or query: those go into "
                "`headers_env` and `params`"
            )
        try:
            parts = urlsplit(url.replace("{build}", "b"))
            good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not good or " " in url:
            raise ValueError(f"should be like https://search.example.com/query, and is {url!r}")
        if set(PLACEHOLDER.findall(url)) - {"build"}:
            raise ValueError("may hold {build} alone; the question goes into `body` or `params`")
        return url

    @field_validator("headers")
    @classmethod
    def _open(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            check_header(name)
            if _SECRET.search(name):
                raise ValueError(
                    f"{name}: name the environment variable that holds it under `headers_env`; "
                    "secrets do not stand in the settings"
                )
            if not value.isprintable():
                raise ValueError(f"{name}: holds a line break, or another character no header has")
        return headers

    @field_validator("headers_env")
    @classmethod
    def _named(cls, headers: dict[str, str]) -> dict[str, str]:
        return check_named(headers)

    @field_validator("body")
    @classmethod
    def _json(cls, body: JsonValue) -> JsonValue:
        try:
            json.dumps(body, allow_nan=False)
        except ValueError:
            raise ValueError("holds a number that JSON has not") from None
        return body

    @field_validator("contexts", "ids", "scores", "response")
    @classmethod
    def _path(cls, path: str | None) -> str | None:
        if path is not None and (not path.strip() or path.startswith("$") or "[" in path):
            raise ValueError(
                "should be a dotted path such as hits.text: a list on the way is followed item by "
                "item, or by number as in hits.0.text"
            )
        return path

    @model_validator(mode="after")
    def _one_of_them(self) -> RetrieverSettings:
        if (self.url is None) == (self.entrypoint is None):
            raise ValueError("say url or entrypoint, one of them")
        if self.entrypoint:
            for name in _OF_HTTP:
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: says nothing to a Python function")
            return self
        if self.method == "GET" and self.body is not None:
            raise ValueError("body: a GET carries none; use params, or method: POST")
        if "user_input" not in set(_holes([self.sent, *self.params.values()])):
            raise ValueError(
                "{user_input} is not in body or params: every question would be asked alike"
            )
        return self


def _holes(template: object) -> Iterator[str]:
    """The names that a template is filled in with."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, list):
        for item in template:
            yield from _holes(item)
    elif isinstance(template, Mapping):
        for item in template.values():
            yield from _holes(item)
