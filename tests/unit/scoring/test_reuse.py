"""Reuse: what a run may take over from an earlier one of the same night, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.pipeline import Night, run_night
from ragmetrics.scoring import (
    Staged,
    chosen_metrics,
    find_reusable_run,
    judge_info,
    list_parts,
    score_parts,
)
from ragmetrics.scoring.reuse import find_attempt, reuse_part, staged_runs
from ragmetrics.storage import StoredPart, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

SHARDS = 4
METRICS = ["hit_rate", "mrr"]
"""They ask nobody."""
LIVE = {"name": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key_env": ""}
"""A judge that nobody asks here."""


def dataset(folder: Path, **more: Any) -> Settings:
    """Four shards, and metrics that ask nobody."""
    return make_settings(night_values(folder, metrics=METRICS, shards=SHARDS) | more)


def log(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write one of the night's files."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / name, rows)


def scored(settings: Settings) -> Staged:
    """The night, staged and scored."""
    staged = Night(settings).stage(NIGHT)
    assert score_parts(settings, staged, list_parts(settings, staged)) == []
    return staged


def offered(settings: Settings, staged: Staged) -> list[tuple[str, tuple[int, ...], set[str]]]:
    """The runs that may be taken from: their ids, shards and metrics."""
    info, embedder = judge_info(settings)
    prints = {
        metric.name: metric.fingerprint(info.fingerprint, embedder)
        for metric in chosen_metrics(settings)
    }
    reuse = find_reusable_run(settings, open_store(settings), staged, prints)
    return [(one.ref.run, one.shards, set(one.metrics)) for one in reuse.earlier]


def test_the_first_run_of_a_night_has_nothing_to_take(tmp_path: Path) -> None:
    """Nor has its repetition, which finds its own parts."""
    settings = dataset(tmp_path)
    log(tmp_path, "a.jsonl", make_rows(20))
    for _ in range(2):
        staged = scored(settings)
        assert offered(settings, staged) == []
    assert not reuse_part(open_store(settings), staged.ref, ["hit_rate"], 0)


def test_shards_with_the_same_rows_are_offered(tmp_path: Path) -> None:
    """One row more changes the digest of its own shard and of no other."""
    settings = dataset(tmp_path)
    log(tmp_path, "a.jsonl", make_rows(40))
    first = scored(settings)
    log(tmp_path, "b.jsonl", [{**make_rows(41)[40], "id": "late"}])
    second = Night(settings).stage(NIGHT)
    same = tuple(n for n in range(SHARDS) if first.digests[n] == second.digests[n])
    assert len(same) == SHARDS - 1
    assert offered(settings, second) == [(first.ref.run, same, set(METRICS))]


def test_equal_rows_have_equal_digests(tmp_path: Path) -> None:
    """In another store too; and another order of the same rows is another shard."""
    settings = dataset(tmp_path)
    log(tmp_path, "a.jsonl", make_rows(40))
    one = Night(settings).stage(NIGHT)
    two = Night(settings.model_copy(update={"store": str(tmp_path / "other")})).stage(NIGHT)
    assert one.digests == two.digests
    log(tmp_path, "a.jsonl", make_rows(40)[::-1])
    assert not set(Night(settings).stage(NIGHT).digests) & set(one.digests)


def test_a_part_that_is_taken_over_is_the_same_but_for_its_notes(tmp_path: Path) -> None:
    """Its scores are those of the earlier run; its notes say whose, and that nothing was asked."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    wanted = ["Museums are closed on Mondays."]
    log(tmp_path, "a.jsonl", make_rows(40, good=0.5, reference_contexts=wanted))
    first = scored(settings)
    log(tmp_path, "b.jsonl", [{**make_rows(41)[40], "id": "late"}])
    second = Night(settings).stage(NIGHT)
    (run, shards, _) = offered(settings, second)[0]
    shard = shards[0]
    assert reuse_part(files, second.ref, ["hit_rate"], shard)
    source, target = first.ref.scores("hit_rate", shard), second.ref.scores("hit_rate", shard)
    columns = ["id", "question", "value", "status", "reason", "details", "tags"]
    found = StoredPart(files, target).columns(columns)
    assert found.equals(StoredPart(files, source).columns(columns))
    assert set(found["value"].to_pylist()) == {0.0, 1.0}
    notes = StoredPart(files, target).notes()
    assert (notes["taken_over"], notes["usage"], notes["paid"]) == (run, {}, [])
    changed = next(n for n in range(SHARDS) if n not in shards)
    assert not reuse_part(files, second.ref, ["hit_rate"], changed)


def test_a_part_that_is_taken_over_keeps_its_verdicts(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """They tell as much of the judge as on the first run; a judge without any is asked nothing."""
    settings = dataset(tmp_path, metrics=["context_relevance"], judge=judge_at(judge_server))
    log(tmp_path, "a.jsonl", make_rows(12))
    first = run_night(settings, NIGHT).manifest
    log(tmp_path, "b.jsonl", [row | {"id": "late"} for row in make_rows(1)])
    second = run_night(settings, NIGHT).manifest
    assert second.taken_over
    (before,), (after,) = first.verdicts.values(), second.verdicts.values()
    assert after["grade"].replies == before["grade"].replies


def test_a_part_that_is_not_finished_is_not_taken(tmp_path: Path) -> None:
    """A family goes as one: where a metric of it is missing or damaged, it is scored anew."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    log(tmp_path, "a.jsonl", make_rows(40))
    first = scored(settings)
    second = Night(dataset(tmp_path, metrics=[*METRICS, "ndcg"])).stage(NIGHT)
    files.remove(first.ref.scores("mrr", 0))
    files.write(first.ref.scores("mrr", 1), b"PAR1 no more")
    assert not reuse_part(files, second.ref, METRICS, 0)
    assert not reuse_part(files, second.ref, METRICS, 1)
    assert reuse_part(files, second.ref, METRICS, 2)
    assert not reuse_part(files, second.ref, ["ndcg"], 2)


@pytest.mark.parametrize("columns", ["all", "one"])
def test_a_part_with_damaged_data_is_scored_anew(
    tmp_path: Path, columns: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Though its footer is good: found when its statuses are looked at, or when it is copied."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    log(tmp_path, "a.jsonl", make_rows(40, reference_contexts=["Museums are closed on Mondays."]))
    path = scored(settings).ref.scores("mrr", 0)
    data = files.read(path)
    end = 40 if columns == "one" else len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    files.write(path, data[:4] + b"\xff" * (end - 4) + data[end:])
    assert StoredPart(files, path).is_whole()
    more = dataset(tmp_path, metrics=[*METRICS, "ndcg"])
    second = Night(more).stage(NIGHT)
    assert not reuse_part(files, second.ref, ["mrr"], 0)
    assert reuse_part(files, second.ref, ["mrr"], 1)
    assert f"{path} is damaged" in caplog.text
    anew = StoredPart(files, scored(more).ref.scores("mrr", 0)).columns(["status"])
    assert anew["status"].unique().to_pylist() == ["scored"]


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": [{"hit_rate": {"k": 1}}, {"mrr": {"k": 1}}]},
        {"shards": SHARDS + 1},
        {"budget": {"max_requests": 1_000}},
    ],
)
def test_what_changes_the_scores_is_not_taken(tmp_path: Path, change: dict[str, Any]) -> None:
    """Other parameters, another cut, a budget that shares out what all rows may cost."""
    log(tmp_path, "a.jsonl", make_rows(40))
    scored(dataset(tmp_path))
    other = dataset(tmp_path, **change)
    assert offered(other, Night(other).stage(NIGHT)) == []


def test_another_judge_takes_only_what_asks_nobody(tmp_path: Path) -> None:
    """And a judge that weighs words takes over judged metrics only where all rows are the same."""
    log(tmp_path, "a.jsonl", make_rows(40))
    both = [*METRICS, "context_recall"]
    first = scored(dataset(tmp_path, metrics=both))
    same_rows = dataset(tmp_path, metrics=[*both, "ndcg"])
    ((run, shards, metrics),) = offered(same_rows, Night(same_rows).stage(NIGHT))
    assert (run, len(shards), metrics) == (first.ref.run, SHARDS, set(both))
    other = dataset(tmp_path, metrics=both, judge=LIVE)
    offers = offered(other, Night(other).stage(NIGHT))
    assert all(found == set(METRICS) for _, _, found in offers)
    assert offers


def test_runs_that_were_staged_are_found_newest_first(tmp_path: Path) -> None:
    """One whose staging never ended is none."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    assert staged_runs(files, NIGHT) == []
    found = []
    for number in range(3):
        log(tmp_path, f"{number}.jsonl", make_rows(5))
        found.append(Night(settings).stage(NIGHT).ref)
    files.remove(f"{found[0].folder('rows')}/staged.json")
    assert Staged.find(files, found[0].folder("rows")) is None
    assert [run.ref for run in staged_runs(files, NIGHT)] == found[:0:-1]


@pytest.mark.parametrize("name", ["staged.json", "reuse.json"])
def test_a_damaged_record_of_an_earlier_run_stops_no_night(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named, nothing is taken over from that run, and the night is scored."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    log(tmp_path, "a.jsonl", make_rows(40))
    path = f"{scored(settings).ref.folder('rows')}/{name}"
    files.write(path, b'{"ref": ')
    log(tmp_path, "b.jsonl", make_rows(41)[40:])
    assert offered(settings, scored(settings)) == []
    assert f"{path} is damaged" in caplog.text


def test_the_cut_of_the_night_stays_when_it_grows_a_little(tmp_path: Path) -> None:
    """Where the settings do not say how many shards, an earlier run of the night does."""
    settings = dataset(tmp_path, shards=None)
    log(tmp_path, "a.jsonl", make_rows(40))
    first = Night(settings).stage(NIGHT)
    log(tmp_path, "b.jsonl", make_rows(45)[40:])
    assert Night(settings).stage(NIGHT).ref.shards == first.ref.shards


def test_the_newest_attempt_is_found_where_others_were_deleted(tmp_path: Path) -> None:
    """Old runs may be removed; another run's ID that begins like it is none of its attempts."""
    settings, files = dataset(tmp_path), open_store(dataset(tmp_path))
    log(tmp_path, "a.jsonl", make_rows(5))
    staged = Night(settings).stage(NIGHT)
    first = staged.ref

    def called(run: str) -> Staged:
        return staged.model_copy(update={"ref": first.model_copy(update={"run": run})})

    there = [called(f"{first.run}-10"), called(f"{first.run}-9"), called("1234567890")]
    assert find_attempt(files, first, there, None).run == f"{first.run}-10"
    assert find_attempt(files, first, there[2:], None) == first
