"""What `doctor` asks the endpoint of a judge."""

from __future__ import annotations

import asyncio

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import JudgeError
from ragmetrics.judges import probe, probe_judge
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer


@pytest.mark.parametrize("fault", ["hang", "late"])
def test_a_server_that_does_not_answer_is_told_in_time(
    judge_server: JudgeServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for once, and the message says how long; it may be loading its model."""
    monkeypatch.setattr(probe, "_SECONDS", 0.3)
    judge_server.faults(fail={fault: 1.0})
    chosen = make_settings({"judge": judge_at(judge_server, model="judge")}).judge
    with pytest.raises(JudgeError, match=r"/v1/ did not answer within 0\.3 s; .* try again"):
        asyncio.run(probe_judge(chosen, ask=True))
    assert judge_server.stats()["requests"] <= 1
