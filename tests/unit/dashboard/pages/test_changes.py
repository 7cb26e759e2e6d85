"""What changed in a night: which night it is held against, what is read for it, and the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import cached_load, compare_with_night_before, find_moves, night_before
from ragmetrics.config import Settings
from ragmetrics.dashboard import rebuild_dashboard, refresh_dashboard
from ragmetrics.dashboard.trends import change
from ragmetrics.pipeline import run_backfill, run_night
from ragmetrics.records import JudgeInfo, Manifest, SampledMean, Source
from ragmetrics.scoring import MetricScores, load_scores
from ragmetrics.storage import Files, RunRef, Runs, open_store
from tests.fakes.build_logs import damaged, gate_settings, golden
from tests.fakes.comparisons import comparison
from tests.fakes.logs import write_jsonl
from tests.fakes.nights import HOSTILE, night, summary
from tests.fakes.page_writing import write_changes
from tests.fakes.pages import Outline, text

DAYS = (date(2026, 11, 18), date(2026, 11, 19))
ROWS = golden(80)


def page(tmp_path: Path, manifest: Manifest, *earlier: Manifest, **found: Any) -> str:
    """The page of a night without a comparison, or with one."""
    site = Files(str(tmp_path / "site"))
    before = earlier[-1] if earlier else None
    path = write_changes(site, manifest, before, found.get("found"), earlier)
    return site.read(path).decode()


# Which night


def test_the_night_before_is_the_newest_that_compares() -> None:
    """By any metric: a night by another judge, or without scores, is passed over."""
    usual, other = night(0), night(1, judge=JudgeInfo(name="gpt", fingerprint="f2"))
    empty = night(2, metrics=[summary("context_recall", None)])
    assert night_before(night(3), [usual, other, empty]) == usual
    assert night_before(night(3), [other, empty]) is None
    assert night_before(night(3), []) is None


def test_a_metric_that_changed_is_named_and_the_others_are_compared(team: Settings) -> None:
    """Here the one prompt, there a metric that the night before did not have."""
    files = open_store(team)
    before, now = Runs(files).nights()
    changed = [
        before.metrics[0].model_copy(update={"fingerprint": "another"}),
        *before.metrics[1:],
    ]
    more = [*now.metrics, summary("faithfulness", 0.5)]
    found = compare_with_night_before(
        files,
        before.model_copy(update={"metrics": changed}),
        now.model_copy(update={"metrics": more}),
        lambda one, metric: load_scores(files, RunRef.of(one), metric),
    )
    told = {metric.metric: metric.reason for metric in found.metrics}
    assert told == {
        before.metrics[1].metric: "",
        before.metrics[
            0
        ].metric: "its prompt, parameters or version changed: the numbers cannot be compared",
        "faithfulness": "no row was scored before",
    }


# What is read


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Two nights, the second by an index that lost a fifth of its rows."""
    settings = gate_settings(tmp_path_factory.mktemp("team"))
    for day, rows in zip(DAYS, (ROWS, damaged(ROWS, 0.2, seed=3)), strict=True):
        write_jsonl(Path(settings.logs.replace("{date}", str(day))), rows)
        run_night(settings, day)
    return settings


def test_a_published_night_says_what_changed(team: Settings) -> None:
    """By how much, where, by which questions, and by which contexts; and the night links to it."""
    site = open_store(team).at("dashboard")
    html = site.read("2026-11-19/changes.html").decode()
    read = text(html)
    for told in (
        "2 of 2 metrics are significantly worse.",
        "Night of 2026-11-19 · before night 2026-11-18",
        "Context recall fell from 0.90 to 0.74",
        "80 paired",
        "By channel",
        "− left rank 1",
    ):
        assert told in read, told
    assert len(html.encode()) < 300_000
    linked = site.read("2026-11-19/index.html").decode()
    assert 'href="changes.html"' in linked
    assert "Compare with 2026-11-18" in linked


def test_the_first_night_has_nothing_to_compare_with_yet(team: Settings) -> None:
    """Its page says so, and its night does not lead there."""
    site = open_store(team).at("dashboard")
    read = text(site.read("2026-11-18/changes.html").decode())
    assert "Night of 2026-11-18: nothing to compare with yet." in read
    assert "It is the first night with scores." in read
    assert "changes.html" not in site.read("2026-11-18/index.html").decode()


def test_publishing_reads_no_scores_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules and worst rows share what is read of a night and the one before it; so do the rows and
    changes of the pages, which are written after the alert went out, and read for themselves.
    """
    steps: dict[str, list[tuple[date, str]]] = {"publish": [], "show": []}

    def counting(step: str) -> Callable[..., MetricScores]:
        def counted(files: Files, ref: RunRef, metric: str, *rest: Any, **more: Any) -> Any:
            steps[step].append((ref.date, metric))
            return load_scores(files, ref, metric, *rest, **more)

        return counted

    settings = gate_settings(tmp_path)
    for day in DAYS:
        write_jsonl(Path(settings.logs.replace("{date}", str(day))), ROWS)
    run_night(settings, DAYS[0])
    monkeypatch.setattr("ragmetrics.scoring.scores.load_scores", counting("publish"))
    monkeypatch.setattr("ragmetrics.scoring.run_summary.load_scores", counting("publish"))
    monkeypatch.setattr("ragmetrics.dashboard.page.load_scores", counting("show"))
    run_night(settings, DAYS[1])
    for read in steps.values():
        assert sorted(read) == sorted({*read})
        assert len(read) == 4


def test_what_is_remembered_is_that_night_and_the_one_before() -> None:
    """Other nights are read each time: memory holds two."""
    asked: list[tuple[date, str]] = []

    def load(one: Manifest, metric: str) -> MetricScores:
        asked.append((one.date, metric))
        return MetricScores(metric, None)  # type: ignore[arg-type]

    older, before, now = night(0), night(1), night(2)
    reader = cached_load(load, now, before, {"context_recall": MetricScores("known", None)})  # type: ignore[arg-type]
    assert reader(now, "context_recall").metric == "known"
    for _ in range(2):
        reader(older, "context_recall")
        reader(before, "context_recall")
        reader(now, "context_relevance")
    assert asked == [
        (older.date, "context_recall"),
        (before.date, "context_recall"),
        (now.date, "context_relevance"),
        (older.date, "context_recall"),
    ]


def test_calibrations_leave_the_page_as_it_is(team: Settings) -> None:
    """They write the newest night anew, in which nothing has changed by them."""
    files = open_store(team)
    site = files.at("dashboard")
    kept = site.read("2026-11-19/changes.html")
    site.write("2026-11-19/changes.html", b"as it was")
    refresh_dashboard(files)
    assert site.read("2026-11-19/changes.html") == b"as it was"
    assert 'href="changes.html"' in site.read("2026-11-19/index.html").decode()
    site.write("2026-11-19/changes.html", kept)


def test_a_site_made_anew_has_the_same_page(team: Settings, tmp_path: Path) -> None:
    """And where the scores of a night are gone, the other pages are written all the same."""
    files, elsewhere = open_store(team), Files(str(tmp_path / "elsewhere"))
    rebuild_dashboard(files, elsewhere)
    for day in DAYS:
        path = f"{day}/changes.html"
        assert elsewhere.read(path) == files.at("dashboard").read(path)


def test_of_a_night_whose_scores_are_gone_nothing_is_told(tmp_path: Path) -> None:
    """What was written of it stays; the night's page is written all the same."""
    settings = gate_settings(tmp_path)
    for day in DAYS:
        write_jsonl(Path(settings.logs.replace("{date}", str(day))), ROWS)
        run_night(settings, day)
    files = open_store(settings)
    for info in [*files.below("scores/dt=2026-11-18"), *files.below("rows/dt=2026-11-18")]:
        files.remove(info.path)
    elsewhere = Files(str(tmp_path / "elsewhere"))
    rebuild_dashboard(files, elsewhere)
    assert elsewhere.exists("2026-11-19/index.html")
    assert not elsewhere.exists("2026-11-19/changes.html")
    assert "changes.html" not in elsewhere.read("2026-11-19/index.html").decode()


def test_a_night_keeps_how_far_it_moved_by_the_questions_of_both(team: Settings) -> None:
    """As its page of changes says, and surer than the intervals of two means tell."""
    files = open_store(team)
    before, now = Runs(files).nights()
    found = compare_with_night_before(
        files, before, now, lambda one, metric: load_scores(files, RunRef.of(one), metric)
    )
    assert [move.metric for move in now.moves] == [metric.metric for metric in found.metrics]
    for move, told in zip(now.moves, found.metrics, strict=True):
        ends = (told.difference, told.low, told.high)
        assert (move.by, move.low, move.high) == pytest.approx(ends)
    recall = now.summary("context_recall")
    assert recall is not None
    paired = change(now, recall, [before])
    means = change(now.model_copy(update={"moves": []}), recall, [before])
    assert paired is not None and paired.low is not None and paired.high is not None
    assert means is not None and means.low is not None and means.high is not None
    assert paired.label == means.label == str(DAYS[0])
    assert means.low < paired.low < paired.high < means.high
    assert paired.clear and paired.worse


def test_of_a_sample_and_of_other_questions_no_move_is_kept(team: Settings) -> None:
    """The mean of a sample is of more than its rows; of other questions the means say as much."""
    files = open_store(team)
    before, now = Runs(files).nights()

    def load(one: Manifest, metric: str) -> MetricScores:
        return load_scores(files, RunRef.of(one), metric)

    def others(one: Manifest, metric: str) -> MetricScores:
        scores = load(one, metric)
        return replace(
            scores, table=scores.table.assign(question=scores.table["question"] + one.run)
        )

    sample = SampledMean(
        rows=80, mean=0.9, low=0.8, high=0.95, weight=0.5, spread=0.1, correlation=0.8
    )
    sampled = [metric.model_copy(update={"sample": sample}) for metric in now.metrics]
    assert find_moves(now, [before], load) == now.moves
    assert find_moves(now.model_copy(update={"metrics": sampled}), [before], load) == []
    assert find_moves(now, [before], others) == []


def test_a_rerun_is_told_on_the_night_after_it(tmp_path: Path) -> None:
    """It is held against that run, which speaks for its night now."""
    settings = gate_settings(tmp_path)
    logs = [Path(settings.logs.replace("{date}", str(day))) for day in DAYS]
    for day, log in zip(DAYS, logs, strict=True):
        write_jsonl(log, ROWS)
        run_night(settings, day)
    site = open_store(settings).at("dashboard")
    assert "80 paired" in text(site.read("2026-11-19/changes.html").decode())
    write_jsonl(logs[0], ROWS[:60])
    again = run_night(settings, DAYS[0]).manifest
    read = text(site.read("2026-11-19/changes.html").decode())
    assert f"night 2026-11-18 (run {again.run})" in read
    assert "60 paired" in read
    write_jsonl(logs[0], ROWS[:50])
    run_backfill(settings, DAYS[0], DAYS[0])
    assert "50 paired" in text(site.read("2026-11-19/changes.html").decode())


def test_a_move_against_a_run_that_was_superseded_says_nothing(team: Settings) -> None:
    """The means of both runs that speak for their nights stand in its place."""
    before, now = Runs(open_store(team)).nights()
    recall = now.summary("context_recall")
    assert recall is not None
    stale = [move.model_copy(update={"run": "gone"}) for move in now.moves]
    known, left = (
        change(manifest, recall, [before])
        for manifest in (now, now.model_copy(update={"moves": stale}))
    )
    assert known != left == change(now.model_copy(update={"moves": []}), recall, [before])


# The page


@pytest.mark.parametrize(
    ("manifest", "earlier", "why"),
    [
        (night(0), [], "It is the first night with scores."),
        (night(1), [night(0, metrics=[])], "It is the first night with scores."),
        (
            night(1),
            [night(0, judge=JudgeInfo(name="gpt", fingerprint="f2"))],
            "The judge changed since 2026-11-10",
        ),
        (
            night(1),
            [night(0, metrics=[summary("context_recall", 0.9, fingerprint="other")])],
            "since 2026-11-10 prompts, parameters or metrics changed",
        ),
        (
            night(1, metrics=[], source=Source(logs="x", files=0, rows=0, problem="no file")),
            [night(0)],
            "Nothing was scored in this night.",
        ),
    ],
)
def test_the_page_says_why_there_is_nothing_to_compare(
    tmp_path: Path, manifest: Manifest, earlier: list[Manifest], why: str
) -> None:
    """Each reason in one sentence, with the way back to the night."""
    html = page(tmp_path, manifest, *earlier)
    assert why in text(html)
    assert 'href="index.html"' in html


def test_a_night_without_scores_is_not_one_that_waits(tmp_path: Path) -> None:
    """A first night will compare from the next one on; one without data has nothing to compare."""
    source = Source(logs="x", files=0, rows=0, problem="no file")
    empty = page(tmp_path, night(1, metrics=[], source=source), night(0))
    first = page(tmp_path, night(0))
    assert "Night of 2026-11-11: nothing to compare." in text(empty)
    assert 'class="hero is-no_data"' in empty
    assert "Night of 2026-11-10: nothing to compare with yet." in text(first)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """No element of the page comes from a log."""
    hostile, tame = (
        page(tmp_path, night(1), night(0), found=comparison(say)) for say in (HOSTILE, "x")
    )
    assert Outline(hostile).tags == Outline(tame).tags
    assert "{{ 7 * 7 }}" in hostile
