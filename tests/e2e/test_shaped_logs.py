"""Three logs of different shape through `init`, `backfill` and the nightly: a broken night is never
green, not on its third day either, and a good one after it is fine. About a minute.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import load_settings
from ragmetrics.dashboard import find_night_status
from ragmetrics.storage import Runs, open_store
from tests.fakes.command import Run
from tests.fakes.shaped_logs import (
    FIRST,
    SECTIONS,
    SERVICE,
    SPARSE,
    SPREADSHEET,
    ShapedLog,
)

pytestmark = pytest.mark.usefixtures("without_pages")

SAMPLE = 5
"""Good nights from which the settings are written, and with which the broken ones are compared."""
BROKEN = {
    SPREADSHEET.name: {"lost": SECTIONS[:2]},
    SERVICE.name: {"found": 0.6},
}


def state(number: int) -> str:
    """The state of a night, so many days after the first."""
    found = Runs(open_store(load_settings("ragmetrics.yaml"))).current(FIRST + timedelta(number))
    assert found is not None
    return find_night_status(found).state


def prepared(log: ShapedLog, run: Run) -> list[dict[str, Any]]:
    """Good nights, settings from them, and their scores; the rules that `init` wrote."""
    for number in range(SAMPLE):
        log.night(Path.cwd(), number)
    made = run("init", log.sample, "--yes", "--json")
    assert made.code == 0, made.err
    last = FIRST + timedelta(SAMPLE - 1)
    assert run("backfill", "--first", str(FIRST), "--last", str(last)).code == 0
    rules: list[dict[str, Any]] = json.loads(made.out)["rules"]
    return rules


@pytest.mark.parametrize("log", [SPREADSHEET, SERVICE], ids=lambda log: log.name)
def test_a_broken_night_is_never_green_and_a_good_one_is_fine(log: ShapedLog, run: Run) -> None:
    """No line of the settings that `init` wrote is edited. On each of three broken nights an alert
    fires, each good night before is fine, and the first good night after resolves it.
    """
    assert all(rule["sees"] for rule in prepared(log, run))
    assert [state(number) for number in range(1, SAMPLE)] == ["ok"] * (SAMPLE - 1)
    for number in range(SAMPLE, SAMPLE + 3):
        day = log.night(Path.cwd(), number, **BROKEN[log.name])
        ended = run("nightly", "--date", str(day))
        assert (ended.code, state(number)) == (1, "firing"), ended.out
        assert "fine" not in ended.out
    ended = run("nightly", "--date", str(log.night(Path.cwd(), SAMPLE + 3)))
    assert (ended.code, state(SAMPLE + 3)) == (0, "ok"), ended.out
    assert "Resolved" in ended.out


def test_a_log_whose_scores_are_near_0_says_what_it_cannot_see_and_fires(run: Run) -> None:
    """Every context is lorem ipsum, so four metrics fall from below 0.1 to 0: amber on the first
    night, on which chance might be the cause, and an alert from the second on. Settings of an
    earlier version had one rule, of a drop larger than the mean, and all three nights were fine.
    """
    rules = prepared(SPARSE, run)
    assert [rule["metric"] for rule in rules if rule["sees"]] == ["response_relevancy"]
    assert "cannot show a regression here" in Path("ragmetrics.yaml").read_text("utf-8")
    found, said = [], ""
    for number in range(SAMPLE, SAMPLE + 3):
        day = SPARSE.night(Path.cwd(), number, lost=SECTIONS)
        ended = run("nightly", "--date", str(day))
        found.append((ended.code, state(number)))
        said = said or " ".join(ended.out.split())
    assert "context_relevance cannot show a regression here" in said
    assert found == [(0, "pending"), (1, "firing"), (1, "firing")]
