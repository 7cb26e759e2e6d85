"""MLflow: feedback on traces and spans, by its REST API.

GET   /api/3.0/mlflow/traces/{trace}                      the trace with what is assessed already
POST  /api/3.0/mlflow/traces/{trace}/assessments          one more assessment
PATCH /api/3.0/mlflow/traces/{trace}/assessments/{id}     replaces one

The server gives each assessment an id of its own. Ours are known by source, name and span, so a
repetition replaces them, and those of people stay. There is no request for several.
Source: the client and the server of the package `mlflow` 3.17, `store/tracking/rest_store.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError

from ragmetrics.config import SettingsModel, VariableName, address, is_lexical
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.delivery.write_back.target import BatchRefused, Outcome, TargetKind, target_key
from ragmetrics.delivery.write_back.target_client import TargetClient, secret_of
from ragmetrics.records import dump_json

_TRACES = "/api/3.0/mlflow/traces"
_MISSING = '"RESOURCE_DOES_NOT_EXIST"'
_CHANGED = "feedback,rationale,metadata"
_Key: TypeAlias = tuple[str, str, str]
"""Source, name and span of an assessment."""


class _Source(BaseModel):
    source_id: str = ""


class _Assessment(BaseModel):
    assessment_id: str = Field(min_length=1)
    assessment_name: str = ""
    span_id: str = ""
    source: _Source = _Source()


class _Stored(BaseModel):
    """The answer to an assessment that is stored."""

    assessment: _Assessment


class _Info(BaseModel):
    assessments: list[_Assessment] = Field(default_factory=list)


class _Trace(BaseModel):
    trace_info: _Info


class _Found(BaseModel):
    """The answer with a trace."""

    trace: _Trace


class MLflowSettings(SettingsModel):
    """A tracking server of MLflow 3."""

    base_url: Annotated[str, address("http://mlflow.example.com:5000")]
    """The address without a path."""
    token_env: VariableName | None = None
    """The environment variable with the token, which is sent as `Authorization: Bearer`. None: the
    server needs none."""


class MLflow:
    """A tracking server of MLflow."""

    name = "mlflow"
    documents = False

    def __init__(
        self, settings: MLflowSettings, timeout: float, environment: Mapping[str, str]
    ) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        secrets = []
        if settings.token_env:
            secrets.append(secret_of(settings.token_env, environment))
            headers["Authorization"] = f"Bearer {secrets[0]}"
        self.key = target_key(self.name, settings.base_url)
        self._client = TargetClient(settings.base_url, headers, secrets, timeout)

    def unfit(self, result: EvaluationResult) -> str:
        """An assessment needs a trace."""
        return "" if result.trace_id else "the row has no trace id"

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch, trace by trace. Assessments of missing traces are early."""
        early: dict[str, str] = {}
        refused: dict[str, str] = {}
        for trace, results in groupby(sorted(batch, key=_trace_of), _trace_of):
            path = f"{_TRACES}/{quote(trace, safe='')}"
            known = self._known(path)
            for result in results:
                if known is None:
                    early[result.digest] = "the trace does not exist there"
                    continue
                try:
                    self._store(path, result, known.get(_key(result)))
                except BatchRefused as error:
                    refused[result.digest] = str(error)
        return Outcome(refused=refused, early=early)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _known(self, path: str) -> dict[_Key, str] | None:
        """The ids of the assessments of a trace; None where there is no such trace."""
        answer = self._client.request("GET", path, passing=[404])
        if answer.status == 404:
            if _MISSING in answer.text:
                return None
            raise self._client.unlike(answer, "MLflow")
        try:
            found = _Found.model_validate_json(answer.body).trace.trace_info.assessments
        except ValidationError as error:
            raise self._client.unlike(answer, "MLflow") from error
        return {
            (one.source.source_id, one.assessment_name, one.span_id): one.assessment_id
            for one in found
        }

    def _store(self, path: str, result: EvaluationResult, known: str | None) -> None:
        """Add an assessment, or replace the `known` one; return when the server has it."""
        body: dict[str, Any] = {"assessment": assessment(result)}
        if known:
            body["update_mask"] = _CHANGED
            body["assessment"]["assessment_id"] = known
        method, place = (
            ("PATCH", f"{path}/assessments/{quote(known, safe='')}")
            if known
            else ("POST", f"{path}/assessments")
        )
        answer = self._client.request(method, place, dump_json(body).encode())
        try:
            _Stored.model_validate_json(answer.body)
        except ValidationError as error:
            raise self._client.unlike(answer, "MLflow") from error


def assessment(result: EvaluationResult) -> dict[str, Any]:
    """A score as MLflow takes it. A result without a value has its status as the value."""
    source, name, span = _key(result)
    judged = not is_lexical(result.metadata.get("judge") or "lexical")
    at = result.timestamp.isoformat().replace("+00:00", "Z")
    known = {
        "assessment_name": name,
        "trace_id": result.trace_id,
        "span_id": span,
        "source": {"source_type": "LLM_JUDGE" if judged else "CODE", "source_id": source},
        "feedback": {"value": result.status if result.value is None else result.value},
        "rationale": result.reason,
        "metadata": {
            name: one if isinstance(one, str) else dump_json(one)
            for name, one in result.metadata.items()
        },
        "create_time": at,
        "last_update_time": at,
    }
    return {name: value for name, value in known.items() if value not in ("", None)}


def _key(result: EvaluationResult) -> _Key:
    return f"ragmetrics:{result.dataset}", result.metric, result.span_id or ""


def _trace_of(result: EvaluationResult) -> str:
    return result.trace_id or ""


_SAMPLE = {"base_url": "{url}", "token_env": "MLFLOW_TRACKING_TOKEN"}
mlflow = TargetKind("mlflow", MLflowSettings, MLflow, _SAMPLE, ("MLFLOW_TRACKING_TOKEN",))
