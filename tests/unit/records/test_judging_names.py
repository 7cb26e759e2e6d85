"""Names of judges in records: the lexical judge was called `embedded` in earlier versions."""

from __future__ import annotations

import pytest

from ragmetrics.config import make_settings
from ragmetrics.people import History
from ragmetrics.records import Drift, JudgeInfo, current_judge_name, former_judge_name
from ragmetrics.records.judging import with_current_judges
from tests.fakes.calibrations import calibration, drift_between


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("embedded", "lexical"),
        ("embedded #2", "lexical #2"),
        ("mean of embedded (3 times), openai:m", "mean of lexical (3 times), openai:m"),
        ("embedded: a baseline", "lexical: a baseline"),
        ("openai:embedded", "openai:embedded"),
        ("recorded:embedded/replies.jsonl#openai:m", "recorded:embedded/replies.jsonl#openai:m"),
        ("local:embedded-model", "local:embedded-model"),
    ],
)
def test_the_lexical_judge_has_its_name_of_today(former: str, current: str) -> None:
    """In every form, and no model whose name holds the word."""
    assert current_judge_name(former) == current
    assert former_judge_name(current) == former


def test_a_stored_judge_is_the_same_judge() -> None:
    """Nights of before and after the change have one judge, one by one or in a panel."""
    names = {"name": "mean of embedded, openai:m", "panel": ["embedded", "openai:m"]}
    stored = JudgeInfo(fingerprint="f", **names)  # type: ignore[arg-type]
    assert stored == JudgeInfo(
        name="mean of lexical, openai:m", fingerprint="f", panel=["lexical", "openai:m"]
    )


def test_a_stored_drift_is_of_the_same_judge() -> None:
    """A calibration finds the drift that an earlier version stored beside it."""
    later = calibration(week=1, judge="embedded")
    stored = drift_between(calibration(judge="embedded"), later).model_dump(mode="json")
    drift = Drift.model_validate(stored | {"judge": "embedded"})
    assert History([later], [drift]).drift_to(later) == drift
    assert History([later], [drift]).newest_drifts(later.judge) != []


def test_settings_of_a_night_are_not_changed_by_the_name() -> None:
    """Also those of a panel and of a sample; other keys are left as they are."""
    stored = {
        "judges": [{"name": "embedded"}],
        "sample": {"cheap": "embedded"},
        "dataset": "embedded",
    }
    assert with_current_judges(stored) == {
        "judges": [{"name": "lexical"}],
        "sample": {"cheap": "lexical"},
        "dataset": "embedded",
    }


def test_settings_with_the_former_name_are_read() -> None:
    """In `judge`, in `judges` and in `sample`."""
    assert make_settings({"judge": "embedded"}) == make_settings({"judge": "lexical"})
    panel = make_settings({"judges": ["embedded", "openai"]})
    assert [judge.name for judge in panel.panel] == ["lexical", "openai"]
    sample = make_settings({"sample": {"rows": 10, "cheap": "embedded"}}).sample
    assert sample
    assert sample.cheap == "lexical"
