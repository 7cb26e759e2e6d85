"""The judge `rerank`: rerankers of all servers' forms grade contexts, one request for each row."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.errors import InputError, JudgeRefused, RagmetricsError, SettingsError
from ragmetrics.judges import probe_judge
from ragmetrics.people import calibrate
from ragmetrics.people.calibration.thresholds import fit_thresholds
from ragmetrics.people.calibration.units import Unit
from ragmetrics.pipeline import Result, run_night
from ragmetrics.records import Status
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

METRICS = ["context_relevance", "context_precision"]
THRESHOLDS = [0.3, 0.7]
ASIDES = ["The tower is high.", "Nothing at all."]


def rows(count: int = 20) -> list[dict[str, Any]]:
    """Rows with three contexts each, of which the first is of use in four rows of five."""
    made = make_rows(count, good=0.8)
    return [one | {"retrieved_contexts": [*one["retrieved_contexts"], *ASIDES]} for one in made]


def judge(server: JudgeServer, path: str = "", **more: Any) -> dict[str, Any]:
    """Settings of the judge."""
    place = {"base_url": server.base_url + path, "model": "bge", "thresholds": THRESHOLDS}
    return {"name": "rerank", "retries": 2, **place, **more}


def scored(server: JudgeServer, path: str = "", count: int = 20, **more: Any) -> Result:
    """The rows, judged by a reranker."""
    settings = make_settings({"judge": judge(server, path, **more)})
    return ragmetrics.evaluate(rows(count), METRICS, settings=settings)


def grades(result: Result) -> list[list[int]]:
    """The grades of the contexts of each row."""
    found = result.scores()
    details = found[found["metric"] == "context_relevance"]["details"]
    return [
        detail["grades"] if isinstance(detail, dict) else json.loads(detail)["grades"]
        for detail in details
    ]


@pytest.mark.parametrize(
    ("form", "path"),
    [("vllm", ""), ("cohere", ""), ("jina", ""), ("tei", ""), ("vllm", "/score")],
)
def test_servers_of_all_forms_grade_alike(judge_server: JudgeServer, form: str, path: str) -> None:
    """One request for all contexts of a row; tokens that the server does not say are estimated."""
    clean = grades(scored(judge_server))
    judge_server.reset()
    judge_server.faults(reranker=form)
    result = scored(judge_server, path)
    assert grades(result) == clean
    assert {grade for row in clean for grade in row} == {0, 1, 2}
    usage, met = result.manifest.usage, judge_server.stats()
    refused = met["by_status"].get("422", 0)  # of the other form, before the right one was found
    assert met["requests"] - refused == len({row["user_input"] for row in rows()})
    assert usage.requests == met["requests"]
    assert usage.prompt_tokens > 0
    assert usage.unknown_requests == (usage.requests - refused if form == "tei" else 0)


def test_no_row_is_lost_to_a_stumbling_server(judge_server: JudgeServer) -> None:
    """A fifth of all attempts fails in four ways: each has its counter, and the scores are those
    of a clean run."""
    clean = grades(scored(judge_server, count=100))
    judge_server.reset()
    fail = {"429": 0.1, "500": 0.05, "drop": 0.03, "malformed": 0.05}
    judge_server.faults(fail=fail, retry_after=0.1)
    result = scored(judge_server, count=100, retries=6)
    assert grades(result) == clean
    counted = result.manifest.usage.failures
    for kind in ("rate_limited", "server_error", "dropped"):
        assert counted[kind] > 0, kind
    assert counted["rate_limited"] == judge_server.stats()["by_status"]["429"]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"fail": {"401": 1}}, "refused the key"),
        ({"fail": {"quota": 1}}, "quota is used up"),
        ({"nonsense": True}, "is base_url right?"),
    ],
)
def test_a_server_that_cannot_answer_ends_the_run(
    judge_server: JudgeServer, behaviour: dict[str, Any], message: str
) -> None:
    """A wrong key, no money, and answers that are no scores: one error says which."""
    judge_server.faults(**behaviour)
    with pytest.raises(JudgeRefused, match=message):
        scored(judge_server)


def test_a_server_that_turns_bad_gives_each_row_a_reason(judge_server: JudgeServer) -> None:
    """Rows before it are scored, the others have failed; none is lost."""
    judge_server.faults(good_for=5, then="500")
    result = scored(judge_server, count=20, retries=0, concurrency=1)
    found = result.scores()
    own = found[found["metric"] == "context_relevance"]
    assert len(own) == 20
    assert set(own["status"]) == {"scored", "judge_failed"}
    assert own[own["status"] == "judge_failed"]["reason"].str.contains("500").all()


def test_more_contexts_than_a_server_takes_are_sent_in_parts(judge_server: JudgeServer) -> None:
    """text-embeddings-inference takes 32 texts by default; a row may have more."""
    many = [f"The harbour has {number} berths." for number in range(9)]
    row = {"user_input": "How many berths has the harbour?", "retrieved_contexts": many}
    judge_server.faults(reranker="tei", most_documents=4)
    settings = make_settings({"judge": judge(judge_server)})
    result = ragmetrics.evaluate([row], ["context_relevance"], settings=settings)
    assert len(grades(result)[0]) == 9


def test_a_context_that_is_too_long_costs_its_own_row(judge_server: JudgeServer) -> None:
    """The server refuses it; the other rows are scored."""
    long = {"user_input": "What is long?", "retrieved_contexts": ["word " * 5_000]}
    judge_server.faults(max_prompt_chars=10_000)
    settings = make_settings({"judge": judge(judge_server)})
    result = ragmetrics.evaluate([*rows(5), long], ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].status == {"scored": 5, "judge_failed": 1}


def test_repeated_nights_ask_for_nothing(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Replies are cached like those of any paid judge; other thresholds are another judge."""
    log = write_jsonl(tmp_path / "log.jsonl", rows())
    base = {"logs": str(log), "metrics": METRICS, "store": str(tmp_path / "store")}
    first = run_night(make_settings({**base, "judge": judge(judge_server)}), NIGHT).manifest
    asked = judge_server.stats()["requests"]
    again = make_settings({**base, "judge": judge(judge_server), "segments": []})
    run_night(again, NIGHT)
    assert judge_server.stats()["requests"] == asked
    other = make_settings({**base, "judge": judge(judge_server, thresholds=[0.1, 0.2])})
    assert run_night(other, NIGHT).manifest.judge.fingerprint != first.judge.fingerprint


def test_a_panel_takes_a_reranker_where_it_can_judge(judge_server: JudgeServer) -> None:
    """It votes on contexts; the other judge alone scores recall, and nothing counts as failed."""
    model = judge_at(judge_server)
    settings = make_settings({"judges": [model, judge(judge_server)]})
    result = ragmetrics.evaluate(rows(), ["context_relevance", "context_recall"], settings=settings)
    assert [metric.status for metric in result.manifest.metrics] == [{"scored": 20}] * 2
    found = result.scores().set_index("metric")["details"]
    relevance, recall = (found[one].iloc[0] for one in ("context_relevance", "context_recall"))
    assert [one["status"] for one in relevance["judges"].values()] == ["scored", "scored"]
    assert recall["judges"]["rerank:bge"]["status"] == Status.NOT_APPLICABLE


def test_a_sample_takes_a_reranker(judge_server: JudgeServer) -> None:
    """The reranker judges the sample, the lexical judge all rows."""
    settings = make_settings({"judge": judge(judge_server), "sample": {"rows": 10}})
    result = ragmetrics.evaluate(rows(40), ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].status == {"scored": 10, "not_sampled": 30}


def test_a_metric_that_it_cannot_score_is_named_at_once(judge_server: JudgeServer) -> None:
    """Before any request, with the metrics that it can score."""
    settings = make_settings({"judge": judge(judge_server)})
    with pytest.raises(InputError, match=r"cannot score context_recall; .* context_relevance\."):
        ragmetrics.evaluate(rows(), ["context_relevance", "context_recall"], settings=settings)
    assert judge_server.stats()["requests"] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"thresholds": None}, "ragmetrics calibrate"),
        ({"thresholds": [0.7, 0.3]}, "the second not below the first"),
        ({"base_url": None}, "address of its server"),
        ({"name": "openai"}, "on the judge rerank only"),
    ],
)
def test_settings_that_cannot_work(
    judge_server: JudgeServer, more: dict[str, Any], message: str
) -> None:
    """Each is refused with what to do."""
    with pytest.raises(SettingsError, match=message):
        scored(judge_server, **more)


def test_a_reranker_never_judges_itself(judge_server: JudgeServer) -> None:
    """The retriever's own reranker would find its own first contexts the best."""
    retriever = {"url": "https://search.example.com/query", "reranker": "BAAI/BGE"}
    settings = make_settings({"judge": judge(judge_server), "retriever": retriever})
    with pytest.raises(SettingsError, match="would judge itself"):
        ragmetrics.evaluate(rows(), METRICS, settings=settings)


def test_a_dry_run_counts_one_request_for_a_row(judge_server: JudgeServer) -> None:
    """As the run then sends; nothing is sent before."""
    priced = judge(judge_server, usd_per_million_prompt_tokens=1.0)
    settings = make_settings({"judge": priced})
    estimate = ragmetrics.estimate(rows(), METRICS, settings=settings)
    assert judge_server.stats()["requests"] == 0
    assert estimate.total.requests == scored(judge_server).manifest.usage.requests
    assert estimate.total.usd


def labelled(count: int = 60) -> list[dict[str, Any]]:
    """Rows whose contexts have grades by their share of the question's words."""
    found = []
    for number in range(count):
        question = f"red green blue yellow berth{number}"
        texts = ["red green blue yellow", "red green sea", "sand and stone"]
        found.append(
            {
                "id": str(number),
                "user_input": question,
                "retrieved_contexts": texts,
                "labels": {"chunk_relevance": [2, 1, 0], "chunk_relevance_scale": "0..2"},
            }
        )
    return found


def test_calibrate_prints_the_thresholds(
    judge_server: JudgeServer, tmp_path: Path, run: Run
) -> None:
    """A judge without thresholds can be calibrated; with the printed ones its grades are the
    labels."""
    place = write_jsonl(tmp_path / "labels.jsonl", labelled())
    options = ("--judge", "rerank", "--model", "bge", "--base-url", judge_server.base_url)
    ended = run("calibrate", place, *options, "--attacks", "0")
    [line] = [line for line in ended.out.splitlines() if "fit these labels" in line]
    fitted = json.loads(line.partition("thresholds: ")[2].rstrip("`"))
    settings = make_settings({"judge": judge(judge_server, thresholds=fitted)})
    (found,) = calibrate(settings, [str(place)], ["context_relevance"])
    [measured] = found.metrics
    assert measured.strengths == "evidence"
    assert measured.overall is not None
    assert measured.overall.figures["kappa_quadratic"].value == 1


def test_thresholds_fit_the_grades_of_another_judge(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A night that another judge graded is a labelled set."""
    log = write_jsonl(tmp_path / "log.jsonl", [*rows(60)])
    store = str(tmp_path / "store")
    run_night(make_settings({"logs": str(log), "metrics": METRICS, "store": store}), NIGHT)
    settings = make_settings({"judge": judge(judge_server, thresholds=None)})
    (found,) = calibrate(settings, [f"night:{NIGHT}"], ["context_relevance"], files=Files(store))
    [measured] = found.metrics
    assert measured.thresholds is not None
    assert measured.thresholds[0] <= measured.thresholds[1]


@pytest.mark.parametrize("place", ["night:yesterday", "night:2020-01-01"])
def test_a_night_that_is_not_there(judge_server: JudgeServer, tmp_path: Path, place: str) -> None:
    """The error names what was asked for."""
    settings = make_settings({"judge": judge(judge_server)})
    with pytest.raises(RagmetricsError, match=place):
        calibrate(settings, [place], files=Files(str(tmp_path)))


def unit(score: float, label: float) -> Unit:
    """A labelled context with its score."""
    return Unit("1", "q", "0", "c", label, None, strength=score)


@given(
    st.lists(
        st.tuples(st.floats(-20, 20), st.sampled_from([0.0, 0.5, 1.0])), min_size=50, max_size=120
    )
)
def test_thresholds_rise_and_lie_about_the_scores(pairs: list[tuple[float, float]]) -> None:
    """For any scores and labels; more than one step beyond the scores there is nothing."""
    found = fit_thresholds([unit(*pair) for pair in pairs])
    if found is not None:
        scores = [score for score, _ in pairs]
        step = (max(scores) - min(scores)) or 1.0
        assert min(scores) - step <= found[0] <= found[1] <= max(scores) + step


def test_thresholds_lie_between_the_scores_of_the_grades() -> None:
    """Where scores and labels agree, each grade is that of its label."""
    random = np.random.default_rng(7)
    bands = {0.0: (0.0, 0.3), 0.5: (0.35, 0.6), 1.0: (0.7, 1.0)}
    units = [unit(random.uniform(*band), label) for label, band in bands.items() for _ in range(30)]
    found = fit_thresholds(units)
    assert found is not None
    assert 0.3 <= found[0] <= 0.36
    assert 0.6 <= found[1] <= 0.71


def test_doctor_asks_for_one_grade(judge_server: JudgeServer) -> None:
    """A kind that has no probe of its own is asked as a night asks it, and only with `ask`."""
    settings = make_settings({"judge": judge(judge_server)}).panel[0]
    told = asyncio.run(probe_judge(settings, ask=False))
    assert told == f"{settings.base_url} was not asked (--ask) for a grade by bge"
    assert judge_server.stats()["requests"] == 0
    assert asyncio.run(probe_judge(settings, ask=True)) == (
        f"{settings.base_url} gave a grade by bge"
    )
    assert judge_server.stats()["requests"] == 1


def test_too_few_labels_fit_nothing() -> None:
    """Fewer than 50 contexts, or labels that do not rise with the scores."""
    assert fit_thresholds([unit(0.5, 1.0)] * 49) is None
    assert fit_thresholds([unit(score, 0.0) for score in range(60)]) is None
