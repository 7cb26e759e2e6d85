"""Shards: as many as make parts of a sensible length, whatever the size of a night."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import Settings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import StoreError
from ragmetrics.logs import LogSet, find_logs
from ragmetrics.scoring.metric_choice import score_families
from ragmetrics.scoring.sharding import (
    MOST_TASKS,
    Extent,
    best_number,
    compute_seconds,
    extent,
    shards_for,
)
from ragmetrics.storage import FileInfo, Files
from tests.fakes.logs import make_rows, write_jsonl

ROWS = 4_000


def rows() -> list[dict[str, Any]]:
    """Rows that do not compress to nothing, of some 700 characters each."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=7)) for _ in range(3_000)]
    made = make_rows(ROWS)
    for row in made:
        row["retrieved_contexts"] = [" ".join(draw.choices(words, k=80))]
    return made


def logs(place: Path, **more: Any) -> LogSet:
    """The logs at a place."""
    return LogSet(*find_logs(str(place)), **more)


def of_size(folder: Path, size: int) -> LogSet:
    """A log whose listing says that it has so many bytes; its head is there."""
    write_jsonl(folder / "a.jsonl", make_rows(2_000))
    return LogSet(Files(str(folder)), (FileInfo("a.jsonl", size, "1"),))


def settings(**values: Any) -> Settings:
    """Settings with an endpoint's judge under a short name."""
    if values.get("judge") == "openai":
        values["judge"] = {"name": "openai", "model": "m", "base_url": "http://localhost:1/v1"}
    return make_settings(values)


def test_a_small_night_is_one_shard(tmp_path: Path) -> None:
    """A thousand rows, or none, are not cut, whoever judges."""
    write_jsonl(tmp_path / "a.jsonl", make_rows(1_000))
    for judge in ("lexical", "openai", "openai-batch", "recorded:replies.jsonl"):
        assert shards_for(settings(judge=judge), [logs(tmp_path)]) == 1
        assert shards_for(settings(judge=judge), []) == 1


@given(rows=st.floats(0, 1e12), length=st.floats(0, 1e5), metrics=st.integers(1, 6))
def test_a_night_has_a_few_hundred_tasks_at_most(rows: float, length: float, metrics: int) -> None:
    """Families of metrics times shards are never more; below that, a part is of a good length."""
    chosen = make_settings({"metrics": DEFAULT_METRICS[:metrics]})
    size = Extent(rows, rows * length)
    shards, whole = best_number(chosen, size), compute_seconds(chosen, size)
    tasks = shards * len(score_families(chosen))
    assert 1 <= tasks <= MOST_TASKS
    if whole > 200 and tasks + tasks // shards <= MOST_TASKS:
        assert 25 <= whole / shards <= 100


def write(folder: Path, ending: str) -> Path:
    """The rows in one format."""
    path = folder / f"log{ending}"
    made = rows()
    lines = "".join(json.dumps(row) + "\n" for row in made).encode()
    if ending == ".parquet":
        pd.DataFrame(made).to_parquet(path)
    elif ending == ".csv":
        cells = [
            {n: v if isinstance(v, str) else json.dumps(v) for n, v in r.items()} for r in made
        ]
        pd.DataFrame(cells).to_csv(path, index=False)
    elif ending == ".json":
        path.write_text(json.dumps(made))
    elif ending == ".jsonl.zst":
        path.write_bytes(pa.compress(lines, "zstd", asbytes=True))
    else:
        path.write_bytes(gzip.compress(lines) if ending.endswith(".gz") else lines)
    return path


@pytest.mark.parametrize(
    "ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".csv", ".parquet"]
)
def test_rows_and_text_are_told_from_the_head(tmp_path: Path, ending: str) -> None:
    """A look at the beginning of a file, or at a footer, says about what is in all of it."""
    write(tmp_path, ending)
    size = extent(logs(tmp_path))
    text = sum(len(row["user_input"]) + len(row["response"]) + len(row["reference"])
               + sum(map(len, row["retrieved_contexts"])) for row in rows())  # fmt: skip
    assert size.rows == pytest.approx(ROWS, rel=0.1)
    assert size.text == pytest.approx(text, rel=0.4 if ending == ".parquet" else 0.1)


def test_columns_of_other_names_are_read_as_the_settings_say(tmp_path: Path) -> None:
    """The head is read as staging will read it."""
    made = [{"q": row["user_input"], "docs": row["retrieved_contexts"]} for row in make_rows(50)]
    write_jsonl(tmp_path / "a.jsonl", made)
    columns = {"user_input": "q", "retrieved_contexts": "docs"}
    assert extent(logs(tmp_path, columns=columns)).rows == 50


def test_many_files_are_told_from_a_few(tmp_path: Path) -> None:
    """Files stand for the others of their kind, by size."""
    for number in range(30):
        write_jsonl(tmp_path / f"{number:02}.jsonl", make_rows(10))
    assert extent(logs(tmp_path)).rows == pytest.approx(300, rel=0.02)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet", "a.csv"])
def test_a_broken_file_is_guessed_at(tmp_path: Path, name: str) -> None:
    """Staging tells of it; that it counts for something keeps the others' shards in bounds."""
    (tmp_path / name).write_bytes(b"\x00\x01 not what it says" * 1_000)
    assert extent(logs(tmp_path)).text > 0
    (tmp_path / name).write_bytes(b"")
    assert extent(logs(tmp_path)) == Extent()


def test_a_bucket_that_fails_for_now_is_an_error(tmp_path: Path) -> None:
    """The number of shards is part of the run's name: it does not hang on one failed request."""
    write_jsonl(tmp_path / "a.jsonl", make_rows(10))
    infos = logs(tmp_path).infos

    class Failing(Files):
        """A bucket that is down."""

        @contextmanager
        def open(self, path: str) -> Iterator[BinaryIO]:
            raise StoreError(f"reading {path}: 503", transient=True)
            yield

    with pytest.raises(StoreError, match="503"):
        shards_for(settings(), [LogSet(Failing(str(tmp_path)), infos)])


def test_more_text_is_more_shards(tmp_path: Path) -> None:
    """Ten times the night has more shards, but not ten times as many: they are longer."""
    counts = [shards_for(settings(), [of_size(tmp_path, size << 20)]) for size in (40, 400, 4_000)]
    assert 1 < counts[0] < counts[1] < counts[2] < 100 * counts[0]


def test_a_limit_counts(tmp_path: Path) -> None:
    """The first hundred rows of a large log are a small night."""
    assert shards_for(settings(), [of_size(tmp_path, 1 << 30)], limit=100) == 1


def test_an_endpoint_takes_its_time_by_requests(tmp_path: Path) -> None:
    """Its parts are cut by rows and by how many requests it bears."""
    log = of_size(tmp_path, 10 << 20)
    few, many = (
        shards_for(
            settings(
                judge={"name": "openai", "base_url": "http://localhost:1/v1", "concurrency": n}
            ),
            [log],
        )
        for n in (32, 256)
    )
    assert few > many >= 1


def test_ids_alone_take_no_time(tmp_path: Path) -> None:
    """Metrics without a judge are done sooner, and cut less."""
    log = of_size(tmp_path, 200 << 20)
    ids = shards_for(settings(metrics=["hit_rate"]), [log])
    assert ids < shards_for(settings(metrics=["context_relevance"]), [log])


def test_the_settings_have_the_last_word(tmp_path: Path) -> None:
    """`shards` is taken as it is."""
    assert shards_for(settings(shards=7), [of_size(tmp_path, 1 << 30)], before=9) == 7


def test_an_earlier_number_stays_while_it_will_do(tmp_path: Path) -> None:
    """A late file makes a night a little larger and moves no row to another shard."""
    log = of_size(tmp_path, 400 << 20)
    best = shards_for(settings(), [log])
    assert shards_for(settings(), [log], before=best - 1) == best - 1
    assert shards_for(settings(), [log], before=best * 2) == best * 2
    assert shards_for(settings(), [log], before=best * 2 + 1) == best
    assert shards_for(settings(), [log], before=1) == best
