"""Langfuse: scores of observations, by its public API.

POST /api/public/scores      a list of scores; 202, or 207 with the number of rejected ones
POST /api/public/ingestion   for servers before Langfuse 4: events, with an answer for each

A score with the id and the timestamp of a stored one replaces it. Both follow from the row, the
metric and the dataset, so a repetition changes nothing, and a repeated night corrects its scores.
Source: the API client in the package `langfuse` 5, and Langfuse's OpenAPI definition.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from ragmetrics.config import SettingsModel, VariableName, address
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.delivery.write_back.target import BatchRefused, Outcome, TargetKind, target_key
from ragmetrics.delivery.write_back.target_client import TargetClient, secret_of
from ragmetrics.http import Answer
from ragmetrics.records import dump_json

_SCORES, _INGESTION = "/api/public/scores", "/api/public/ingestion"
_RETRYABLE = frozenset([408, 425, 429, *range(500, 600)])


class _Error(BaseModel):
    id: str = ""
    status: int = 400
    message: str | None = None
    error: Any = None


class _Accepted(BaseModel):
    """The answer 202 to a list of scores: all are accepted."""

    message: Literal["Accepted"]


class _Results(BaseModel):
    """The answer 207 to a list of scores."""

    accepted: int = Field(ge=0)
    rejected: int = Field(ge=0)
    errors: list[_Error] = Field(default_factory=list)


class _Ingested(BaseModel):
    """The answer 207 to events."""

    successes: list[_Error]
    errors: list[_Error]


_Model = TypeVar("_Model", bound=BaseModel)


class LangfuseSettings(SettingsModel):
    """A project of Langfuse. Its keys are read from environment variables."""

    base_url: Annotated[str, address("https://cloud.langfuse.com")] = "https://cloud.langfuse.com"
    """The address without a path."""
    public_key_env: VariableName = "LANGFUSE_PUBLIC_KEY"
    """The environment variable with the public key."""
    secret_key_env: VariableName = "LANGFUSE_SECRET_KEY"  # noqa: S105 - the name of a variable
    """The environment variable with the secret key."""
    api: Literal["scores", "ingestion"] = "scores"
    """`scores`: lists of scores to `/api/public/scores`. `ingestion`: for servers before Langfuse
    4, which take lists only at `/api/public/ingestion`."""


class Langfuse:
    """A project of Langfuse."""

    name = "langfuse"
    documents = False

    def __init__(
        self, settings: LangfuseSettings, timeout: float, environment: Mapping[str, str]
    ) -> None:
        public = secret_of(settings.public_key_env, environment)
        secret = secret_of(settings.secret_key_env, environment)
        basic = base64.b64encode(f"{public}:{secret}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}", "Content-Type": "application/json"}
        self.key = target_key(self.name, settings.base_url, public)
        self._events = settings.api == "ingestion"
        self._client = TargetClient(settings.base_url, headers, [secret, basic], timeout)

    def unfit(self, result: EvaluationResult) -> str:
        """A score needs a trace."""
        return "" if result.trace_id else "the row has no trace id"

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch in one request."""
        return self._send_events(batch) if self._events else self._send_scores(batch)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send_scores(self, batch: Sequence[EvaluationResult]) -> Outcome:
        scores = [{**score(one), "timestamp": one.timestamp.isoformat()} for one in batch]
        answer = self._client.post(_SCORES, dump_json(scores).encode())
        if answer.status != 207:
            self._parsed(answer, _Accepted)
            return Outcome()
        results = self._parsed(answer, _Results)
        if results.accepted + results.rejected != len(batch):
            raise self._client.unlike(answer, "Langfuse")
        if not results.rejected:
            return Outcome()
        # The answer does not say which ones. They have ids, so the batch can be sent in halves.
        said = "; ".join(error.message or "" for error in results.errors[:3])
        raise BatchRefused(self._client.shown(f"{results.rejected} scores are refused: {said}"))

    def _send_events(self, batch: Sequence[EvaluationResult]) -> Outcome:
        events = [
            {
                "id": result.digest,
                "type": "score-create",
                "timestamp": result.timestamp.isoformat(),
                "body": score(result),
            }
            for result in batch
        ]
        answer = self._client.post(_INGESTION, dump_json({"batch": events}).encode())
        reply = self._parsed(answer, _Ingested)
        sent = {one.digest for one in batch}
        taken = {success.id for success in reply.successes if 200 <= success.status < 300} & sent
        not_taken = [one for one in (*reply.errors, *reply.successes) if one.id in sent - taken]
        errors = {one.id: self._client.shown(_text(one)) for one in not_taken}
        passing = {one.id for one in not_taken if one.status in _RETRYABLE}
        silent = sent - taken - errors.keys()
        return Outcome(
            refused={name: said for name, said in errors.items() if name not in passing},
            again={name: errors[name] for name in passing}
            | dict.fromkeys(silent, "the answer does not name the score"),
        )

    def _parsed(self, answer: Answer, kind: type[_Model]) -> _Model:
        try:
            return kind.model_validate_json(answer.body)
        except ValidationError as error:
            raise self._client.unlike(answer, "the `api:` of Langfuse") from error


def score(result: EvaluationResult) -> dict[str, Any]:
    """A score as Langfuse takes it. A result without a value is a category: its status."""
    has_value = result.value is not None
    known = {
        "id": result.id,
        "traceId": result.trace_id,
        "observationId": result.span_id,
        "name": result.metric,
        "value": result.value if has_value else result.status,
        "dataType": "NUMERIC" if has_value else "CATEGORICAL",
        "comment": result.reason or None,
        "metadata": dict(result.metadata),
    }
    return {name: value for name, value in known.items() if value is not None}


def _text(one: _Error) -> str:
    return f"{one.status}: {one.message or one.error or 'no reason'}"


_KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
langfuse = TargetKind("langfuse", LangfuseSettings, Langfuse, {"base_url": "{url}"}, _KEYS)
