"""A panel through a whole night: the settings, the store, the manifest, the alerts, the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import run_night
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

METRICS = ["context_relevance", "context_recall"]
ROWS = make_rows(30, good=0.7)


def live(server: JudgeServer, **more: Any) -> dict[str, Any]:
    """A live judge at a server."""
    return judge_at(server, retries=0) | more


def dataset(folder: Path, *judges: Any, **more: Any) -> Settings:
    """A dataset of thirty rows, judged by a panel."""
    write_jsonl(folder / "logs" / f"{NIGHT}.jsonl", ROWS)
    return make_settings(
        night_values(folder, logs="logs/{date}.jsonl", metrics=METRICS, judges=judges) | more
    )


def test_the_manifest_shows_every_judge_and_their_agreement(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """The panel is named; each judge has its mean, its usage and its place in the agreement."""
    judges = ("lexical", live(judge_server, model="m-1"))
    manifest = run_night(dataset(tmp_path, *judges), NIGHT).manifest
    assert manifest.judge.name == "mean of lexical, openai:m-1"
    assert manifest.judge.panel == ["lexical", "openai:m-1"]
    relevance = manifest.summary("context_relevance")
    assert relevance is not None and relevance.mean is not None
    means = [judge.mean for judge in relevance.judges]
    assert relevance.mean == pytest.approx(sum(mean or 0.0 for mean in means) / 2)
    assert relevance.agreement is not None and -1 <= relevance.agreement <= 1
    live_usage = manifest.usage_by_judge["openai:m-1"]
    assert live_usage.requests == judge_server.stats()["requests"] > 0
    assert manifest.usage == live_usage, "the lexical judge costs nothing and is no part of it"
    assert manifest.usage_by_judge["lexical"].requests > 0
    assert {name for of in manifest.usage_by_metric.values() for name in of} == {"openai:m-1"}


def test_a_judge_that_refuses_is_warned_of_and_the_night_goes_on(
    tmp_path: Path, judge_server: JudgeServer, start_judge: Callable[[], JudgeServer]
) -> None:
    """All rows are scored by the other; a warning names the judge and why."""
    other = start_judge()
    other.faults(api_key="right")
    judges = (live(judge_server, model="good"), live(other, model="locked"))
    manifest = run_night(dataset(tmp_path, *judges), NIGHT).manifest
    assert [metric.scored for metric in manifest.metrics] == [30, 30]
    assert manifest.problems[0].startswith("openai:locked: the judge refused the key")
    (warning,) = (finding for finding in manifest.findings if finding.level == "breach")
    assert (warning.kind, warning.severity) == ("judge_failures", "warning")
    assert "openai:locked: no usable verdict on 60 of 60 row scores" in warning.message


def test_the_dashboard_shows_the_panel(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Judges and agreement on the night's page, each opinion beside a worst row's score."""
    judges = ("lexical", live(judge_server, model="m-1", repeats=2))
    settings = dataset(tmp_path, *judges)
    run_night(settings, NIGHT)
    site = tmp_path / "store" / "dashboard" / NIGHT.isoformat()
    night = re.sub(r"<[^>]*>", "", (site / "index.html").read_text())
    assert "agreement α" in night and "spread of a row" in night
    rows = "".join(page.read_text() for page in site.glob("*.html"))
    assert "<bdi>openai:m-1</bdi></th>" in rows and ">repeats: " in rows


def test_repeats_are_found_in_the_store_again(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Going from one repeat to three asks two more times; going back asks nothing."""
    asked = []
    for repeats in (1, 3, 1):
        before = judge_server.stats()["requests"]
        settings = dataset(tmp_path, shards=1).model_copy(
            update={"judge": make_settings({"judge": live(judge_server, repeats=repeats)}).judge}
        )
        run_night(settings, NIGHT)
        asked.append(judge_server.stats()["requests"] - before)
    assert asked == [asked[0], 2 * asked[0], 0]


def test_evaluate_takes_a_list_of_judges(judge_server: JudgeServer) -> None:
    """In Python a panel is a list, and the scores say what each judge said."""
    result = ragmetrics.evaluate(ROWS, METRICS, judge=["lexical", live(judge_server)])
    details = result.scores()["details"].iloc[0]
    assert list(details["judges"]) == ["lexical", "openai:gpt-6-luna"]


def test_a_recorded_panel_is_played_judge_by_judge(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """`PATH#JUDGE` plays one; all of them in a panel give the same scores."""
    tape = tmp_path / "tape.jsonl"
    judges = ["lexical", live(judge_server, model="m-1")]
    first = ragmetrics.evaluate(ROWS, METRICS, judge=judges, record=tape)
    played = [f"recorded:{tape}#lexical", f"recorded:{tape}#openai:m-1"]
    again = ragmetrics.evaluate(ROWS, METRICS, judge=played)
    assert list(again.scores()["value"]) == list(first.scores()["value"])
    with pytest.raises(InputError, match=r"say which judge: .*#lexical, .*#openai:m-1"):
        ragmetrics.evaluate(ROWS, METRICS, judge=f"recorded:{tape}")


def test_two_judges_of_one_name_are_told_apart(judge_server: JudgeServer) -> None:
    """The same model at two temperatures is two judges."""
    judges = [live(judge_server, temperature=0.0), live(judge_server, temperature=1.0)]
    result = ragmetrics.evaluate(ROWS, ["context_recall"], judge=judges)
    assert result.manifest.judge.panel == ["openai:gpt-6-luna", "openai:gpt-6-luna #2"]
