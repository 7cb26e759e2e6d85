"""Calibrations kept in a store, and whether a judge has changed between two of them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.people import (
    calibrate,
    calibration_drifts,
    compare_calibrations,
    load_calibrations,
    load_history,
)
from ragmetrics.people.calibration.labelled_sets import LabelQuestion
from ragmetrics.people.calibration.store import load_units
from ragmetrics.records import Calibration, Figure
from ragmetrics.storage import Files
from tests.fakes.command import Run
from tests.fakes.labelled import Reply, make_labelled, right, write_judge, wrong
from tests.fakes.logs import write_jsonl

DAY = datetime(2026, 11, 19, 12, tzinfo=UTC)


class Bench:
    """A store, a labelled set, and one recorded judge whose replies may change."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(str(folder / "store"))
        self.labelled = write_jsonl(folder / "towers.jsonl", make_labelled(40))
        self.judge = folder / "judge.jsonl"
        self._days = 0

    def calibrate(self, reply: Reply = right) -> Calibration:
        """Calibrate the judge as it is now; each time is a day later."""
        settings = make_settings({"judge": write_judge(self.judge, self.labelled, reply)})
        now = DAY + timedelta(days=self._days)
        self._days += 1
        (found,) = calibrate(settings, [str(self.labelled)], now=now, files=self.files)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty store and a set of forty rows."""
    return Bench(tmp_path)


def careless(metric: str, question: LabelQuestion) -> str:
    """The judge after a bad update: it turns every second question's labels round."""
    return (wrong if _number(question) % 4 < 2 else right)(metric, question)


def hardly(metric: str, question: LabelQuestion) -> str:
    """The judge with one slip."""
    slip = "tower 7?" in question.ask.data["question"]
    return (wrong if slip else right)(metric, question)


def slipping(count: int) -> Reply:
    """A judge that is wrong about the contexts of so many questions."""
    return lambda metric, question: (
        wrong if metric == "context_relevance" and _number(question) < count else right
    )(metric, question)


def _number(question: LabelQuestion) -> int:
    return int(question.ask.data["question"].rstrip("?").split()[-1])


def test_a_calibration_is_found_again_as_it_was(bench: Bench) -> None:
    """Record and verdicts; by set and judge, oldest first."""
    first, second = bench.calibrate(), bench.calibrate()
    assert load_calibrations(bench.files) == [first, second]
    assert load_calibrations(bench.files, name="towers", judge=first.judge.name)[0] == first
    assert load_calibrations(bench.files, name="other") == []
    assert load_calibrations(bench.files, judge="other") == []
    units = load_units(bench.files, first)
    assert {metric: len(found) for metric, found in units.items()} == {
        "context_relevance": 80,
        "context_relevancy": 160,
        "context_recall": 54,
    }
    assert all(unit.verdict == unit.label for unit in units["context_relevance"])


def test_the_layout_is_as_documented(bench: Bench) -> None:
    """By set, judge and time; verdicts as Parquet beside the record."""
    found = bench.calibrate()
    folder = f"calibrations/set=towers/judge={found.judge.fingerprint}"
    paths = [info.path for info in bench.files.below("calibrations")]
    assert paths == [f"{folder}/20261119T120000.000000Z.{kind}" for kind in ("json", "parquet")]


def test_a_damaged_record_is_left_out_and_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are still found."""
    found = bench.calibrate()
    bench.files.write("calibrations/set=towers/judge=x/20261118T120000Z.json", b"{}")
    with caplog.at_level(logging.ERROR):
        assert load_calibrations(bench.files) == [found]
    assert "is not a calibration" in caplog.text


def test_an_unchanged_judge_does_not_drift(bench: Bench) -> None:
    """No verdict changed, and every figure changed by exactly 0."""
    found = compare_calibrations(bench.files, bench.calibrate(), bench.calibrate())
    assert not found.drifted
    assert found.same_fingerprint
    assert [metric.units for metric in found.metrics] == [80, 160, 54]
    assert {metric.changed.value for metric in found.metrics} == {0.0}
    assert {figure for metric in found.metrics for figure in metric.figures.values()} == {
        Figure(value=0.0, low=0.0, high=0.0)
    }


def test_a_judge_that_got_worse_drifts(bench: Bench) -> None:
    """The change of kappa and AUC is negative for sure, and half of the verdicts changed."""
    found = compare_calibrations(bench.files, bench.calibrate(), bench.calibrate(careless))
    assert found.drifted
    assert not found.same_fingerprint
    grades = found.metrics[0]
    assert (grades.metric, grades.drifted, grades.changed.value) == ("context_relevance", True, 0.5)
    kappa = grades.figures["kappa_quadratic"]
    assert kappa.value == pytest.approx(-1)
    assert kappa.high is not None
    assert kappa.high < 0


def test_a_judge_that_got_better_drifts_too(bench: Bench) -> None:
    """Its earlier numbers do not compare with the later ones."""
    found = compare_calibrations(bench.files, bench.calibrate(careless), bench.calibrate())
    assert found.drifted
    assert (found.metrics[0].figures["auc"].low or 0) > 0


def test_one_slip_is_no_drift(bench: Bench) -> None:
    """The interval of the change holds 0."""
    found = compare_calibrations(bench.files, bench.calibrate(), bench.calibrate(hardly))
    assert not found.drifted
    assert 0 < (found.metrics[0].changed.value or 0) < 0.1


def test_only_units_judged_both_times_are_compared(bench: Bench) -> None:
    """Rows whose text or label has changed meanwhile are others, and so are new ones."""
    earlier = bench.calibrate()
    rows = make_labelled(50)
    rows[0]["retrieved_contexts"][1] = rows[0]["retrieved_contexts"][1].replace("Ferr", "Whar")
    rows[2]["labels"]["chunk_relevance"] = [1, 1]
    write_jsonl(bench.labelled, rows)
    found = compare_calibrations(bench.files, earlier, bench.calibrate())
    assert [(metric.metric, metric.units) for metric in found.metrics] == [
        ("context_relevance", 80 - 2),
        ("context_relevancy", 160 - 4),
        ("context_recall", 54 - 2),
    ]


def test_verdicts_that_were_not_had_are_not_compared(bench: Bench) -> None:
    """A judge that failed has not changed its mind."""
    silent = bench.calibrate(lambda metric, _: None if metric == "context_recall" else "{}")
    found = compare_calibrations(bench.files, silent, bench.calibrate())
    assert {metric.untold for metric in found.metrics} == {"nothing_shared"}
    assert found.has_unknown
    assert not found.drifted


def test_an_outage_hides_no_drift(bench: Bench) -> None:
    """What comes after it is compared with what came before it, metric by metric."""
    first = bench.calibrate()
    outage = bench.calibrate(lambda metric, _: None if metric == "context_recall" else "{}")
    third = bench.calibrate(careless)
    silent, told = calibration_drifts(bench.files)
    assert {metric.untold for metric in silent.metrics} == {"no_verdict"}
    assert (silent.drifted, silent.has_unknown, silent.later) == (False, True, outage.at)
    assert told.drifted
    assert {metric.earlier for metric in told.metrics} == {first.at} == {told.earlier}
    assert (told.before, told.later) == (outage.at, third.at)
    assert load_history(bench.files).drifts == [silent, told]


def test_an_outage_of_one_metric_is_its_own(bench: Bench) -> None:
    """The others are compared with the calibration directly before."""
    first = bench.calibrate()
    second = bench.calibrate(lambda m, q: None if m == "context_recall" else right(m, q))
    bench.calibrate()
    silent, told = calibration_drifts(bench.files)
    assert [metric.untold for metric in silent.metrics] == ["", "", "no_verdict"]
    assert [metric.earlier for metric in told.metrics] == [second.at, second.at, first.at]
    assert told.earlier == second.at


def test_a_calibration_with_few_verdicts_is_passed_over(bench: Bench) -> None:
    """An older one tells more."""
    first = bench.calibrate()
    bench.calibrate(lambda metric, q: right(metric, q) if "tower 7?" in str(q.ask.data) else None)
    bench.calibrate(careless)
    found = calibration_drifts(bench.files)[-1]
    assert found.drifted
    assert {metric.earlier for metric in found.metrics} == {first.at}


def test_few_questions_cannot_tell(tmp_path: Path) -> None:
    """Below twenty the intervals are too narrow to be believed."""
    bench = Bench(tmp_path)
    for count, told in ((19, False), (20, True)):
        write_jsonl(bench.labelled, make_labelled(count))
        found = compare_calibrations(bench.files, bench.calibrate(), bench.calibrate(wrong))
        grades = found.metrics[0]
        assert (grades.questions, grades.drifted) == (count, told)
        assert grades.untold == ("" if told else "too_few")


def test_all_figures_share_one_chance_of_a_false_alarm(bench: Bench) -> None:
    """Six are tested: what would be news of one, at 2 / 2 ** 7, is none of the best of six."""
    first = bench.calibrate()
    for slips, told in ((7, False), (12, True)):
        grades = compare_calibrations(bench.files, first, bench.calibrate(slipping(slips))).metrics[
            0
        ]
        assert grades.p_value == pytest.approx(6 * 2 / 2**slips, abs=0.03)
        assert grades.drifted == told
    unchanged = compare_calibrations(bench.files, first, bench.calibrate())
    assert {metric.p_value for metric in unchanged.metrics} == {1.0}


def test_a_judge_that_knows_the_whole_set_is_not_compared_across_sets(bench: Bench) -> None:
    """The lexical judge weighs words by the set's texts: more rows are another judge."""
    texts, known = [40, 50, 50], []
    for day, count in enumerate(texts):
        write_jsonl(bench.labelled, make_labelled(count))
        now = DAY + timedelta(days=day)
        (found,) = calibrate(make_settings({}), [str(bench.labelled)], now=now, files=bench.files)
        known.append(found.corpus)
    assert known[0] != known[1] == known[2]
    grown, same = calibration_drifts(bench.files)
    assert {metric.untold for metric in grown.metrics} == {"set_changed"}
    assert not grown.drifted
    assert {metric.untold for metric in same.metrics} == {""}
    assert not same.drifted


def test_other_judges_do_not_care_for_the_rest_of_the_set(bench: Bench) -> None:
    """And calibrations of older versions know no digest."""
    found = bench.calibrate()
    assert found.corpus is None
    old = found.model_dump(mode="json", exclude={"corpus", "refused"})
    assert Calibration.model_validate(old) == found


def test_units_of_older_versions_are_read(bench: Bench) -> None:
    """They have no place of their row; their ids stand in."""
    found = bench.calibrate()
    (info,) = (one for one in bench.files.below("calibrations") if ".parquet" in one.path)
    table = pq.read_table(BytesIO(bench.files.read(info.path))).drop_columns(["row"])
    sink = BytesIO()
    pq.write_table(table, sink)
    bench.files.write(info.path, sink.getvalue())
    assert not compare_calibrations(bench.files, found, bench.calibrate()).drifted


def test_other_words_of_a_prompt_are_told(bench: Bench) -> None:
    """The judge may be the same, what it is asked is not."""
    first, second = bench.calibrate(), bench.calibrate()
    reworded = [metric.model_copy(update={"fingerprint": "other"}) for metric in second.metrics]
    other = second.model_copy(update={"metrics": reworded})
    assert compare_calibrations(bench.files, first, second).same_fingerprint
    assert not compare_calibrations(bench.files, first, other).same_fingerprint


def test_what_does_not_compare_is_an_error(bench: Bench) -> None:
    """Another set, another judge, or one that was never kept."""
    found = bench.calibrate()
    other = found.model_copy(update={"name": "other"})
    with pytest.raises(InputError, match="one set and one judge"):
        compare_calibrations(bench.files, other, found)
    with pytest.raises(InputError, match="not stored"):
        compare_calibrations(Files(bench.files.uri("elsewhere")), found, found)


def test_each_calibration_is_held_against_the_one_before(bench: Bench) -> None:
    """The first has none."""
    first, second, third = bench.calibrate(), bench.calibrate(), bench.calibrate(careless)
    found = calibration_drifts(bench.files)
    assert [(one.earlier, one.later) for one in found] == [
        (first.at, second.at),
        (second.at, third.at),
    ]
    assert [one.drifted for one in found] == [False, True]


def test_the_command_tells_drift_and_ends_with_1(run: Run, bench: Bench) -> None:
    """Against the last calibration of that set and judge in the store."""
    bench.calibrate()
    judge = write_judge(bench.judge, bench.labelled, careless)
    where = [bench.labelled, "--judge", judge, "--store", bench.files.root]
    ended = run("calibrate", *where)
    assert ended.code == 1
    assert "Since 2026-11-19 12:00 UTC (with changed settings or prompts)" in ended.out
    assert "drifted" in ended.out
    ended = run("calibrate", *where, "--json")
    (told,) = json.loads(ended.out)["calibrations"]
    assert told["drift"]["metrics"][0]["changed"]["value"] == 0


def test_the_command_says_where_nothing_can_be_told(run: Run, bench: Bench) -> None:
    """As of a set too small for it."""
    write_jsonl(bench.labelled, make_labelled(6))
    for _ in range(2):
        ended = run("calibrate", bench.labelled, "--store", bench.files.root)
    assert ended.code == 0
    assert "too few" in ended.out
    assert "no drift" not in ended.out


def test_the_store_of_the_settings_is_used(run: Run, bench: Bench, tmp_path: Path) -> None:
    """Where a settings file is given; without either nothing is kept."""
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text("store: kept\n")
    assert run("calibrate", bench.labelled).code == 0
    assert run("calibrate", bench.labelled, "--settings", settings).code == 0
    (found,) = load_calibrations(Files(str(tmp_path / "kept")))
    assert (found.name, found.judge.name) == ("towers", "lexical")
