"""MLflow takes assessments one by one, and gives each an id of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.storage import open_store
from tests.fakes.http_server import Handler, serving
from tests.fakes.written_back import a_night, send, settings_of

pytestmark = pytest.mark.process


class MLflowApi:
    """Traces with their assessments, as the server of the package mlflow 3.17 keeps them."""

    def __init__(self, traces: int) -> None:
        self.traces: dict[str, list[dict[str, Any]]] = {
            f"{number + 1:032x}": [] for number in range(traces)
        }

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve until the end of the block; yields the address."""
        with serving(_Handler, tool=self) as url:
            yield url


class _Handler(Handler):
    tool: MLflowApi

    def take(self) -> None:
        place = re.fullmatch(r"/api/3.0/mlflow/traces/(\w+)(/assessments.*)?", self.path)
        body = self.body()
        known = self.tool.traces.get(place[1]) if place else None
        if known is None:
            code = "RESOURCE_DOES_NOT_EXIST" if place else "NOT_FOUND"
            self.answer(404, json.dumps({"error_code": code}).encode())
            return
        if self.command == "GET":
            answer = {"trace": {"trace_info": {"assessments": known}}}
            self.answer(200, json.dumps(answer).encode())
            return
        sent = json.loads(body)["assessment"]
        if self.command == "POST":
            known.append({**sent, "assessment_id": f"a-{len(known)}"})
            stored = known[-1]
        else:
            [stored] = (one for one in known if one["assessment_id"] == sent["assessment_id"])
            stored |= sent
        self.answer(200, json.dumps({"assessment": stored}).encode())


def test_a_repetition_replaces_ours_alone(tmp_path: Path) -> None:
    """What people said under the same name stays beside it."""
    api = MLflowApi(traces=10)
    theirs = {"assessment_id": "a-x", "assessment_name": "context_recall", "source": {}}
    api.traces[f"{1:032x}"].append(theirs)
    with api.running() as url:
        settings = settings_of(tmp_path, mlflow={"base_url": url})
        manifest = a_night(settings)
        assert send(settings, manifest).sent == 10
        for info in open_store(settings).below("write-back/sent"):
            open_store(settings).discard(info.path)
        assert send(settings, manifest).sent == 10
    first, second = api.traces[f"{1:032x}"], api.traces[f"{2:032x}"]
    assert [one["assessment_id"] for one in first] == ["a-x", "a-1"]
    assert [one["feedback"]["value"] for one in second] == [0.01]
    assert second[0]["metadata"]["dataset"] == manifest.dataset


def test_a_trace_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """The others are sent; a 404 that no server of MLflow gives is a problem at once."""
    with MLflowApi(traces=8).running() as url:
        settings = settings_of(tmp_path / "a", mlflow={"base_url": url})
        report = send(settings, a_night(settings))
        assert (report.sent, report.early, report.problem) == (8, 2, "")
        wrong = settings_of(tmp_path / "b", mlflow={"base_url": f"{url}/wrong"})
        report = send(wrong, a_night(wrong))
    assert (report.sent, report.early, report.waiting) == (0, 0, 10)
    assert "answered 404, and not as MLflow does" in report.problem
