"""Pushing a night to a Pushgateway: what arrives, and what a failure costs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics

from ragmetrics.config import PushSettings, make_settings
from ragmetrics.dashboard import push_metrics
from ragmetrics.dashboard.prometheus import metrics_text
from ragmetrics.errors import SettingsError
from ragmetrics.pipeline import run_night
from ragmetrics.scoring.run_summary import public_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import night, ten_nights
from tests.fakes.pushgateway import Pushgateway

pytestmark = pytest.mark.process

TOKEN = "push-secret-4711"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr("ragmetrics.dashboard.prometheus.PAUSES", (0, 0))


@pytest.fixture
def gateway() -> Iterator[Pushgateway]:
    """A Pushgateway that takes everything."""
    with Pushgateway().running() as running:
        yield running


def settings_of(gateway: Pushgateway, **more: Any) -> PushSettings:
    """The settings of a push to it."""
    return PushSettings(url=gateway.url, **more)


def test_a_push_replaces_the_group_of_job_and_dataset(gateway: Pushgateway) -> None:
    """By PUT, so that series that are gone do not stay; the body is that of the file."""
    last = ten_nights()[-1]
    assert push_metrics(settings_of(gateway), last) is None
    [got] = gateway.pushes
    assert (got.method, got.path) == ("PUT", "/metrics/job/ragmetrics/dataset/helpdesk")
    assert got.body == metrics_text(last).decode()
    assert got.headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_openmetrics_is_pushed_where_that_is_asked_for(gateway: Pushgateway) -> None:
    """The same samples in the other format, which says so and where it ends."""
    last = ten_nights()[-1]
    assert push_metrics(settings_of(gateway, format="openmetrics"), last) is None
    [got] = gateway.pushes
    assert got.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert got.headers.get_all("Content-Type") == [got.headers["Content-Type"]]
    assert got.body.endswith("# EOF\n")
    read = openmetrics.text_string_to_metric_families(got.body)  # type: ignore[no-untyped-call]
    text = prometheus.text_string_to_metric_families(metrics_text(last).decode())
    assert [one.samples for one in read] == [one.samples for one in text]


def test_headers_come_from_the_environment(gateway: Pushgateway) -> None:
    """A variable alone, or a text with variables; the job may be another."""
    headers = {"Authorization": "Bearer {PUSH_TOKEN}", "X-Scope-OrgID": "TENANT"}
    said = settings_of(gateway, job="search quality/eu", headers_env=headers)
    assert push_metrics(said, night(), {"PUSH_TOKEN": TOKEN, "TENANT": "t1"}) is None
    [got] = gateway.pushes
    assert got.headers["Authorization"] == f"Bearer {TOKEN}"
    assert got.headers["X-Scope-OrgID"] == "t1"
    assert got.path.startswith("/metrics/job@base64/")


def test_what_passes_is_tried_again(gateway: Pushgateway) -> None:
    """A server error and a rate limit, three attempts in all."""
    gateway.statuses = [503, 429]
    assert push_metrics(settings_of(gateway), night()) is None
    assert len(gateway.pushes) == 3


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (401, 1), (307, 1), (502, 3)])
def test_a_failure_is_an_error_in_the_log(
    gateway: Pushgateway, caplog: pytest.LogCaptureFixture, status: int, attempts: int
) -> None:
    """With the address and the reason; a redirect is not followed, as the headers are secret."""
    gateway.statuses = [status] * 3
    with caplog.at_level(logging.ERROR, "ragmetrics"):
        problem = push_metrics(settings_of(gateway), night())
    assert problem is not None
    assert problem.startswith(f"metrics of 2026-11-10 are not pushed to {gateway.url}: ")
    assert str(status) in problem
    assert caplog.messages == [problem]
    assert len(gateway.pushes) == attempts


def test_a_gateway_that_is_away_is_named() -> None:
    """Lost connections are tried again, then told."""
    with Pushgateway().running() as gone:
        said = settings_of(gone, timeout_seconds=5)
    problem = push_metrics(said, night())
    assert problem is not None
    assert said.url in problem


def test_a_secret_that_a_server_repeats_is_not_told(
    gateway: Pushgateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither returned nor logged."""
    gateway.statuses, gateway.says = [403], f"no access for {TOKEN}"
    said = settings_of(gateway, headers_env={"Authorization": "Bearer {PUSH_TOKEN}"})
    problem = push_metrics(said, night(), {"PUSH_TOKEN": TOKEN})
    assert problem is not None
    assert "no access for ***" in problem
    assert TOKEN not in problem + caplog.text


@pytest.mark.parametrize("value", [None, "sécret", "a\nb"])
def test_a_variable_that_cannot_be_used_is_named(gateway: Pushgateway, value: str | None) -> None:
    """Its name, never what it holds; nothing is sent without it."""
    said = settings_of(gateway, headers_env={"Authorization": "PUSH_TOKEN"})
    problem = push_metrics(said, night(), {"PUSH_TOKEN": value} if value else {})
    assert problem is not None
    assert "PUSH_TOKEN" in problem
    assert not value or value not in problem
    assert gateway.pushes == []


@pytest.mark.parametrize(
    "url", ["https://me:hush@push.example.com", "https://p.example.com?key=hush", "push:9091", "x"]
)
def test_an_address_holds_no_secret(url: str) -> None:
    """The error names the key and where a secret goes, and repeats none."""
    with pytest.raises(SettingsError, match=r"metrics_push.*url") as error:
        make_settings({"metrics_push": {"url": url}})
    assert "hush" not in str(error.value)


def test_the_settings_of_a_night_name_the_variable_alone() -> None:
    """As it is kept with the night and shown on its page."""
    said = {"url": "https://push.example.com", "headers_env": {"Authorization": "PUSH_TOKEN"}}
    assert public_settings(make_settings({"metrics_push": said}))["metrics_push"] == said


@pytest.mark.parametrize("status", [200, 500])
def test_a_night_is_pushed_and_a_failure_costs_nothing_else(
    gateway: Pushgateway, tmp_path: Path, status: int
) -> None:
    """After its pages are written; a night that is published is not failed by monitoring."""
    gateway.statuses = [status] * 3
    settings = make_settings(
        {
            "logs": str(write_jsonl(tmp_path / "log.jsonl", make_rows(30))),
            "store": str(tmp_path / "store"),
            "metrics": ["context_relevance"],
            "metrics_push": {"url": gateway.url},
        }
    )
    done = run_night(settings, NIGHT)
    assert done.manifest.metrics[0].scored == 30
    written = (tmp_path / "store/dashboard/metrics.prom").read_text()
    assert gateway.pushes[0].body == written
