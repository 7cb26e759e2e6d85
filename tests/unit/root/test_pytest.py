"""`ragmetrics.pytest`: a test suite fails where retrieval got worse."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ragmetrics
from ragmetrics.errors import InputError
from ragmetrics.pytest import assert_no_drop
from tests.fakes.logs import make_rows


def test_the_same_retrieval_passes() -> None:
    """And the change is returned, for tests that want more."""
    rows = make_rows(300, good=0.9)
    change = assert_no_drop(rows, rows, "context_relevance", max_drop=0.05)
    assert change.difference == 0
    assert change.questions == 300


def test_a_large_drop_fails_with_its_numbers() -> None:
    """Both means, the interval, p and the number of questions."""
    with pytest.raises(
        pytest.fail.Exception,
        match=r"0\.500 -> 0\.250, change -0\.250 \[-0\.313, -0\.187\], p <0\.001, 60 quest",
    ):
        assert_no_drop(make_rows(60), make_rows(60, good=0.5), "context_relevance")


def test_too_few_questions_are_skipped_as_inconclusive() -> None:
    """Ten questions neither show nor rule out a drop of 0.05."""
    with pytest.raises(pytest.skip.Exception, match="inconclusive: context_relevance"):
        assert_no_drop(make_rows(10, good=0.8), make_rows(10, good=0.7), "context_relevance")


def test_a_segment_that_dropped_fails_the_test() -> None:
    """With `by`, a loss in one channel is not hidden by the others."""
    rows = make_rows(400)
    after = [
        {**row, "retrieved_contexts": ["Museums are closed."]}
        if row["tags"]["channel"] == "app" and number % 4 == 1
        else row
        for number, row in enumerate(rows)
    ]
    with pytest.raises(pytest.fail.Exception, match="of channel=app"):
        assert_no_drop(rows, after, "context_relevance", max_drop=0.2, by=["channel"])


def test_a_metric_that_no_row_has_is_inconclusive() -> None:
    """Without a reference there is no recall: the reason is in the message."""
    rows = make_rows(20, reference=None)
    with pytest.raises(pytest.skip.Exception, match="context_recall is not compared: "):
        assert_no_drop(rows, rows, "context_recall")


def test_a_drop_within_the_limit_passes() -> None:
    """A test may allow a known loss."""
    assert_no_drop(make_rows(400), make_rows(400, good=0.9), "context_relevance", max_drop=0.3)


def test_results_of_evaluate_are_sides_too() -> None:
    """What is scored already is not scored again."""
    result = ragmetrics.evaluate(make_rows(200), metrics=["context_relevance"])
    assert_no_drop(result, result, "context_relevance")


@pytest.mark.process
def test_its_import_loads_no_table_library() -> None:
    """Test suites that only collect do not wait for pandas."""
    program = "import sys, ragmetrics.pytest; print({'pandas', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"set()"]


def test_a_metric_that_does_not_exist_is_an_error() -> None:
    """It neither passes nor is it inconclusive."""
    with pytest.raises(InputError, match="context_relevence"):
        assert_no_drop(make_rows(10), make_rows(10), "context_relevence")


@pytest.mark.parametrize("limit", [-0.1, float("nan")])
def test_a_limit_below_zero_is_an_error(limit: float) -> None:
    """No drop could ever be within it."""
    with pytest.raises(ValueError, match="negative"):
        assert_no_drop(make_rows(10), make_rows(10), "context_relevance", max_drop=limit)
