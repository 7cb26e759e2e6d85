"""Seats: what the parts of one process share, and what is each part's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges import Corpus
from ragmetrics.judges.factory import UnavailableJudge
from ragmetrics.judges.live import LiveJudge
from ragmetrics.metrics import GRADE
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import Ask
from ragmetrics.scoring.panel import JudgePool, acquire_judges
from ragmetrics.storage import Files
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import ROOT

pytestmark = pytest.mark.usefixtures("without_pages")

KEYLESS = {"name": "openai", "model": "far", "api_key_env": "NO_SUCH_KEY"}


def live(server: JudgeServer, **more: Any) -> dict[str, Any]:
    """A live judge at a server."""
    return judge_at(server, retries=0) | more


def taken(all_settings: Sequence[Settings], folder: Path) -> list[JudgePool]:
    """Seats for parts that are at work at the same time."""

    async def main() -> list[JudgePool]:
        async with AsyncExitStack() as stack:
            return [
                await stack.enter_async_context(
                    acquire_judges(settings, Corpus(), Files(str(folder)))
                )
                for settings in all_settings
            ]

    return asyncio.run(main())


def test_parts_at_work_together_share_a_live_judge(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """One client, and the answers on their way; the embedder too."""
    settings = make_settings({"judge": live(judge_server)})
    one, other = taken([settings, settings], tmp_path)
    assert one.judges[0].judge is other.judges[0].judge
    assert one.judges[0].single_flight is other.judges[0].single_flight
    assert (one.embedder, one.embedding) == (other.embedder, other.embedding)


@pytest.mark.parametrize(
    "change",
    [{"judge": {"model": "other"}}, {"judge": {"temperature": 1.0}}],
)
def test_other_settings_are_another_judge(
    tmp_path: Path, judge_server: JudgeServer, change: dict[str, Any]
) -> None:
    """Its answers would be others."""
    one = {"judge": live(judge_server)}
    other = {**one, **change, "judge": {**one["judge"], **change.get("judge", {})}}
    first, second = taken([make_settings(one), make_settings(other)], tmp_path)
    assert first.judges[0].judge is not second.judges[0].judge
    assert first.judges[0].single_flight is not second.judges[0].single_flight


def test_another_key_or_store_is_another_judge(
    tmp_path: Path, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one account pays for, the other does not use; limits are shared by those of a store."""
    settings = make_settings({"judge": live(judge_server)})

    async def main() -> list[JudgePool]:
        found = []
        async with AsyncExitStack() as stack:
            for key, folder in (("a", "x"), ("b", "x"), ("b", "y")):
                monkeypatch.setenv("OPENAI_API_KEY", key)
                taking = acquire_judges(settings, Corpus(), Files(str(tmp_path / folder)))
                found.append(await stack.enter_async_context(taking))
        return found

    found = asyncio.run(main())
    assert len({id(one.judges[0].judge) for one in found}) == 3
    assert len({id(one.embedder) for one in found}) == 3


def test_a_judge_that_computes_here_belongs_to_its_part(tmp_path: Path) -> None:
    """It knows the corpus of its run; so does the hashed embedder."""
    settings = make_settings({"judge": "lexical"})
    one, other = taken([settings, settings], tmp_path)
    assert one.judges[0].judge is not other.judges[0].judge
    assert one.embedder is not other.embedder


def test_equal_judges_of_a_panel_do_not_answer_for_each_other(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Asked twice is two opinions; each is shared with its like in the part beside."""
    settings = make_settings({"judges": [live(judge_server)] * 2})
    one, other = taken([settings, settings], tmp_path)
    first, second = one.judges
    assert first.single_flight is not second.single_flight
    assert [seat.name for seat in one.judges] == ["openai:gpt-6-luna", "openai:gpt-6-luna #2"]
    assert [seat.judge for seat in other.judges] == [first.judge, second.judge]


def test_all_parts_of_a_night_use_one_client(
    tmp_path: Path, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed at the end."""
    made: list[LiveJudge] = []
    closed: list[LiveJudge] = []
    make, close = LiveJudge.__init__, LiveJudge.close

    def making(judge: LiveJudge, *arguments: Any) -> None:
        made.append(judge)
        make(judge, *arguments)

    async def closing(judge: LiveJudge) -> None:
        closed.append(judge)
        await close(judge)

    monkeypatch.setattr(LiveJudge, "__init__", making)
    monkeypatch.setattr(LiveJudge, "close", closing)
    manifest = run_night(night(tmp_path, judge=live(judge_server), shards=4), NIGHT).manifest
    assert [metric.scored for metric in manifest.metrics] == [12, 12]
    assert len(closed) == 1  # what is made besides only says who it is
    assert closed[0] in made


def night(folder: Path, **more: Any) -> Settings:
    """A dataset of twelve rows and two metrics that share no request."""
    write_jsonl(folder / "logs" / f"{NIGHT}.jsonl", make_rows(12, good=0.7))
    return make_settings(
        night_values(
            folder, logs="logs/{date}.jsonl", metrics=["context_relevance", "context_recall"]
        )
        | more
    )


# Keys that are missing


def test_one_of_a_panel_without_a_key_refuses_and_has_its_seat(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Under the name and fingerprint that it has with a key."""
    judges = [{**KEYLESS, "model": "far"}, live(judge_server)]
    (found,) = taken([make_settings({"judges": judges})], tmp_path)
    refused, good = (seat.judge for seat in found.judges)
    assert isinstance(refused, UnavailableJudge)
    assert isinstance(good, LiveJudge)
    with pytest.raises(JudgeRefused, match="needs a key: set NO_SUCH_KEY"):
        asyncio.run(refused.reply(Ask(GRADE, {}), 0))


def test_a_key_does_not_change_who_a_judge_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night after, with the key, is comparable."""
    settings = make_settings({"judges": [KEYLESS, "lexical"]})
    (without,) = taken([settings], tmp_path)
    monkeypatch.setenv("NO_SUCH_KEY", "a key")
    (with_key,) = taken([settings], tmp_path)
    for judge, other in zip(without.judges, with_key.judges, strict=True):
        assert (judge.name, judge.judge.fingerprint) == (other.name, other.judge.fingerprint)


@pytest.mark.parametrize("judges", [[KEYLESS], [KEYLESS, {**KEYLESS, "model": "near"}]])
def test_without_any_key_nothing_is_begun(tmp_path: Path, judges: list[dict[str, Any]]) -> None:
    """There is nobody to go on."""
    with pytest.raises(JudgeRefused, match="needs a key: set NO_SUCH_KEY"):
        taken([make_settings({"judges": judges})], tmp_path)


def test_a_night_goes_on_without_the_one_who_lacks_a_key(tmp_path: Path) -> None:
    """All rows are scored by the others, and the manifest tells who is missing and why."""
    manifest = run_night(night(tmp_path, judges=["lexical", KEYLESS]), NIGHT).manifest
    assert [metric.scored for metric in manifest.metrics] == [12, 12]
    assert manifest.judge.panel == ["lexical", "openai:far"]
    assert manifest.problems == [
        "openai:far: the judge openai needs a key: set NO_SUCH_KEY, or `judge: base_url:` to a "
        "server that needs none"
    ]


def test_a_metric_that_embeds_fails_where_only_the_keyless_could(tmp_path: Path) -> None:
    """And no other metric does."""
    metrics = ["context_relevance", "response_relevancy"]
    settings = night(tmp_path, judges=["lexical", KEYLESS], metrics=metrics)
    with pytest.raises(CoverageShort) as short:
        run_night(settings, NIGHT)
    assert "response_relevancy: 12 of 12 rows got no usable verdict" in str(short.value)
    assert "context_relevance" not in str(short.value)


FORKED = """
import multiprocessing, sys
from concurrent.futures import ThreadPoolExecutor
from ragmetrics import evaluate

ROWS = [{"user_input": f"q{n}", "retrieved_contexts": ["q"]} for n in range(30)]

def several():
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda _: evaluate(ROWS, ["context_relevance"]), range(6))
        print(len({str(one.as_json()["metrics"]) for one in found}), flush=True)

several()
child = multiprocessing.get_context("fork").Process(target=several)
child.start()
child.join(200)
print(child.exitcode)
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_room_for_parts_of_its_own() -> None:
    """However many parts waited for room in the parent."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, cwd=ROOT, timeout=240, check=False
    )
    assert ended.stdout.decode().split() == ["1", "1", "0"], ended.stderr
