"""The deadline of a run: judges are asked until then, and what is there is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ragmetrics.comparison import run_replay
from ragmetrics.config import JudgeSettings, Settings, make_settings
from ragmetrics.errors import JudgeError, JudgeRefused, OverDeadline
from ragmetrics.http import run_coroutine
from ragmetrics.judges.base import find_access
from ragmetrics.judges.embeddings import OpenAIEmbedder
from ragmetrics.metrics import select
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import (
    Ask,
    Deadline,
    LogRow,
    ReplayIncomplete,
    Status,
    before_deadline,
    deadline_at,
    seconds_left,
    use_deadline,
)
from ragmetrics.scoring.part import drive
from ragmetrics.storage import Runs, ScoredRow, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.instant import instantly
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.replays import BUILD, replaying
from tests.fakes.retriever import SearchServer
from tests.fakes.scripted import GOOD, CountingEmbedder, ScriptedJudge, a_broker, alone

pytestmark = pytest.mark.usefixtures("without_pages")

DAY = 86_400.0
QUESTIONS = json.dumps({"questions": ["One?", "Two?", "Three?"], "noncommittal": False})


def scored(
    judge: ScriptedJudge,
    count: int,
    metric: str = "context_relevance",
    seconds: float = 72_000,
    embedder: CountingEmbedder | None = None,
) -> tuple[list[ScoredRow], float]:
    """Rows scored before a deadline so many seconds ahead, and the seconds that it took."""
    rows = [LogRow(f"r{n}", f"Question {n}?", (f"Text {n}.",), response="A.") for n in range(count)]

    async def play() -> tuple[list[ScoredRow], float]:
        now = asyncio.get_running_loop().time
        with use_deadline(Deadline(seconds, "soon", now)):
            panel = alone(a_broker(judge, embedder))
            found = [row async for row in drive(rows, select([metric]), panel)]
            return found, now()

    return instantly(play())


def statuses(found: Sequence[ScoredRow], metric: str = "context_relevance") -> list[Status]:
    """The rows' statuses."""
    return [row.scores[metric].status for row in found]


def test_a_judge_that_never_answers_ends_with_the_run() -> None:
    """Whatever the judge is: at the deadline all rows have a status, with the reason."""
    judge = ScriptedJudge(pause=lambda request: 400 * DAY, concurrency=2)
    found, seconds = scored(judge, 50)
    assert seconds == 72_000
    assert statuses(found) == [Status.JUDGE_FAILED] * 50
    assert found[0].scores["context_relevance"].reason == "the run's deadline, soon, has passed"
    assert sum(judge.asked.values()) == 2


def test_what_was_judged_before_the_deadline_stays() -> None:
    """The others are not asked any more."""
    judge = ScriptedJudge(pause=lambda request: 3_600, concurrency=1)
    found, seconds = scored(judge, 30)
    assert seconds == 72_000
    assert statuses(found) == [Status.SCORED] * 19 + [Status.JUDGE_FAILED] * 11
    assert sum(judge.asked.values()) == 20


def test_embeddings_end_with_the_run_too() -> None:
    """A row whose vectors do not come is judge_failed."""

    class Hanging(CountingEmbedder):
        async def embed(self, text: str) -> Any:
            await asyncio.sleep(400 * DAY)

    judge = ScriptedJudge(lambda request, attempt: QUESTIONS)
    found, seconds = scored(judge, 3, "response_relevancy", embedder=Hanging())
    assert seconds == 72_000
    assert statuses(found, "response_relevancy") == [Status.JUDGE_FAILED] * 3


def test_a_deadline_is_the_same_in_every_thread_and_process() -> None:
    """An absolute time is passed on; what is left of it is known where work is done."""
    until = datetime.now(UTC) + timedelta(hours=1)
    with use_deadline(deadline_at(until)):
        assert 3_590 < seconds_left() <= 3_600

        async def there() -> float:
            return seconds_left()

        assert 3_590 < run_coroutine(there()) <= 3_600
    assert seconds_left() == float("inf")


def test_a_timeout_of_the_work_itself_is_not_the_deadline() -> None:
    """It is raised as it is."""

    async def play() -> None:
        with use_deadline(Deadline(100.0, "then", asyncio.get_running_loop().time)):
            async with before_deadline():
                raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        instantly(play())
    with pytest.raises(OverDeadline), use_deadline(deadline_at(datetime.now(UTC))):
        asyncio.run(_wait())


async def _wait() -> None:
    async with before_deadline():
        await asyncio.sleep(60)


def test_a_refusal_after_answers_keeps_what_was_scored() -> None:
    """A quota that ends at 90 % costs a tenth of the rows, each with the reason."""

    def until_the_quota_ends(request: Ask, attempt: int) -> str:
        if sum(judge.asked.values()) > 180:
            raise JudgeRefused("the quota is used up")
        return GOOD

    judge = ScriptedJudge(until_the_quota_ends)
    found, _ = scored(judge, 200)
    assert 170 <= statuses(found).count(Status.SCORED) <= 180
    (failed, *_) = [row for row in found if row.scores["context_relevance"].value is None]
    assert failed.scores["context_relevance"].status is Status.JUDGE_FAILED
    assert failed.scores["context_relevance"].reason == "the quota is used up"
    assert sum(judge.asked.values()) <= 180 + judge.concurrency


def test_embeddings_that_are_refused_after_answers_keep_what_was_scored() -> None:
    """Of them as of the judge."""

    class Ending(CountingEmbedder):
        async def embed(self, text: str) -> Any:
            if len(self.asked) >= 8:
                raise JudgeRefused("the quota is used up")
            return await super().embed(text)

    judge = ScriptedJudge(lambda request, attempt: QUESTIONS)
    found, _ = scored(judge, 20, "response_relevancy", embedder=Ending())
    told = statuses(found, "response_relevancy")
    assert told[0] is Status.SCORED and set(told[10:]) == {Status.JUDGE_FAILED}


def test_texts_of_one_run_do_not_end_with_another(judge_server: JudgeServer) -> None:
    """Texts that are asked for at one moment share a request, but not beyond their run."""
    judge_server.faults(fail={"429": 1}, fail_attempts=1, retry_after=0.3)

    async def play() -> list[Any]:
        chosen = JudgeSettings(name="openai", model="e", base_url=judge_server.base_url)
        embedder = OpenAIEmbedder(
            find_access(chosen, chosen.base_url, SecretStr("testing")), "e", chosen
        )

        async def one(text: str, seconds: float) -> Any:
            until = datetime.now(UTC) + timedelta(seconds=seconds)
            with use_deadline(deadline_at(until)):
                async with before_deadline():
                    return await embedder.embed(text)

        try:
            return await asyncio.gather(one("a", 0.2), one("b", 60), return_exceptions=True)
        finally:
            await embedder.close()

    first, second = asyncio.run(play())
    assert isinstance(first, JudgeError)
    assert not isinstance(second, BaseException)


def test_a_retriever_is_asked_until_the_deadline(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """What it has answered is kept, and the same replay goes on with the rest."""
    search_server.faults(latency_ms=120)
    settings = replaying(tmp_path, search_server, concurrency=1)
    until = datetime.now(UTC) + timedelta(seconds=0.5)
    with (
        pytest.raises(ReplayIncomplete, match="the run's deadline"),
        use_deadline(deadline_at(until)),
    ):
        run_replay(settings, BUILD)
    search_server.faults(latency_ms=0)
    done = run_replay(settings, BUILD)
    assert done.rows == 12 and done.found + done.asked == 12


METRICS = ("context_relevance", "context_recall")


def a_night(folder: Path, server: JudgeServer, count: int = 200, **changes: Any) -> Settings:
    """A night without Prefect."""
    write_jsonl(folder / f"logs/dt={NIGHT}/log.jsonl", make_rows(count))
    judge = judge_at(server, retries=1)
    return make_settings(night_values(folder, metrics=METRICS[:1], shards=2, judge=judge) | changes)


@pytest.mark.parametrize("fault", ["quota", "403"])
def test_a_night_whose_key_ends_publishes_what_there_is(
    tmp_path: Path, judge_server: JudgeServer, fault: str
) -> None:
    """90 % of the rows are published, the problem is told, and a good key is asked for the rest."""
    settings = a_night(tmp_path, judge_server, judge={**_judge(judge_server), "concurrency": 4})
    needed = _requests_of(tmp_path / "healthy", judge_server)
    judge_server.reset()
    judge_server.faults(good_for=needed * 9 // 10, then=fault)
    with pytest.raises(CoverageShort):
        run_night(settings, NIGHT)
    night = Runs(open_store(settings)).current(NIGHT)
    assert night is not None
    (first,) = night.metrics
    assert 150 <= first.scored < 200
    assert first.status["judge_failed"] == 200 - first.scored
    told = "; ".join(night.problems) + "; ".join(finding.message for finding in night.findings)
    assert {"quota": "quota is used up", "403": "judge"}[fault] in told
    judge_server.reset()
    assert run_night(settings, NIGHT).manifest.metrics[0].scored == 200
    assert judge_server.stats()["requests"] <= needed // 10 + 5


def _judge(server: JudgeServer) -> dict[str, Any]:
    return judge_at(server, retries=1)


def _requests_of(folder: Path, server: JudgeServer) -> int:
    """Requests of the same night, with a judge that answers all of them."""
    run_night(a_night(folder, server), NIGHT)
    return int(server.stats()["requests"])
