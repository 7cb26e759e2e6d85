"""A night's page says what the night cost, and what its budget was enough for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import BudgetReport, Limits, Usage
from ragmetrics.report.costs import limits, money
from ragmetrics.report.site import write_night
from ragmetrics.store.files import Files
from tests.fakes.nights import HOSTILE, night, summary

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
    """Requests, tokens, their cached share and money; a dash where nobody told."""
    usage = Usage(
        requests=40,
        answered_from_store=7,
        shared=3,
        prompt_tokens=9_000,
        cached_tokens=6_000,
        completion_tokens=80,
        usd=0.0042,
        failures={"rate_limited": 12},
    )
    asked = {"context_recall": {"openai:a": usage, "embeddings": Usage(requests=5)}}
    told = page(usage=usage, usage_by_metric=asked)
    assert "context_recall openai:a 40 7 3 9,000 66.7% 80 $0.0042" in told
    assert "context_recall embeddings 5 0 0 0 – 0 –" in told
    assert "9,000 in (66.7% cached), 80 out" in told
    assert "40 asked, 7 answered from the store, 3 shared" in told
    assert "rate_limited , 12 times" in told


def test_a_night_that_cost_nothing_has_no_table_of_costs(page: Page) -> None:
    """The embedded judge sends nothing anywhere."""
    asked = {"context_recall": {"embedded": Usage(requests=400)}}
    assert "by metric and judge" not in page(usage_by_metric=asked)


def test_it_says_what_the_budget_was_enough_for(page: Page) -> None:
    """Limits, share, rows over and what was spent; the metric's card counts them too."""
    budget = BudgetReport(
        limits=Limits(max_requests=500, max_usd=2.5),
        estimated=Usage(requests=1_200),
        share=0.4,
        spent=Usage(requests=470, prompt_tokens=90_000, usd=0.04),
        rows_over=120,
    )
    card = summary("context_recall", 0.9, status={"scored": 80, "over_budget": 120})
    told = page(budget=budget, metrics=[card])
    assert (
        "500 requests, $2.50: enough for 40.0% of the questions; 120 rows over. "
        "Spent: 470 requests, 90,000 tokens, $0.0400" in told
    )
    assert "120 rows over budget" in told


def test_names_of_judges_are_text(tmp_path: Path) -> None:
    """Whatever a model is called, it adds no element."""
    asked = {HOSTILE: {HOSTILE: Usage(requests=1, prompt_tokens=1)}}
    path = write_night(Files(str(tmp_path)), night(usage_by_metric=asked), [], [])
    assert "<script>alert" not in (tmp_path / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("usd", "told"), [(None, "–"), (0.0, "$0.00"), (0.00421, "$0.0042"), (1234.5, "$1,234.50")]
)
def test_money_has_the_digits_that_matter(usd: float | None, told: str) -> None:
    """A night may cost a tenth of a cent."""
    assert money(usd) == told


def test_limits_in_words() -> None:
    """Those that are set."""
    assert limits(Limits(max_tokens=1_000_000)) == "1,000,000 tokens"
    assert limits(Limits(max_requests=1, max_usd=3)) == "1 request, $3.00"
