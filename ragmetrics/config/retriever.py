"""Settings of the retriever that replays the golden questions against a new index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from ragmetrics.config.endpoints import EnvironmentHeaders, check_address, check_header
from ragmetrics.config.judge import SettingsModel
from ragmetrics.model import MAX_CONTEXTS

PLACEHOLDER = re.compile(r"\{(user_input|build|id|language)\}")
"""The placeholders of a template. All other braces are literal."""

Param = str | bool | int | float
_DEFAULT_BODY: JsonValue = {"user_input": "{user_input}", "build": "{build}"}
_SECRET = re.compile(r"authorization|cookie|token|secret|passw|api-?_?key|access-?_?key", re.I)
_OF_HTTP = ("method", "headers", "headers_env", "body", "params", "max_answer_bytes")


class RetrieverSettings(SettingsModel):
    """An HTTP endpoint with a request template, or a Python function."""

    url: str | None = None
    """The endpoint. It may contain `{build}`."""
    entrypoint: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """A Python function as `package.module:function`."""
    method: Literal["POST", "GET"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    headers_env: EnvironmentHeaders = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {SEARCH_TOKEN}`."""
    body: JsonValue = None
    """JSON body of the request. None: question and build; with `params` there is no body."""
    params: dict[str, Param | list[Param]] = Field(default_factory=dict)
    """Query parameters of the URL."""
    contexts: str | None = None
    """Dotted path of the retrieved texts in the answer, as in `columns`. `.` is the answer itself.
    None: `retrieved_contexts`."""
    ids: str | None = None
    """Dotted path of the document ids. None: `retrieved_context_ids`."""
    scores: str | None = None
    """Dotted path of the retrieval scores. None: `retrieved_context_scores`."""
    response: str | None = None
    """Dotted path of the response. None: `response`."""
    concurrency: int = Field(8, ge=1, le=1_000)
    requests_per_second: float | None = Field(None, gt=0)
    timeout_seconds: float = Field(30.0, gt=0)
    """Timeout of one attempt."""
    deadline_seconds: float = Field(300.0, gt=0)
    """Timeout of one question with all its attempts."""
    retries: int = Field(4, ge=0, le=20)
    """Attempts after the first for a transient error. After a 429 it tries again until the
    deadline."""
    max_failed: float = Field(0.02, ge=0, le=1)
    """Largest share of the questions that may fail."""
    max_contexts: int = Field(100, ge=1, le=MAX_CONTEXTS)
    max_answer_bytes: int = Field(10_000_000, ge=1_000)

    @property
    def sent(self) -> JsonValue:
        """The template of the body; None: the request has no body."""
        if self.body is None and self.method == "POST" and not self.params:
            return _DEFAULT_BODY
        return self.body

    @property
    def address(self) -> str:
        """The URL or the function, as shown to people."""
        return self.url or self.entrypoint or ""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str | None) -> str | None:
        if url is None:
            return None
        example = "https://search.example.com/query"
        secrets = "them into `headers_env` and `params`"
        check_address(url, example, secrets)
        if set(PLACEHOLDER.findall(url)) - {"build"}:
            raise ValueError(
                "{build} is the only placeholder of a URL; put the question into `body` or `params`"
            )
        return url

    @field_validator("headers")
    @classmethod
    def _open(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            check_header(name)
            if _SECRET.search(name):
                raise ValueError(
                    f"{name}: secrets do not belong in the settings; name the environment variable "
                    "that holds it under `headers_env`"
                )
            if not value.isprintable():
                raise ValueError(
                    f"{name}: contains a line break or another character that is not allowed in a "
                    "header"
                )
        return headers

    @field_validator("body")
    @classmethod
    def _json(cls, body: JsonValue) -> JsonValue:
        try:
            json.dumps(body, allow_nan=False)
        except ValueError:
            raise ValueError("contains a number that JSON does not support") from None
        return body

    @field_validator("contexts", "ids", "scores", "response")
    @classmethod
    def _path(cls, path: str | None) -> str | None:
        if path is not None and (not path.strip() or path.startswith("$") or "[" in path):
            raise ValueError(
                "should be a dotted path such as hits.text; it is applied to each item of a list, "
                "or to one item as in hits.0.text"
            )
        return path

    @model_validator(mode="after")
    def _consistent(self) -> RetrieverSettings:
        if (self.url is None) == (self.entrypoint is None):
            raise ValueError("set either url or entrypoint")
        if self.entrypoint:
            for name in _OF_HTTP:
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: has no effect on a Python function; remove it")
            return self
        if self.method == "GET" and self.body is not None:
            raise ValueError("body: a GET request has no body; use params, or method: POST")
        if "user_input" not in set(_holes([self.sent, *self.params.values()])):
            raise ValueError(
                "{user_input} is missing in body or params: every request would be the same"
            )
        return self


def _holes(template: object) -> Iterator[str]:
    """The placeholders in a template."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, list):
        for item in template:
            yield from _holes(item)
    elif isinstance(template, Mapping):
        for item in template.values():
            yield from _holes(item)
