"""A night's page says what the night cost, and what its budget was enough for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard import cost_lines, limits_text, money_text
from ragmetrics.dashboard.costs import all_costs, budget_text, money
from ragmetrics.records import BudgetReport, SampleReport, SpendLimits
from ragmetrics.records.judging import Usage
from ragmetrics.storage import Files
from tests.fakes.nights import HOSTILE, night, summary
from tests.fakes.page_writing import write_night

Page = Callable[..., str]


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """The words of a night's page, cells and all, with one space between them."""

    def words(**change: Any) -> str:
        path = write_night(Files(str(tmp_path)), night(**change), [], [])
        html = (tmp_path / path).read_text(encoding="utf-8").replace("<wbr>", "")
        return " ".join(re.sub(r"<[^>]*>", " ", html).split())

    return words


def test_it_says_what_each_metric_cost(page: Page) -> None:
    """Money, requests, tokens and their cached share; embeddings under their metric."""
    usage = Usage(
        requests=40,
        answered_from_store=7,
        shared=3,
        prompt_tokens=9_000,
        cached_tokens=6_000,
        completion_tokens=80,
        usd=0.0042,
        usd_saved=0.03,
        failures={"rate_limited": 12},
    )
    embeddings = Usage(requests=5, prompt_tokens=70)
    asked = {"context_recall": {"openai:a": usage, "embeddings": embeddings}}
    told = page(usage=usage, usage_by_metric=asked)
    assert "context_recall $0.0042 40 9,000 80 66.7% 7 3 embeddings – 5 70 0 – 0 0" in told
    assert "All ≥ $0.0042 45 9,070 80 66.2% 7 3" in told
    assert "9,000 in (66.7% cached, saved $0.03), 80 out" in told
    assert "40 asked, 7 reused from cache, 3 shared" in told
    assert "rate_limited , 12 times" in told


def test_a_sample_that_asked_nobody_cost_nothing(page: Page) -> None:
    """Where all answers were known, or the judge runs on this machine, no prices are compared."""
    sample = SampleReport(rows=60, half_width=None, judged=60, spent=Usage(), whole=Usage())
    told = page(sample=sample)
    assert "no cost: no request left this machine" in told
    assert "would have cost" not in told


def test_what_the_labelled_set_cost_is_a_line_of_its_own(page: Page) -> None:
    """It is no cost of the night's rows, and in no budget."""
    told = page(labelled=Usage(requests=50, prompt_tokens=9_000, completion_tokens=80, usd=0.004))
    assert "Labelled set 50 requests, 9,080 tokens, $0.004, in no other figure" in told
    assert "Labelled set" not in page()


def test_a_night_that_cost_nothing_has_no_table_of_costs(page: Page) -> None:
    """The lexical judge sends nothing anywhere."""
    asked = {"context_recall": {"lexical": Usage(requests=400)}}
    assert "by metric and judge" not in page(usage_by_metric=asked)


def test_it_says_what_the_budget_was_enough_for(page: Page) -> None:
    """Limits, share, rows over and what was spent; the metric's card counts them too."""
    budget = BudgetReport(
        limits=SpendLimits(max_requests=500, max_usd=2.5),
        estimated=Usage(requests=1_200),
        share=0.4,
        spent=Usage(requests=470, prompt_tokens=90_000, usd=0.04),
        rows_over=120,
    )
    card = summary("context_recall", 0.9, status={"scored": 80, "over_budget": 120})
    told = page(budget=budget, metrics=[card])
    assert (
        "500 requests, $2.50: enough for 40.0% of the questions; 120 rows over. "
        "Spent: 470 requests, 90,000 tokens, $0.04" in told
    )
    assert "The budget covered 80 of 200 rows." in told
    assert "120 rows over budget" in told


@pytest.mark.parametrize(
    ("share", "over", "cut", "told"),
    [
        (1.0, 0, 0, "enough for all questions"),
        (0.4, 120, 0, "enough for 40.0% of the questions; 120 rows over"),
        (
            1.0,
            9,
            9,
            "by the estimate enough for all questions; 9 rows over, as it was used up during the "
            "run",
        ),
        (
            0.4,
            121,
            1,
            "by the estimate enough for 40.0% of the questions; 120 rows over, outside the sample; "
            "1 row over, as it was used up during the run",
        ),
    ],
)
def test_rows_outside_the_sample_are_told_from_those_cut_off(
    share: float, over: int, cut: int, told: str
) -> None:
    """A budget may be enough by the estimate, and be used up all the same."""
    report = BudgetReport(
        limits=SpendLimits(max_requests=1),
        estimated=Usage(),
        share=share,
        spent=Usage(),
        rows_over=over,
        rows_cut_off=cut,
    )
    assert budget_text(report) == told


def test_judges_of_a_panel_stand_under_their_metric() -> None:
    """The metric's line is their sum without embeddings; a price that is missing hides no other."""
    a, b = Usage(requests=4, prompt_tokens=40, usd=0.5), Usage(requests=4, prompt_tokens=60)
    asked = {"recall": {"a": a, "b": b, "embeddings": Usage(requests=9, prompt_tokens=1, usd=0.1)}}
    lines = [(line.label, line.usage.requests, line.is_part) for line in cost_lines(asked)]
    assert lines == [("recall", 8, False), ("a", 4, True), ("b", 4, True), ("embeddings", 9, True)]
    assert [line.money for line in cost_lines(asked)] == ["≥ $0.50", "$0.50", "–", "$0.10"]
    assert all_costs(cost_lines(asked)).money == "≥ $0.60"
    assert money_text(a + b, asked) == "$0.60 and more: not all prices are set for b"
    assert money_text(a, {"recall": {"a": a}}) == "$0.50"
    assert money_text(b, {"recall": {"b": b}}) == "cost not known: not all prices are set for b"


def test_a_metric_that_only_embeds_has_a_line_of_zeros() -> None:
    """What its embeddings asked for stands below it."""
    lines = cost_lines({"relevancy": {"embeddings": Usage(requests=9, prompt_tokens=1)}})
    assert [(line.label, line.usage.requests) for line in lines] == [
        ("relevancy", 0),
        ("embeddings", 9),
    ]


def test_names_of_judges_are_text(tmp_path: Path) -> None:
    """Whatever a model is called, it adds no element."""
    asked = {HOSTILE: {HOSTILE: Usage(requests=1, prompt_tokens=1)}}
    path = write_night(Files(str(tmp_path)), night(usage_by_metric=asked), [], [])
    assert "<script>alert" not in (tmp_path / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("usd", "told"),
    [
        (None, "–"),
        (0.0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.00421, "$0.0042"),
        (0.5, "$0.50"),
        (0.99996, "$1.00"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_has_the_digits_that_matter(usd: float | None, told: str) -> None:
    """A night may cost a tenth of a cent."""
    assert money(usd) == told


def test_limits_in_words() -> None:
    """Those that are set."""
    assert limits_text(SpendLimits(max_tokens=1_000_000)) == "1,000,000 tokens"
    assert limits_text(SpendLimits(max_requests=1, max_usd=3)) == "1 request, $3.00"
