"""Gates from logs to verdict, without Prefect: real logs, a real store, the lexical judge."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import (
    decide_gate,
    find_serving,
    gate_parts,
    gate_run_settings,
    load_gate,
    load_gates,
    run_gate,
    save_gate,
    stage_gate,
)
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, JudgePending, JudgeRefused, StoreError
from ragmetrics.pipeline import run_night
from ragmetrics.records import Gate, IndexBuild
from ragmetrics.storage import Files, open_store
from tests.builders import judge_at
from tests.fakes.build_logs import METRICS, damaged, gate_settings, golden, healthy, write_build
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, write_jsonl

ROWS = golden(60)
CHAT = "/v1/chat/completions"


def gate(settings: Settings, build: str = "b2", **asked: Any) -> Gate:
    """The verdict on a build, against `b1` unless said otherwise."""
    values = {"dataset": "towers", "build": build, "serving": "b1", **asked}
    return run_gate(settings, IndexBuild(**values))


def two_builds(folder: Path, rows: list[dict[str, Any]], **change: Any) -> Settings:
    """Settings, with a healthy log of b1 and these rows as that of b2."""
    write_build(folder, "b1", ROWS)
    write_build(folder, "b2", rows)
    return gate_settings(folder, **change)


def paths(settings: Settings, folder: str) -> list[str]:
    """The files of the store below a folder."""
    return [info.path for info in open_store(settings).below(folder)]


# Verdicts


@pytest.mark.parametrize("count", [24, 28])
def test_a_build_without_a_quarter_of_its_documents_is_held(tmp_path: Path, count: int) -> None:
    """By fewer than 30 golden questions too, at the default settings."""
    rows = golden(count)
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.25, seed=1))
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "hold"
    assert all(metric.p_value and metric.p_value < 0.05 for metric in found.metrics)


def without_passages(tmp_path: Path, max_drop: float) -> Settings:
    """Settings, with a build whose index lost passages that 8 of 28 golden questions need."""
    rows = golden(28, good=1.0)
    for number, row in enumerate(rows):  # two questions need each passage
        row["retrieved_contexts"] = rows[number // 2 * 2]["retrieved_contexts"][:1]
        row["retrieved_context_ids"] = row["reference_context_ids"] = [f"d{number // 2}"]
    other = {"retrieved_contexts": ["Museums are closed."], "retrieved_context_ids": ["x"]}
    gone = [{**row, **(other if n % 8 < 2 else {})} for n, row in enumerate(rows)]
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", gone)
    rules = [{"metric": "context_recall", "max_drop": max_drop}]
    logs = f"{tmp_path}/builds/{{build}}.jsonl"
    return gate_settings(tmp_path, gate={"logs": logs, "rules": rules})


def test_golden_passages_that_are_gone_from_the_index_hold_a_build(tmp_path: Path) -> None:
    """Where no metric does: its rule allows a drop as large."""
    found = gate(without_passages(tmp_path, 0.9))
    assert found.verdict == "hold"
    assert [metric.verdict for metric in found.metrics] == ["promote"]
    assert found.reasons[0].startswith("8 of 28 questions lost a passage that they need: probably ")


def test_a_damaged_build_is_held(tmp_path: Path) -> None:
    """With what fell, from what to what, and the questions that fell furthest."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    found = gate(settings)
    assert (found.verdict, found.serving, found.further) == ("hold", "b1", None)
    recall = next(metric for metric in found.metrics if metric.metric == "context_recall")
    assert recall.verdict == "hold"
    assert recall.questions == 60
    assert recall.drop == pytest.approx((recall.before or 0) - (recall.after or 0))
    assert any(reason.startswith("context_recall fell from 0.9") for reason in found.reasons)
    worst = found.fallen[0]
    assert worst.before > worst.after
    assert worst.user_input.startswith("What is the height of tower")
    assert load_gate(open_store(settings), "b2") == found


def test_a_build_with_the_same_passages_passes_and_says_so(tmp_path: Path) -> None:
    """However few questions: nothing changed. In other rows only ids and answers differ."""
    rows = golden(24)
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", [{**row, "id": f"x{row['id']}", "response": "?"} for row in rows])
    found = gate(gate_settings(tmp_path))
    assert (found.verdict, found.further) == ("promote", None)
    assert found.reasons == [
        "the retrieval is unchanged: all 24 rows have the same passages",
        "context_relevance: no change over the same 24 questions",
        "context_recall: no change over the same 24 questions",
    ]


def test_a_build_with_another_passage_needs_more_questions(tmp_path: Path) -> None:
    """An equal score of each question is no proof that the rest of the index is as good."""
    rows = golden(24)
    write_build(tmp_path, "b1", rows)
    other = {**rows[0], "retrieved_context_ids": ["x" for _ in rows[0]["retrieved_contexts"]]}
    write_build(tmp_path, "b2", [other, *rows[1:]])
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "inconclusive"
    assert not any("unchanged" in reason for reason in found.reasons)


def test_a_healthy_build_is_promoted(tmp_path: Path) -> None:
    """Though some rows moved a little both ways."""
    write_build(tmp_path, "b1", golden())
    write_build(tmp_path, "b2", healthy(golden(), seed=1))
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "promote"
    assert [metric.metric for metric in found.metrics] == METRICS
    assert all(one.upper is not None and one.upper < one.max_drop for one in found.metrics)


def test_equal_logs_have_equal_scores(tmp_path: Path) -> None:
    """The lexical judge weighs words by a log's own counts; both sides are weighed alike, so
    that rows which stayed the same score the same beside rows that did not.
    """
    other = damaged(ROWS, 0.5, seed=3)
    settings = two_builds(tmp_path, other)
    found = gate(settings)
    same = {row["user_input"] for row, new in zip(ROWS, other, strict=True) if row == new}
    assert found.fallen
    assert not same & {one.user_input for one in found.fallen}
    run = gate_run_settings(settings)
    counts = {(open_store(run).read(path)) for path in paths(run, "rows") if "corpus" in path}
    assert len(counts) == 1


def test_rows_without_contexts_count_as_nothing_found(tmp_path: Path) -> None:
    """They score 0: no question is missing for it."""
    lost = [{**row, "retrieved_contexts": []} for row in ROWS[:30]]
    found = gate(two_builds(tmp_path, [*lost, *ROWS[30:]]))
    assert (found.verdict, found.missing) == ("hold", 0)


def test_few_questions_are_inconclusive_with_the_number_that_lacks(tmp_path: Path) -> None:
    """Twelve tell nothing, however equal."""
    write_build(tmp_path, "b1", ROWS[:12])
    write_build(tmp_path, "b2", ROWS[:12])
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "inconclusive"
    assert found.further is not None
    assert found.further >= 18
    assert any("12 questions are scored on both sides, 20 needed" in one for one in found.reasons)


# What must not be promoted


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ([], "hold no row that can be read"),
        (["{", "not JSON"], "2 quarantined, most often: "),
        ([{**row, "index_build": "b7"} for row in ROWS], "say that they are of build b7"),
        (None, "no log at "),
    ],
)
def test_a_log_that_is_no_evidence_is_no_pass(
    tmp_path: Path, log: list[Any] | None, reason: str
) -> None:
    """Empty, unreadable, of another build or not there: inconclusive, and it says why."""
    write_build(tmp_path, "b1", ROWS)
    if log is not None:
        write_jsonl(tmp_path / "builds" / "b2.jsonl", log)
    settings = gate_settings(tmp_path)
    found = gate(settings)
    assert (found.verdict, found.further, found.metrics) == ("inconclusive", None, [])
    assert found.reasons[0].startswith("build b2: ")
    assert reason in found.reasons[0]
    assert load_gate(open_store(settings), "b2") == found


def test_missing_questions_are_no_pass(tmp_path: Path) -> None:
    """Three of sixty are absent, where one may be; a quarantined row is absent too."""
    broken = {**ROWS[57], "retrieved_contexts": "not a list"}
    found = gate(two_builds(tmp_path, [*ROWS[:57], broken]))
    assert found.verdict == "inconclusive"
    assert (found.missing, found.missing_why, found.quarantined) == (3, {"absent": 3}, 1)
    assert "3 of 60 questions of build b1 cannot be compared" in found.reasons[0]


def test_a_log_that_is_cut_short_is_no_pass(tmp_path: Path) -> None:
    """However good the rows before the cut are."""
    settings = two_builds(tmp_path, ROWS, gate={"logs": f"{tmp_path}/builds/{{build}}.jsonl.gz"})
    whole = write_jsonl(tmp_path / "builds" / "b1.jsonl.gz", golden(400))
    data = whole.read_bytes()
    (tmp_path / "builds" / "b2.jsonl.gz").write_bytes(data[: len(data) - 40])
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert "is read in part" in found.reasons[0]


def test_a_build_is_not_held_against_its_own_log(tmp_path: Path) -> None:
    """The log of b1 given as that of b2 would pass for ever."""
    settings = two_builds(tmp_path, ROWS)
    rows = [{name: value for name, value in row.items() if name != "index_build"} for row in ROWS]
    place = write_jsonl(tmp_path / "builds" / "b1.jsonl", rows)
    found = gate(settings, logs=str(place))
    assert found.verdict == "inconclusive"
    assert "is the log of both sides" in found.reasons[0]


def test_a_metric_that_lost_its_reference_is_no_pass(tmp_path: Path) -> None:
    """What could be scored in the serving build must be scored in the new one."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in ROWS]
    found = gate(two_builds(tmp_path, bare))
    assert found.verdict == "inconclusive"
    assert found.missing_why == {"not_applicable": 60}


def test_a_default_rule_is_held_only_where_it_can_be(tmp_path: Path) -> None:
    """Without references in either log, the verdict is that of context_relevance; it is said."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in golden()]
    write_build(tmp_path, "b1", bare)
    write_build(tmp_path, "b2", bare)
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "promote"
    assert [metric.metric for metric in found.metrics] == ["context_relevance"]
    assert "context_recall is not compared: no row of build b1 has what it needs" in found.reasons


# Which build serves, and where its scores are


def test_the_build_that_was_promoted_last_serves(tmp_path: Path) -> None:
    """Of those but itself: a gate may be repeated."""
    settings = two_builds(tmp_path, ROWS, gate=loose(tmp_path))
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b2").verdict == "promote"
    for _ in range(2):
        found = gate(settings, "b3", serving=None)
        assert (found.serving, found.verdict) == ("b2", "promote")
    assert [one.build for one in load_gates(open_store(settings))] == ["b3", "b2"]


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
    assert [one.build for one in load_gates(files)] == ["good", "bad", "other"]
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


# The store


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
        metrics = [one.model_copy(update={"drop": (one.drop or 0) - less}) for one in held.metrics]
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
    assert [one.build for one in load_gates(files)] == ["b2"]
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


# Judges and settings


def test_a_paid_judge_is_asked_once_for_what_both_builds_have(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Judgements are kept in the main store; a serving build that was compared keeps its scores."""
    judge = judge_at(judge_server, retries=0)
    settings = two_builds(tmp_path, ROWS, judge=judge, gate=loose(tmp_path))
    first = gate(settings)
    assert first.verdict == "promote"
    asked = judge_server.stats()["by_path"]
    assert asked == {CHAT: 60 * 2 + 60}  # two contexts of each row, and its reference
    assert any(path.startswith("judgements/") for path in paths(settings, "judgements"))
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b3", serving="b2").verdict == "promote"
    assert judge_server.stats()["by_path"] == asked


def test_a_judge_that_fails_on_some_rows_is_no_pass(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Rows without a verdict are missing: nobody knows how good they are."""
    judge = judge_at(judge_server, retries=0)
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judge=judge)
    judge_server.faults(max_prompt_chars=10_000)
    found = gate(settings)
    assert (found.verdict, found.missing, found.missing_why) == (
        "inconclusive",
        10,
        {"judge_failed": 10},
    )
    assert "10 of 60 questions of build b1 cannot be compared" in found.reasons[0]


def test_a_repeat_asks_again_what_the_judge_failed_on(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """An outage of the judge is not the build's for ever; what was answered is not asked again."""
    judge = judge_at(judge_server, retries=0)
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judge=judge)
    judge_server.faults(max_prompt_chars=10_000)
    assert gate(settings).missing_why == {"judge_failed": 10}
    judge_server.reset()
    found = gate(settings)
    assert (found.missing, found.metrics[0].questions) == (0, 60)
    asked = judge_server.stats()["by_path"][CHAT]
    assert 10 <= asked <= 20  # ten contexts, and the recall of ten rows
    gate(settings)
    assert judge_server.stats()["by_path"][CHAT] == asked


def test_a_repeat_asks_again_the_judge_of_a_panel_that_failed(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """As a night does: the rows have their scores, but by fewer judges than they should."""
    judges = [judge_at(judge_server, retries=0), "lexical"]
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judges=judges)
    judge_server.faults(max_prompt_chars=10_000)
    assert gate(settings).missing == 0
    judge_server.reset()
    gate(settings)
    asked = judge_server.stats()["by_path"][CHAT]
    assert 10 <= asked <= 20  # ten contexts, and the recall of ten rows
    gate(settings)
    assert judge_server.stats()["by_path"][CHAT] == asked


def test_a_judge_that_refuses_leaves_the_gate_inconclusive(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """With the reason; without a key at all it does not begin."""
    judge = judge_at(judge_server, retries=0)
    settings = two_builds(tmp_path, ROWS, judge=judge)
    judge_server.faults(api_key="another")
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert found.problems


def test_a_judge_without_its_key_stops_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = two_builds(tmp_path, ROWS, judge="openai")
    with pytest.raises(JudgeRefused):
        gate(settings)
    assert paths(settings, "gates") == []


def test_what_a_budget_leaves_out_is_not_missing(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Those that are judged are a sample, the same in both builds; the verdict rests on them."""
    judge = judge_at(judge_server, retries=0)
    budget = {"max_requests": 260}
    rows = golden()
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.4, seed=1))
    found = gate(gate_settings(tmp_path, judge=judge, budget=budget))
    assert found.missing == 0
    assert all(30 <= metric.questions < 150 for metric in found.metrics)
    assert found.verdict == "hold"
    assert judge_server.stats()["by_path"][CHAT] <= 2 * 260


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": [{"metric": "faithfulness"}]}, "'faithfulness' is not scored; scored are: "),
        ({"rules": [{"metric": "noise_sensitivity"}]}, "lower is better"),
    ],
)
def test_a_rule_that_cannot_be_held_stops_the_gate(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """A mistake in the settings, told before anything is judged."""
    settings = two_builds(
        tmp_path, ROWS, metrics=[*METRICS, "noise_sensitivity"], gate={**loose(tmp_path), **change}
    )
    with pytest.raises(InputError, match=message):
        gate(settings)


def test_a_build_of_another_data_set_stops_the_gate(tmp_path: Path) -> None:
    """Its questions are other ones."""
    with pytest.raises(InputError, match="is of the data set bridges"):
        gate(gate_settings(tmp_path), dataset="bridges")


def test_a_log_in_our_layout_is_read_whatever_the_nights_look_like(tmp_path: Path) -> None:
    """A replay writes rows, where the nights' logs are traces."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1), preset="openinference")
    assert gate(settings).verdict == "hold"


def test_batches_that_take_long_leave_no_verdict(tmp_path: Path, judge_server: JudgeServer) -> None:
    """The gate goes on when it is run again."""
    judge = judge_at(judge_server, name="openai-batch", poll_seconds=1, wait_seconds=1)
    judge_server.batch_faults(delay_seconds=600)
    settings = two_builds(tmp_path, ROWS[:3], judge=judge)
    with pytest.raises(JudgePending):
        gate(settings)
    assert list(load_gates(open_store(settings))) == []


def loose(folder: Path) -> dict[str, Any]:
    """Settings of the gate under which sixty equal questions are enough."""
    return {"logs": f"{folder}/builds/{{build}}.jsonl", "rules": None}


def night(settings: Settings, folder: Path, day: date, rows: list[dict[str, Any]]) -> None:
    """A night of the service."""
    write_jsonl(folder / "logs" / f"{day}.jsonl", rows)
    run_night(settings, day)
