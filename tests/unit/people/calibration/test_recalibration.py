"""The fit of strengths to labels: known truths, few labels, and judges that cannot be fitted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import make_settings
from ragmetrics.errors import JudgeRefused
from ragmetrics.people import calibrate
from ragmetrics.people.calibration.recalibration import fit_map, with_fit
from ragmetrics.people.calibration.run_judges import JudgedSet
from ragmetrics.people.calibration.units import Unit
from ragmetrics.records import Calibration, JudgeInfo, Recalibration, probabilities
from ragmetrics.storage import Files, require_record
from tests.builders import judge_at
from tests.fakes.calibrations import calibration, measured
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.labelled import make_labelled, write_judge
from tests.fakes.logs import write_jsonl

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def calibrated(place: Path, store: Path, judge: Any = "lexical", **options: Any) -> Calibration:
    """One judge against one set, with a store."""
    settings = make_settings({"judge": judge, "store": str(store)})
    (found,) = calibrate(settings, [str(place)], now=NOW, files=Files(str(store)), **options)
    return found


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A set of 60 rows."""
    return write_jsonl(tmp_path / "towers.jsonl", make_labelled(60))


def test_the_fit_finds_the_probabilities() -> None:
    """Of a judge whose strengths have known probabilities; the penalty alone moves the numbers."""
    strengths = np.linspace(0.001, 0.999, 5_000)
    truth = probabilities(strengths, -1.0, 2.0, 0.5)
    assert fit_map(strengths, np.array(truth)) == pytest.approx((-1.0, 2.0, 0.5), abs=0.06)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=2, max_size=40)
)
def test_a_probability_never_falls_with_the_strength(units: list[tuple[float, float]]) -> None:
    """Whatever the labels are: it lies in [0, 1] and keeps the order of the strengths."""
    strengths, labels = (np.array(side) for side in zip(*units, strict=True))
    fitted = probabilities(np.linspace(0, 1, 50), *fit_map(strengths, labels))
    assert fitted[0] >= 0 and fitted[-1] <= 1
    assert (np.diff(fitted) >= -1e-12).all()


def test_a_judge_that_ranks_the_wrong_way_round_says_nothing() -> None:
    """Each strength then has the share of positive labels."""
    strengths = np.linspace(0, 1, 60)
    fitted = probabilities([0.0, 1.0], *fit_map(strengths, (strengths < 0.5).astype(np.float64)))
    assert fitted == pytest.approx([0.5, 0.5], abs=1e-6)


def test_a_fit_is_stored_under_the_name_that_the_calibration_has(
    labelled: Path, tmp_path: Path
) -> None:
    """Each metric has a map, or the reason why it has none; equal units give the equal name."""
    found = calibrated(labelled, tmp_path / "store", fit=True)
    path = f"calibrations/fits/{found.fit}.json"
    fit = require_record(Files(str(tmp_path / "store")), path, Recalibration)
    assert fit is not None
    fitted = [one.metric for one in found.metrics if not one.not_fitted]
    assert [one.metric for one in fit.maps] == fitted
    assert "context_relevance" in fitted
    assert all(one.error_after_fit for one in found.metrics if not one.not_fitted)
    assert calibrated(labelled, tmp_path / "other", fit=True).fit == found.fit


def test_a_judge_with_a_calibration_is_calibrated(labelled: Path, tmp_path: Path) -> None:
    """Its strengths are the probabilities, its fingerprint is another one."""
    before = calibrated(labelled, tmp_path, fit=True)
    judge = {"name": "lexical", "calibration": before.fit}
    after = calibrated(labelled, tmp_path, judge)
    assert after.judge.fingerprint != before.judge.fingerprint
    errors = [
        found.metrics[0].overall.figures["calibration_error"].value or 0
        for found in (before, after)
        if found.metrics[0].overall
    ]
    assert errors[1] < errors[0] / 2
    assert calibrated(labelled, tmp_path, judge, fit=True).fit == before.fit


def test_a_judge_without_strengths_is_not_fitted(labelled: Path, tmp_path: Path) -> None:
    """Nothing is stored, and the reason is said."""
    judge = write_judge(tmp_path / "judge.jsonl", labelled)
    found = calibrated(labelled, tmp_path / "store", judge, fit=True)
    assert {one.not_fitted for one in found.metrics} == {"this judge gives no strengths"}
    assert found.fit == ""


def simulated(power: int, questions: int) -> list[Unit]:
    """Verdicts on 300 items of known probabilities, too sure for a power above 1."""
    random = np.random.default_rng(2)
    truth = random.random(300)
    strengths = truth**power / (truth**power + (1 - truth) ** power)
    labels = (random.random(300) < truth).astype(np.float64)
    return [
        Unit(str(n), f"q{n % questions}", str(n), "", label, float(strength > 0.5), strength)
        for n, (label, strength) in enumerate(zip(labels.tolist(), strengths.tolist(), strict=True))
    ]


@pytest.mark.parametrize(("questions", "is_fitted"), [(1, False), (3, True)])
def test_labels_of_one_question_are_not_fitted(questions: int, is_fitted: bool) -> None:
    """No other one is left to measure the fit on. A fit by a few questions has its error."""
    judged = JudgedSet(JudgeInfo(name="lexical", fingerprint="f"))
    judged.units["context_recall"] = simulated(3, questions)
    found, fit = with_fit(calibration(metrics=[measured("context_recall")]), judged)
    assert (fit is not None) is is_fitted
    assert found.metrics[0].not_fitted.startswith("labels of too few questions") is not is_fitted
    assert (found.metrics[0].error_after_fit is not None) is is_fitted


@pytest.mark.parametrize(("power", "is_fitted"), [(1, False), (3, True)])
def test_probabilities_are_fitted_only_if_that_is_better(power: int, is_fitted: bool) -> None:
    """A judge of probabilities that are right keeps them; one that is too sure does not."""
    units = simulated(power, 300)
    info = JudgeInfo(name="decision:m", fingerprint="f")
    judged = JudgedSet(info, {"context_recall": units}, gives_probabilities=True)
    before = calibration(metrics=[measured("context_recall")])
    found, fit = with_fit(before, judged)
    assert (fit is not None) is is_fitted
    assert ("no fit to these labels is better" in found.metrics[0].not_fitted) is not is_fitted


def test_few_labels_are_not_fitted(tmp_path: Path) -> None:
    """Below fifty it is said how many are missing."""
    place = write_jsonl(tmp_path / "few.jsonl", make_labelled(20))
    found = calibrated(place, tmp_path / "store", metrics=["context_relevance"], fit=True)
    assert found.metrics[0].not_fitted == "40 labels; 10 are missing of 50"


def test_a_calibration_that_is_not_in_the_store_is_refused(labelled: Path, tmp_path: Path) -> None:
    """The sentence says how to make one."""
    judge = {"name": "lexical", "calibration": "fit-0123456789ab"}
    with pytest.raises(JudgeRefused, match=r"is not in .*--fit"):
        calibrated(labelled, tmp_path / "store", judge)


def test_the_command_prints_the_name_and_both_errors(
    labelled: Path, tmp_path: Path, run: Run
) -> None:
    """What to set, and the calibration error before and after."""
    result = run("calibrate", str(labelled), "--fit", "--store", str(tmp_path / "store"))
    assert "Fitted: set `judge: {calibration: fit-" in result.out
    assert "Calibration error: 0." in result.out
    assert "; fitted: 0." in result.out


def test_the_command_needs_a_store_to_fit(labelled: Path, run: Run) -> None:
    """Without one nothing could use the fit."""
    result = run("calibrate", str(labelled), "--fit")
    assert result.code == 2
    assert "--fit needs a store" in result.err


def test_a_decision_model_is_calibrated(
    labelled: Path, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Its own probabilities are fitted where that is better, and replaced by the fit; its replies
    are found in the cache of that day.
    """
    judge = judge_at(judge_server, "decision")
    wanted = ["context_recall"]
    before = calibrated(labelled, tmp_path, judge, metrics=wanted, fit=True)
    assert before.fit, before.metrics[0].not_fitted
    after = calibrated(labelled, tmp_path, {**judge, "calibration": before.fit}, metrics=wanted)
    assert after.usage.requests == 0
    assert after.judge.fingerprint != before.judge.fingerprint
    errors = [
        found.metrics[0].overall.figures["calibration_error"].value
        for found in (before, after)
        if found.metrics[0].overall
    ]
    assert errors[0] != errors[1]
