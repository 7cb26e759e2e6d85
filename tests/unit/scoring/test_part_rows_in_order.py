"""The driver: what is asked, how often, how much at once, and what becomes of failures."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import ReplyCache
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.metrics import select
from ragmetrics.records import Ask, LogRow, Status
from ragmetrics.records.judging import Usage
from ragmetrics.scoring.part import drive
from ragmetrics.storage import Files, ScoredRow
from tests.fakes.scripted import BAD, GOOD, CountingEmbedder, ScriptedJudge, a_broker, alone


def rows(count: int, contexts: int = 1, **fields: Any) -> list[LogRow]:
    """Rows with distinct questions and contexts."""
    return [
        LogRow(
            f"row-{n}", f"Question {n}?", tuple(f"Text {n}.{i}" for i in range(contexts)), **fields
        )
        for n in range(count)
    ]


def run(scoring: AsyncIterator[ScoredRow], after: float = 0) -> list[ScoredRow]:
    """Play to the end; the event loop must have had nothing to complain about."""
    complaints: list[Any] = []

    async def main() -> list[ScoredRow]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        try:
            return [row async for row in scoring]
        finally:
            await asyncio.sleep(after)

    try:
        return asyncio.run(main())
    finally:
        gc.collect()
        assert not complaints


def score(
    judge: ScriptedJudge,
    scored: Sequence[LogRow],
    metrics: Sequence[str] = ("context_relevance",),
    **more: Any,
) -> list[ScoredRow]:
    """Score rows by metrics."""
    return run(drive(scored, select(metrics), alone(a_broker(judge, **more))))


def statuses(found: list[ScoredRow], metric: str = "context_relevance") -> list[Status]:
    """The statuses of a metric, row by row."""
    return [row.scores[metric].status for row in found]


def about(text: str, reply: str, otherwise: str = GOOD) -> Callable[[Ask, int], str]:
    """Reply so about one text, and otherwise otherwise."""
    return lambda request, attempt: reply if text in request.text else otherwise


# What is asked


def test_equal_requests_of_all_rows_are_asked_once() -> None:
    """Rows that retrieved the same contexts for the same question share their grades."""
    judge = ScriptedJudge()
    found = score(judge, [*rows(3, 2)] * 4)
    assert list(judge.asked.values()) == [1] * 6
    assert [row.scores["context_relevance"].value for row in found] == [1.0] * 12


def test_metrics_of_a_family_share_their_requests() -> None:
    """Precision costs nothing beside relevance."""
    judge = ScriptedJudge()
    found = score(judge, rows(5, 3), ["context_relevance", "context_precision"])
    assert sum(judge.asked.values()) == 15
    assert set(found[0].scores) == {"context_relevance", "context_precision"}


def test_equal_requests_of_different_questions_are_asked_once() -> None:
    """A response says the same whatever was asked: its questions are generated once."""
    judge = ScriptedJudge(lambda request, attempt: '{"questions": [], "noncommittal": true}')
    score(judge, rows(5, response="I do not know."), ["response_relevancy"])
    assert list(judge.asked.values()) == [1]


def test_equal_texts_are_embedded_once() -> None:
    """Three rows with one question and one response embed four texts."""
    judge = ScriptedJudge(lambda request, attempt: THREE_QUESTIONS)
    embedder = CountingEmbedder()
    scored = [row for row in rows(1, response="Yes.") for _ in range(3)]
    score(judge, scored, ["response_relevancy"], embedder=embedder)
    assert embedder.asked == Counter({"Question 0?": 1, "a?": 1, "b?": 1, "c?": 1})


THREE_QUESTIONS = '{"questions": ["a?", "b?", "c?"], "noncommittal": false}'


def test_usage_counts_attempts_tokens_and_failures() -> None:
    """Every call to the judge counts, those whose reply was of no use too."""
    judge = ScriptedJudge(lambda request, attempt: BAD if attempt == 0 else GOOD)
    broker = a_broker(judge)
    run(drive(rows(3), select(["context_relevance"]), alone(broker)))
    assert broker.counters.usage() == Usage(
        requests=6, prompt_tokens=60, completion_tokens=18, failures={"unreadable": 3}
    )


def test_replies_are_recorded_as_they_come() -> None:
    """A recording holds every reply with its request, unreadable ones too."""
    notes: list[str] = []
    judge = ScriptedJudge(lambda request, attempt: BAD if attempt == 0 else GOOD)
    score(judge, rows(1), record=lambda judge, request, reply: notes.append(reply))
    assert [reply.text for reply in notes] == [BAD, GOOD]


# Failures


def test_an_unreadable_reply_is_asked_again() -> None:
    """The attempt's number goes along, so that a judge can answer otherwise."""
    judge = ScriptedJudge(lambda request, attempt: BAD if attempt < 2 else GOOD)
    found = score(judge, rows(1))
    assert statuses(found) == [Status.SCORED]
    assert list(judge.asked.values()) == [3]


@pytest.mark.parametrize("reasks", [0, 2])
def test_attempts_are_bounded_then_the_row_is_unreadable(reasks: int) -> None:
    """After the last attempt the row has a status and a reason; other rows are fine."""
    judge = ScriptedJudge(about("Text 1.0", BAD))
    found = score(judge, rows(3), reasks=reasks)
    assert statuses(found) == [Status.SCORED, Status.UNREADABLE, Status.SCORED]
    assert found[1].scores["context_relevance"].value is None
    assert "Invalid JSON" in found[1].scores["context_relevance"].reason
    assert sorted(judge.asked.values()) == [1, 1, 1 + reasks]


@pytest.mark.parametrize("transient", [True, False])
def test_a_judge_error_fails_its_row_and_no_other(transient: bool) -> None:
    """Retries are the judge's business: what it gives up on is `judge_failed`, asked once."""

    def answer(request: Ask, attempt: int) -> str:
        if "Text 1.0" in request.text:
            raise JudgeError("timed out", transient=transient)
        return GOOD

    judge = ScriptedJudge(answer)
    broker = a_broker(judge)
    found = run(drive(rows(3), select(["context_relevance"]), alone(broker)))
    assert statuses(found) == [Status.SCORED, Status.JUDGE_FAILED, Status.SCORED]
    assert found[1].scores["context_relevance"].reason == "timed out"
    assert set(judge.asked.values()) == {1}
    assert broker.counters.usage().failures == {"judge_failed": 1}


def test_one_metrics_failure_leaves_the_others_their_scores() -> None:
    """A row may be unreadable by one metric and scored by another."""
    judge = ScriptedJudge(about('"sentences"', BAD))
    found = score(judge, rows(2, reference="It is."), ["context_recall", "context_relevance"])
    assert statuses(found, "context_recall") == [Status.UNREADABLE] * 2
    assert statuses(found) == [Status.SCORED] * 2


def test_a_failing_embedder_fails_the_row() -> None:
    """An embedding that cannot be had is a judge that failed."""
    judge = ScriptedJudge(lambda request, attempt: THREE_QUESTIONS)
    embedder = CountingEmbedder(down=True)
    found = score(judge, rows(2, response="Yes."), ["response_relevancy"], embedder=embedder)
    assert statuses(found, "response_relevancy") == [Status.JUDGE_FAILED] * 2


def refuse(request: Ask, attempt: int) -> str:
    """A wrong key."""
    raise JudgeRefused("wrong key")


def test_a_refusal_ends_the_run() -> None:
    """With a wrong key no request can succeed: the error goes up at once, unchanged."""
    judge = ScriptedJudge(refuse, concurrency=2)
    with pytest.raises(JudgeRefused, match="wrong key"):
        score(judge, rows(100, 3))
    assert sum(judge.asked.values()) < 10


def test_after_a_refusal_nothing_more_is_asked() -> None:
    """What waited for its turn is given up, even where the event loop goes on."""
    judge = ScriptedJudge(refuse, concurrency=1, pause=lambda request: 0.002)
    with pytest.raises(JudgeRefused):
        run(drive(rows(3, 20), select(["context_relevance"]), alone(a_broker(judge))), after=0.1)
    assert sum(judge.asked.values()) <= 2


def test_a_reader_may_stop_early() -> None:
    """Rows in play are given up in silence when nobody wants them."""

    async def first(scoring: AsyncIterator[ScoredRow]) -> AsyncIterator[ScoredRow]:
        async for row in scoring:
            yield row
            break
        await scoring.aclose()  # type: ignore[attr-defined]

    judge = ScriptedJudge(concurrency=2, pause=lambda request: 0.001)
    found = run(first(drive(rows(200), select(["context_relevance"]), alone(a_broker(judge)))))
    assert [row.row.id for row in found] == ["row-0"]
    assert sum(judge.asked.values()) < 50


# Order and bounds


def test_rows_come_out_in_the_order_they_went_in() -> None:
    """Even where the judge answers the first question last."""
    judge = ScriptedJudge(pause=lambda request: 0.02 if "Text 0" in request.text else 0)
    found = score(judge, rows(60))
    assert [row.row.id for row in found] == [f"row-{n}" for n in range(60)]


def test_a_slow_row_holds_up_no_other_and_lets_no_rows_pile_up() -> None:
    """While the first row waits the others go on, but only so many are taken from the input."""
    taken = 0
    seen: list[int] = []

    def source() -> Iterator[LogRow]:
        nonlocal taken
        for row in rows(1_000):
            taken += 1
            yield row

    def answer(request: Ask, attempt: int) -> str:
        if "Text 0.0" in request.text:
            seen.append(taken)
        return GOOD

    judge = ScriptedJudge(answer, 2, pause=lambda request: 0.3 * ("Text 0.0" in request.text))
    broker = a_broker(judge)
    found = run(drive(source(), select(["context_relevance"]), alone(broker)))
    assert len(found) == 1_000
    (most,) = seen
    assert alone(broker).rows_in_play < most <= 5 * alone(broker).rows_in_play


@pytest.mark.parametrize("concurrency", [1, 3, 20])
def test_requests_in_flight_reach_the_judges_concurrency_and_not_more(concurrency: int) -> None:
    """The judge is kept busy and never given more than it takes at once."""
    judge = ScriptedJudge(concurrency=concurrency, pause=lambda request: 0.001)
    score(judge, rows(60, 2))
    assert judge.most_in_flight == concurrency


# The judgement store


def kept(folder: Path, fingerprint: str = "f00d") -> ReplyCache:
    """What is kept of a judge, as a new process finds it."""
    judgements = ReplyCache(Files(str(folder)), fingerprint, "00000000", "ffffffff")
    judgements.load()
    return judgements


def test_kept_replies_are_not_asked_again(tmp_path: Path) -> None:
    """A second run gives the same scores, and its judge has nothing to do."""
    first, second = ScriptedJudge(cacheable=True), ScriptedJudge(refuse, cacheable=True)
    before = score(first, rows(5, 2), cache=kept(tmp_path))
    broker = a_broker(second, cache=kept(tmp_path))
    after = run(drive(rows(5, 2), select(["context_relevance"]), alone(broker)))
    assert after == before
    assert not second.asked
    assert broker.counters.usage() == Usage(answered_from_store=10)


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Only what was not answered before is asked: here, the rows after the third."""
    score(ScriptedJudge(cacheable=True), rows(3), cache=kept(tmp_path))
    judge = ScriptedJudge(cacheable=True)
    score(judge, rows(10), cache=kept(tmp_path))
    assert sum(judge.asked.values()) == 7


def test_an_unreadable_reply_is_not_kept(tmp_path: Path) -> None:
    """The next run asks again: what could not be used is no answer."""
    score(
        ScriptedJudge(lambda request, attempt: BAD, cacheable=True), rows(2), cache=kept(tmp_path)
    )
    judge = ScriptedJudge(cacheable=True)
    found = score(judge, rows(2), cache=kept(tmp_path))
    assert sum(judge.asked.values()) == 2
    assert statuses(found) == [Status.SCORED] * 2


def test_a_kept_reply_that_no_longer_reads_is_asked_anew(tmp_path: Path) -> None:
    """A stricter check finds out what an older version kept."""
    (row,) = rows(1)
    (request,) = next(select(["context_relevance"])[0].play(row))
    asyncio.run(kept(tmp_path).add(CachedReply(row.question_key + request.key, "grade", BAD)))
    judge = ScriptedJudge(cacheable=True)
    broker = a_broker(judge, cache=kept(tmp_path))
    found = run(drive([row], select(["context_relevance"]), alone(broker)))
    assert statuses(found) == [Status.SCORED]
    assert broker.counters.usage().failures == {"unreadable_in_store": 1}


def test_replies_of_a_judge_that_costs_nothing_are_not_kept(tmp_path: Path) -> None:
    """`cacheable` says whether a reply is worth a file."""
    score(ScriptedJudge(cacheable=False), rows(2), cache=kept(tmp_path))
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_kept_embeddings_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """Embeddings are kept beside the replies, and give the same score."""
    metrics = ["response_relevancy"]
    found = []
    for down in (False, True):
        found.append(
            score(
                ScriptedJudge(lambda request, attempt: THREE_QUESTIONS),
                rows(2, response="Yes."),
                metrics,
                embedder=CountingEmbedder(cacheable=True, down=down),
                kept_vectors=kept(tmp_path, "beef"),
            )
        )
    assert found[0] == found[1]
    assert statuses(found[1], "response_relevancy") == [Status.SCORED] * 2
