"""The canaries and a real model that cannot judge: 135 million parameters."""

from __future__ import annotations

import pytest

from ragmetrics.config import make_settings
from ragmetrics.people import ask_canaries
from ragmetrics.records import LEAST_RIGHT
from tests.builders import judge_at
from tests.fakes.llama import LlamaServer

pytestmark = pytest.mark.process


def test_they_flag_the_model(two_slots: LlamaServer) -> None:
    """All ten replies are readable grades, and too few are right: its scores mean nothing."""
    settings = make_settings({"judge": judge_at(two_slots, model="smollm2", timeout_seconds=300)})
    asked = ask_canaries(settings, settings.judge, ["en"])
    assert asked is not None
    report, _ = asked
    assert (report.asked, report.problem) == (10, "")
    assert report.fails(LEAST_RIGHT), report.text
