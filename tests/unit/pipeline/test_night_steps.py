"""The four steps of a night as a scheduler calls them, with only JSON between them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, load_settings
from ragmetrics.errors import InputError, JudgePending, JudgeRefused, StoreError
from ragmetrics.pipeline import CoverageShort, NightSteps, night_steps
from tests.fakes.two_nights import NIGHTS, results, results_of_run_night, write_two_nights


def stored(value: Any) -> Any:
    """A value after a scheduler has stored it as JSON."""
    return json.loads(json.dumps(value))


def run_steps(settings: Settings, night: Any) -> dict[str, Any]:
    """All steps of a night, each from a new object; returns the reference."""
    run = stored(NightSteps(settings).stage(night).as_json)
    parts = stored([part.as_json for part in NightSteps(settings).parts(run)])
    problems = [stored(NightSteps(settings).score(run, part)) for part in parts]
    NightSteps(settings).publish(run, problems)
    NightSteps(settings).alert(run)
    return dict(run)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of two nights, none of which has run."""
    return load_settings(write_two_nights(tmp_path))


def test_the_steps_give_what_run_night_gives(tmp_path: Path) -> None:
    """Manifests, alert states and pages are equal, although only JSON passed between the steps."""
    file = write_two_nights(tmp_path)
    expected, settings = results_of_run_night(file), load_settings(file)
    for night in NIGHTS:
        run_steps(settings, night)
    assert len(expected["manifests"]) == len(NIGHTS)
    assert results(Path(settings.store)) == expected


def test_the_second_night_fires(settings: Settings) -> None:
    """The two nights are worth a comparison: the drop of the second one is found."""
    for night in NIGHTS:
        run_steps(settings, night)
    last = results(Path(settings.store))["manifests"][-1]
    assert [finding["key"] for finding in last["findings"] if finding["transition"] == "fired"] == [
        "towers/context_recall/all/max_drop 0.1 versus trailing:7"
    ]


def test_a_repeated_step_changes_nothing(settings: Settings) -> None:
    """A scheduler may run every step twice: same run, same numbers, same states."""
    run_steps(settings, NIGHTS[0])
    run = run_steps(settings, NIGHTS[1])
    before = results(Path(settings.store))
    again = run_steps(settings, NIGHTS[1])
    after = results(Path(settings.store))
    assert again["ref"] == run["ref"]
    assert after["manifests"] == before["manifests"]
    assert after["alerts"]["states"] == before["alerts"]["states"]


def test_a_reference_is_small_and_has_no_text_of_the_log(settings: Settings) -> None:
    """A scheduler shows its values to many people."""
    run = json.dumps(NightSteps(settings).stage(NIGHTS[0]).as_json)
    assert len(run) < 500
    assert "tower" not in run


def test_the_deadline_counts_from_staging(settings: Settings) -> None:
    """A part that a scheduler runs too late asks no judge, and the manifest says why."""
    steps = NightSteps(settings)
    run = steps.stage(NIGHTS[0])
    late = run.model_copy(update={"begun": run.begun - settings.deadline - timedelta(seconds=1)})
    problems = [steps.score(late, part) for part in steps.parts(late)]
    assert any("deadline" in problem for problem in steps.publish(late, problems).problems)


@pytest.mark.parametrize(
    ("error", "told"),
    [(JudgeRefused("wrong key"), "wrong key"), (JudgePending("a batch is open"), None)],
    ids=["final", "transient"],
)
def test_only_what_a_retry_may_mend_is_raised(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: str | None,
) -> None:
    """A final error is returned for the manifest; a transient one fails the task."""

    def fail(*_args: object, **_options: object) -> int:
        raise error

    monkeypatch.setattr(night_steps, "score_part", fail)
    steps = NightSteps(settings)
    run = steps.stage(NIGHTS[0])
    part = steps.parts(run)[0]
    if told is None:
        with pytest.raises(type(error)):
            steps.score(run, part)
    else:
        assert steps.score(run, part) == told


def test_a_problem_is_in_the_manifest_and_fails_the_last_step(settings: Settings) -> None:
    """A part that cannot be scored: the night is published, and `alert` raises at its end."""
    steps = NightSteps(settings)
    run = steps.stage(NIGHTS[0])
    [first, *rest] = steps.parts(run)
    problems = ["no memory", *(steps.score(run, part) for part in rest)]
    assert "no memory" in steps.publish(run, problems).problems
    with pytest.raises(CoverageShort):
        steps.alert(run)
    assert first.metrics == ("context_recall",)
    assert (Path(settings.store) / "dashboard/index.html").exists()


def test_a_step_without_the_one_before_says_which_one_to_repeat(settings: Settings) -> None:
    """Where the store has lost what a reference means, the error names the step."""
    steps = NightSteps(settings)
    run = steps.stage(NIGHTS[0])
    with pytest.raises(StoreError, match="repeat the step `publish`"):
        steps.alert(run)
    for file in Path(settings.store).glob("rows/*/*/staged.json"):
        file.unlink()
    with pytest.raises(StoreError, match="repeat the step `stage`"):
        steps.parts(run)


def test_today_is_the_day_of_the_time_zone(settings: Settings) -> None:
    """Without a zone that of UTC, although a night may have begun further east."""
    days = [datetime.now(UTC).date()]
    with pytest.raises(InputError) as refused:
        NightSteps(settings).stage(date(2126, 1, 1))
    days.append(datetime.now(UTC).date())
    assert any(f"today is {day}" in str(refused.value) for day in days)


@pytest.mark.parametrize(
    ("night", "said"),
    [
        (date(9999, 12, 31), "the year should be from 1970 to 2999"),
        (date(2126, 1, 1), "night 2126-01-01 is in the future; today is 20"),
        (date(1, 1, 1), "the year should be from 1970 to 2999"),
        (datetime(2026, 11, 19, 3), r"a night is a datetime.date, not datetime.datetime\(2026"),
        (datetime(2026, 11, 19, tzinfo=UTC), "a night is a datetime.date"),
        ("2026-11-19", "a night is a datetime.date, not '2026-11-19'"),
    ],
)
def test_what_is_no_date_of_a_night_is_wrong_input(
    settings: Settings, night: Any, said: str
) -> None:
    """A scheduler may hand over a time, a text or the end of the calendar."""
    with pytest.raises(InputError, match=said):
        NightSteps(settings).stage(night)
    assert not Path(settings.store).exists()


@pytest.mark.parametrize(
    ("begun", "said"),
    [
        ("2026-11-20T03:00:00", "NightRun: begun: should have timezone info"),
        ("9999-12-31T23:00:00Z", "outside the calendar"),
        ("soon", "NightRun: begun: "),
    ],
)
def test_a_reference_with_a_wrong_time_is_wrong_input(
    settings: Settings, begun: str, said: str
) -> None:
    """A scheduler that changes what it stores is told so, without a traceback."""
    run = stored(NightSteps(settings).stage(NIGHTS[0]).as_json)
    (part, *_) = NightSteps(settings).parts(run)
    with pytest.raises(InputError, match=said):
        NightSteps(settings).score({**run, "begun": begun}, part)


def test_a_part_that_the_settings_do_not_score_is_wrong_input(settings: Settings) -> None:
    """Returning nothing would say that it is scored."""
    steps = NightSteps(settings)
    run = steps.stage(NIGHTS[0])
    (part, *_) = steps.parts(run)
    for wrong, words in (
        ({"metrics": ("context_recal",)}, "'context_recal' is not scored; scored are: "),
        ({"metrics": ()}, "is not scored"),
        ({"shard": 99}, "has no shard 99"),
        ({"shard": -1}, "has no shard -1"),
    ):
        assert words in (steps.score(run, part.model_copy(update=wrong)) or "")
