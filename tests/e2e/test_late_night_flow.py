"""A night that another one overtook, through Prefect's flow."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")

BAD = date(2026, 11, 17)
ORDER = [date(2026, 11, day) for day in (16, 18, 17, 19)]


def test_an_overtaken_night_is_told_once(tmp_path: Path, slack_server: SlackServer) -> None:
    """Nights 16, 18, 17, 19 run in this order, and the 17th a second time: its breach is told in
    one message, which says that it is late.
    """
    from flows.nightly import nightly

    for day in ORDER:
        rows = make_rows(40, good=0.3 if day == BAD else 1.0, night=day)
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", rows)
    settings = tmp_path / "ragmetrics.yaml"
    values = {
        "logs": "logs/{date}.jsonl",
        "store": "store",
        "metrics": ["context_recall"],
        "alerts": {"rules": [{"metric": "context_recall", "min": 0.7}]},
    }
    settings.write_text(yaml.safe_dump(values))
    for day in [*ORDER, BAD]:
        nightly(str(settings), day, return_state=True)
    told = [one["text"] for one in slack_server.delivered if str(BAD) in one["text"]]
    assert len(told) == 1
    assert told[0].startswith("Late night of 2026-11-17: 🔴 Critical")
