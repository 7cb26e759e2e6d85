"""Settings of the retriever that replays the golden questions against a new index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from ragmetrics.config.base import SettingsModel
from ragmetrics.config.endpoints import EnvironmentHeaders, check_address, check_header
from ragmetrics.records import AS_NOW, MAX_CONTEXTS

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
_OF_QUESTIONS = ("user_input", "build", "id", "language")

_Param = str | bool | int | float
_DEFAULT_BODY: JsonValue = {"user_input": "{user_input}", "build": "{build}"}
_SECRET = re.compile(r"authorization|cookie|token|secret|passw|api-?_?key|access-?_?key", re.I)
_OF_HTTP = ("method", "headers", "headers_env", "body", "params", "max_answer_bytes")


class ProbeSettings(SettingsModel):
    """How the retriever is asked about lost passages."""

    requests: int = Field(500, ge=0)
    """Most requests of one night."""
    deep_k: int = Field(100, ge=1, le=MAX_CONTEXTS)
    """The value of the parameter `k` with which questions are asked again."""
    unfiltered: dict[str, JsonValue] = Field(default_factory=dict)
    """Parameters that switch the retriever's filters off."""
    seconds: float = Field(300.0, gt=0)
    """Time after which no request is sent."""


class RetrieverSettings(SettingsModel):
    """An HTTP endpoint with a request template, or a Python function."""

    url: str | None = None
    """The endpoint. It may contain `{build}`."""
    entrypoint: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """A Python function as `package.module:function`."""
    method: Literal["POST", "GET"] = "POST"
    """HTTP method."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers without secrets."""
    headers_env: EnvironmentHeaders = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {SEARCH_TOKEN}`."""
    body: JsonValue = None
    """JSON body of the request. None: question and build; with `params` there is no body."""
    params: dict[str, _Param | list[_Param]] = Field(default_factory=dict)
    """Query parameters of the URL."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Parameters of the retriever with the values of production, such as `k: 5`. Their names are
    placeholders in `body` and `params`, and arguments of a function."""
    variants: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    """Other values of parameters by the name of the variant, for `ragmetrics whatif`."""
    lookup: str | None = Field(None, min_length=1)
    """Looks a document up: a URL with `{id}`, or for a function `package.module:function`."""
    reranker: str | None = Field(None, min_length=1)
    """The model by which the retriever ranks contexts, if it uses a reranker. A judge `rerank` with
    the same model is refused."""
    probe: ProbeSettings = ProbeSettings()
    """How the retriever is asked about lost passages."""
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
    """Most questions at once."""
    requests_per_second: float | None = Field(None, gt=0)
    """Most requests per second. None: no limit."""
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
    """An answer with more contexts fails its question."""
    max_answer_bytes: int = Field(10_000_000, ge=1_000)
    """A larger answer fails its question."""

    @property
    def sent(self) -> JsonValue:
        """The template of the body; None: the request has no body."""
        if self.body is None and self.method == "POST" and not self.params:
            return _DEFAULT_BODY
        return self.body

    # A placeholder of a template. One with an unknown name is literal text.
    placeholder: ClassVar[re.Pattern[str]] = _PLACEHOLDER

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
        if set(_PLACEHOLDER.findall(url)) & {"user_input", "id", "language"}:
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

    @field_validator("body", "parameters", "variants")
    @classmethod
    def _json(cls, value: JsonValue) -> JsonValue:
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            raise ValueError("contains a number that JSON does not support") from None
        return value

    @field_validator("variants")
    @classmethod
    def _free_names(cls, variants: dict[str, dict[str, JsonValue]]) -> dict[str, Any]:
        if AS_NOW in variants:
            raise ValueError(f"{AS_NOW}: is the name of the retriever without a variant")
        return variants

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
    def _known_parameters(self) -> RetrieverSettings:
        for name in self.parameters:
            if not name.isidentifier() or name in _OF_QUESTIONS:
                raise ValueError(f"parameters: {name}: should be a name of its own, such as k")
        sets = {f"variants: {name}": own for name, own in self.variants.items()}
        for place, parameters in {**sets, "probe: unfiltered": self.probe.unfiltered}.items():
            for name in parameters:
                if name not in self.parameters:
                    known = ", ".join(self.parameters) or "none"
                    raise ValueError(
                        f"{place}: {name}: there is no such parameter; `parameters` has: {known}"
                    )
        return self

    @model_validator(mode="after")
    def _readable_depth(self) -> RetrieverSettings:
        if "k" in self.parameters and self.probe.deep_k > self.max_contexts:
            raise ValueError(
                f"probe: deep_k: {self.probe.deep_k} is more than max_contexts, "
                f"{self.max_contexts}, so no answer could be read"
            )
        return self

    @model_validator(mode="after")
    def _usable_lookup(self) -> RetrieverSettings:
        if self.lookup is None:
            return self
        if self.entrypoint:
            if not re.fullmatch(r"[\w.]+:[\w.]+", self.lookup):
                raise ValueError("lookup: should be a function as package.module:function")
        else:
            check_address(
                self.lookup, "https://search.example.com/documents/{id}", "them into `headers_env`"
            )
            if "{id}" not in self.lookup:
                raise ValueError("lookup: {id} is missing: every request would be the same")
        return self

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
        if "user_input" not in set(
            _holes([self.sent, *self.params.values(), *self.parameters.values()])
        ):
            raise ValueError(
                "{user_input} is missing in body or params: every request would be the same"
            )
        return self


def _holes(template: object) -> Iterator[str]:
    """The placeholders in a template."""
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)
    elif isinstance(template, list):
        for item in template:
            yield from _holes(item)
    elif isinstance(template, Mapping):
        for item in template.values():
            yield from _holes(item)
