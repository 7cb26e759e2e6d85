"""The calibrate flow through Prefect, and the nightly that tells of drift in Slack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.people import load_calibrations
from ragmetrics.people.calibration.labelled_sets import LabelQuestion
from ragmetrics.storage import Files
from tests.builders import judge_at, save_settings
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.labelled import make_labelled, right, write_judge, wrong
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")
Write = Callable[..., str]


@pytest.fixture
def settings(tmp_path: Path) -> Write:
    """Writes a settings file beside a labelled set and four nights' logs."""
    write_jsonl(tmp_path / "towers.jsonl", make_labelled(30))
    for day in range(4):
        night = NIGHT + timedelta(days=day)
        rows = make_rows(5, night=night, reference_contexts=["Museums are closed on Mondays."])
        write_jsonl(tmp_path / "logs" / f"{night}.jsonl", rows)

    def write(**changes: Any) -> str:
        return str(
            save_settings(
                tmp_path,
                {
                    "dataset": "towers",
                    "logs": "logs/{date}.jsonl",
                    "store": "store",
                    "labelled": ["towers.jsonl"],
                    "metrics": [
                        "hit_rate"
                    ],  # asks no judge: the recorded ones know the labelled rows alone
                    **changes,
                },
            )
        )

    return write


def run(settings: str, **parameters: Any) -> Any:
    """Run the flow in this process."""
    from flows.calibrate import calibrate

    return calibrate(settings, **parameters)


def test_sets_of_the_settings_are_calibrated_kept_and_shown(
    settings: Write, s3: Bucket, judge_server: JudgeServer
) -> None:
    """In a bucket: records, the page, and an artifact that links to it."""
    from prefect.artifacts import Artifact

    judge = judge_at(judge_server)
    store = f"{s3.uri}/store"
    path = settings(store=store, judge=judge, dashboard_url="https://dash.example")
    ((found, drift),) = run(path)
    assert (found.name, found.judge.name, drift) == ("towers", "openai:gpt-6-luna", None)
    assert load_calibrations(Files(store)) == [found]
    assert "store/dashboard/calibration.html" in s3.keys("store/dashboard/")
    artifact = asyncio.run(
        Artifact.aget(key="ragmetrics-towers-calibration")
    )  # `get` leaves its client open
    assert artifact is not None
    assert "| towers | openai:gpt-6-luna | context\\_recall |" in str(artifact.data)
    assert "https://dash.example/calibration.html" in str(artifact.data)


def test_repeating_it_on_the_same_day_asks_nothing(
    settings: Write, judge_server: JudgeServer
) -> None:
    """Replies of the day are kept; a chosen metric alone is calibrated."""
    judge = judge_at(judge_server)
    path = settings(judge=judge)
    run(path)
    judge_server.reset()
    ((found, drift),) = run(path, metrics=["context_recall"])
    assert judge_server.stats()["requests"] == 0
    assert [metric.metric for metric in found.metrics] == ["context_recall"]
    assert drift is not None
    assert not drift.drifted


def careless(metric: str, question: LabelQuestion) -> str:
    """The judge after a bad update: it turns every second question's labels round."""
    number = int(question.ask.data["question"].rstrip("?").split()[-1])
    return (wrong if number % 4 < 2 else right)(metric, question)


def test_drift_is_told_by_the_next_nightly_once(
    settings: Write, tmp_path: Path, slack_server: SlackServer
) -> None:
    """It fires in the first night after, is silent in the second, and resolved in the third."""
    from flows.nightly import nightly

    path = ""
    sent, states = [], []
    for day, reply in enumerate([right, careless, None, careless]):
        if reply:
            judge = write_judge(tmp_path / "judge.jsonl", tmp_path / "towers.jsonl", reply)
            path = settings(judge=judge)
            run(path)
        manifest = nightly(path, NIGHT + timedelta(days=day)).manifest
        states += [finding.state for finding in manifest.findings if finding.kind == "judge_drift"]
        sent.append(len(slack_server.delivered))
    assert states == ["firing", "firing", "ok"]
    assert sent == [0, 1, 1, 2]
    fired, resolved = (json.dumps(message) for message in slack_server.delivered)
    assert "judge drift" in fired
    assert "context_relevance drifted" in fired
    assert "esolved" in resolved


def test_a_judge_that_cannot_be_read_fails_the_run(
    settings: Write, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """What there is has been kept and published before."""
    judge_server.faults(nonsense=True)
    judge = judge_at(judge_server, reasks=0)
    with pytest.raises(Exception, match="40 of 40 units got no usable verdict"):
        run(settings(judge=judge))
    assert (tmp_path / "store" / "dashboard" / "calibration.html").is_file()


def test_without_labelled_sets_the_run_fails(settings: Write) -> None:
    """And says where they are named."""
    with pytest.raises(Exception, match="labelled:"):
        run(settings(labelled=[]))
