"""people/calibration/canaries: when a night asks its judges, what it notes, what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, make_settings
from ragmetrics.people import with_canaries
from ragmetrics.records import Manifest, Usage, VerdictCount
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.past import a_night, scores

NAME = "openai:m"
VERDICTS = {NAME: {"grade": VerdictCount(top=2, levels={1: 5}, replies=5)}}
GERMAN = scores([0.5, 0.7], "context_relevance", language=["de", "de"])


def settings(server: JudgeServer, **more: Any) -> Settings:
    """Settings with a judge at the server."""
    return make_settings({"judge": judge_at(server, model="m", retries=0), **more})


def night(**more: Any) -> Manifest:
    """A night whose judge gave verdicts."""
    return a_night(GERMAN).manifest.model_copy(update={"verdicts": VERDICTS, **more})


def asked_of(chosen: Settings, manifest: Manifest, store: Path, **more: Any) -> Manifest:
    """The night with its canaries."""
    told = {"context_relevance": GERMAN}
    return with_canaries(chosen, Files(str(store)), manifest, told, more.get("before"))


def test_a_night_notes_the_judge_that_failed(judge_server: JudgeServer, tmp_path: Path) -> None:
    """With the language of the scored rows; a rerun of the publication asks nothing again."""
    judge_server.faults(grade=2)
    manifest = asked_of(settings(judge_server), night(), tmp_path)
    assert manifest.canaries[NAME].language == "de"
    assert manifest.judge.note.startswith("cannot tell an obvious yes from an obvious no: 5 of 10")
    judge_server.reset()
    again = asked_of(settings(judge_server), night(), tmp_path / "other", before=manifest)
    assert (again.canaries, again.judge) == (manifest.canaries, manifest.judge)
    assert again.usage == manifest.usage
    assert judge_server.stats()["requests"] == 0


def test_a_night_says_what_they_cost(judge_server: JudgeServer, tmp_path: Path) -> None:
    """In every figure of usage: the sums stay those of the endpoint."""
    manifest = asked_of(settings(judge_server), night(usage=Usage(requests=5)), tmp_path)
    of_canaries = manifest.usage_by_metric["canaries"][NAME]
    assert of_canaries.requests == manifest.usage_by_judge[NAME].requests == 10
    assert manifest.usage.requests == 15
    assert manifest.usage.prompt_tokens == judge_server.stats()["prompt_tokens"]


def test_a_night_goes_on_without_them(judge_server: JudgeServer, tmp_path: Path) -> None:
    """A judge that refuses has no report, and one without verdicts is not asked."""
    assert asked_of(settings(judge_server), night(verdicts={}), tmp_path).canaries == {}
    assert judge_server.stats()["requests"] == 0
    judge_server.faults(fail={"401": 1.0})
    manifest = asked_of(settings(judge_server), night(), tmp_path)
    assert (manifest.canaries, manifest.judge.note) == ({}, night().judge.note)


def test_they_keep_within_the_rest_of_the_budget(judge_server: JudgeServer, tmp_path: Path) -> None:
    """What the night has not used; cached replies cost nothing."""
    chosen = settings(judge_server, budget={"max_requests": 100})
    manifest = night(usage=Usage(requests=96))
    assert asked_of(chosen, manifest, tmp_path).canaries[NAME].asked == 4
    assert judge_server.stats()["requests"] == 4


def test_the_limit_0_asks_nothing(judge_server: JudgeServer, tmp_path: Path) -> None:
    """For a judge that must get no other request."""
    chosen = settings(judge_server, alerts={"checks": {"canaries": 0}})
    assert asked_of(chosen, night(), tmp_path).canaries == {}
    assert judge_server.stats()["requests"] == 0
