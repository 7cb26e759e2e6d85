"""scoring/metric_run.py: what a metric returns becomes a sound score or a failed row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.metrics import metric, metrics
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import LogRow, Manifest, Score, Status, Steps, real_number
from ragmetrics.scoring.metric_run import _OF_RUNS, checked_score
from ragmetrics.storage import Runs, open_store
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.plugins import forget_plugins

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = 40
RETURNED: dict[str, Any] = {}
"""What the metric below returns for a row, by the key `score`."""


@metric(version=1, calls="0")
def house_metric(row: LogRow) -> Steps[Score]:
    """A metric of another package."""
    yield from ()
    return RETURNED["score"](row)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The metric, installed as an entry point of another distribution."""
    info = tmp_path / "site" / "house-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    place = f"{__name__}:house_metric"
    (info / "entry_points.txt").write_text(f"[ragmetrics.metrics]\nhouse_metric = {place}\n")
    monkeypatch.syspath_prepend(str(info.parent))
    forget_plugins()
    yield
    forget_plugins()


def night(tmp_path: Path, value: Any, night: date = NIGHT) -> Manifest:
    """A night on which the metric gives `value` for each row."""
    RETURNED["score"] = lambda row: Score(value)
    write_jsonl(tmp_path / f"logs/dt={night}/log.jsonl", make_rows(ROWS, night=night))
    settings = night_settings(tmp_path, metrics=["house_metric"], rules=[], shards=1)
    try:
        return run_night(settings, night).manifest
    except CoverageShort:
        manifest = Runs(open_store(settings)).current(night)
        assert manifest is not None
        return manifest


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.float32("nan"), "a score of nan: a missing value is a status"),
        (np.float64("inf"), "a score of inf: a missing value is a status"),
        (Decimal("NaN"), "a score of NaN: a missing value is a status"),
        (1e308, "a score of 1e+308: outside [-1e+100, 1e+100]"),
        ("0.5", "a score of type str, which is no number"),
        (None, "a score with no value and the status <Status.SCORED: 'scored'>"),
    ],
)
def test_a_value_without_a_mean_is_no_green_night(tmp_path: Path, value: Any, reason: str) -> None:
    """All rows failed, the night says why, and an alert fires."""
    manifest = night(tmp_path, value)
    (summary,) = manifest.metrics
    assert (summary.mean, summary.scored, summary.status) == (None, 0, {"metric_failed": ROWS})
    (failed,) = [finding for finding in manifest.findings if finding.kind == "judge_failures"]
    assert (failed.level, failed.state) == ("breach", "firing")
    assert reason in manifest.problems[0]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (np.float32(0.5), 0.5),
        (np.float16(0.25), 0.25),
        (np.longdouble(0.5), 0.5),
        (np.array(0.5), 0.5),
        (np.int8(1), 1.0),
        (np.bool_(True), 1.0),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        (True, 1.0),
        (0, 0.0),
    ],
)
def test_a_number_of_any_type_is_a_float(value: Any, number: float) -> None:
    """Of numpy, of decimal, whole or boolean: it is stored as what it is."""
    score = checked_score(house_metric, Score(value))
    assert (score.value, type(score.value), score.status) == (number, float, Status.SCORED)


@pytest.mark.parametrize(
    "value",
    [
        np.float32("nan"), np.float16("inf"), np.longdouble("1e400"), np.datetime64("NaT"),
        np.array([0.5]), Decimal("sNaN"), Decimal("1e400"), 10**400, 1j, "1", b"1", [1.0], {},
        float("-inf"),
    ],
)  # fmt: skip
def test_what_is_no_finite_number_is_no_score(value: Any) -> None:
    """Where the metric makes its score, so that the error has the metric's line."""
    with pytest.raises(ValueError, match="a score of"):
        Score(value)


@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.fractions(), st.booleans()))
def test_each_number_is_finite_or_refused(value: Any) -> None:
    """There is no third case."""
    try:
        number = real_number(value)
    except ValueError:
        return
    assert type(number) is float
    assert math.isfinite(number)


@pytest.mark.parametrize(
    ("declared", "value", "kept"),
    [
        (None, -3e99, -3e99),
        (None, 2e100, None),
        ((0.0, 1.0), 1.0 + 1e-9, 1.0),
        ((0.0, 1.0), 1.1, None),
        ((-1.0, 1.0), -1.0, -1.0),
        ((1.0, 5.0), 0.0, None),
    ],
)
def test_a_value_is_in_the_range_of_its_metric(
    declared: tuple[float, float] | None, value: float, kept: float | None
) -> None:
    """A rounding error is cut, and anything further out fails the row."""
    ranged = metric(version=1, calls="0", score_range=declared)(house_metric.steps)
    score = checked_score(ranged, Score(value))
    assert score.value == kept
    assert (score.status is Status.METRIC_FAILED) == (kept is None)


def test_bundled_metrics_have_the_range_of_their_docstring() -> None:
    """`Range [0, 1]`, or what it says instead, as `Range [0, 1e9]`."""
    bundled = {name: one for name, one in metrics().items() if name != "house_metric"}
    for definition in bundled.values():
        assert definition.score_range is not None
        low, high = (f"{end:g}".replace("e+0", "e") for end in definition.score_range)
        assert f"Range [{low}, {high}]" in definition.description


class Unshown:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (0.5, "a metric returns a Score, not 0.5"),
        (None, "a metric returns a Score, not None"),
        (Unshown(), "a metric returns a Score, not an object of type Unshown"),
        (Score(None), "a score with no value and the status"),
        (Score(0.5, status=Status.REFUSED), "a score with a value and the status"),
    ],
)
def test_what_is_no_sound_score_fails_the_row(returned: object, reason: str) -> None:
    """With the reason, for the author of the metric."""
    score = checked_score(house_metric, returned)
    assert (score.value, score.status) == (None, Status.METRIC_FAILED)
    assert score.reason.startswith(reason)


def test_a_row_without_a_value_keeps_its_status() -> None:
    """`not_applicable` is no fault."""
    score = Score.not_applicable("no reference answer")
    assert checked_score(house_metric, score) == score


@pytest.mark.parametrize(
    "foreign",
    [
        {"votes": ("yes",)},
        {"failed": (1,)},
        {"spread": "wide"},
        {"spread": float("nan")},
        {"cheap": "low"},
        {"probability": -3.0},
        {"compared": False},
    ],
)
def test_a_metric_cannot_fill_the_fields_of_panels_and_samples(foreign: dict[str, Any]) -> None:
    """They are stored in columns of their own types: one of another type would end the night."""
    assert checked_score(house_metric, Score(0.5, "half", **foreign)) == Score(0.5, "half")


@pytest.mark.parametrize("status", ["no_value", "not_applicable", *_OF_RUNS])
def test_a_status_that_is_not_of_metrics_fails_the_row(status: Any) -> None:
    """No text is one. Rows that were not sampled, or are over a budget, are in no alert."""
    score = checked_score(house_metric, Score(None, "none", status=status))
    assert score.status is Status.METRIC_FAILED
    assert score.reason.endswith("which no metric gives")
