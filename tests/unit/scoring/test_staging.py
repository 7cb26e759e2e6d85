"""Staging: every good row goes to one shard, with its references, under a name that is stable."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs import find_inputs
from ragmetrics.records import LogRow
from ragmetrics.scoring import Staged, corpus_of, plan_run, stage_run
from ragmetrics.scoring.sharding import shard_of
from ragmetrics.scoring.staging import load_corpus
from ragmetrics.storage import RunRef, open_store
from ragmetrics.storage.parts import StoredPart
from ragmetrics.storage.run_index import shard_range
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

NOW = datetime(2026, 11, 20, 2, tzinfo=UTC)


def settings_in(tmp_path: Path, **more: Any) -> Settings:
    """A dataset with its logs by date and a local store."""
    logs = f"{tmp_path}/logs/dt={{date}}"
    return make_settings({"logs": logs, "store": str(tmp_path / "store"), **more})


def log(tmp_path: Path, rows: Sequence[dict[str, Any] | str], name: str = "a.jsonl") -> Path:
    """Write rows among the night's logs."""
    return write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / name, rows)


def run(settings: Settings, judged_by: str = "judge", day: date = NIGHT) -> Staged:
    """Stage the night."""
    inputs = find_inputs(settings, day)
    return stage_run(settings, plan_run(settings, day, inputs, judged_by), inputs, NOW)


def shards(settings: Settings, ref: RunRef) -> list[list[LogRow]]:
    """The staged rows, shard by shard."""
    files = open_store(settings)
    return [
        list(chain.from_iterable(StoredPart(files, ref.rows(shard)).row_batches()))
        for shard in range(ref.shards)
    ]


def staged_row(tmp_path: Path, row: dict[str, Any], golden: list[dict[str, Any]]) -> LogRow:
    """What becomes of one row beside a golden set."""
    log(tmp_path, [row])
    settings = settings_in(tmp_path, golden=str(write_jsonl(tmp_path / "golden.jsonl", golden)))
    (rows,) = shards(settings, run(settings).ref)
    return rows[0]


def test_a_night_without_rows_of_its_day_names_the_other_days(tmp_path: Path) -> None:
    """The rows can be read: the reason is that of the records that were skipped."""
    rows = [{**row, "timestamp": "2026-10-01T08:00:00Z"} for row in make_rows(3)]
    place = str(write_jsonl(tmp_path / "export.jsonl", rows))
    staged = run(settings_in(tmp_path, logs=place, split_nights=True))
    expected = "every record was skipped, most often: row of another day (3)"
    assert staged.source.problem == expected


def test_shards_partition_the_rows(tmp_path: Path) -> None:
    """Each row is in one shard, none is lost, and equal questions meet."""
    rows = make_rows(60)
    again = [{**row, "id": f"{row['id']}-again", "user_input": row["user_input"].upper()}
             for row in rows]  # fmt: skip
    log(tmp_path, rows + again)
    settings = settings_in(tmp_path, shards=4)
    found = shards(settings, run(settings).ref)
    ids = sorted(row.id for shard in found for row in shard)
    assert ids == sorted(row["id"] for row in rows + again)
    assert all(found)
    questions = [{row.question_key for row in shard} for shard in found]
    assert sum(map(len, questions)) == len(set().union(*questions)) == 60


@hypothesis_settings(deadline=None)
@given(st.text(), st.integers(1, 200))
def test_a_shard_holds_the_keys_of_its_range(question: str, count: int) -> None:
    """The range of a shard, by which judgements are read, is where its rows' keys are."""
    row = LogRow("a", question, ())
    shard = shard_of(row, count)
    low, high = shard_range(shard, count)
    assert 0 <= shard < count
    assert low <= row.question_key <= high


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200])
def test_ranges_of_shards_are_without_gap(count: int) -> None:
    """From all zeros to all ones, each range begins where the one before ends."""
    ranges = [[int(edge, 16) for edge in shard_range(shard, count)] for shard in range(count)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 0xFFFFFFFF
    assert all(one[1] + 1 == following[0] for one, following in pairwise(ranges))


def test_the_night_is_counted(tmp_path: Path) -> None:
    """Rows, times, builds; what was not read by reason, with file and line in quarantine."""
    rows = [*make_rows(3, index_build=7), "not json", {"retrieved_contexts": []}, "not json"]
    log(tmp_path, rows)
    settings = settings_in(tmp_path)
    staged = run(settings)
    source = staged.source
    assert (source.files, source.rows, source.quarantined) == (1, 3, 3)
    assert source.reasons["user_input: no question"] == 1
    assert source.index_builds == {"7": 3}
    assert source.oldest == datetime(2026, 11, 19, tzinfo=UTC)
    assert source.newest == datetime(2026, 11, 19, 0, 0, 2, tzinfo=UTC)
    quarantine = open_store(settings).read(f"{staged.ref.folder('quarantine')}.jsonl")
    first, second, _ = map(json.loads, quarantine.splitlines())
    assert (first["file"], first["line"], first["excerpt"]) == ("a.jsonl", 4, "not json\n")
    assert "retrieved_contexts" in second["excerpt"]


def test_a_good_night_has_no_quarantine(tmp_path: Path) -> None:
    """No file, so that nobody looks into an empty one."""
    log(tmp_path, make_rows(3))
    settings = settings_in(tmp_path)
    run(settings)
    assert not open_store(settings).exists("quarantine")


def test_rows_get_the_language_of_the_settings(tmp_path: Path) -> None:
    """Unless they say theirs."""
    log(tmp_path, [*make_rows(1, language="de"), *make_rows(1)])
    settings = settings_in(tmp_path, language="fi")
    (rows,) = shards(settings, run(settings).ref)
    assert [row.language for row in rows] == ["de", "fi"]


def test_the_golden_set_joins_by_id(tmp_path: Path) -> None:
    """The row with that id gets what it lacks: reference, its contexts and their ids."""
    golden = {
        "id": "row-0000",
        "user_input": "another wording",
        "reference": "Gold.",
        "reference_contexts": ["Gold context."],
        "reference_context_ids": [9],
    }
    row = staged_row(tmp_path, *make_rows(1, reference=None), [golden])
    assert (row.reference, row.reference_contexts) == ("Gold.", ("Gold context.",))
    assert row.reference_context_ids == ("9",)


def test_the_golden_set_joins_by_question(tmp_path: Path) -> None:
    """Case and white space do not matter."""
    golden = {"user_input": "WHAT is the  height of tower 0?", "reference": "Gold."}
    assert staged_row(tmp_path, *make_rows(1, reference=None), [golden]).reference == "Gold."


def test_the_question_goes_before_the_id(tmp_path: Path) -> None:
    """A log that merely counts its rows has the ids of other golden questions."""
    golden = [
        {"id": "1", "user_input": "What is the height of tower 0?", "reference": "Gold."},
        {"id": "row-0000", "user_input": "Where do ferries leave?", "reference": "Another's."},
    ]
    assert staged_row(tmp_path, *make_rows(1, reference=None), golden).reference == "Gold."


def test_a_row_keeps_its_own_reference(tmp_path: Path) -> None:
    """The golden set fills in; it does not overrule."""
    golden = {
        "user_input": "What is the height of tower 0?",
        "reference": "Gold.",
        "reference_contexts": ["Gold context."],
    }
    row = staged_row(tmp_path, *make_rows(1, reference="Mine."), [golden])
    assert (row.reference, row.reference_contexts) == ("Mine.", ("Gold context.",))


def test_a_bad_golden_row_is_quarantined_as_such(tmp_path: Path) -> None:
    """It is told apart from the log's rows."""
    log(tmp_path, make_rows(2))
    settings = settings_in(tmp_path, golden=str(write_jsonl(tmp_path / "gold.jsonl", ["nonsense"])))
    staged = run(settings)
    assert (staged.source.rows, staged.source.quarantined) == (2, 1)
    line = json.loads(open_store(settings).read(f"{staged.ref.folder('quarantine')}.jsonl"))
    assert line["file"] == "golden set gold.jsonl"


def test_a_missing_golden_set_is_an_error(tmp_path: Path) -> None:
    """Scoring a night without its references would look like a night without recall."""
    log(tmp_path, make_rows(2))
    with pytest.raises(InputError, match=r"golden set .*nosuch\.jsonl: no such file"):
        find_inputs(settings_in(tmp_path, golden=str(tmp_path / "nosuch.jsonl")), NIGHT)


def test_the_same_input_is_the_same_run(tmp_path: Path) -> None:
    """So that repeating a night finds what is done."""
    log(tmp_path, make_rows(3))
    settings = settings_in(tmp_path)
    first = plan_run(settings, NIGHT, find_inputs(settings, NIGHT), "judge")
    assert plan_run(settings, NIGHT, find_inputs(settings, NIGHT), "judge") == first


def test_other_input_is_another_run(tmp_path: Path) -> None:
    """A new or changed file, another judge, metric or language: numbers may differ."""
    path = log(tmp_path, make_rows(3))
    settings = settings_in(tmp_path)
    runs = [run(settings).ref.run, run(settings, judged_by="other").ref.run]
    runs.append(run(settings_in(tmp_path, metrics=["context_recall"])).ref.run)
    runs.append(run(settings_in(tmp_path, language="de")).ref.run)
    log(tmp_path, make_rows(1), "late.jsonl")
    runs.append(run(settings).ref.run)
    write_jsonl(path, make_rows(4))
    runs.append(run(settings).ref.run)
    assert len(set(runs)) == len(runs)


def test_alert_rules_do_not_change_the_run(tmp_path: Path) -> None:
    """Rules are about numbers, not of them: changing one repeats no judgement."""
    log(tmp_path, make_rows(3))
    alerts = {"rules": [{"metric": "context_recall", "min": 0.9}]}
    assert run(settings_in(tmp_path)).ref == run(settings_in(tmp_path, alerts=alerts)).ref


def test_staging_twice_returns_the_same(tmp_path: Path) -> None:
    """The second time nothing is read or written again, and the start stays the first one's; but
    the night's files were looked for anew."""
    log(tmp_path, make_rows(3))
    settings = settings_in(tmp_path)
    inputs = find_inputs(settings, NIGHT)
    ref = plan_run(settings, NIGHT, inputs, "judge")
    first = stage_run(settings, ref, inputs, NOW)
    before = open_store(settings).below()
    later = datetime.now(UTC)
    again = stage_run(settings, ref, inputs, later)
    assert (first.started_at, first.seen_at) == (NOW, NOW)
    assert again == first.model_copy(update={"seen_at": later})
    assert open_store(settings).below() == before


def test_the_words_of_the_night_are_counted(tmp_path: Path) -> None:
    """Two contexts a row, each counted, and five questions: the weights of the lexical judge."""
    log(tmp_path, make_rows(5))
    settings = settings_in(tmp_path)
    corpus = load_corpus(open_store(settings), run(settings).ref)
    assert (corpus.contexts.texts, corpus.questions.texts) == (10, 5)


def test_word_counts_that_a_run_did_not_store_are_counted_from_its_rows(tmp_path: Path) -> None:
    """A judge over a network needs none, so its run stores empty ones. Whoever needs them later
    gets those that a run of the lexical judge stores; none where the rows are gone as well.
    """
    log(tmp_path, make_rows(30, good=0.5))
    counted = run(settings_in(tmp_path)).ref
    paid = settings_in(tmp_path, judge="openai", store=str(tmp_path / "paid"))
    ref = run(paid).ref
    files = open_store(paid)
    assert load_corpus(files, ref).is_empty
    found, stored = corpus_of(files, ref), corpus_of(open_store(settings_in(tmp_path)), counted)
    assert found is not None
    assert stored is not None
    assert found.to_bytes() == stored.to_bytes()
    for file in (tmp_path / "paid" / ref.folder("rows")).iterdir():
        file.unlink()
    assert corpus_of(files, ref) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"garbage",
        lambda data: zlib.compress(b""),
        lambda data: zlib.compress(b"\xff" * 32),
    ],
    ids=["empty", "cut", "garbage", "nothing in it", "numbers out of range"],
)
def test_damaged_word_counts_are_told_and_staged_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """The error names the file; the next staging of the run writes what was there."""
    log(tmp_path, make_rows(5))
    settings = settings_in(tmp_path)
    ref = run(settings).ref
    counts = tmp_path / "store" / ref.folder("rows") / "corpus.bin"
    whole = counts.read_bytes()
    counts.write_bytes(damage(whole))
    with pytest.raises(StoreError, match=r"corpus\.bin is damaged .* run its night or gate again"):
        load_corpus(open_store(settings), ref)
    assert run(settings).ref == ref
    assert counts.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"garbage",
        lambda data: data[:4] + b"\xff" * (len(data) // 2) + data[4 + len(data) // 2 :],
        None,
    ],
    ids=["empty", "cut", "garbage", "garbage before the footer", "removed"],
)
def test_damaged_rows_are_staged_anew(
    tmp_path: Path, damage: Callable[[bytes], bytes] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A run of the night goes on, and its log says why it staged again."""
    log(tmp_path, make_rows(40))
    settings = settings_in(tmp_path, shards=2)
    ref = run(settings).ref
    before, shard = shards(settings, ref), tmp_path / "store" / ref.rows(1)
    if damage:
        shard.write_bytes(damage(shard.read_bytes()))
    else:
        shard.unlink()
    assert run(settings).ref == ref
    assert shards(settings, ref) == before
    assert "staged again" in caplog.text


@pytest.mark.parametrize("template", ["logs/dt={date}", "logs/{date:dt=%Y-%m-%d}"])
def test_the_source_names_the_logs_of_the_day(tmp_path: Path, template: str) -> None:
    """As they are found, without what stands for the date."""
    log(tmp_path, make_rows(1))
    settings = settings_in(tmp_path, logs=f"{tmp_path}/{template}")
    assert run(settings).source.logs == f"{tmp_path}/logs/dt=2026-11-19"
