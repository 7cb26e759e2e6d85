"""Decision models that stumble, decline or cannot answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges import Corpus
from ragmetrics.judges.decision_layout import DecisionLayout
from ragmetrics.judges.factory import make_judge
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask, LogRow
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.decisions import scored, values


def test_a_declined_question_costs_its_own_verdict(judge_server: JudgeServer) -> None:
    """The other metrics of the rows are scored."""
    judge_server.faults(declines=["support 2"])
    result = scored(judge_server)
    usage = result.manifest.usage
    assert (usage.prompt_tokens, usage.unknown_requests) == (
        judge_server.stats()["prompt_tokens"],
        0,
    )
    statuses = {one.metric: one.status for one in result.manifest.metrics}
    assert statuses.pop("context_recall") == {"refused": 20}
    assert all(status == {"scored": 20} for status in statuses.values())


def test_nothing_is_lost_to_a_stumbling_server(judge_server: JudgeServer) -> None:
    """A quarter of all attempts fails in five ways; the scores are those of a clean run."""
    clean = values(scored(judge_server, count=60))
    judge_server.reset()
    fail = {"429": 0.1, "500": 0.05, "drop": 0.03, "malformed": 0.04, "prose": 0.03}
    judge_server.faults(fail=fail, retry_after=0.1)
    result = scored(judge_server, count=60, retries=6)
    assert values(result) == clean
    counted = result.manifest.usage.failures
    assert counted["rate_limited"] == judge_server.stats()["by_status"]["429"]
    assert counted["unreadable"] > 0


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"fail": {"401": 1}}, "refused the key"),
        ({"decides": "none"}, "does not serve 'luna' as a decision model"),
        ({"models": ["other"]}, "does not serve 'luna' as a decision model"),
    ],
)
def test_a_server_that_cannot_answer_ends_the_run(
    judge_server: JudgeServer, behaviour: dict[str, Any], message: str
) -> None:
    """Within a few requests, with one sentence."""
    judge_server.faults(**behaviour)
    with pytest.raises(JudgeRefused, match=message):
        scored(judge_server)
    assert judge_server.stats()["requests"] < 10


def test_answers_that_are_no_probabilities_are_unreadable(judge_server: JudgeServer) -> None:
    """They are asked again, counted, and never become a score."""
    judge_server.faults(nonsense=True)
    result = scored(judge_server, ["context_relevance"], count=3, reasks=1)
    assert result.manifest.metrics[0].status == {"unreadable": 3}
    assert result.manifest.usage.failures["unreadable"] > 0


def test_requests_that_nobody_waits_for_are_not_sent(judge_server: JudgeServer) -> None:
    """A run that stops leaves none behind, and none goes out after it."""
    judge_server.faults(fail={"hang": 1.0})
    chosen = judge_at(judge_server, name="decision", api="logprobs", concurrency=1)
    judge = make_judge(make_settings({"judge": chosen}).judge, Corpus())
    asks = DecisionLayout().arrange(
        LogRow(id="r", user_input="Why?", retrieved_contexts=("Because.", "So.", "Thus.")),
        [Ask(GRADE, {"question": "Why?", "context": one}) for one in ("Because.", "So.", "Thus.")],
    )

    async def stop() -> int:
        waiting = [asyncio.ensure_future(judge.reply(ask, 0)) for ask in asks]
        while not judge_server.stats()["requests"]:
            await asyncio.sleep(0.02)
        for task in waiting:
            task.cancel()
        await asyncio.sleep(0.5)
        sent = int(judge_server.stats()["requests"])
        await judge.close()
        return sent

    assert asyncio.run(stop()) == 1
