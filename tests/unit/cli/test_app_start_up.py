"""Starting up: what the command line imports before it knows what it is asked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st
from scipy import special, stats

HEAVY = ("aiohttp", "jinja2", "openai", "pandas", "plotly", "prefect", "s3fs", "scipy")


def _imported(module: str) -> set[str]:
    """The packages, and modules of packages, that a fresh process has after one import."""
    code = f"import {module}, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.process
def test_command_line_starts_without_heavy_libraries() -> None:
    """`ragmetrics --help` imports no library that takes a tenth of a second and more."""
    assert not _imported("ragmetrics.cli.app") & {*HEAVY, "pyarrow"}


@pytest.mark.process
def test_a_night_starts_without_the_libraries_of_channels() -> None:
    """What speaks with Slack or with Apprise is imported when there is something to tell."""
    assert not _imported("ragmetrics.pipeline.nightly") & {"aiohttp", "apprise"}
    assert not _imported("ragmetrics.delivery.gate_notifications") & {"aiohttp", "apprise"}


@pytest.mark.process
def test_scoring_starts_without_what_only_a_night_needs() -> None:
    """`ragmetrics score` imports no templates, and nothing that talks to Slack, S3 or OpenAI."""
    assert not _imported("ragmetrics.pipeline.evaluation") & {*HEAVY, "scipy.stats"} - {"scipy"}


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0.5, 1e6))
def test_student_t_is_that_of_scipy_stats(share: float, freedom: float) -> None:
    """The quick functions behind the intervals are those that scipy.stats uses itself."""
    assert special.stdtrit(freedom, share) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-12)
    t = float(special.stdtrit(freedom, share))
    assert special.stdtr(freedom, -t) == pytest.approx(stats.t.sf(t, freedom), rel=1e-12)
