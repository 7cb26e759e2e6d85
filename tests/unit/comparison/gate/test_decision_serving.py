"""Which build serves, and where its scores are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import (
    find_serving,
    gate_run_settings,
    load_gate,
    load_gates,
    stage_gate,
)
from ragmetrics.errors import InputError, StoreError
from ragmetrics.records import IndexBuild
from ragmetrics.storage import Files, open_store
from tests.fakes.build_logs import damaged, gate_settings, write_build
from tests.fakes.gated_builds import ROWS, gate, loose, night, two_builds
from tests.fakes.logs import NIGHT, write_jsonl


def test_the_build_that_was_promoted_last_serves(tmp_path: Path) -> None:
    """Of those but itself: a gate may be repeated."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b2").verdict == "promote"
    for _ in range(2):
        found = gate(settings, "b3", serving=None)
        assert (found.serving, found.verdict) == ("b2", "promote")
    assert [gated.build for gated in load_gates(open_store(settings))] == ["b3", "b2"]


@pytest.mark.parametrize("order", [("good", "bad", "other"), ("bad", "other", "good")])
def test_builds_serve_in_the_order_in_which_they_were_made(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Whatever order their gates run in: a queue, a retry or a slow worker changes nothing."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    made = {"other": 1, "bad": 2, "good": 3}
    for build in order:
        write_build(tmp_path, build, damaged(ROWS, 0.5, seed=1) if build == "bad" else ROWS)
        gate(settings, build, built=datetime(2026, 11, 20, made[build], tzinfo=UTC))
    files = open_store(settings)
    assert [gated.build for gated in load_gates(files)] == ["good", "bad", "other"]
    assert find_serving(files, settings.dataset, datetime.now(UTC).date())[0] == "good"
    write_build(tmp_path, "next", ROWS)
    assert gate(settings, "next", serving=None).serving == "good"


def test_a_build_announced_again_was_made_when_it_was(tmp_path: Path) -> None:
    """A later event of the same log changes no time; that of another log is of another build."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    first, later = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (1, 7))
    assert gate(settings, "b2", built=first).built_at == first
    assert gate(settings, "b2", built=later).built_at == first
    write_build(tmp_path, "b2", ROWS[1:])
    assert gate(settings, "b2", built=later).built_at == later


def test_a_build_of_the_future_was_made_when_it_was_decided(tmp_path: Path) -> None:
    """A clock that is wrong by a year lets no build serve for a year."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    found = gate(settings, "b2", built=datetime(2999, 1, 1, tzinfo=UTC))
    assert found.order == found.finished_at


def test_an_old_build_announced_again_does_not_come_to_serve(tmp_path: Path) -> None:
    """A builder that repeats itself finds the verdict, against the build that served then; the
    build promoted last is the one that it was."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    for build in ("b3", "b4"):
        write_build(tmp_path, build, ROWS)
    first = gate(settings, "b2")
    assert gate(settings, "b3", serving=None).serving == "b2"
    assert gate(settings, "b2", serving=None) == first
    assert gate(settings, "b4", serving=None).serving == "b3"


def test_a_slip_takes_no_decision_back(tmp_path: Path) -> None:
    """Against a build that does not exist nothing is compared: the promotion stays on record."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    promoted = gate(settings)
    with pytest.raises(InputError, match=r"promote against b1, which stays: .*nosuch: no log"):
        gate(settings, serving="nosuch")
    assert load_gate(open_store(settings), "b2") == promoted


def test_a_golden_set_that_was_lost_takes_no_decision_back(tmp_path: Path) -> None:
    """The log is the one that was decided on, and tells nothing new."""
    golden_set = tmp_path / "golden.jsonl"
    golden_set.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path), golden=str(golden_set))
    promoted = gate(settings)
    golden_set.write_text("")
    with pytest.raises(InputError, match="which stays"):
        gate(settings)
    assert load_gate(open_store(settings), "b2") == promoted


def test_a_build_that_was_mended_is_held_against_what_serves_now(tmp_path: Path) -> None:
    """Another log under the name of a build that was held is another build."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.6, seed=1), gate=loose(tmp_path))
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b2").verdict == "hold"
    assert gate(settings, "b3").verdict == "promote"
    write_build(tmp_path, "b2", damaged(ROWS, 0.01, seed=1))
    assert gate(settings, "b2", serving=None).serving == "b3"


def test_an_old_build_with_a_newer_copy_of_its_log_does_not_come_to_serve(tmp_path: Path) -> None:
    """Nor does one that is decided the same by other limits: it was promoted when it was."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    for build in ("b3", "b4"):
        write_build(tmp_path, build, ROWS)
    gate(settings, "b2")
    gate(settings, "b3")
    write_build(tmp_path, "b2", ROWS)
    limits = {"max_drop": 0.5}
    wider = settings.model_copy(update={"gate": settings.gate.model_copy(update=limits)})
    assert gate(wider, "b2", serving=None).serving == "b1"
    assert gate(settings, "b4", serving=None).serving == "b3"


def test_a_log_that_cannot_be_opened_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is decided, and the verdict says why."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    whole = Files.open

    def refused(files: Files, path: str) -> Any:
        if path.endswith("b2.jsonl"):
            raise StoreError("permission denied")
        return whole(files, path)

    monkeypatch.setattr(Files, "open", refused)
    found = gate(settings)
    assert (found.verdict, found.content) == ("inconclusive", "")
    assert "permission denied" in found.reasons[0]


def test_a_store_is_of_one_data_set(tmp_path: Path) -> None:
    """A verdict on another data set's build of the same name is not written over."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    gate(settings)
    other = settings.model_copy(update={"dataset": "bridges"})
    build = IndexBuild(dataset="bridges", build="b2", serving="b1")
    with pytest.raises(InputError, match="of the data set towers: give bridges a store of its own"):
        stage_gate(other, build)


def test_else_the_build_that_the_newest_night_names(tmp_path: Path) -> None:
    """Most rows of the newest night were served by b1."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    night(settings, tmp_path, NIGHT, [{**row, "index_build": "b1"} for row in ROWS])
    assert gate(settings, serving=None).serving == "b1"


def test_a_name_in_a_log_leads_nowhere(tmp_path: Path) -> None:
    """Rows may say that they were served by anything; what is no build's name is passed over."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    named = ["../../elsewhere"] * 30 + ["b*"] * 20 + ["b1"] * 10
    served = [{**row, "index_build": name} for row, name in zip(ROWS, named, strict=True)]
    night(settings, tmp_path, NIGHT, served)
    assert gate(settings, serving=None).serving == "b1"


def test_without_any_nothing_is_decided(tmp_path: Path) -> None:
    """The first build of all: somebody has to say which one serves."""
    write_build(tmp_path, "b2", ROWS)
    found = gate(gate_settings(tmp_path), serving=None)
    assert (found.verdict, found.serving) == ("inconclusive", None)
    assert "the serving build is not known" in found.reasons[0]


def test_a_serving_build_without_a_log_is_known_by_its_nights(tmp_path: Path) -> None:
    """Its rows of the newest night, and of no other build; by the word counts of that night."""
    write_build(tmp_path, "b2", damaged(ROWS, 0.3, seed=1))
    settings = gate_settings(tmp_path, gate=loose(tmp_path))
    bad = [{**row, "retrieved_contexts": [], "index_build": "b0"} for row in ROWS]
    good = [{**row, "index_build": "b1"} for row in ROWS]
    night(settings, tmp_path, NIGHT, good)
    night(settings, tmp_path, NIGHT + timedelta(1), [*bad, *good[:50]])
    found = gate(settings)
    assert (found.verdict, found.serving_logs) == ("hold", f"night {NIGHT + timedelta(1)}")
    assert found.metrics[0].questions == 50
    run_files = open_store(gate_run_settings(settings))
    staged = stage_gate(settings, IndexBuild(dataset="towers", build="b2", serving="b1"))
    assert staged.before is not None
    assert staged.now.staged is not None
    ours = run_files.read(f"{staged.now.staged.ref.folder('rows')}/corpus.bin")
    theirs = open_store(settings).read(f"{staged.before.nights[0].folder('rows')}/corpus.bin")
    assert ours == theirs


def test_nights_judged_otherwise_are_not_compared(tmp_path: Path) -> None:
    """Another prompt, judge or parameter gives another measure."""
    write_build(tmp_path, "b2", ROWS)
    before = gate_settings(tmp_path, metrics=[{"context_precision": {"relevant_from": 2}}])
    night(before, tmp_path, NIGHT, [{**row, "index_build": "b1"} for row in ROWS])
    rule = {"rules": [{"metric": "context_precision"}]}
    now = gate_settings(tmp_path, metrics=["context_precision"], gate={**loose(tmp_path), **rule})
    found = gate(now)
    assert found.verdict == "inconclusive"
    assert "no night has rows of it that were judged in the same way" in found.reasons[0]


def test_a_log_that_was_named_when_its_build_was_gated_is_found_again(tmp_path: Path) -> None:
    """Where `gate: logs:` does not lead to it."""
    settings = gate_settings(tmp_path, gate=loose(tmp_path))
    write_build(tmp_path, "b1", ROWS)
    elsewhere = write_jsonl(tmp_path / "elsewhere" / "x.jsonl", ROWS)
    assert gate(settings, "b2", logs=str(elsewhere)).verdict == "promote"
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b3", serving="b2").serving_logs == str(elsewhere)
