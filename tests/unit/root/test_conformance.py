"""Every bundled plugin passes the checks that `ragmetrics.testing` gives to others."""

from __future__ import annotations

import threading

import pytest

from ragmetrics.config import CHANNELS, JUDGES, PRESETS, TARGETS, ChannelSettings
from ragmetrics.dashboard import PAGES
from ragmetrics.delivery import ChannelKind
from ragmetrics.metrics import METRICS
from ragmetrics.rules import CHECKS
from ragmetrics.testing import (
    check_channel,
    check_check,
    check_judge,
    check_metric,
    check_page,
    check_preset,
    check_target,
)


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


@pytest.mark.parametrize("name", PAGES.bundled_names)
def test_pages(name: str) -> None:
    """A page is one file, in which no text of a log is more than text."""
    check_page(PAGES.find(name))


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
