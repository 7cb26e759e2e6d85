"""`prompt_layout: row_first`: what is sent, in which order, and what is said of the cache."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.errors import UnreadableReply
from ragmetrics.judges import EmbeddingClient, JudgeClient, MetricRequest, Reply, layout_of
from ragmetrics.judges.row_first import ROW_FIRST, RowFirst, is_cacheable
from ragmetrics.metrics import GRADE, NEEDED, select
from ragmetrics.pipeline import estimate, evaluate, run_night
from ragmetrics.records import Ask, LogRow, Manifest, Prompt, Text
from ragmetrics.scoring import chosen_metrics, metric_fingerprints
from ragmetrics.scoring.metric_choice import score_families
from ragmetrics.scoring.metric_run import MetricRun
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prompt_cache import PromptCache
from tests.fakes.scripted import CountingEmbedder

METRICS = ["context_relevance", "context_relevancy", "context_recall"]
SENTENCES = [f"Sentence {n} says that lift {n} was tested in {1900 + n}." for n in range(90)]
ROW = LogRow(
    id="a",
    user_input="When was lift 7 tested?",
    retrieved_contexts=(" ".join(SENTENCES[:45]), " ".join(SENTENCES[45:])),
    reference="Lift 7 was tested in 1907.",
)


def asks_of(row: LogRow = ROW, metrics: list[str] = METRICS) -> list[Ask]:
    """The first requests of metrics on a row, instructions first."""
    runs = [MetricRun(metric, row) for metric in select(metrics)]
    for run in runs:
        run.step(None)
    return [ask for run in runs for ask in run.asks() if isinstance(ask, Ask)]


def arranged(row: LogRow = ROW, metrics: list[str] = METRICS) -> dict[str, Ask]:
    """The requests in the layout, by prompt."""
    return {one.prompt.name: one for one in RowFirst().arrange(row, asks_of(row, metrics))}


def test_requests_with_all_contexts_share_their_beginning() -> None:
    """To the last character of the contexts; the rest is the task of each."""
    needed, support = (arranged()[name] for name in ("needed", "support"))
    assert needed.prompt.system == support.prompt.system == ROW_FIRST.strip()
    first, second = needed.text.split("\n")[0], support.text.split("\n")[0]
    assert first == second
    assert json.loads(first)["contexts"][1]["90"] == SENTENCES[-1]
    assert "Check which sentences" in support.text and '"Lift 7 was tested' in support.text


def test_a_request_about_one_context_is_not_changed() -> None:
    """It costs nothing where another row or night asked it, and would hold five times the text."""
    before = [ask for ask in asks_of() if ask.prompt is GRADE]
    after = [one for one in RowFirst().arrange(ROW, asks_of()) if one.prompt is GRADE]
    assert [one.key for one in before] == [one.key for one in after]


def test_other_contexts_than_those_of_the_row_are_not_changed() -> None:
    """Faithfulness leaves out blank contexts, so it keeps its own form on such a row."""
    ask = Ask(NEEDED, {"question": ROW.user_input, "contexts": [{"1": "Other."}]})
    verbatim = Ask(Prompt("old", 1, Text, "{question}", verbatim=True), {"question": "q"})
    assert RowFirst().arrange(ROW, [ask, verbatim]) == [ask, verbatim]


def test_prompts_of_the_two_layouts_are_two_prompts() -> None:
    """Their digests and the keys of their replies differ, so no reply passes for the other's."""
    plain = {ask.prompt.name: ask for ask in asks_of()}
    for name, ask in arranged().items():
        same = name == "grade"
        assert (ask.key == plain[name].key) is same
        assert (ask.prompt.digest == plain[name].prompt.digest) is same


def test_scores_of_the_two_layouts_are_never_compared() -> None:
    """The fingerprints differ; the default has the fingerprint of before."""

    def found(**more: Any) -> dict[str, str]:
        judge = {"name": "openai", "base_url": "http://127.0.0.1:9/v1", **more}
        return metric_fingerprints(make_settings({"metrics": METRICS, "judge": judge}))

    default, task, row = (
        found(),
        found(prompt_layout="task_first"),
        found(prompt_layout="row_first"),
    )
    assert default == task
    assert not default.items() & row.items()


def test_a_reply_is_read_as_in_the_default_layout() -> None:
    """The checks see the data of the request."""
    needed = arranged()["needed"]
    assert needed.prompt.parse('{"needed": [90]}', needed.data).needed == [90]
    with pytest.raises(UnreadableReply):
        needed.prompt.parse('{"needed": [91]}', needed.data)


@given(st.text(max_size=60), st.lists(st.text(max_size=60), min_size=1, max_size=3))
def test_no_text_of_a_log_ends_the_line_of_data(question: str, contexts: list[str]) -> None:
    """The first line break of the message is ours, whatever the log holds."""
    row = LogRow(
        id="a", user_input=question, retrieved_contexts=tuple(contexts), reference="It is."
    )
    ask = Ask(
        select(["context_recall"])[0].prompts[0],
        {"question": question, "contexts": contexts, "sentences": [question]},
    )
    (found,) = RowFirst().arrange(row, [ask])
    first, blank, *_ = found.text.splitlines()
    assert set(json.loads(first)) == {"question", "contexts"} and blank == ""
    assert json.loads(found.text.splitlines()[-1].partition("contexts: ")[2]).keys() == {
        "sentences"
    }


class Slow:
    """A judge that notes how many requests were in flight as each arrived."""

    name, note, fingerprint, cacheable, concurrency = "slow", "", "slow", False, 8

    def __init__(self) -> None:
        self.arrived: list[tuple[str, int]] = []
        self.flying = 0

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """A verdict, after others had the time to arrive."""
        self.arrived.append((request.prompt.name, self.flying))
        self.flying += 1
        for _ in range(20):
            await asyncio.sleep(0)
        self.flying -= 1
        texts = {
            "needed": '{"needed": []}',
            "support": '{"supported": [1]}',
            "grade": '{"grade": 1}',
        }
        return Reply(texts[request.prompt.name])

    def evidence(self, request: Ask) -> None:
        """None."""

    async def close(self) -> None:
        """Nothing is open."""


def order(row: LogRow, *, head_first: bool = True) -> list[tuple[str, int]]:
    """In which order requests arrive, and how many others are then in flight."""

    async def run() -> list[tuple[str, int]]:
        judge = Slow()
        embeddings, layout = EmbeddingClient(CountingEmbedder()), RowFirst()
        client = JudgeClient(judge, embeddings, live=head_first, layout=layout)
        wanted = [MetricRequest(one) for one in layout.arrange(row, asks_of(row))]
        answers = await client.answer_all("00000000", wanted)
        assert [type(one).__name__ for one in answers] == ["Grade", "Grade", "Needed", "Support"]
        return judge.arrived

    return asyncio.run(run())


def test_the_first_of_a_long_row_is_answered_before_the_others_are_sent() -> None:
    """A request in flight caches nothing. Requests without that beginning do not wait."""
    assert order(ROW) == [("grade", 0), ("grade", 1), ("needed", 2), ("support", 0)]


def test_a_row_too_short_for_a_cache_does_not_wait() -> None:
    """All its requests are sent at once, and so are those of a batch."""
    short = LogRow(
        id="a", user_input="When?", retrieved_contexts=("In 1907.", "Lift 7."), reference="In 1907."
    )
    assert not any(map(is_cacheable, RowFirst().arrange(short, asks_of(short))))
    assert [flying for _, flying in order(short)] == [0, 1, 2, 3]
    assert [flying for _, flying in order(ROW, head_first=False)] == [0, 1, 2, 3]


def test_one_task_scores_the_metrics_that_share_a_row() -> None:
    """Otherwise two tasks would each send the row as if it were new."""
    judge = {"name": "openai", "prompt_layout": "row_first"}
    assert len(score_families(make_settings({"metrics": METRICS, "judge": judge}))) == 1
    assert len(score_families(make_settings({"metrics": METRICS}))) == 3
    assert len(chosen_metrics(make_settings({"metrics": METRICS}))) == 3


def test_judges_that_read_no_prompts_have_no_layout() -> None:
    """Whatever the settings say."""
    assert layout_of(JudgeSettings(name="openai-batch", prompt_layout="row_first"))
    assert layout_of(JudgeSettings(name="lexical", prompt_layout="row_first")) is None
    assert layout_of(JudgeSettings(name="openai", prompt_layout="task_first")) is None
    assert layout_of(JudgeSettings(name="recorded:a.jsonl", prompt_layout="row_first"))


def long_rows(count: int) -> list[dict[str, Any]]:
    """Rows with contexts of 3,000 characters, no two alike."""
    rows = make_rows(count, good=0.7)
    for number, row in enumerate(rows):
        told = " ".join(f"Part {number}-{n} of the lift was tested." for n in range(80))
        row["retrieved_contexts"] = [f"{context} {told}" for context in row["retrieved_contexts"]]
    return rows


def night(folder: Path, server: JudgeServer, store: str, **judge: Any) -> Manifest:
    """A night of eight long rows, with prices."""
    write_jsonl(folder / "logs" / f"{NIGHT}.jsonl", long_rows(8))
    prices = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 4.0}
    settings = night_values(
        folder,
        logs="logs/{date}.jsonl",
        store=store,
        metrics=METRICS,
        judge=judge_at(server, model="gpt-4.1-mini") | prices | judge,
    )
    return run_night(make_settings(settings), NIGHT).manifest


@pytest.mark.parametrize("behaviour", [{}, {"json_schema": False, "json_object": False}])
def test_a_night_finds_its_rows_in_the_cache_and_says_what_that_saved(
    tmp_path: Path, judge_server: JudgeServer, behaviour: dict[str, Any]
) -> None:
    """Verdicts of a judge that reads by meaning are the same; the manifest has share and money."""
    judge_server.faults(**behaviour)
    cached_price = {"usd_per_million_cached_tokens": 0.1}
    plain = night(tmp_path, judge_server, "plain", prompt_layout="task_first", **cached_price)
    judge_server.reset()
    judge_server.faults(**behaviour)
    found = night(tmp_path, judge_server, "by-default", **cached_price)
    assert plain.usage.cached_tokens == 0 and plain.usage.usd_saved is None
    cached = found.usage.cached_tokens
    assert cached == judge_server.stats()["cached_tokens"]
    assert cached >= 8 * 1_024
    assert found.usage.usd_saved == pytest.approx(cached * 0.9 / 1e6, abs=1e-6)
    assert [(metric.mean, metric.scored) for metric in found.metrics] == [
        (metric.mean, metric.scored) for metric in plain.metrics
    ]


def test_an_estimate_counts_the_requests_that_are_sent(judge_server: JudgeServer) -> None:
    """In this layout too, with the tokens of its prompts."""
    judge = judge_at(judge_server, prompt_layout="row_first")
    settings, rows = make_settings({"judge": judge}), long_rows(6)
    expected = estimate(rows, METRICS, settings=settings).total
    found = evaluate(rows, METRICS, settings=settings).manifest.usage
    assert expected.requests == found.requests
    assert expected.prompt_tokens == pytest.approx(found.prompt_tokens, rel=0.01)


def test_the_fake_caches_as_providers_do() -> None:
    """From 1,024 tokens, in steps of 128, and only what was answered before."""
    cache, text = PromptCache(), "".join(f"{n:07d} " for n in range(1_000))
    head, user = {"role": "system", "content": "Judge."}, {"role": "user", "content": text}
    assert cache.cached_tokens([head, user], "provider") == 0
    cache.add([head, user], "provider")
    assert cache.cached_tokens([head, user], "provider") == (len(text) + 6) // 4 // 128 * 128
    assert cache.cached_tokens([{**head, "role": "user"}, user], "provider") == 0
    fewer = {"role": "user", "content": text[:4_200] + "?" * 4_000}
    assert cache.cached_tokens([head, fewer], "provider") == 1_024
    too_few = {"role": "user", "content": text[:4_000] + "?" * 4_000}
    assert cache.cached_tokens([head, too_few], "provider") == 0


def test_the_fake_reads_a_schema_before_the_prompt() -> None:
    """Requests with other schemas have no common beginning at a provider; blocks have no schema."""
    cache, user = PromptCache(), [{"role": "user", "content": "".join(map(str, range(3_000)))}]
    for kind, cached in (("provider", 0), ("block", 2_720)):
        cache.add(user, kind, {"type": "object"})
        assert cache.cached_tokens(user, kind, {"type": "array"}) == cached
        assert cache.cached_tokens(user, kind, {"type": "object"}) > 2_500


def test_the_fake_caches_as_servers_with_blocks_do() -> None:
    """In blocks of 16 tokens from the first on."""
    cache, text = PromptCache(), "".join(f"{n:07d} " for n in range(100))
    cache.add([{"role": "user", "content": text}], "block")
    like = {"role": "user", "content": text[:130] + "?" * 500}
    assert cache.cached_tokens([like], "block") == 32
    assert cache.cached_tokens([like], "off") == 0
