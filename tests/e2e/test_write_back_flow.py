"""The nightly flow writes scores back, as the last of its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.tracing import KEYS, LangfuseServer
from tests.fakes.written_back import FAST

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")


def test_the_flow_writes_back_and_survives_a_target_that_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the target is down: the flow completes. Its repetition sends all."""
    from flows.nightly import nightly

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    rows = [{**row, "trace_id": row["id"]} for row in make_rows(30)]
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    path = tmp_path / "ragmetrics.yaml"
    with LangfuseServer().running() as langfuse:
        write_back = {**FAST, "retry_seconds": 0, "langfuse": {"base_url": langfuse.url}}
        path.write_text(yaml.safe_dump({"metrics": ["context_recall"], "write_back": write_back}))
        langfuse.statuses = [503]
        [down] = nightly(str(path), NIGHT).write_back
        assert (down.sent, down.waiting) == (0, 30)
        [up] = nightly(str(path), NIGHT).write_back
        assert (up.sent, up.problem, len(langfuse.scores)) == (30, "", 30)
