"""The prune flow through Prefect: what the weekly deployment does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.builders import save_settings
from tests.fakes.aged_store import aged_store, morning_after
from tests.fakes.nights import FIRST

pytestmark = pytest.mark.usefixtures("prefect_server")


def test_the_flow_removes_what_is_not_needed_and_logs_it(tmp_path: Path) -> None:
    """A replaced run goes; the run that a rule pins stays."""
    from flows.prune import prune

    store, day = aged_store(tmp_path), FIRST - timedelta(days=300)
    store.add_run(day, "replaced")
    store.add_run(day, "pinned")
    store.add_run(day, "current", at=morning_after(day) + timedelta(hours=1))
    pin = {"metric": "context_recall", "max_drop": 0.1, "versus": "pinned:pinned"}
    path = save_settings(
        tmp_path, store=store.settings.store, metrics=["context_recall"], alerts={"rules": [pin]}
    )
    done = prune(str(path))
    assert len(store.paths(day, "pinned")) == 4
    assert store.paths(day, "replaced") == []
    assert "run=replaced" in store.files.read(done.logs[0]).decode()
