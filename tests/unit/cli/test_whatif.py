"""What-ifs: variants of the retriever, and which of them mends the questions that fell."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.passages import NeedingQuestion
from ragmetrics.passages.diagnosis.document_ids import in_order
from ragmetrics.pipeline import run_night, store_references
from ragmetrics.pipeline.retention import Retention, plan_removal
from ragmetrics.pipeline.variant_results import VariantAnswers, measure_variants
from ragmetrics.records import (
    LogRow,
    LostPassages,
    VariantChange,
    VariantResult,
    WhatIf,
    whatif_sentence,
)
from ragmetrics.storage import Runs, open_store
from tests.builders import night_values
from tests.fakes import searching
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl
from tests.fakes.nights import night
from tests.fakes.retrievals import text_of
from tests.fakes.retriever import SearchServer

NAMES = [f"p{number}" for number in range(10)]
BAD = date(2026, 11, 4)


def row(number: int, name: str, build: str) -> dict[str, Any]:
    """A question that retrieved one passage."""
    return {
        "id": f"r{number}",
        "user_input": f"Which case counts for document p{number}, and is it the first rule?",
        "retrieved_contexts": [text_of(name)],
        "retrieved_context_ids": [name],
        "reference_context_ids": [f"p{number}"],
        "index_build": build,
    }


def settings_in(folder: Path, **more: Any) -> Settings:
    """Settings of a store with a retriever, scored by ids alone."""
    return make_settings(
        night_values(
            folder,
            logs="{date}.jsonl",
            metrics=["id_recall"],
            retriever={
                **searching.SETTINGS,
                "variants": {"large_k": {"k": 8}, "open": {"filters": False}},
            },
        )
        | more
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights; on the last one, questions 0 to 3 retrieve another passage."""
    folder = tmp_path_factory.mktemp("whatif")
    for day in (2, 3, 4):
        rows = [
            row(n, "x" if day == 4 and n < 4 else name, f"b{day}") for n, name in enumerate(NAMES)
        ]
        write_jsonl(folder / f"2026-11-0{day}.jsonl", rows)
        run_night(settings_in(folder), date(2026, 11, day))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of these nights, and a retriever with all passages."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    searching.reset("x", "y", *NAMES)
    yield tmp_path
    searching.reset()


def test_the_variant_that_returns_the_passages_mends(folder: Path) -> None:
    """With k = 8 the passages p0 to p3 are returned, with k = 2 none of them."""
    found = ragmetrics.whatif(BAD, settings=settings_in(folder))
    assert [variant.name for variant in found.variants] == ["as now", "large_k", "open"]
    as_now, large, plain = found.variants
    assert (as_now.asked, as_now.mended, plain.mended) == (4, 0, 0)
    assert (large.mended, large.share, large.contexts) == (4, 1.0, 8.0)
    assert found.best is large
    (change,) = large.fell
    assert (change.metric, change.difference) == ("id_recall", 1.0)


def test_others_are_asked_too(folder: Path) -> None:
    """As many questions that did not fall; a variant that loses theirs breaks them."""
    found = ragmetrics.whatif(BAD, settings=settings_in(folder), questions=3)
    as_now, large, _ = found.variants
    assert (found.fallen, as_now.asked, as_now.others) == (4, 3, 3)
    assert as_now.broken == 3
    assert large.broken < as_now.broken


def test_parameters_make_a_variant(folder: Path) -> None:
    """`parameters` alone leave out the named variants."""
    found = ragmetrics.whatif(BAD, settings=settings_in(folder), parameters={"k": 6})
    assert [variant.name for variant in found.variants] == ["as now", "k=6"]


def test_the_record_names_the_judge_that_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings' judge, which may be another than that of the night. `id_recall` asks none."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = {"name": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "other"}
    found = ragmetrics.whatif(BAD, settings=settings_in(folder, judge=judge))
    assert "other" in found.judge.name


def test_prune_removes_what_ifs_of_old_nights(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the night's other files, once no rule compares with it."""
    for name in ("NEEDED_NIGHTS", "COMPARED_NIGHTS", "_ROW_NIGHTS"):
        monkeypatch.setattr(store_references, name, 1)
    ragmetrics.whatif(BAD, settings=settings_in(folder))
    kept = Retention(timedelta(days=60), timedelta(days=14))
    for path in (folder / "store").rglob("*.*"):
        os.utime(path, (0, 0))
    Runs(open_store(settings_in(folder))).save(night(0, date=BAD + timedelta(days=1)))
    for days, count in ((59, 0), (61, 1)):
        now = datetime.combine(BAD, time(12), UTC) + timedelta(days=days)
        plan = plan_removal(settings_in(folder), kept, now)
        found = [info.path for info in plan.files]
        assert found.count(f"whatif/dt={BAD}.json") == count


def test_the_nights_page_shows_the_table(folder: Path) -> None:
    """One table, with the sentence above it; a later run of the night has none."""
    ragmetrics.whatif(BAD, settings=settings_in(folder))
    page = (folder / "store" / "dashboard" / str(BAD) / "index.html").read_text()
    assert "What would fix it" in page
    assert "large_k fixes 4 of 4 questions that fell" in page


@pytest.mark.parametrize(
    ("more", "arguments", "said"),
    [
        ({"retriever": None}, {}, "no retriever to ask"),
        ({}, {"variants": ["huge"]}, "not in `retriever: variants:`"),
        ({}, {"parameters": {"depth": 3}}, "not in `retriever: parameters:`"),
        ({}, {"parameters": {"k": date(2026, 11, 1)}}, "no value of JSON"),
        ({"retriever": searching.SETTINGS}, {}, "there is no variant"),
    ],
)
def test_what_cannot_be_asked_is_said(
    folder: Path, more: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    """Before any request."""
    with pytest.raises(InputError, match=said):
        ragmetrics.whatif(BAD, settings=settings_in(folder, **more), **arguments)
    assert not searching.asked


@pytest.mark.parametrize(
    ("night", "said"), [(date(2026, 11, 3), "no question"), (date(2026, 1, 1), "there is no night")]
)
def test_a_night_without_a_fall_is_an_error(folder: Path, night: date, said: str) -> None:
    """There is nothing to mend."""
    with pytest.raises(InputError, match=said):
        ragmetrics.whatif(night, settings=settings_in(folder))


def test_a_retriever_that_answers_html_is_named(folder: Path, search_server: SearchServer) -> None:
    """Not the log: no answer could be read, and the most frequent reason is told."""
    search_server.faults(fail={"html": 1.0})
    retriever = {**search_server.settings, "parameters": {"k": 2}, "variants": {"large": {"k": 8}}}
    settings = settings_in(folder, retriever=retriever)
    with pytest.raises(RetrieverRefused, match="no usable answer to any of 16 requests") as error:
        ragmetrics.whatif(BAD, settings=settings)
    assert "(16): the retriever's answer is not JSON: <html>Please log in" in str(error.value)


def test_the_command_begins_with_the_verdict(run: Run, folder: Path) -> None:
    """Then the table of variants; --json prints the record."""
    file = folder / "ragmetrics.yaml"
    file.write_text(json.dumps(settings_in(folder).model_dump(mode="json", exclude_defaults=True)))
    out = run("whatif", "--night", BAD, "--settings", file).out
    assert out.startswith("Large_k fixes 4 of 4 questions that fell (100% [51%, 100%])")
    out = run("whatif", "--night", BAD, "--settings", file, "--set", "k=6", "--json").out
    record = WhatIf.model_validate_json(out)
    assert record.variants[1].parameters == {"k": 6}


def test_the_sentence_names_a_cost_that_is_clear() -> None:
    """A change of the others whose interval holds 0 is no cost."""

    def sentence(low: float, high: float) -> str:
        cost = VariantChange(
            metric="context_relevance", questions=9, difference=-0.1, low=low, high=high
        )
        best = VariantResult(
            name="k=9", asked=9, mended=8, share=8 / 9, low=0.5, high=1, kept=[cost]
        )
        now = VariantResult(name="as now", asked=9, mended=2)
        return whatif_sentence(WhatIf.model_construct(variants=[now, best]))

    assert "context_relevance by -0.100" in sentence(-0.2, -0.01)
    assert "context_relevance" not in sentence(-0.2, 0.01)
    assert "`as now` 2" in sentence(-0.2, 0.01)


def test_only_a_night_of_now_asks_the_retriever(folder: Path) -> None:
    """A night that is published today asks; a fall of the past, published again, does not."""
    rules = [{"metric": "id_recall", "min": 0.95, "min_rows": 5}]
    settings = settings_in(folder, alerts={"rules": rules})

    def publish(day: int, lost: int) -> LostPassages:
        rows = [row(n, "x" if n < lost else p, f"b{day}") for n, p in enumerate(NAMES)]
        write_jsonl(folder / f"2026-11-0{day}.jsonl", rows)
        found = run_night(settings, date(2026, 11, day)).manifest.lost_passages
        assert found
        return found

    publish(5, lost=0)
    tonight = publish(6, lost=6)
    assert tonight.requests == sum(searching.asked.values()) > 0
    searching.asked.clear()
    past = publish(4, lost=6)
    assert (past.lost, past.requests) == (6, 0)
    assert not searching.asked


def test_a_question_without_an_answer_is_not_mended() -> None:
    """A variant that answers one question of four mends at most one of four."""
    asked = [
        NeedingQuestion(
            LogRow(id=str(n), user_input="q", retrieved_contexts=()), frozenset({n}), frozenset({n})
        )
        for n in range(4)
    ]
    right = LogRow(id="0", user_input="q", retrieved_contexts=("t",))
    asked[0] = replace(asked[0], needed=frozenset(in_order(["t"]).tolist()))
    failing = VariantAnswers("k=9", {}, [right, "down", "down", "down"])
    _, found = measure_variants(
        [VariantAnswers("as now", {}, ["down"] * 4), failing], asked, [], []
    )
    assert (found.mended, found.asked, found.share, found.failed) == (1, 4, 0.25, 3)
