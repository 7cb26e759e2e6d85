"""Every bundled plugin passes the checks that `ragmetrics.testing` gives to others."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ragmetrics.config import JUDGES, PRESETS, TARGETS, AlertSettings, ChannelSettings
from ragmetrics.config.alerts import CHANNELS
from ragmetrics.dashboard import PAGES
from ragmetrics.delivery import ChannelKind
from ragmetrics.messages import FORMATS
from ragmetrics.metrics import METRICS
from ragmetrics.records import Finding
from ragmetrics.rules import CHECKS, Limit, Tonight, check
from ragmetrics.testing import (
    check_channel,
    check_check,
    check_format,
    check_judge,
    check_metric,
    check_page,
    check_preset,
    check_target,
    findings_of,
)
from tests.fakes.past import a_night, scores


@pytest.mark.parametrize("name", METRICS.bundled_names)
def test_metrics(name: str) -> None:
    """A metric is one file that describes itself, and no row is without a score or a reason."""
    metric = METRICS.find(name)
    check_metric(metric)
    assert all(prompt.baseline for prompt in metric.prompts)


@pytest.mark.parametrize("name", PRESETS.bundled_names)
def test_presets(name: str) -> None:
    """A preset is one file with its docs and a sample of records."""
    check_preset(PRESETS.find(name))


@pytest.mark.parametrize("name", CHECKS.bundled_names)
def test_checks(name: str) -> None:
    """A check is one file with its definition, its limit and a sample."""
    check_check(CHECKS.find(name))


@pytest.mark.process
@pytest.mark.parametrize("name", TARGETS.bundled_names)
def test_targets(name: str) -> None:
    """A target is one file, which confirms only what its tool did."""
    check_target(TARGETS.find(name))


@pytest.mark.process
@pytest.mark.parametrize("name", JUDGES.bundled_names)
def test_judges(name: str) -> None:
    """A kind of judge is one file, and no answer of a server ends a night."""
    check_judge(JUDGES.find(name))


@pytest.mark.process
@pytest.mark.parametrize("name", CHANNELS.bundled_names)
def test_channels(name: str) -> None:
    """A channel is one file, which confirms only what its service did."""
    check_channel(CHANNELS.find(name))


@pytest.mark.parametrize("name", FORMATS.bundled_names)
def test_formats(name: str) -> None:
    """A format is one file, in which no text of a log acts."""
    check_format(FORMATS.find(name))


@pytest.mark.parametrize("name", PAGES.bundled_names)
def test_pages(name: str) -> None:
    """A page is one file, in which no text of a log is more than text."""
    check_page(PAGES.find(name))


def test_a_check_is_asked_about_scores_and_by_settings() -> None:
    """What a check says of tonight's rows needs no store to be tested."""

    @check("gaps", "gaps", limit=Limit(0.2))
    def gaps(tonight: Tonight) -> Iterator[Finding]:
        """Rows without a value."""
        table = tonight.night.scores["context_recall"].table
        share = table["value"].isna().mean()
        yield tonight.finding("breach" if share > tonight.limit else "ok", "few gaps", "gaps")

    night = a_night(scores([0.5, None])).manifest
    wide = AlertSettings(checks={"gaps": 0.5})
    levels = [
        findings_of(gaps, night, [scores([0.5, None])], alerts)[0].level for alerts in (None, wide)
    ]
    assert levels == ["breach", "ok"]


def _confirms(*_: object) -> None:
    """A channel that does not look whether its message arrived."""


class _Room(ChannelSettings):
    """A channel with a key that its entry needs."""

    room: str


@pytest.mark.process
def test_a_check_that_fails_leaves_no_server() -> None:
    """Its thread would use a core until the tests end. The channel's settings are given."""
    kind = ChannelKind("house", _confirms, lambda *_: "", "http://{host}/secret", _Room)
    before = threading.active_count()
    with pytest.raises(AssertionError, match="an error of the service is no confirmation"):
        check_channel(kind, room="12")
    assert threading.active_count() == before
