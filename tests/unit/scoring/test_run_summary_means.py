"""Summaries: means of a run over all rows and by segment, read from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from ragmetrics.records import JudgeSummary, LogRow, Score, Segment, Status
from ragmetrics.scoring import MetricScores, find_segments, load_scores, summarise
from ragmetrics.stats import krippendorff_alpha, mean_interval
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    row_record,
    score_record,
)

METRIC = "context_recall"
FAILED = Score(None, "timed out", status=Status.JUDGE_FAILED)
NONE = Score.not_applicable("no reference answer")


def a_row(number: int, **tags: str) -> LogRow:
    """A row; the question is its number."""
    return LogRow(f"row-{number}", f"Question {number}?", (), tags=tags)


def run(
    folder: Path, *shards: Sequence[tuple[LogRow, Score]], scored: int | None = None
) -> MetricScores:
    """Write the parts of a run, of which only the first `scored` shards were; load its scores."""
    files, ref = Files(str(folder)), RunRef(date=date(2026, 11, 19), run="ab", shards=len(shards))
    for number, shard in enumerate(shards):
        rows, scores = PartWriter(folder, ROW_SCHEMA), PartWriter(folder, SCORE_SCHEMA)
        for row, score in shard:
            rows.add(row_record(row))
            scores.add(score_record(row, score))
        rows.finish(files, ref.rows(number))
        if scored is None or number < scored:
            scores.finish(files, ref.scores(METRIC, number))
    return load_scores(files, ref, METRIC)


def plain(*values: float) -> list[tuple[LogRow, Score]]:
    """One row per value."""
    return [(a_row(number), Score(value)) for number, value in enumerate(values)]


def test_the_mean_is_over_scored_rows_and_counts_are_over_all(tmp_path: Path) -> None:
    """A missing value is never a silent 0: it stands in the counts by status."""
    rows = [*plain(0.2, 0.8), (a_row(8), FAILED), (a_row(9), NONE)]
    found = summarise(run(tmp_path, rows), "print")
    assert (found.mean, found.scored, found.questions) == (0.5, 2, 2)
    assert found.status == {"judge_failed": 1, "not_applicable": 1, "scored": 2}
    assert (found.metric, found.fingerprint) == (METRIC, "print")


def test_the_interval_is_clustered_by_question(tmp_path: Path) -> None:
    """Rows of one question, however it is spelt, are one cluster, over all shards."""
    again = LogRow("again", "QUESTION 0 ", ())
    scores = run(tmp_path, plain(0.2, 0.8, 0.9), [(again, Score(0.4))])
    found, oracle = summarise(scores, ""), mean_interval([0.2, 0.8, 0.9, 0.4], list("abca"))
    assert oracle is not None
    assert (found.mean, found.low, found.high) == pytest.approx(
        (oracle.mean, oracle.low, oracle.high)
    )
    assert (found.scored, found.questions) == (4, 3)


def test_nothing_scored_has_no_mean(tmp_path: Path) -> None:
    """None, never NaN; an empty shard is fine."""
    found = summarise(run(tmp_path, [(a_row(1), NONE)], []), "")
    assert (found.mean, found.low, found.high, found.scored) == (None, None, None, 0)
    assert found.histogram == [0] * 10


def test_rows_of_a_missing_part_failed(tmp_path: Path) -> None:
    """A shard that was never scored is in the counts, with its questions and tags."""
    lost = [(a_row(7, channel="web"), Score(1.0)), (a_row(8, channel="app"), Score(1.0))]
    scores = run(tmp_path, plain(0.5), lost, scored=1)
    assert summarise(scores, "").status == {"judge_failed": 2, "scored": 1}
    web = summarise(scores, "", Segment(tag="channel", value="web"))
    assert web.status == {"judge_failed": 1}
    assert scores.table["question"].tolist()[1] == a_row(7).question_key


def test_the_histogram_has_ten_bins_and_takes_in_what_is_outside(tmp_path: Path) -> None:
    """1.0 falls in the last bin, a negative cosine in the first."""
    found = summarise(run(tmp_path, plain(-0.5, 0.0, 0.05, 0.15, 0.95, 1.0)), "")
    assert found.histogram == [3, 1, 0, 0, 0, 0, 0, 0, 0, 2]


# Segments


def tagged() -> list[tuple[LogRow, Score]]:
    """Rows of two channels, one of them without the tag, all of one region."""
    return [
        (a_row(0, channel="web", region="eu"), Score(0.2)),
        (a_row(1, channel="web", region="eu"), Score(0.4)),
        (a_row(2, channel="app", region="eu"), Score(1.0)),
        (a_row(3, region="eu"), Score(0.0)),
    ]


def test_a_segment_is_the_rows_with_the_tags_value(tmp_path: Path) -> None:
    """Rows without the tag are in no segment of it."""
    found = summarise(run(tmp_path, tagged()), "", Segment(tag="channel", value="web"))
    assert (found.mean, found.scored) == (pytest.approx(0.3), 2)
    assert str(found.segment) == "channel=web"


def test_by_default_tags_with_a_choice_of_values_are_shown(tmp_path: Path) -> None:
    """A tag of one value says nothing that the whole does not say."""
    scores = run(tmp_path, tagged())
    assert [str(one) for one in find_segments(scores, None)] == ["channel=app", "channel=web"]
    assert [str(segment) for segment in find_segments(scores, ["region"])] == ["region=eu"]
    assert find_segments(scores, []) == []


def test_tags_with_many_values_are_shown_only_when_asked_for(tmp_path: Path) -> None:
    """A user id as a tag does not make a thousand segments."""
    rows = [(a_row(number, user=f"u{number:02}"), Score(1.0)) for number in range(21)]
    scores = run(tmp_path, rows)
    assert find_segments(scores, None) == []
    assert len(find_segments(scores, ["user"])) == 21


def test_tags_may_differ_between_shards(tmp_path: Path) -> None:
    """A tag that only one shard knows is missing in the rows of the other."""
    scores = run(tmp_path, tagged(), plain(0.5))
    assert summarise(scores, "", Segment(tag="channel", value="app")).scored == 1
    assert [str(segment) for segment in find_segments(scores, ["channel"])] == [
        "channel=app",
        "channel=web",
    ]


# What comparisons and pages read


def test_values_by_question_leave_out_what_has_none(tmp_path: Path) -> None:
    """Only scored rows are compared; rows of one question stand together."""
    scores = run(tmp_path, [*plain(0.1, 0.2), (a_row(0), Score(0.3)), (a_row(1), FAILED)])
    assert scores.by_question() == {
        a_row(0).question_key: [0.1, 0.3],
        a_row(1).question_key: [0.2],
    }


def test_values_by_question_of_a_segment(tmp_path: Path) -> None:
    """Of one tag value; of a tag that no row has, nothing."""
    scores = run(tmp_path, tagged())
    app = scores.by_question(Segment(tag="channel", value="app"))
    assert app == {a_row(2).question_key: [1.0]}
    assert scores.by_question(Segment(tag="team", value="a")) == {}


def test_worst_names_the_places_of_the_lowest_scores(tmp_path: Path) -> None:
    """Shard, position and value, lowest first; rows without a value are not the worst."""
    scores = run(tmp_path, [(a_row(9), NONE), *plain(0.5, 0.1)], plain(0.3, 0.9))
    assert scores.worst(3, {}) == [(0, 2, 0.1), (1, 0, 0.3), (0, 1, 0.5)]
    assert len(scores.worst(100, {})) == 4


def test_among_equally_bad_rows_those_that_fell_come_first(tmp_path: Path) -> None:
    """A question that was answered before says more than one that never was."""
    scores = run(tmp_path, plain(0.0, 0.0, 0.0))
    before = {a_row(0).question_key: [0.0], a_row(1).question_key: [1.0, 0.5]}
    assert scores.worst(3, before) == [(0, 1, 0.0), (0, 0, 0.0), (0, 2, 0.0)]


def test_a_panel_shows_each_judge_and_their_agreement(tmp_path: Path) -> None:
    """Votes 0, 1 against 0.5, 1: means by judge; no vote is a failure only where one failed."""
    rows = [
        (a_row(0), Score(0.25, votes=(0.0, 0.5))),
        (a_row(1), Score(1.0, votes=(1.0, 1.0))),
        (a_row(2), Score(1.0, votes=(1.0, None), failed=("b",))),
        (a_row(3), Score(1.0, votes=(1.0, None))),
        (a_row(4), NONE),
    ]
    found = summarise(run(tmp_path, rows), "print", panel=["a", "b"])
    assert found.judges == [
        JudgeSummary(name="a", mean=0.75, scored=4, failed=0),
        JudgeSummary(name="b", mean=0.75, scored=2, failed=1),
    ]
    assert found.agreement == krippendorff_alpha(
        [[0, 1, 1, 1], [0.5, 1, float("nan"), float("nan")]], "interval"
    )


def test_one_judge_has_no_agreement(tmp_path: Path) -> None:
    """There is nobody to agree with."""
    found = summarise(run(tmp_path, plain(0.2, 0.8)), "print")
    assert (found.judges, found.agreement, found.spread) == ([], None, None)


def test_the_spread_is_the_mean_over_rows(tmp_path: Path) -> None:
    """Of the rows that were judged several times."""
    rows = [(a_row(0), Score(0.5, spread=0.1)), (a_row(1), Score(0.5, spread=0.3)), *plain(1.0)]
    assert summarise(run(tmp_path, rows), "print").spread == pytest.approx(0.2)


def test_rows_are_shown_by_language(tmp_path: Path) -> None:
    """Without a tag for it, where there is more than one; a tag of that name goes before it."""
    rows = [
        (LogRow("1", "Wo?", (), language="de"), Score(0.0)),
        (LogRow("2", "Where?", (), language="en"), Score(1.0)),
        (LogRow("3", "Où ?", (), language="fr", tags={"language": "de"}), Score(0.5)),
    ]
    scores = run(tmp_path, rows)
    german, english = find_segments(scores, None)
    assert (german, english) == (
        Segment(tag="language", value="de"),
        Segment(tag="language", value="en"),
    )
    assert summarise(scores, "print", german).mean == 0.25
