"""Calibration: judges that are right, wrong, silent or paid, compared with labelled rows."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError, JudgeRefused
from ragmetrics.metrics import GRADE, as_yaml
from ragmetrics.people import calibrate, calibrate_replies, load_calibrations
from ragmetrics.people.calibration.labelled_sets import LabelQuestion
from ragmetrics.people.calibration.recorded_verdicts import read_verdict
from ragmetrics.records import Agreement, Calibration, MetricCalibration, Segment
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.labelled import make_labelled, relabelled, right, write_judge, wrong
from tests.fakes.logs import write_jsonl

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
UNIT_METRICS = ["context_relevance", "context_relevancy", "context_recall"]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A set of twenty rows: 40 contexts, 80 sentences, 27 statements."""
    return write_jsonl(tmp_path / "towers.jsonl", make_labelled(20))


def hold(place: Path, judge: Any = "lexical", **options: Any) -> Calibration:
    """One judge against one set."""
    (found,) = calibrate(make_settings({"judge": judge}), [str(place)], now=NOW, **options)
    return found


def metric(found: Calibration, name: str) -> MetricCalibration:
    """A metric that was calibrated."""
    measured = found.measured(name)
    assert measured is not None, found.skipped
    return measured


def overall(found: Calibration, name: str) -> Agreement:
    """All units of a metric."""
    agreement = metric(found, name).overall
    assert agreement is not None
    return agreement


def values(agreement: Agreement) -> dict[str, float | None]:
    """The figures without their intervals."""
    return {name: figure.value for name, figure in agreement.figures.items()}


# Judges that are right and wrong


@pytest.mark.parametrize("name", UNIT_METRICS)
def test_a_judge_that_is_always_right(tmp_path: Path, labelled: Path, name: str) -> None:
    """Every figure is 1, and so are the ends of its interval; its calibration error is 0."""
    found = overall(hold(labelled, write_judge(tmp_path / "judge.jsonl", labelled)), name)
    error = found.figures.pop("calibration_error")
    assert (error.value, error.low, error.high, found.calibration_error) == (0, 0, 0, 0)
    assert set(values(found).values()) == {1.0}
    assert {(figure.low, figure.high) for figure in found.figures.values()} == {(1.0, 1.0)}


def test_a_judge_that_is_always_wrong(tmp_path: Path, labelled: Path) -> None:
    """It agrees less than chance would: with half the labels positive, kappa is -1."""
    judge = write_judge(tmp_path / "judge.jsonl", labelled, wrong)
    found = values(overall(hold(labelled, judge), "context_relevance"))
    assert found["kappa"] == found["kappa_quadratic"] == found["spearman"] == pytest.approx(-1)
    assert found["auc"] == found["auc_within"] == found["accuracy"] == 0


def test_counts_stand_beside_the_figures(tmp_path: Path, labelled: Path) -> None:
    """Rows, units, questions, share of positive labels, and the table of confusion."""
    found = overall(hold(labelled, write_judge(tmp_path / "j.jsonl", labelled)), "context_recall")
    assert (found.rows, found.units, found.questions) == (20, 27, 20)
    assert found.positive == pytest.approx(20 / 27)
    table = found.confusion
    assert (table.labels, table.verdicts, table.counts) == ([0, 1], [0, 1], [[7, 0], [0, 20]])


def test_a_grade_of_one_is_half(tmp_path: Path, labelled: Path) -> None:
    """Relevant for plain kappa and accuracy, a near miss for the quadratic one."""
    judge = write_judge(tmp_path / "j.jsonl", labelled, _partly_right)
    found = overall(hold(labelled, judge), "context_relevance")
    assert found.confusion.verdicts == [0, 0.5]
    figures = values(found)
    assert figures["kappa"] == figures["accuracy"] == 1
    # Half of the units miss by 0.5: 1 - (20 * 0.25) / (10 * 0 + 10 * 0.25 + 10 * 1 + 10 * 0.25).
    assert figures["kappa_quadratic"] == pytest.approx(1 - 5 / 15)


def test_support_in_part_is_no_support(tmp_path: Path) -> None:
    """A label of 0.5 is negative for plain kappa, and keeps its place for the quadratic one."""
    rows = [_said(row, label) for row, label in zip(make_labelled(9), [0, 0.5, 1] * 3, strict=True)]
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    found = overall(hold(place, write_judge(tmp_path / "j.jsonl", place)), "context_recall")
    assert found.confusion.counts == [[3, 0], [3, 0], [0, 3]]
    assert values(found)["kappa"] == values(found)["accuracy"] == 1
    assert 0 < (values(found)["kappa_quadratic"] or 0) < 1
    assert "kappa_classes" not in found.figures


# What a judge says of its own verdicts


def test_the_embedded_judge_gives_strengths(labelled: Path) -> None:
    """AUC and reliability are of those, not of the verdicts cut from them."""
    found = metric(hold(labelled), "context_relevancy")
    assert found.strengths == "evidence"
    assert found.overall is not None
    strong = found.overall.reliability[-1]
    assert 0.5 < strong.judged < 0.9, "between the verdicts 0 and 1"
    assert (values(found.overall)["auc"] or 0) > 0.9


def test_other_judges_have_their_verdicts_only(tmp_path: Path, labelled: Path) -> None:
    """And the record says so."""
    found = metric(hold(labelled, write_judge(tmp_path / "j.jsonl", labelled)), "context_recall")
    assert found.strengths == "verdict"
    assert found.overall is not None
    assert [(one.low, one.n) for one in found.overall.reliability] == [(0.0, 7), (0.9, 20)]


def test_units_without_a_verdict_are_counted_and_left_out(tmp_path: Path, labelled: Path) -> None:
    """A judge that fails for some and babbles for others is measured on the rest."""
    judge = write_judge(tmp_path / "j.jsonl", labelled, _sometimes)
    found = metric(hold(labelled, judge), "context_relevance")
    assert found.status == {"scored": 20, "unreadable": 10, "judge_failed": 10}
    assert found.overall is not None
    assert found.overall.units == 20
    assert values(found.overall)["kappa"] == 1


def test_a_metric_without_any_verdict_has_no_figure(tmp_path: Path, labelled: Path) -> None:
    """And the calibration falls short."""
    judge = write_judge(tmp_path / "j.jsonl", labelled, lambda metric, question: "Certainly!")
    found = hold(labelled, judge, metrics=["context_recall"])
    assert metric(found, "context_recall").overall is None
    assert metric(found, "context_recall").status == {"unreadable": 27}
    assert found.incomplete


# Segments, gold figures, metrics


def test_segments_by_run_and_language(tmp_path: Path, labelled: Path) -> None:
    """Where there are at least two of them; here all rows are English."""
    found = metric(hold(labelled, write_judge(tmp_path / "j.jsonl", labelled)), "context_relevance")
    assert [(segment.segment, segment.units) for segment in found.segments] == [
        (Segment(tag="run", value="first"), 20),
        (Segment(tag="run", value="second"), 20),
    ]


def test_languages_are_told_apart(tmp_path: Path) -> None:
    """Each with figures of its own."""
    rows = [
        {**row, "language": "fi" if n < 12 else "sv"} for n, row in enumerate(make_labelled(24))
    ]
    found = metric(hold(write_jsonl(tmp_path / "set.jsonl", rows)), "context_relevance")
    languages = [one for one in found.segments if one.segment and one.segment.tag == "language"]
    assert [(str(language.segment), language.units) for language in languages] == [
        ("language=fi", 24),
        ("language=sv", 24),
    ]


def test_row_scores_are_ranked_against_gold_figures(tmp_path: Path) -> None:
    """The metric is played as in a night, and its scores rank as the gold figures do, or not."""
    rows = make_labelled(12)
    rows = [
        relabelled(row, gold={"char_recall": 1 - n % 2, "chunk_precision": n % 2, "unknown": 1})
        | {"reference": row["reference"] if n % 2 == 0 else "Nobody knows the reason."}
        for n, row in enumerate(rows)
    ]
    found = hold(write_jsonl(tmp_path / "set.jsonl", rows))
    recall, chunks = found.gold
    assert (recall.metric, recall.gold, recall.rows) == ("context_recall", "char_recall", 12)
    assert recall.spearman.value == pytest.approx(1)
    assert (chunks.metric, chunks.gold) == ("context_relevancy_chunks", "chunk_precision")
    assert chunks.status == {"scored": 12}


def test_any_metric_has_a_gold_figure_under_its_name(tmp_path: Path) -> None:
    """Also those that ask no judge; rows without it are passed over."""
    rows = [
        relabelled(row, gold={"hit_rate": n % 2 if n < 8 else None})
        | {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a" if n % 2 else "z"]}
        for n, row in enumerate(make_labelled(10))
    ]
    found = hold(write_jsonl(tmp_path / "set.jsonl", rows), metrics=["hit_rate"])
    (rank,) = found.gold
    assert (rank.metric, rank.rows, rank.spearman.value) == ("hit_rate", 8, pytest.approx(1))
    assert found.metrics == []
    assert not found.incomplete


def test_metrics_that_cannot_be_held_are_told(tmp_path: Path, labelled: Path) -> None:
    """No labels for them, or labels of one class."""
    rows = [relabelled(row, chunk_relevance=[1, 1]) for row in make_labelled(5)]
    found = hold(write_jsonl(tmp_path / "set.jsonl", rows))
    assert found.skipped == {
        "context_relevance": "all 10 labels are of one class: there is nothing to distinguish",
        "faithfulness": "no row has labels.statement_support for it",
    }
    found = hold(labelled, metrics=["context_relevance", "mrr"])
    assert [one.metric for one in found.metrics] == ["context_relevance"]
    assert found.skipped == {"mrr": "no row has labels.gold.mrr"}


def test_an_unknown_metric_is_an_error(labelled: Path) -> None:
    """With the names that there are."""
    with pytest.raises(InputError, match="no metric 'banana'; there are: "):
        hold(labelled, metrics=["banana"])


def test_every_judge_of_a_panel_is_calibrated(tmp_path: Path, labelled: Path) -> None:
    """On its own: their agreement with each other is the night's to tell."""
    judges = ["lexical", write_judge(tmp_path / "judge.jsonl", labelled)]
    found = calibrate(make_settings({"judges": judges}), [str(labelled)], now=NOW)
    assert [one.judge.name for one in found] == judges
    assert values(overall(found[1], "context_relevance"))["kappa"] == 1


def test_a_refusing_judge_of_a_panel_leaves_the_others_theirs(
    tmp_path: Path, labelled: Path, judge_server: JudgeServer
) -> None:
    """It is named with its reason and falls short; alone it ends the run."""
    judge_server.faults(api_key="another")
    refuser = judge_at(judge_server, model="mine")
    files = Files(str(tmp_path / "store"))
    recorded = write_judge(tmp_path / "judge.jsonl", labelled)
    settings = make_settings({"judges": ["lexical", refuser, recorded]})
    first, refused, last = calibrate(settings, [str(labelled)], now=NOW, files=files)
    assert (first.incomplete, refused.incomplete, last.incomplete) == (False, True, False)
    assert (first.refused, last.refused) == ("", "")
    assert "refused the key" in refused.refused
    assert (refused.judge.name, refused.metrics, refused.skipped) == ("openai:mine", [], {})
    assert [one.judge.name for one in load_calibrations(files)] == ["lexical", recorded]
    for name in ("lexical", "embedded"):  # its name in earlier versions
        assert [one.judge.name for one in load_calibrations(files, judge=name)] == ["lexical"]
    with pytest.raises(JudgeRefused, match="refused the key"):
        hold(labelled, refuser)


def test_the_command_names_the_judge_that_refused(
    run: Run, tmp_path: Path, labelled: Path, judge_server: JudgeServer
) -> None:
    """Beside the figures of the others; exit code 1."""
    judge_server.faults(api_key="another")
    refuser = judge_at(judge_server, model="mine")
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text(json.dumps({"store": "kept", "judges": ["lexical", refuser]}))
    ended = run("calibrate", labelled, "--settings", settings)
    assert ended.code == 1
    assert "AUC, within row" in ended.out
    assert "towers, judge openai:mine" in ended.out
    assert "Not calibrated. The judge refuses: " in ended.out


def test_rows_of_one_id_are_rows_of_their_own(tmp_path: Path) -> None:
    """Within-row AUC is that of rows, whatever they are called."""
    rows = make_labelled(20)
    named = hold(write_jsonl(tmp_path / "a.jsonl", rows))
    same = hold(write_jsonl(tmp_path / "b.jsonl", [{**row, "id": "x"} for row in rows]))
    assert overall(same, "context_relevancy").rows == 20
    assert overall(same, "context_relevancy").figures == overall(named, "context_relevancy").figures


def test_a_number_beyond_all_bounds_is_no_verdict(tmp_path: Path) -> None:
    """Of a judge recorded in the rows."""
    rows = [
        relabelled(_said(row, 1), judge={"one": {"label": 10**400}}) for row in make_labelled(1)
    ]
    rows += [relabelled(_said(row, 0), judge={"one": {"label": 1}}) for row in make_labelled(1)]
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    (found,) = calibrate_replies(make_settings({}), [str(place)])
    assert metric(found, "context_recall").status == {"unreadable": 1, "scored": 1}


def test_the_judge_is_asked_in_the_users_words(tmp_path: Path, labelled: Path) -> None:
    """A judge that knows the built-in wording only has no answer to another."""
    judge = write_judge(tmp_path / "judge.jsonl", labelled)
    mine = replace(GRADE, instruction="How relevant is the context? Grade it 0, 1 or 2.")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "grade.yaml").write_text(as_yaml(mine))
    settings = make_settings({"judge": judge, "prompts": str(tmp_path / "prompts")})
    (found,) = calibrate(settings, [str(labelled)], now=NOW)
    assert metric(found, "context_relevance").status == {"judge_failed": 40}
    assert metric(found, "context_relevancy").status == {"scored": 80}


def test_the_same_calibration_twice_is_the_same(labelled: Path) -> None:
    """Intervals are seeded; nothing depends on the order of work."""
    assert hold(labelled) == hold(labelled)


def test_a_running_event_loop_is_no_hindrance(labelled: Path) -> None:
    """As in a notebook."""

    async def cell() -> Calibration:
        return hold(labelled)

    assert asyncio.run(cell()) == hold(labelled)


# A judge over HTTP, and replies that are paid for once


def test_a_calibration_repeated_asks_nothing(
    tmp_path: Path, labelled: Path, judge_server: JudgeServer
) -> None:
    """Replies are stored in the store: on the same day nothing is paid for twice."""
    judge = judge_at(judge_server, model="mine")
    files = Files(str(tmp_path / "store"))
    first = hold(labelled, judge, files=files)
    assert first.judge.name == "openai:mine"
    assert metric(first, "context_relevance").status == {"scored": 40}
    assert first.usage.requests == judge_server.stats()["requests"] > 60
    again = hold(labelled, judge, files=files)
    assert (again.usage.requests, again.usage.answered_from_store) == (0, first.usage.requests)
    assert again.metrics == first.metrics


def test_another_day_asks_the_judge_anew(
    tmp_path: Path, labelled: Path, judge_server: JudgeServer
) -> None:
    """Else a model that changed behind its name would never be seen to drift."""
    judge = judge_at(judge_server, model="mine")
    files, settings = Files(str(tmp_path / "store")), make_settings({"judge": judge})
    asked = []
    for now in (NOW, NOW + timedelta(days=1)):
        (found,) = calibrate(settings, [str(labelled)], now=now, files=files)
        asked.append((found.usage.requests, found.usage.answered_from_store))
    assert asked[0] == asked[1] == (asked[0][0], 0)


# Judges recorded in the rows


def test_judges_recorded_in_the_rows_are_each_calibrated(tmp_path: Path) -> None:
    """By the verdict that stands there, or read from the reply; nobody is asked."""
    rows = [
        relabelled(
            _said(row, label),
            judge={
                "careful": {"reply": "...", "label": label},
                "hasty": {"reply": "<answer>Supported</answer>"},
            },
        )
        for row, label in zip(make_labelled(9), [0, 0.5, 1] * 3, strict=True)
    ]
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    careful, hasty = calibrate_replies(make_settings({}), [str(place)], now=NOW)
    assert (careful.judge.name, hasty.judge.name) == ("careful", "hasty")
    # A verdict of 0.5 on support in part, which counts as none.
    error = overall(careful, "context_recall").figures.pop("calibration_error").value
    assert error == pytest.approx(1 / 6, abs=0.01)
    assert set(values(overall(careful, "context_recall")).values()) == {1.0, None}
    assert values(overall(careful, "context_recall"))["kappa_classes"] == 1
    assert overall(hasty, "context_recall").confusion.counts == [[3], [3], [3]]
    assert careful.usage.requests == 0


def test_recorded_judges_may_rate_contexts(tmp_path: Path) -> None:
    """One rating a context, on the scale of the labels; one too few cannot be read."""
    rows = [
        relabelled(row, judge={"rater": {"chunk_relevance": row["labels"]["chunk_relevance"]}})
        for row in make_labelled(6)
    ]
    rows[0] = relabelled(rows[0], judge={"rater": {"chunk_relevance": [1]}})
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    (found,) = calibrate_replies(make_settings({}), [str(place)])
    assert metric(found, "context_relevance").status == {"unreadable": 2, "scored": 10}
    assert values(overall(found, "context_relevance"))["kappa"] == 1


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("<answer>not_supported</answer>", 0.0),
        ("<answer>partially_supported</answer>", 0.5),
        ("Some of it is not supported, but on the whole: Supported.", 1.0),
        ("UNSUPPORTED", 0.0),
        ("partly supported", 0.5),
        ("I cannot say.", None),
        ("The claim is not fully supported.", None),
        ("It isn't supported.", None),
        ("This cannot be supported by the text", None),
        ("No part of it is partially supported", None),
        ("not_fully_supported", None),
        ("Is it? No. Supported.", 1.0),
        ("I do not doubt it: supported", 1.0),
        ("The text doesn't say so: it is not supported.", 0.0),
        ("It can't be told, so: unsupported", 0.0),
    ],
)
def test_the_last_word_of_a_reply_counts(reply: str, verdict: float | None) -> None:
    """Models explain first and answer last; a negation in other words is not guessed at."""
    assert read_verdict(reply) == verdict


def test_a_reply_without_a_verdict_is_unreadable(tmp_path: Path) -> None:
    """It is counted, as a live judge's is."""
    rows = [relabelled(row, judge={"shy": {"reply": "Hm."}}) for row in make_labelled(3)]
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    (found,) = calibrate_replies(make_settings({}), [str(place)])
    assert metric(found, "context_recall").status == {"unreadable": 4}
    assert found.incomplete


def test_a_rating_of_the_whole_row_is_passed_over(tmp_path: Path) -> None:
    """No label says what is true of a whole row."""
    rows = [relabelled(row, judge={"stars": 4.5, "scale": "1..5"}) for row in make_labelled(3)]
    place = write_jsonl(tmp_path / "set.jsonl", rows)
    (found,) = calibrate_replies(make_settings({}), [str(place)])
    assert found.judge.name == "stars"
    assert set(found.skipped.values()) == {
        "it rates whole rows, and there are no labels for whole rows"
    }


def test_rows_without_recorded_judges_are_an_error(labelled: Path) -> None:
    """There is nobody to calibrate."""
    with pytest.raises(InputError, match=r"no row has labels\.judge"):
        calibrate_replies(make_settings({}), [str(labelled)])


# The command


def test_the_command_prints_figures_and_what_stands_behind_them(run: Run, labelled: Path) -> None:
    """Figures with intervals, confusion, reliability, segments, and which strengths they are of."""
    ended = run("calibrate", labelled)
    assert (ended.code, ended.err) == (0, "")
    for text in (
        "towers, judge lexical",
        "AUC, within row",
        "kappa, quadratic",
        "Krippendorff's α",
        "the strengths that the judge gives",
        "run=second",
        "Rows: 20, rejected: 0",
        "Not calibrated: faithfulness: ",
        "baseline",
    ):
        assert text in ended.out


def test_the_command_prints_json(run: Run, labelled: Path) -> None:
    """One object: a calibration per set and judge."""
    ended = run("calibrate", labelled, "--metrics", "context_recall", "--limit", 6, "--json")
    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 1)
    (told,) = json.loads(ended.out)["calibrations"]
    assert (told["name"], told["rows"], told["judge"]["name"]) == ("towers", 6, "lexical")
    assert [one["metric"] for one in told["metrics"]] == ["context_recall"]
    figures = told["metrics"][0]["overall"]["figures"]
    assert set(figures) >= {"auc", "auc_within", "kappa", "kappa_quadratic", "alpha", "spearman"}
    assert set(figures["auc"]) == {"value", "low", "high"}
    assert told["drift"] is None


def test_the_command_asks_any_endpoint(run: Run, labelled: Path, judge_server: JudgeServer) -> None:
    """By flags alone."""
    where = ["--judge", "openai", "--base-url", judge_server.base_url, "--model", "mine"]
    ended = run("calibrate", labelled, "--metrics", "context_relevance", *where, "--json")
    (told,) = json.loads(ended.out)["calibrations"]
    assert told["judge"]["name"] == "openai:mine"
    assert told["metrics"][0]["strengths"] == "verdict"


def test_the_command_calibrates_the_judges_in_the_rows(run: Run, tmp_path: Path) -> None:
    """`--judge labels`."""
    rows = [
        relabelled(_said(row, n % 2), judge={"one": {"label": n % 2}})
        for n, row in enumerate(make_labelled(4))
    ]
    ended = run("calibrate", write_jsonl(tmp_path / "set.jsonl", rows), "--judge", "labels")
    assert "set, judge one" in ended.out
    assert "this judge gives no strengths" in ended.out


def test_names_from_the_rows_are_printed_as_they_are(run: Run, tmp_path: Path) -> None:
    """No colour, no markup, no control of the terminal comes from a labelled row."""
    name = "gpt [red]x[/] \x1b[31m"
    rows = [
        relabelled(_said(row, n % 2), judge={name: {"label": n % 2}})
        | {"tags": {"team": f"[bold]{n % 2}"}}
        for n, row in enumerate(make_labelled(20))
    ]
    ended = run("calibrate", write_jsonl(tmp_path / "set.jsonl", rows), "--judge", "labels")
    assert "set, judge gpt [red]x[/] [31m" in ended.out
    assert "team=[bold]1" in ended.out
    assert "\x1b" not in ended.out


def test_the_command_ends_with_1_where_nothing_could_be_held(run: Run, tmp_path: Path) -> None:
    """A set whose labels are of no use to any metric."""
    rows = make_labelled(2, labels={"gold": {}})
    ended = run("calibrate", write_jsonl(tmp_path / "set.jsonl", rows))
    assert ended.code == 1
    assert "no row has labels.chunk_relevance" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["none.jsonl"], "no such log"), (["--metrics", "banana"], "no metric 'banana'")],
)
def test_the_command_ends_with_2_on_wrong_input(
    run: Run, labelled: Path, arguments: list[str], message: str
) -> None:
    """With one line that says what is wrong."""
    ended = run("calibrate", labelled, *arguments)
    assert ended.code == 2
    assert message in ended.err


def _partly_right(metric: str, question: LabelQuestion) -> str:
    if metric == "context_relevance":
        return json.dumps({"grade": int(question.labels[0])})
    return right(metric, question)


def _sometimes(metric: str, question: LabelQuestion) -> str | None:
    number = int(question.ask.data["question"].rstrip("?").split()[-1])
    if metric != "context_relevance" or number >= 10:
        return right(metric, question)
    return "Certainly!" if number < 5 else None


def _said(row: dict[str, Any], label: float) -> dict[str, Any]:
    """The row with one statement that has this label."""
    return relabelled(row, statement_support=[{"text": row["reference"], "label": label}])
