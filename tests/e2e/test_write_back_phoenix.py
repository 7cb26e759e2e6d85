"""From the spans of a real Phoenix server to the annotations on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings
from ragmetrics.pipeline import Night, run_night
from ragmetrics.records import Manifest
from tests.builders import night_settings
from tests.fakes.logs import NIGHT
from tests.fakes.phoenix import PhoenixServer, phoenix_server

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("without_pages")]

BEGUN = datetime(NIGHT.year, NIGHT.month, NIGHT.day, 8, tzinfo=UTC)
GOOD = ("How tall is the tower?", ["The tower is 300 metres tall.", "Museums close on Mondays."])
EMPTY = ("When does the ferry leave?", [])


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixServer]:
    """A server with two retrievals."""
    with phoenix_server(tmp_path_factory.mktemp("phoenix")) as server:
        server.send_spans([retrieval(1, *GOOD), retrieval(2, *EMPTY)])
        yield server


def retrieval(number: int, question: str, contexts: list[str]) -> dict[str, Any]:
    """A span of OpenInference."""
    documents = {
        f"retrieval.documents.{place}.document.content": text for place, text in enumerate(contexts)
    }
    return {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "name": "retrieve",
        "start": (int(BEGUN.timestamp()) + number) * 10**9,
        "attributes": {
            "openinference.span.kind": "RETRIEVER",
            "input.value": question,
            **documents,
        },
    }


def night(phoenix: PhoenixServer, folder: Path, **target: Any) -> tuple[Settings, Manifest]:
    """Score what Phoenix's API gives, as its preset reads it, and write it back."""
    log = folder / "logs" / f"dt={NIGHT}" / "spans.json"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"data": phoenix.spans()}))
    settings = night_settings(
        folder,
        dataset=f"help-{folder.name}"[:40],
        preset="openinference",
        metrics=["context_relevance", "context_recall"],
        write_back={"phoenix": {"base_url": phoenix.url, **target}},
    )
    result = run_night(settings, NIGHT)
    [report] = result.write_back
    assert report.problem == ""
    assert report.refused == 0
    return settings, result.manifest


def ours(phoenix: PhoenixServer, span: int, settings: Settings) -> dict[str, dict[str, Any]]:
    """The annotations of a dataset on a span, by metric: there is one of each."""
    author = f"ragmetrics:{settings.dataset}"
    found = [one for one in phoenix.annotations(f"{span:016x}") if one["identifier"] == author]
    by_name = {one["name"]: one for one in found}
    assert len(by_name) == len(found)
    return by_name


def test_the_scores_of_a_night_are_seen_on_their_spans(
    phoenix: PhoenixServer, tmp_path: Path
) -> None:
    """Score, label and reason, with fingerprint, run and interval; a repetition adds none."""
    settings, manifest = night(phoenix, tmp_path)
    found = ours(phoenix, 1, settings)
    score = found["context_relevance"]
    assert score["result"]["score"] == 0.5
    assert score["annotator_kind"] == "CODE"
    summary = manifest.summary("context_relevance")
    assert summary is not None
    assert score["metadata"]["fingerprint"] == summary.fingerprint
    assert score["metadata"]["night_mean"] == summary.mean
    assert score["metadata"]["run"] == manifest.run
    assert score["metadata"]["status"] == "scored"
    skipped = found["context_recall"]
    assert skipped["result"]["label"] == "skipped"
    assert skipped["result"]["score"] is None
    assert "reference" in skipped["result"]["explanation"]
    assert ours(phoenix, 2, settings)["context_relevance"]["result"]["score"] == 0.0
    [again] = Night(settings).write_back(manifest)
    assert (again.sent, again.before) == (0, 4)
    for info in (tmp_path / "store/write-back/sent").rglob("*.json"):
        info.unlink()  # as if the run had died after the server stored everything
    [twice] = Night(settings).write_back(manifest)
    assert twice.sent == 4
    assert len(ours(phoenix, 1, settings)) == 2


def test_documents_get_the_verdict_on_each_of_them(phoenix: PhoenixServer, tmp_path: Path) -> None:
    """`kind: document`: the first document answers the question, the second does not."""
    settings, _ = night(phoenix, tmp_path, kind="document")
    found = phoenix.document_annotations(f"{1:016x}")
    verdicts = {one["documentPosition"]: one["score"] for one in found}
    assert (verdicts, len(found)) == ({0: 1.0, 1: 0.0}, 2)
    assert {one["name"] for one in found} == {"context_relevance"}
    assert phoenix.document_annotations(f"{2:016x}") == []
    assert ours(phoenix, 1, settings)["context_relevance"]["result"]["score"] == 0.5


def test_a_span_that_is_gone_costs_no_other(phoenix: PhoenixServer, tmp_path: Path) -> None:
    """The server names it and takes nothing of the request; the others are sent again. It may come
    later, and is waited for."""
    folder = tmp_path / "logs" / f"dt={NIGHT}"
    folder.mkdir(parents=True)
    spans = phoenix.spans()
    gone = json.loads(json.dumps(spans[0]).replace(spans[0]["context"]["span_id"], "f" * 16))
    (folder / "a.json").write_text(json.dumps([*spans, gone]))
    settings = night_settings(
        tmp_path,
        dataset="gone",
        preset="openinference",
        metrics=["context_relevance"],
        write_back={"phoenix": {"base_url": phoenix.url}},
    )
    [report] = run_night(settings, NIGHT).write_back
    assert (report.sent, report.early, report.refused) == (2, 1, 0)
    assert len(ours(phoenix, 1, settings)) == 1
