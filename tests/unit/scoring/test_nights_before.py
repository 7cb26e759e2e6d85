"""NightsBefore: what the nights before say of a row, from the store alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import LogRow, Manifest
from ragmetrics.scoring.nights_before import NIGHTS, NightsBefore
from ragmetrics.storage import Files, RunRef
from tests.fakes.logs import NIGHT, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

LOOKING_BACK = ["list_overlap", "score_shift", "query_drift"]


def rows(count: int, *, word: str = "", score: float = 0.5, first: int = 0) -> list[dict[str, Any]]:
    """Questions with two passages; the scores of the retriever are spread below and above one."""
    return [
        {
            "id": str(number),
            "user_input": f"How does machine {chr(97 + number % 20)}x{word} number {number} start?",
            "retrieved_contexts": ["It starts.", "It stops."],
            "retrieved_context_ids": [f"doc-{first}", "doc-stops"],
            "retrieved_context_scores": [score + number / 1000, 0.1],
        }
        for number in range(count)
    ]


def nights(tmp_path: Path, *logs: list[dict[str, Any]]) -> list[Manifest]:
    """Run a night on each log, one after the other."""
    settings = make_settings(
        {
            "logs": f"{tmp_path}/logs/{{date}}.jsonl",
            "store": str(tmp_path / "store"),
            "metrics": LOOKING_BACK,
            "alerts": {"rules": []},
        }
    )
    found = []
    for number, log in enumerate(logs):
        day = NIGHT + timedelta(number)
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", log)
        found.append(run_night(settings, day).manifest)
    return found


def means(night: Manifest) -> dict[str, float | None]:
    """The means of a night by metric."""
    return {summary.metric: summary.mean for summary in night.metrics}


def test_a_night_is_told_what_changed_since_the_nights_before(tmp_path: Path) -> None:
    """A first rank that another document has, scores on another scale, and, after a week, words
    that nobody used."""
    same = rows(120)
    changed = rows(120, word="newest", score=5.0, first=1)
    changed = [
        {**new, "user_input": old["user_input"]} for new, old in zip(changed, same, strict=True)
    ]
    first, second, third = nights(tmp_path, same, same, changed)
    assert means(first) == dict.fromkeys(LOOKING_BACK)
    assert means(second)["list_overlap"] == pytest.approx(1.0)
    assert means(second)["score_shift"] == pytest.approx(0.5)
    assert means(third)["score_shift"] == 1.0
    overlap = means(third)["list_overlap"]
    assert overlap is not None and 0.3 < overlap < 0.7
    assert means(third)["query_drift"] is None


def test_words_count_from_seven_nights_on(tmp_path: Path) -> None:
    """Two of three words are new, and before that many nights nothing is said."""
    (night,) = nights(tmp_path, rows(3))
    files, ref = Files(str(tmp_path / "store")), RunRef.of(night)
    row = LogRow("1", "Machine unheard overnight?", ())
    assert NightsBefore(files, [ref] * NIGHTS).told(row).new_words == pytest.approx(2 / 3)
    assert NightsBefore(files, [ref] * (NIGHTS - 1)).told(row).new_words is None


def test_lists_without_ids_are_compared_by_their_texts(tmp_path: Path) -> None:
    """Case and spaces make no difference."""
    log = [{**row, "retrieved_context_ids": None} for row in rows(5)]
    again = [{**row, "retrieved_contexts": ["it  STARTS.", "It stops."]} for row in log]
    _, second = nights(tmp_path, log, again)
    assert means(second)["list_overlap"] == pytest.approx(1.0)


def test_rows_that_were_removed_say_nothing(tmp_path: Path) -> None:
    """An old night whose rows are gone is passed over."""
    (night,) = nights(tmp_path, rows(2))
    files, ref = Files(str(tmp_path / "store")), RunRef.of(night)
    for shard in range(ref.shards):
        files.discard(ref.rows(shard))
    told = NightsBefore(files, [ref]).told(LogRow("1", rows(1)[0]["user_input"], ("a",)))
    assert told.last_contexts is None
