"""A real labelled log, where it lies beside the checkout: good retrieval is told from bad."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import ragmetrics

STRAY = ("northwind-baseline2-175", "northwind-prompt_nomarkdownmention2-175")
"""Rows whose only context is a stray file of another project."""


@pytest.fixture(scope="module")
def log(shared_data: Path) -> Path:
    """Four runs of 200 questions against a live product."""
    return shared_data / "azure_northwind.jsonl"


@pytest.fixture(scope="module")
def scores(log: Path) -> pd.DataFrame:
    """All scores, with `gold`: whether the page that holds the answer was retrieved."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    gold = {row["id"]: row["labels"]["gold"]["gold_page_retrieved"] == 1 for row in rows}
    scores = ragmetrics.evaluate(log).scores()
    return scores.assign(gold=scores["id"].map(gold))


def test_every_row_is_scored_by_every_metric(scores: pd.DataFrame) -> None:
    """800 real rows, none quarantined, none without a value."""
    assert (scores.groupby("metric").size() == 800).all()
    assert (scores["status"] == "scored").all()


@pytest.mark.parametrize(("metric", "gap"), [("context_recall", 0.25), ("context_relevance", 0.05)])
def test_rows_without_the_gold_page_score_lower(
    scores: pd.DataFrame, metric: str, gap: float
) -> None:
    """The 158 rows that missed the page are told from the 642 that have it."""
    means = scores[scores["metric"] == metric].groupby("gold")["value"].mean()
    assert means[True] - means[False] >= gap


def test_a_genuine_fault_is_among_the_worst(scores: pd.DataFrame) -> None:
    """Both rows with a stray file are among the forty worst, however ties are broken."""
    relevance = scores[scores["metric"] == "context_relevance"].set_index("id")["value"]
    assert (relevance <= relevance[list(STRAY)].max()).sum() <= 40
