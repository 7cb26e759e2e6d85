"""The lexical judge, and recorded ones, against labelled sets of real data."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.config import make_settings
from ragmetrics.people import calibrate, calibrate_replies
from ragmetrics.records import Calibration, FigureName

SETS = ("chunkeval_bm25", "hotpot_multihop", "selqa_sentences", "wice_judge_replies")
LANGUAGES = ("ar", "de", "ru", "zh")
# Set, metric, figure, and what a plain idf overlap reaches, or more where more is asked for.
MARKS: tuple[tuple[str, str, FigureName, float], ...] = (
    ("selqa_sentences", "context_relevancy", "auc_within", 0.907),
    ("hotpot_multihop", "context_relevancy", "auc_within", 0.796),
    ("hotpot_multihop", "context_relevance", "auc_within", 0.603 + 0.05),
    ("chunkeval_bm25", "context_relevance", "auc_within", 0.847),
    ("chunkeval_bm25", "context_relevance", "auc", 0.719 + 0.05),
    ("wice_judge_replies", "context_recall", "auc", 0.70),
)
IN_EACH_LANGUAGE = 0.985
GOLD_RECALL = 0.6


@pytest.fixture(scope="module")
def embedded(shared_data: Path) -> dict[str, Calibration]:
    """The lexical judge on every set, by the set's name."""
    places = [str(shared_data / f"{name}.jsonl") for name in (*SETS, "xquad_multilingual")]
    return {one.name: one for one in calibrate(make_settings({}), places)}


def value(found: Calibration, metric: str, figure: FigureName, language: str = "") -> float:
    """One figure, over all rows or those of one language."""
    measured = found.measured(metric)
    assert measured is not None
    tag = f"language={language}" if language else "None"
    agreements = [measured.overall, *measured.segments]
    one = next(each for each in agreements if each and str(each.segment) == tag)
    known = one.figures[figure].value
    assert known is not None
    return known


@pytest.mark.parametrize(("name", "metric", "figure", "mark"), MARKS)
def test_the_embedded_judge_is_above_plain_overlap(
    embedded: dict[str, Calibration], name: str, metric: str, figure: FigureName, mark: float
) -> None:
    """On every set, and by 0.05 where plain overlap does worst."""
    assert value(embedded[name], metric, figure) > mark


@pytest.mark.parametrize("language", LANGUAGES)
def test_contexts_are_told_apart_in_each_language(
    embedded: dict[str, Calibration], language: str
) -> None:
    """The paragraph that answers against those that do not."""
    found = embedded["xquad_multilingual"]
    assert value(found, "context_relevance", "auc_within", language) >= IN_EACH_LANGUAGE


def test_context_recall_ranks_as_the_gold_recall(embedded: dict[str, Calibration]) -> None:
    """The metric's row scores against the share of gold characters that was retrieved."""
    ranks = {one.gold: one.spearman.value for one in embedded["chunkeval_bm25"].gold}
    assert (ranks["char_recall"] or 0) >= GOLD_RECALL


def test_recorded_replies_are_judges_too(shared_data: Path) -> None:
    """GPT-4 agrees with people better than GPT-3.5; kappa over all classes is as published."""
    place = str(shared_data / "wice_judge_replies.jsonl")
    older, newer = calibrate_replies(make_settings({}), [place])
    assert (older.judge.name, newer.judge.name) == ("gpt-3.5-turbo-0613", "gpt-4-0613")
    assert value(older, "context_recall", "kappa_classes") == pytest.approx(0.152, abs=0.001)
    assert value(newer, "context_recall", "kappa_classes") == pytest.approx(0.371, abs=0.001)


def test_ratings_of_whole_rows_are_passed_over_with_the_reason(shared_data: Path) -> None:
    """No label of that log says what is true of a whole row."""
    place = str(shared_data / "azure_northwind.jsonl")
    found = calibrate_replies(make_settings({}), [place], limit=20)
    assert [one.judge.name for one in found] == ["gpt_groundedness", "gpt_relevance"]
    assert all("rates whole rows" in reason for one in found for reason in one.skipped.values())
