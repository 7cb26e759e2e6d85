"""Metrics of another package: installed, listed, scored and shown without a change to this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ragmetrics.metrics import METRICS
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import ROOT

NAMES = ["context_consistency", "context_redundancy"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the sample package of the docs."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"  # a build leaves files there
    shutil.copytree(ROOT / "examples" / "third-party-metrics", source)
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    pip = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return folder


def ragmetrics(installed: Path, *arguments: str) -> str:
    """What the command prints where the package is installed."""
    environment = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "ragmetrics", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_metric_is_listed(installed: Path) -> None:
    """With its formula, needs and calls, among the others."""
    listed = {load["name"]: load for load in json.loads(ragmetrics(installed, "metrics", "--json"))}
    assert {*NAMES, "context_recall"} <= set(listed)
    assert listed["context_consistency"]["formula"].startswith("context_consistency = 1 - ")


def test_an_installed_metric_is_scored_and_shown(installed: Path, tmp_path: Path) -> None:
    """Chosen in the settings, it stands in the manifest and on the dashboard."""
    contexts = ["The museum opens at 9 in the morning.", "The museum opens at 10 in the morning."]
    rows = make_rows(20, retrieved_contexts=[*contexts, "It is free.", contexts[0]])
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "rows.jsonl", rows)
    file = tmp_path / "ragmetrics.yaml"
    file.write_text(f"metrics: [{', '.join(NAMES)}]\nalerts: {{rules: []}}\n")
    night = (
        "import datetime, sys; from ragmetrics.pipeline.nightly import run_night; "
        "from ragmetrics.config.settings_file import load_settings; "
        f"print(run_night(load_settings(sys.argv[1]), datetime.date({NIGHT:%Y, %-m, %-d}))"
        ".manifest.model_dump_json())"
    )
    environment = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", night, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    means = {metric["metric"]: metric["mean"] for metric in json.loads(done.stdout)["metrics"]}
    assert means == {"context_consistency": 0.25, "context_redundancy": 0.25}
    page = tmp_path / "ragmetrics-store" / "dashboard" / NIGHT.isoformat() / "index.html"
    assert all(f"metric-{name}" in page.read_text() for name in NAMES)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:thing", "metric 'mine' of an unknown package cannot be imported"),
        ("ragmetrics.records.row:LogRow", "is not a metric of that name"),
        (
            "ragmetrics.metrics.bundled.context_recall:context_recall",
            "is not a metric of that name",
        ),
    ],
)
def test_a_broken_package_is_named(value: str, message: str) -> None:
    """Whoever installed it learns which package to look at."""
    problem = METRICS.load(EntryPoint("mine", value, METRICS.group))
    assert isinstance(problem, str)
    assert message in problem
