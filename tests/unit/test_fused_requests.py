"""Fused requests at work: what is asked together, what then is asked alone, and what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import JudgeClient, ReplyCache, SingleFlight
from ragmetrics.judges.base import Reply
from ragmetrics.metrics import select
from ragmetrics.records import Ask, LogRow, Score, Status
from ragmetrics.records.manifest import Usage
from ragmetrics.scoring.driver import drive
from ragmetrics.scoring.member import Member
from ragmetrics.scoring.panel import Panel
from ragmetrics.storage import Files
from tests.fakes.instant import instantly
from tests.fakes.scripted import ScriptedJudge, a_broker, alone
from tests.fakes.verdicts import reply

METRICS = ("context_relevance", "context_recall", "response_relevancy")
JOINT = " + ".join(METRICS)
Answer = Callable[[Ask, int], str]


def rows(count: int) -> list[LogRow]:
    """Rows that share nothing, with three contexts each."""
    return [
        LogRow(
            f"row-{n}",
            f"When was tower {n} opened?",
            tuple(f"Tower {n} was opened in 189{i}, they say." for i in range(3)),
            response=f"Tower {n} was opened in 1891.",
            reference=f"Tower {n} was opened in 1892. It is high.",
        )
        for n in range(count)
    ]


def sensible(request: Ask, attempt: int) -> str:
    """As a model that follows its instructions."""
    return reply(request.prompt.system, request.text, request.prompt.schema)


def spoilt(change: Callable[[dict[str, Any]], Any]) -> Answer:
    """Sensible, but for a change to what is said of fused requests."""

    def answer(request: Ask, attempt: int) -> str:
        said = sensible(request, attempt)
        return json.dumps(change(json.loads(said))) if request.prompt.name == "row" else said

    return answer


def failing(error: Exception) -> Answer:
    """Fails where requests are fused."""

    def answer(request: Ask, attempt: int) -> str:
        if request.prompt.name == "row":
            raise error
        return sensible(request, attempt)

    return answer


class Noting(ScriptedJudge):
    """Notes the names of the prompts that it was asked, in order."""

    def __init__(self, answer: Answer = sensible, **more: Any) -> None:
        self.prompts: list[str] = []

        def noting(request: Ask, attempt: int) -> str:
            self.prompts.append(request.prompt.name)
            return answer(request, attempt)

        super().__init__(noting, **more)


def score(
    panel: Panel, scored: Sequence[LogRow], metrics: Sequence[str] = METRICS
) -> list[dict[str, Score]]:
    """The rows' scores; nothing may be left waiting."""

    async def main() -> list[dict[str, Score]]:
        found = drive(scored, select(metrics), panel)
        return [dict(row.scores) async for row in found]

    return asyncio.run(asyncio.wait_for(main(), 20))


def fused(judge: ScriptedJudge, **more: Any) -> JudgeClient:
    """A broker that fuses."""
    return a_broker(judge, fuse=True, **more)


def kept(folder: Path) -> ReplyCache:
    """What is kept of a judge, as a new process finds it."""
    judgements = ReplyCache(Files(str(folder)), "f00d", "00000000", "ffffffff")
    judgements.load()
    return judgements


PLAIN = score(alone(a_broker(ScriptedJudge(sensible))), rows(4))
"""The scores of four rows whose requests went one by one."""


def test_a_row_makes_one_request_and_has_all_its_scores() -> None:
    """Those that it has where requests go one by one."""
    judge = Noting()
    assert score(alone(fused(judge)), rows(4)) == PLAIN
    assert judge.prompts == ["row"] * 4


def test_the_request_counts_once_under_the_names_of_all_who_ask() -> None:
    """Nobody can say what of its tokens was whose."""
    broker = fused(ScriptedJudge(sensible))
    score(alone(broker), rows(4))
    counted = {name: tally.usage() for name, tally in broker.counters.items() if tally.requests}
    assert counted == {JOINT: Usage(requests=4, prompt_tokens=40, completion_tokens=12)}


def test_equal_requests_of_a_row_are_one_input() -> None:
    """A context retrieved twice is graded once; precision costs nothing beside relevance."""
    judge = Noting()
    asked: list[Ask] = []
    broker = fused(judge, record=lambda name, ask, said: asked.append(ask))
    (row,) = rows(1)
    double = LogRow("r", row.user_input, row.retrieved_contexts * 2)
    score(alone(broker), [double], ["context_relevance", "context_precision"])
    assert judge.prompts == ["row"]
    assert [ask.data["context"] for ask in asked] == list(row.retrieved_contexts)
    assert [name for name, tally in broker.counters.items() if tally.requests] == [
        "context_relevance"
    ]


def test_a_single_request_goes_as_it_is() -> None:
    """With its examples: there is nothing to share."""
    judge = Noting()
    score(alone(fused(judge)), rows(2), ["context_recall"])
    assert judge.prompts == ["support"] * 2


def test_words_of_another_tool_stand_alone() -> None:
    """The twins of ragas ask what ragas asks; what else the row asks is fused."""
    judge = Noting(
        lambda request, attempt: "2" if request.prompt.verbatim else sensible(request, 0)
    )
    score(alone(fused(judge)), rows(1), ["context_relevance", "ragas_context_relevance"])
    assert judge.prompts.count("row") == 1
    assert "grade" not in judge.prompts
    assert len(judge.prompts) > 1


# Replies of no use


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (lambda said: {**said, "grade": said["grade"][:2]}, ["grade"] * 3),
        (lambda said: {**said, "grade": [*said["grade"], 0]}, ["grade"] * 3),
        (lambda said: {**said, "grade": [7, *said["grade"][1:]]}, ["grade"]),
        (lambda said: {**said, "support": [[1]]}, ["support"]),
        (lambda said: {**said, "support": None}, ["support"]),
        (lambda said: {"grade": said["grade"]}, ["questions", "support"]),
        (lambda said: [], ["grade"] * 3 + ["questions", "support"]),
        (lambda said: "no", ["grade"] * 3 + ["questions", "support"]),
    ],
)
def test_what_is_unreadable_in_a_reply_is_asked_alone(
    change: Callable[[dict[str, Any]], Any], again: list[str]
) -> None:
    """And nothing else; the reply counts as one that was unreadable."""
    judge = Noting(spoilt(change))
    broker = fused(judge)
    assert score(alone(broker), rows(1)) == PLAIN[:1]
    assert (judge.prompts[0], sorted(judge.prompts[1:])) == ("row", again)
    usage = broker.counters.usage()
    assert (usage.requests, usage.failures) == (1 + len(again), {"unreadable": 1})


def test_what_is_too_long_together_is_asked_alone() -> None:
    """The endpoint refuses that request, and not its parts."""
    judge = Noting(failing(JudgeError("maximum context length")))
    assert score(alone(fused(judge)), rows(2)) == PLAIN[:2]
    assert sorted(set(judge.prompts)) == ["grade", "questions", "row", "support"]


def test_what_the_judge_gives_up_is_not_asked_again_in_pieces() -> None:
    """An endpoint that is down would be asked many times more."""
    judge = Noting(failing(JudgeError("timed out", transient=True)))
    broker = fused(judge)
    (found,) = score(alone(broker), rows(1))
    assert {one.status for one in found.values()} == {Status.JUDGE_FAILED}
    assert {one.reason for one in found.values()} == {"timed out"}
    assert judge.prompts == ["row"]
    assert broker.counters.usage().failures == {"judge_failed": 1}


@pytest.mark.parametrize("error", [JudgeRefused("wrong key"), RuntimeError("a bug")])
def test_what_ends_a_run_ends_it(error: Exception) -> None:
    """Nobody is left waiting for an answer."""
    with pytest.raises(type(error), match=str(error)):
        score(alone(fused(Noting(failing(error), concurrency=2))), rows(50))


def test_a_refusal_while_a_part_is_asked_alone_ends_the_run() -> None:
    """There too."""

    def answer(request: Ask, attempt: int) -> str:
        if request.prompt.name == "row":
            return "{}"
        raise JudgeRefused("out of money")

    with pytest.raises(JudgeRefused, match="out of money"):
        score(alone(fused(Noting(answer))), rows(5))


def test_a_part_stopped_early_leaves_others_their_answers() -> None:
    """Whoever waits for a request of a part that stops asks it anew."""
    judge = Noting(pause=lambda request: 0.05)
    once = SingleFlight()

    async def main() -> Score:
        metrics = select(METRICS)
        one, other = (alone(fused(judge, single_flight=once)) for _ in range(2))
        stopped = asyncio.create_task(one.score(metrics, rows(1)[0]))
        await asyncio.sleep(0.01)
        goes_on = asyncio.create_task(other.score(metrics, rows(1)[0]))
        await asyncio.sleep(0.01)
        stopped.cancel()
        await one.stop()
        found = await goes_on
        await other.stop()
        return found["context_relevance"]

    found = instantly(main())
    assert found == PLAIN[0]["context_relevance"]
    # The fused request went with the one who stopped, before it was answered.
    assert sorted(judge.prompts) == ["grade"] * 3 + ["questions", "support"]


# Repeats and panels


def test_each_repeat_is_a_request_of_its_own() -> None:
    """One for the row at each time that it is judged."""
    judge = Noting()
    (found,) = score(Panel([Member(fused(judge), 3)]), rows(1))
    assert judge.prompts == ["row"] * 3
    assert len(judge.asked) == 3
    assert found["context_relevance"].spread == 0.0


def test_each_judge_of_a_panel_is_asked_once() -> None:
    """One that fuses beside one that does not."""
    fusing, plain = Noting(name="a"), Noting(name="b")
    (found,) = score(Panel([Member(fused(fusing)), Member(a_broker(plain))]), rows(1))
    assert fusing.prompts == ["row"]
    assert sorted(plain.prompts) == ["grade"] * 3 + ["questions", "support"]
    assert found["context_recall"].votes == (PLAIN[0]["context_recall"].value,) * 2


# What is kept


def test_a_second_night_asks_only_what_is_new(tmp_path: Path) -> None:
    """Verdicts are kept as those of single requests; a row's new ones go together again."""
    score(alone(fused(ScriptedJudge(sensible, cacheable=True), cache=kept(tmp_path))), rows(4))
    judge = Noting(cacheable=True)
    broker = fused(judge, cache=kept(tmp_path))
    changed = [
        LogRow(
            row.id,
            row.user_input,
            (*row.retrieved_contexts, "New one.", "New two.") if n == 0 else row.retrieved_contexts,
            response=row.response,
            reference=row.reference,
        )
        for n, row in enumerate(rows(4))
    ]
    asked: list[Ask] = []
    broker = fused(judge, cache=kept(tmp_path), record=lambda name, ask, said: asked.append(ask))
    found = score(alone(broker), changed)
    assert found[1:] == PLAIN[1:]
    assert judge.prompts == ["row"]
    assert broker.counters.usage().requests == 1
    # Two new contexts, and the support that is now held against five.
    assert broker.counters.usage().answered_from_store == 3 * 5 + 3 + 1


def test_the_request_s_tokens_are_kept_with_one_of_its_parts(tmp_path: Path) -> None:
    """So that their sum is what was paid."""
    judgements = kept(tmp_path)
    tokens: list[tuple[int, int]] = []
    add = judgements.add

    async def noting(judgement: Any) -> None:
        tokens.append((judgement.prompt_tokens, judgement.completion_tokens))
        await add(judgement)

    judgements.add = noting  # type: ignore[method-assign]
    score(alone(fused(ScriptedJudge(sensible, cacheable=True), cache=judgements)), rows(1))
    assert sorted(tokens) == [(0, 0)] * 4 + [(10, 3)]


def test_recordings_hold_the_parts_as_replies_of_their_own() -> None:
    """So that a recording plays back with or without fusing."""
    noted: list[tuple[str, Reply]] = []
    broker = fused(
        ScriptedJudge(sensible),
        record=lambda name, ask, said: noted.append((ask.prompt.name, said)),
    )
    score(alone(broker), rows(1))
    assert sorted(name for name, _ in noted) == ["grade"] * 3 + ["questions", "support"]
    assert json.loads(noted[0][1].text).keys() == {"grade"}
    assert sum(said.prompt_tokens for _, said in noted) == 10
