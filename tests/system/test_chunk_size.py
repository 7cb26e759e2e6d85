"""The claim of docs/how-to/chunk-size.md, where the labelled log lies beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.chunk_size import Means, by_judge, by_labels


@pytest.fixture(scope="module")
def log(shared_data: Path) -> Path:
    """396 questions, each answered from chunks of 400 and of 1,600 characters."""
    return shared_data / "chunkeval_bm25.jsonl"


def ratio(means: Means, metric: str) -> float:
    """What is left of a metric when chunks grow."""
    return means[1600][metric].mean / means[400][metric].mean


def test_by_the_labels_the_sentence_share_falls_and_the_chunk_share_does_not(log: Path) -> None:
    """With no judge in between: a third is left of one, the other and recall rise."""
    means = by_labels(log)
    assert ratio(means, "context_relevancy") < 0.4
    assert ratio(means, "context_relevancy_chunks") > 1
    assert ratio(means, "context_recall") > 1.3


def test_the_embedded_judge_tells_the_same_story(log: Path) -> None:
    """Within its own error, which the page names: under a tenth of the chunk share."""
    means = by_judge(log, "lexical")
    assert ratio(means, "context_relevancy") < 0.4
    assert ratio(means, "context_relevancy_chunks") > 0.9
    assert ratio(means, "context_recall") > 1.3
