"""rules/checks: old rows in tonight's log, and nights that are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import Settings, make_settings
from ragmetrics.dashboard import find_night_status
from ragmetrics.delivery import load_alerts
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules.checks.missed_nights import _missing
from ragmetrics.storage import open_store
from tests.builders import night_values
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = 20
DAY = timedelta(days=1)
Evaluate = Callable[..., Manifest]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of nights that need no network."""
    values = night_values(tmp_path, dataset="demo", metrics=["context_relevance"], shards=1)
    return make_settings(values)


@pytest.fixture
def evaluate(settings: Settings, tmp_path: Path) -> Evaluate:
    """Writes the log of a night, evaluates it, and returns its manifest."""

    def run(day: date, rows: Sequence[dict[str, Any]], **changes: Any) -> Manifest:
        write_jsonl(tmp_path / f"logs/dt={day}/log.jsonl", rows)
        return run_night(settings.model_copy(update=changes), day).manifest

    return run


def the(manifest: Manifest, kind: str) -> Finding | None:
    """The night's finding of a kind, if it has one."""
    return next((finding for finding in manifest.findings if finding.kind == kind), None)


def of_kind(manifest: Manifest, kind: str) -> Finding:
    """The night's finding of a kind."""
    found = the(manifest, kind)
    assert found is not None
    return found


def test_a_log_copied_to_the_next_night_fires_and_evaluates_no_rule(evaluate: Evaluate) -> None:
    """Byte for byte the same rows in another file are told as no new data."""
    rows = make_rows(ROWS)
    assert the(evaluate(NIGHT, rows), "stale_log") is None
    copied = evaluate(NIGHT + DAY, list(reversed(rows)))
    found = of_kind(copied, "stale_log")
    assert (found.level, found.state, found.transition) == ("no_data", "firing", "fired")
    assert found.message == "all 20 rows are those of 2026-11-19: the log was not updated"
    assert the(copied, "metric") is None


def test_the_next_log_resolves_it(evaluate: Evaluate) -> None:
    """A finding that is ok is there for one night."""
    for day in (NIGHT, NIGHT + DAY):
        evaluate(day, make_rows(ROWS))
    renewed = evaluate(NIGHT + 2 * DAY, make_rows(ROWS, night=NIGHT + 2 * DAY))
    assert of_kind(renewed, "stale_log").transition == "resolved"
    after = evaluate(NIGHT + 3 * DAY, make_rows(ROWS, night=NIGHT + 3 * DAY))
    assert the(after, "stale_log") is None


def test_a_night_without_rows_does_not_resolve_it(evaluate: Evaluate) -> None:
    """Whether the log is renewed is not known where there is none."""
    for day in (NIGHT, NIGHT + DAY):
        evaluate(day, make_rows(ROWS))
    with pytest.raises(CoverageShort):
        evaluate(NIGHT + 2 * DAY, [])
    renewed = evaluate(NIGHT + 3 * DAY, make_rows(ROWS, night=NIGHT + 3 * DAY))
    assert of_kind(renewed, "stale_log").transition == "resolved"


def test_a_repeated_night_is_not_stale(evaluate: Evaluate) -> None:
    """Rows are compared with those of other nights."""
    rows = make_rows(ROWS)
    assert the(evaluate(NIGHT, rows), "stale_log") is None
    assert the(evaluate(NIGHT, rows), "stale_log") is None


def test_rows_of_the_days_before_fire(evaluate: Evaluate) -> None:
    """One file of fourteen days, evaluated for the day after its last."""
    rows = [
        {**row, "id": f"{row['id']}-{ago}"}
        for ago in range(1, 15)
        for row in make_rows(3, night=NIGHT - ago * DAY)
    ]
    found = of_kind(evaluate(NIGHT, rows), "stale_log")
    assert (found.level, found.state) == ("breach", "firing")
    assert found.message == (
        "42 of 42 rows have a time outside the night of 2026-11-19: the log is from "
        "2026-11-05 00:00 to 2026-11-18 00:00 (UTC); `time_zone` sets the zone of nights"
    )


def at_hours(day: date, hours: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each hour, counted from midnight UTC of a day."""
    start = datetime.combine(day, datetime.min.time(), UTC)
    moments = [(start + timedelta(hours=hour)).isoformat() for hour in hours]
    return [
        {**row, "timestamp": at} for row, at in zip(make_rows(len(hours)), moments, strict=True)
    ]


@pytest.mark.parametrize(
    ("zone", "hours", "fires"),
    [
        (None, range(24), False),
        (None, range(16, 34), False),  # evenings in Los Angeles are the next day in UTC
        (None, range(-4, 6), False),  # working hours in Auckland begin on the day before in UTC
        (None, range(-14, 10), False),  # the day on Kiritimati
        (None, range(-38, -14), True),
        (None, range(36, 48), True),
        ("America/Los_Angeles", range(8, 32), False),
        ("America/Los_Angeles", range(-16, 8), True),
        ("Australia/Sydney", range(-11, 13), False),
        ("Australia/Sydney", range(13, 37), True),
    ],
)
def test_a_night_is_a_day_in_its_zone(
    evaluate: Evaluate, zone: str | None, hours: range, fires: bool
) -> None:
    """Without a zone a row is outside only if it is so in every zone."""
    found = the(evaluate(NIGHT, at_hours(NIGHT, hours), time_zone=zone), "stale_log")
    assert (found is not None) == fires


def test_half_of_the_rows_outside_is_allowed(evaluate: Evaluate) -> None:
    """Late rows of the night before are part of many logs."""
    rows = at_hours(NIGHT, [*range(-10, 0), *range(10)])
    assert the(evaluate(NIGHT, rows, time_zone="UTC"), "stale_log") is None
    rows = at_hours(NIGHT + DAY, [*range(-11, 0), *range(10)])
    more = of_kind(evaluate(NIGHT + DAY, rows, time_zone="UTC"), "stale_log")
    assert more.level == "breach"


def test_equal_rows_without_times_are_no_alert_but_told(evaluate: Evaluate) -> None:
    """A golden set asked every night of an unchanged index gives the same rows."""
    rows = make_rows(ROWS, timestamp=None)
    for ago in (3, 2, 1, 0):
        night = evaluate(NIGHT - ago * DAY, rows)
        assert the(night, "stale_log") is None
        told = "20 rows read, 20 without a time, so whether they are of this night is not known"
        assert of_kind(night, "no_data").message == told
        assert f"{told}." in find_night_status(night).notes


def test_without_times_or_ids_nothing_fires(evaluate: Evaluate) -> None:
    """A row without an id is named after its place, which is no id."""
    for ago in (3, 2, 1, 0):
        rows = make_rows(ROWS + ago % 3, timestamp=None, id=None)
        assert the(evaluate(NIGHT - ago * DAY, rows), "stale_log") is None


def test_equal_rows_without_times_fire_where_ids_were_new_each_night(evaluate: Evaluate) -> None:
    """Ids of requests do not come twice."""
    for ago in (3, 2, 1):
        rows = [{**row, "id": f"{row['id']}-{ago}"} for row in make_rows(ROWS, timestamp=None)]
        assert the(evaluate(NIGHT - ago * DAY, rows), "stale_log") is None
    assert of_kind(evaluate(NIGHT, rows), "stale_log").level == "no_data"


def test_equal_rows_without_times_or_ids_fire_where_questions_were_new(evaluate: Evaluate) -> None:
    """Seven nights of other questions each: only live traffic has them."""

    def traffic(ago: int) -> list[dict[str, Any]]:
        return make_rows(
            4, timestamp=None, id=None, user_input=f"What is the height of hill {ago}?"
        )

    for ago in range(8, 0, -1):
        assert the(evaluate(NIGHT - ago * DAY, traffic(ago)), "stale_log") is None
    found = of_kind(evaluate(NIGHT, traffic(1)), "stale_log")
    assert (found.level, found.state) == ("no_data", "firing")
    assert found.message == "all 4 rows are those of 2026-11-18: the log was not updated"


def test_a_golden_set_that_changed_for_six_nights_is_not_stale(evaluate: Evaluate) -> None:
    """Questions that are added on some nights are no traffic."""
    for ago in range(7, 0, -1):
        evaluate(NIGHT - ago * DAY, make_rows(12 - ago, timestamp=None, id=None))
    assert the(evaluate(NIGHT, make_rows(11, timestamp=None, id=None)), "stale_log") is None


def test_times_that_say_nothing_are_left_out_of_account(
    evaluate: Evaluate, settings: Settings
) -> None:
    """A golden set may have fixed times: `max_outside: 1`."""
    alerts = settings.alerts.model_copy(update={"max_outside": 1.0})
    for ago in (1, 0):
        rows = make_rows(ROWS, night=date(2020, 1, 1))
        assert the(evaluate(NIGHT - ago * DAY, rows, alerts=alerts), "stale_log") is None


def test_a_missing_night_is_a_warning_until_the_next_one(evaluate: Evaluate) -> None:
    """The weekday of the skipped night was published in each of the two weeks before."""
    for ago in (16, 9, 3):
        night = evaluate(NIGHT - ago * DAY, make_rows(ROWS, night=NIGHT - ago * DAY))
        assert the(night, "missed_nights") is None
    found = of_kind(evaluate(NIGHT - DAY, make_rows(ROWS, night=NIGHT - DAY)), "missed_nights")
    assert (found.level, found.state, found.severity) == ("breach", "firing", "warning")
    assert found.message == (
        "no scores of 2026-11-17; for those that have logs: ragmetrics backfill --first "
        "2026-11-17 --last 2026-11-17"
    )
    resolved = of_kind(evaluate(NIGHT, make_rows(ROWS)), "missed_nights")
    assert (resolved.level, resolved.transition) == ("ok", "resolved")


def test_the_alerts_of_a_stale_night_stay_as_they_are(
    evaluate: Evaluate, settings: Settings
) -> None:
    """The good rows of an earlier night resolve no alert of the night before."""
    alerts = make_settings(
        {"alerts": {"rules": [{"metric": "context_relevance", "min": 0.5}]}}
    ).alerts
    good = make_rows(ROWS, night=NIGHT - 2 * DAY)
    evaluate(NIGHT - 2 * DAY, good, alerts=alerts)
    bad = make_rows(ROWS, good=0.0, night=NIGHT - DAY)
    assert of_kind(evaluate(NIGHT - DAY, bad, alerts=alerts), "metric").state == "firing"
    stale = evaluate(NIGHT, good, alerts=alerts)
    assert of_kind(stale, "stale_log").state == "firing"
    states = load_alerts(open_store(settings)).states
    assert [one.state for key, one in states.items() if "min 0.5" in key] == ["firing"]


DAYS = st.sets(st.integers(0, 60), min_size=1).map(sorted)


@given(DAYS, st.integers(61, 80))
def test_only_unpublished_days_since_the_last_night_are_missing(
    numbers: list[int], day: int
) -> None:
    """Whatever was published: no published day, and none before the last night."""
    published = [NIGHT + number * DAY for number in numbers]
    tonight = NIGHT + day * DAY
    missing = _missing(tonight, published)
    assert all(published[-1] < one < tonight for one in missing)
    assert missing == sorted(set(missing))


@given(st.sets(st.integers(0, 6), min_size=1), st.integers(0, 6), st.integers(1, 8))
def test_days_off_are_never_missed(working: set[int], first: int, weeks: int) -> None:
    """Nights of the same weekdays each week: from the first week on none of the others is missed,
    though one was published for trial."""
    days = [NIGHT + (first + number) * DAY for number in range(7 * weeks)]
    nights = [day for day in days if day.weekday() in working or day == days[0]]
    assert not [day for day in nights if _missing(day, [night for night in nights if night < day])]


def test_a_daily_night_that_is_skipped_is_missed_after_two_weeks() -> None:
    """One or ten missing nights, after fourteen nights or sixty; after five it is not known."""
    for count in (14, 60):
        published = [NIGHT - ago * DAY for ago in range(count)]
        for gap in (1, 10):
            missing = _missing(NIGHT + (gap + 1) * DAY, published)
            assert missing == [NIGHT + number * DAY for number in range(1, gap + 1)]
    assert _missing(NIGHT + 3 * DAY, [NIGHT - ago * DAY for ago in range(5)]) == []


def test_nights_now_and_then_miss_nothing() -> None:
    """Nights that were never daily have no gaps."""
    published = [NIGHT - ago * DAY for ago in (40, 33, 12, 3)]
    assert _missing(NIGHT, published) == []
    assert _missing(NIGHT, []) == []
