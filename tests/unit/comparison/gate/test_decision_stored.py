"""Gates in the store: repeated, rebuilt, in steps, in a bucket."""

from __future__ import annotations

from pathlib import Path

from ragmetrics.comparison import (
    decide_gate,
    gate_parts,
    gate_run_settings,
    load_gate,
    load_gates,
    save_gate,
    stage_gate,
)
from ragmetrics.records import IndexBuild
from ragmetrics.storage import open_store
from tests.fakes.build_logs import damaged, gate_settings, write_build
from tests.fakes.clients import Bucket
from tests.fakes.gated_builds import ROWS, gate, paths, two_builds, without_passages


def test_gates_never_look_like_nights(tmp_path: Path) -> None:
    """All they write is below `gates/`."""
    settings = two_builds(tmp_path, ROWS)
    gate(settings)
    assert {path.split("/")[0] for path in paths(settings, "")} == {"gates"}
    assert "gates/b2.json" in paths(settings, "gates")


def test_a_repeated_gate_is_the_one_that_it_was(tmp_path: Path) -> None:
    """On any later day: no part is scored again, and what was told is not told again."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    files = open_store(settings)
    save_gate(files, gate(settings).model_copy(update={"told": True}))
    known = load_gate(files, "b2")
    parts = {info.path: info.version for info in files.below("gates/scores")}
    assert gate(settings) == known
    assert parts == {info.path: info.version for info in files.below("gates/scores")}


def test_another_verdict_is_not_taken_for_told(tmp_path: Path) -> None:
    """A build whose log was put right and is damaged again has a new message due."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    files = open_store(settings)
    save_gate(files, gate(settings).model_copy(update={"told": True}))
    write_build(tmp_path, "b2", ROWS[:40])
    found = gate(settings)
    assert (found.verdict, found.told) == ("inconclusive", False)


def test_a_build_that_was_rebuilt_and_falls_further_is_news(tmp_path: Path) -> None:
    """Under the same name: that it was held before does not silence it."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    files = open_store(settings)
    save_gate(files, gate(settings).model_copy(update={"told": True, "heard": ["slack"]}))
    write_build(tmp_path, "b2", damaged(ROWS, 0.6, seed=1))
    found = gate(settings)
    assert (found.verdict, found.told, found.heard) == ("hold", False, [])
    save_gate(files, found.model_copy(update={"told": True}))
    assert gate(settings).told


def test_a_held_build_whose_metric_falls_further_is_news(tmp_path: Path) -> None:
    """The same log, of which a judge that failed before has scored more since."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    files = open_store(settings)
    held = gate(settings)
    for less, told in ((0.5, False), (0.01, True)):
        metrics = [
            each.model_copy(update={"drop": (each.drop or 0) - less}) for each in held.metrics
        ]
        save_gate(files, held.model_copy(update={"told": True, "metrics": metrics}))
        assert gate(settings).told is told


def test_a_held_build_that_also_lost_passages_is_news(tmp_path: Path) -> None:
    """The same log, of which the index has been asked for lost passages since."""
    settings = without_passages(tmp_path, 0.1)
    held = gate(settings)
    lost = held.lost_passages
    assert held.metrics[0].verdict == "hold"
    assert lost and lost.stages_gone
    for known, told in ((lost.model_copy(update={"stages": []}), False), (lost, True)):
        save_gate(
            open_store(settings), held.model_copy(update={"told": True, "lost_passages": known})
        )
        assert gate(settings).told is told


def test_a_verdict_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """Its build is gated again; the others count."""
    settings = two_builds(tmp_path, ROWS)
    gate(settings)
    files = open_store(settings)
    files.write("gates/b9.json", b'{"build": "b9"}')
    assert [gated.build for gated in load_gates(files)] == ["b2"]
    assert load_gate(files, "b9") is None


def test_a_gate_can_be_taken_in_steps(tmp_path: Path) -> None:
    """As the flow does: what was staged survives JSON, and parts are by run."""
    from ragmetrics.scoring import score_part

    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1), shards=2)
    build = IndexBuild(dataset="towers", build="b2", serving="b1")
    staged = stage_gate(settings, build)
    staged = type(staged).model_validate_json(staged.model_dump_json())
    todo = gate_parts(settings, staged)
    assert [len(parts) for _, parts in todo] == [4, 4]
    for ref, parts in todo:
        for family, shard in parts:
            score_part(gate_run_settings(settings), ref, family, shard, kept=open_store(settings))
    assert decide_gate(settings, staged).verdict == "hold"


def test_a_gate_in_a_bucket(tmp_path: Path, s3: Bucket) -> None:
    """Logs and store are there; nothing is written to this machine."""
    for build, rows in (("b1", ROWS), ("b2", damaged(ROWS, 0.3, seed=1))):
        log = write_build(tmp_path, build, rows).read_bytes()
        s3.client.put_object(Bucket=s3.name, Key=f"builds/{build}/log.jsonl", Body=log)
    settings = gate_settings(
        tmp_path, store=f"{s3.uri}/store", gate={"logs": f"{s3.uri}/builds/{{build}}/"}
    )
    found = gate(settings)
    assert (found.verdict, found.logs) == ("hold", f"{s3.uri}/builds/b2/")
    assert "store/gates/b2.json" in s3.keys("store/gates/")
    assert list(load_gates(open_store(settings))) == [found]
    assert not (tmp_path / "store").exists()
