"""Arize Phoenix: annotations of spans and of the documents of a retrieval, by its REST API.

POST /v1/span_annotations?sync=true       replaced by name, span and identifier
POST /v1/document_annotations?sync=true   replaced by name, span and position; has no identifier

With `sync` the server answers when the annotations are stored, with an id for each. It takes a
whole request or nothing: 404 lists the spans that do not exist, which may come later.
Source: the server of the package `arize-phoenix` 20, `server/api/routers/v1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from ragmetrics.config import SettingsModel, VariableName, address, is_lexical
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.delivery.write_back.target import Outcome, TargetKind, target_key
from ragmetrics.delivery.write_back.target_client import TargetClient, secret_of
from ragmetrics.http import Answer
from ragmetrics.records import dump_json

_SPANS, _DOCUMENTS = "/v1/span_annotations?sync=true", "/v1/document_annotations?sync=true"
_LIST, _END = "Spans with IDs ", " do not exist"


class _Annotation(BaseModel):
    id: str = Field(min_length=1)


class _Stored(BaseModel):
    """The answer to annotations that are stored."""

    data: list[_Annotation]


class PhoenixSettings(SettingsModel):
    """A server of Arize Phoenix."""

    base_url: Annotated[str, address("http://phoenix.example.com:6006")]
    """The address without a path."""
    api_key_env: VariableName | None = None
    """The environment variable with the key. None: the server needs none."""
    kind: Literal["span", "document"] = "span"
    """`span`: a score annotates the span of the retrieval. `document`: the verdicts on each context
    annotate its document too."""


class Phoenix:
    """A server of Phoenix."""

    name = "phoenix"

    def __init__(
        self, settings: PhoenixSettings, timeout: float, environment: Mapping[str, str]
    ) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        secrets = []
        if settings.api_key_env:
            secrets.append(secret_of(settings.api_key_env, environment))
            headers["Authorization"] = f"Bearer {secrets[0]}"
        self.key = target_key(self.name, settings.base_url)
        self.documents = settings.kind == "document"
        self._client = TargetClient(settings.base_url, headers, secrets, timeout)

    def unfit(self, result: EvaluationResult) -> str:
        """An annotation needs a span."""
        return "" if result.span_id else "the row has no span id"

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch in one or two requests. Annotations of missing spans are early."""
        early: dict[str, str] = {}
        for path, some in (
            (_SPANS, [one for one in batch if one.document is None]),
            (_DOCUMENTS, [one for one in batch if one.document is not None]),
        ):
            early |= self._send(path, some)
        return Outcome(early=early)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, path: str, some: Sequence[EvaluationResult]) -> dict[str, str]:
        """Send to one path; return the annotations whose spans are not there."""
        if not some:
            return {}
        body = dump_json({"data": [annotation(one) for one in some]}).encode()
        answer = self._client.post(path, body, passing=[404])
        if answer.status != 404:
            self._check_stored(answer, len(some))
            return {}
        missing = missing_spans(answer.text)
        reason = "the span does not exist there"
        early = {result.digest: reason for result in some if _span(result) in missing}
        if not early:
            raise self._client.unlike(answer, "Phoenix")
        return early | self._send(path, [one for one in some if one.digest not in early])

    def _check_stored(self, answer: Answer, sent: int) -> None:
        """Raise TargetError unless the answer has an id for each annotation."""
        try:
            stored = _Stored.model_validate_json(answer.body)
        except ValidationError as error:
            raise self._client.unlike(answer, "Phoenix") from error
        if len(stored.data) != sent:
            raise self._client.unlike(answer, "Phoenix")


def missing_spans(said: str) -> set[str]:
    """The spans that the text of a 404 lists; empty if it lists none. Takes linear time."""
    _, _, listed = said.partition(_LIST)
    return {name.strip() for name in listed.partition(_END)[0].split(",")} - {""}


def annotation(scored: EvaluationResult) -> dict[str, Any]:
    """An annotation as Phoenix takes it. A result without a value has its status as the label."""
    result = {
        "score": scored.value,
        "label": None if scored.value is not None else scored.status,
        "explanation": scored.reason or None,
    }
    of_document = scored.document is not None
    return {
        "name": scored.metric,
        "annotator_kind": "CODE"
        if is_lexical(scored.metadata.get("judge") or "lexical")
        else "LLM",
        "span_id": _span(scored),
        "result": {name: value for name, value in result.items() if value is not None},
        "metadata": dict(scored.metadata),
        **(
            {"document_position": scored.document}
            if of_document
            else {"identifier": _author(scored)}
        ),
    }


def _author(one: EvaluationResult) -> str:
    """The identifier: annotations of people, and of other datasets, stay beside ours."""
    return f"ragmetrics:{one.dataset}"


def _span(one: EvaluationResult) -> str:
    return (one.span_id or "").strip().lower().removeprefix("0x")


_SAMPLE = {"base_url": "{url}", "api_key_env": "PHOENIX_API_KEY"}
phoenix = TargetKind("phoenix", PhoenixSettings, Phoenix, _SAMPLE, ("PHOENIX_API_KEY",))
