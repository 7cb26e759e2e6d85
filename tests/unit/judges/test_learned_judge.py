"""The learned judge: what it learns, what it refuses, and what a night does with it."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from scipy import special
from typer import Exit

from ragmetrics import evaluate
from ragmetrics.cli.learn import learn as cli
from ragmetrics.config import SampleSettings, Settings, make_settings, with_overrides
from ragmetrics.errors import InputError, JudgeRefused, SettingsError
from ragmetrics.judges import Corpus, Features, LearnedJudge
from ragmetrics.judges.verdict_items import items_of, levels_of, top_level, verdict_of
from ragmetrics.metrics import GRADE, NEEDED, SUPPORT, metrics
from ragmetrics.people import History, learn
from ragmetrics.people.calibration.learned_fit import (
    Examples,
    cuts,
    fit_folds,
    fit_prompt,
    refusal,
    why_not_better,
)
from ragmetrics.people.calibration.learned_training import judge_last_night
from ragmetrics.people.calibration.logistic import fit_logistic
from ragmetrics.people.calibration.stored_verdicts import stored_verdicts
from ragmetrics.pipeline import run_night
from ragmetrics.records import FOLDS, Ask, Figure, LearnedModel, Manifest, fold_of
from ragmetrics.storage import Files, LearnedJudges
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.learned import examples, learned
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.page_writing import write_calibrations

TEXTS = st.text(max_size=200)
EMPTY = Corpus()
FEATURES = Features(EMPTY)


@cache
def a_model() -> LearnedModel:
    """A model of the grades, fitted to texts: a context that holds the question's words is 2."""
    x, levels, questions = [], [], []
    features = Features(EMPTY)
    for number in range(120):
        question = f"What is the height of tower {number}?"
        for context, level in ((f"Tower {number} is high.", 2), ("Ferries leave hourly.", 0)):
            x.append(features.of(Ask(GRADE, {"question": question, "context": context})))
            levels.append(level)
            questions.append(question)
    found = Examples(np.concatenate(x), np.array(levels), np.array(questions), np.array(questions))
    prompt = fit_prompt(GRADE.name, GRADE.digest, 2, features.names, found)
    return LearnedModel(
        version=1,
        judge="gpt",
        judge_fingerprint="abc",
        code_version=LearnedJudge.code_version,
        features=features.digest,
        prompts=[prompt.model_copy(update={"used": True})],
    )


def grade(context: str, question: str = "What is the height of tower 7?") -> Ask:
    """A request for the grade of a context."""
    return Ask(GRADE, {"question": question, "context": context})


# Items


@pytest.mark.parametrize(
    ("prompt", "data", "verdict", "levels"),
    [
        (GRADE, {"question": "a?", "context": "b"}, {"grade": 2}, [2]),
        (
            SUPPORT,
            {"question": "a?", "contexts": ["b"], "sentences": ["c", "d"]},
            {"supported": [0, 1]},
            [0, 1],
        ),
        (
            NEEDED,
            {"question": "a?", "contexts": [{"1": "b", "2": "c"}, {"3": "d"}]},
            {"needed": [3, 1]},
            [1, 0, 1],
        ),
    ],
)
def test_a_verdict_is_the_levels_of_its_items(
    prompt: Any, data: Any, verdict: Any, levels: list[int]
) -> None:
    """And back."""
    ask = Ask(prompt, data)
    given_ = prompt.verdict.model_validate(verdict)
    assert levels_of(ask, given_) == levels
    assert len(items_of(ask)) == len(levels)
    assert levels_of(ask, verdict_of(ask, levels)) == levels


def test_prompts_whose_verdict_is_no_level_are_left_to_the_embedded_judge() -> None:
    """Such as those that write statements or copy the prompts of ragas."""
    tops = {p.name: top_level(p) for metric in metrics().values() for p in metric.prompts}
    assert tops["grade"] == 2
    assert {tops["support"], tops["needed"], tops["grounded"], tops["useful"]} == {1}
    assert tops["statements"] is None
    assert all(top is None for name, top in tops.items() if name.startswith("ragas"))


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_features_of_any_text_are_finite_and_repeat(question: str, contexts: list[str]) -> None:
    """Empty texts, any script, no context: a finite line per item, the same each time."""
    asks = [
        Ask(SUPPORT, {"question": question, "contexts": contexts, "sentences": [question, "x"]}),
        Ask(NEEDED, {"question": question, "contexts": [{"1": context} for context in contexts]}),
        *(grade(context, question) for context in contexts),
    ]
    for ask in asks:
        found, again = FEATURES.of(ask), Features(EMPTY).of(ask)
        assert found.shape == (len(items_of(ask)), len(FEATURES.names))
        assert np.isfinite(found).all()
        assert (found == again).all()


def test_a_huge_text_is_judged() -> None:
    """A third of a megabyte in one context."""
    (chance,) = LearnedJudge(a_model(), EMPTY).evidence(grade("tower 7 is high. " * 20_000)) or ()
    assert 0 <= chance <= 1


# Fitting


@given(st.integers(0, 1_000), st.floats(0.1, 50))
def test_the_fit_is_where_the_gradient_is_zero(seed: int, penalty: float) -> None:
    """By its definition: X'(p - y) + penalty * b = 0 for every feature."""
    random = np.random.default_rng(seed)
    x, y = random.standard_normal((60, 3)), random.integers(0, 2, 60)
    b = fit_logistic(x, y, np.full(3, penalty))
    gradient = x.T @ (special.expit(b[0] + x @ b[1:]) - y) + penalty * b[1:]
    assert np.abs(gradient).max() < 1e-5


def test_shapes_that_do_not_fit_are_refused() -> None:
    """By ValueError."""
    with pytest.raises(ValueError, match="penalties"):
        fit_logistic(np.zeros((3, 2)), [0, 1], [1, 1])


def test_a_verdict_does_not_change_the_prediction_of_its_own_question() -> None:
    """All verdicts of a question are turned around: its predictions stay the same, others move."""
    once = examples()
    mine = once.questions == "Question 3?"
    other = Examples(
        once.features, np.where(mine, 2 - once.levels, once.levels), once.questions, once.rows
    )
    first, second = fit_folds(once, 2).chances, fit_folds(other, 2).chances
    assert (first[mine] == second[mine]).all()
    assert (first[~mine] != second[~mine]).any()


def test_what_can_be_learned_is_learned_and_measured() -> None:
    """The level follows from a feature that the evidence does not see."""
    found = fit_prompt("grade", "d", 2, ["a", "b", "c", "d"], examples())
    figures = found.quality
    assert found.used
    assert len(found.coefficients) == FOLDS
    assert (figures.auc.value or 0) > 0.85 > (figures.embedded_auc.value or 1)
    assert (figures.auc_gain.low or 0) > 0.1
    assert (figures.correlation or 0) > (figures.embedded_correlation or 1)
    assert (figures.calibration_error or 1) < 0.1
    assert sum(one.n for one in figures.reliability) == 600


def test_a_model_that_is_no_better_is_not_used() -> None:
    """The evidence alone decides, so nothing can be added."""
    base = examples()
    same = Examples(base.features, (base.features[:, 0] > 0).astype(int), base.questions, base.rows)
    found = fit_prompt("grade", "d", 1, ["a", "b", "c", "d"], same)
    assert (found.used, found.why) == (False, "no better")


@pytest.mark.parametrize(
    ("gain", "row", "embedded_row", "why"),
    [
        ((0.02, 0.001, 0.04), 0.5, 0.4, ""),
        ((0.02, -0.001, 0.04), 0.5, 0.4, "no better"),
        ((0.02, None, None), 0.5, 0.4, "no better"),
        ((0.02, 0.001, 0.04), 0.3, 0.4, "no better by row"),
        ((0.02, 0.001, 0.04), None, None, ""),  # all rows have the same score
    ],
)
def test_it_is_used_only_where_its_interval_is_above_the_evidence(
    gain: Any, row: Any, embedded_row: Any, why: str
) -> None:
    """A higher AUC may be chance, and AUC by item says little about row scores."""
    value, low, high = gain
    found = fit_prompt("grade", "d", 2, ["a", "b", "c", "d"], examples()).quality
    changes = {
        "auc_gain": Figure(value=value, low=low, high=high),
        "row_correlation": Figure(value=row),
        "embedded_row_correlation": Figure(value=embedded_row),
    }
    assert why_not_better(found.model_copy(update=changes)) == why


@given(st.integers(0, 1_000), st.integers(1, 3))
def test_as_many_items_get_a_level_as_in_the_verdicts(seed: int, top: int) -> None:
    """Also a level that is so rare that no item is more likely to have it than not."""
    random = np.random.default_rng(seed)
    chances = np.sort(random.random((40, top)) * 0.4)[:, ::-1]
    levels = random.integers(0, top + 1, 40) * random.integers(0, 2, 40)
    found = (chances > cuts(levels, chances)).sum(axis=0)
    assert found.tolist() == [(levels > place).sum() for place in range(top)]


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (slice(0, 150), "150 verdicts; 50 are missing of 200"),
        ("none", "all 600 verdicts are negative"),
        ("all", "all 600 verdicts are positive"),
        ("few", "only 5 of 600 verdicts are positive"),
        ("one question", "of 1 questions"),
    ],
)
def test_too_little_to_learn_from_is_refused_by_a_sentence(chosen: Any, why: str) -> None:
    """Too few verdicts, one class only, or too few questions."""
    found = examples()
    levels = {"none": 0 * found.levels, "all": 0 * found.levels + 1}
    levels["few"] = (np.arange(600) < 5).astype(int)
    questions = np.full(600, "Why?") if chosen == "one question" else found.questions
    if isinstance(chosen, str):
        own = levels.get(chosen, found.levels)
        found = Examples(found.features, own, questions, found.rows)
    else:
        found = found.where(np.arange(600)[chosen])
    assert why in refusal(found)
    assert refusal(examples()) == ""


# The judge


def test_it_answers_as_it_learned() -> None:
    """A context that is about the question is graded 2; its strength is in [0, 1]."""
    judge = LearnedJudge(a_model(), EMPTY)
    good, bad = grade("Tower 7 is high."), grade("Ferries leave hourly.")
    assert [judge.verdict(one).model_dump() for one in (good, bad)] == [{"grade": 2}, {"grade": 0}]
    (high,), (low,) = judge.evidence(good) or (), judge.evidence(bad) or ()
    assert 1 >= high > 0.9 > 0.1 > low >= 0
    assert "good for trends" in judge.note


def test_features_that_were_made_otherwise_are_refused() -> None:
    """Such as those of a night whose words are counted, where it was fitted without counts; and a
    model of an earlier version, which does not say how its features were made.
    """
    counted = Corpus()
    counted.add(["Tower 7 is high."], "What is the height of tower 7?")
    earlier = a_model().model_copy(update={"features": ""})
    for model, corpus in ((a_model(), counted), (earlier, EMPTY)):
        with pytest.raises(JudgeRefused, match="made otherwise: `ragmetrics learn`"):
            LearnedJudge(model, corpus).verdict(grade("Tower 7 is high."))


def test_a_refit_changes_its_fingerprint() -> None:
    """So scores of two versions do not compare as those of one judge."""
    model = a_model()
    later = model.model_copy(update={"version": 2})
    prints = {LearnedJudge(one, EMPTY).fingerprint for one in (model, model, later)}
    assert len(prints) == 2


def test_other_prompts_are_answered_as_by_the_embedded_judge() -> None:
    """Also a wording that it was not fitted on."""
    ask = Ask(SUPPORT, {"question": "a?", "contexts": ["b c"], "sentences": ["b c", "d"]})
    assert LearnedJudge(a_model(), EMPTY).verdict(ask).model_dump() == {"supported": [1, 0]}


@given(st.text(min_size=1, max_size=40))
def test_equal_questions_are_in_one_fold(question: str) -> None:
    """Whatever the spacing."""
    assert fold_of(question) == fold_of(f"  {question} ") < FOLDS


# Settings


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("learned", "needs `from`"),
        ({"name": "learned", "from": "lexical"}, "needs `from`"),
        ({"name": "openai", "from": "openai"}, "has an effect on the judge learned only"),
    ],
)
def test_it_learns_from_a_paid_judge_alone(judge: Any, why: str) -> None:
    """The settings say so."""
    with pytest.raises(SettingsError, match=why):
        make_settings({"judge": judge})


def test_another_judge_on_the_command_line_replaces_it() -> None:
    """And `--judge learned` predicts the judge of the settings."""
    paid = make_settings({"judge": {"name": "openai", "model": "m"}})
    learned_one = with_overrides(paid, "learned").judge
    assert learned_one.learned_from == paid.judge
    alone = make_settings({"judge": {"name": "learned", "from": "openai"}})
    assert with_overrides(alone, "lexical").judge.teacher is None
    other = {"name": "learned", "from": {"name": "openai", "model": "n"}}
    of_other = with_overrides(alone, other).judge.learned_from
    assert of_other is not None
    assert of_other.model == "n"


# Nights


@pytest.fixture
def nightly(judge_server: JudgeServer, tmp_path: Path) -> Settings:
    """A night of 150 rows, of which 120 are judged, with the learned judge for all rows."""
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(150, good=0.6))
    return night_settings(
        tmp_path,
        judge=judge_at(judge_server),
        metrics=["context_relevance", "context_recall"],
        rules=[],
        sample={"rows": 120, "cheap": "learned"},
        shards=2,
    )


def test_a_night_without_a_sample_teaches_the_same(nightly: Settings, tmp_path: Path) -> None:
    """Its run stores no word counts, since its judge needs none. The features are made from those
    of its rows all the same: as in a night that stored them, and as where the model is used.
    """
    models, manifests = [], []
    for name, sample in (("full", None), ("sampled", SampleSettings(rows=150, cheap="learned"))):
        night = nightly.model_copy(update={"sample": sample, "store": str(tmp_path / name)})
        manifests.append(run_night(night, NIGHT).manifest)
        learn(night, Files(night.store))
        models += LearnedJudges(Files(night.store)).all()
    full, sampled = models
    assert full.features == sampled.features != FEATURES.digest
    assert full.prompts[0].coefficients == sampled.prompts[0].coefficients
    alone = {"name": "learned", "from": nightly.judge.model_dump(exclude={"learned_from"})}
    result = evaluate(
        tmp_path / "logs",
        ["context_relevance"],
        settings=make_settings({"judge": alone}),
        store=str(tmp_path / "full"),
    )
    (learned_one,), judged = result.manifest.metrics, manifests[0].metrics[0]
    assert learned_one.mean == pytest.approx(judged.mean, abs=0.05)


def test_before_it_is_used_it_judges_the_last_night(nightly: Settings, tmp_path: Path) -> None:
    """As a night would. Its mean is told beside the judge's; one that is wrong is not used."""
    full = nightly.model_copy(update={"sample": None})
    run_night(full, NIGHT)
    model = learn(full, Files(full.store))
    assert model is not None
    (prompt,) = model.prompts
    prompt = prompt.model_copy(update={"used": True, "why": ""})
    found = stored_verdicts(full, full.judge, Files(full.store))
    grades = [verdict for verdict in found if verdict.ask.prompt.name == "grade"]
    right = model.model_copy(update={"prompts": [prompt]})
    (told,) = judge_last_night(Files(full.store), right, grades).prompts
    assert told.used
    assert told.last_night is not None
    assert (told.last_night.night, told.last_night.rows) == (NIGHT, 150)
    assert told.last_night.mean == pytest.approx(told.last_night.judge_mean, abs=0.05)
    rarely = prompt.model_copy(update={"cuts": [0.999, 0.999]})
    wrong = model.model_copy(update={"prompts": [rarely]})
    (told,) = judge_last_night(Files(full.store), wrong, grades).prompts
    assert (told.used, told.why) == (False, f"wrong on {NIGHT}")


def sample_note(manifest: Manifest) -> str:
    """What the night says of its cheap judge."""
    assert manifest.sample is not None
    return manifest.sample.cheap


def test_a_night_learns_from_its_verdicts(nightly: Settings, tmp_path: Path) -> None:
    """The first night has no learned judge and says so; its 240 grades are learned at its end.
    There are too few verdicts on sentences, and the model says how many are missing.
    """
    first = run_night(nightly, NIGHT).manifest
    assert "there is no learned judge yet" in sample_note(first)
    (model,) = LearnedJudges(Files(nightly.store)).all()
    assert [(one.name, one.verdicts, one.top) for one in model.prompts] == [("grade", 240, 2)]
    assert model.refused == {"support": "120 verdicts; 80 are missing of 200"}
    assert (model.nights, model.runs) == ([NIGHT], [first.run])
    assert learn(nightly, Files(nightly.store)) is None  # it has seen all verdicts


def test_old_verdicts_on_a_later_night_are_not_new(nightly: Settings, tmp_path: Path) -> None:
    """The same questions and contexts a night later: no request is sent, and nothing is fitted."""
    run_night(nightly, NIGHT)
    later = NIGHT + timedelta(days=1)
    write_jsonl(tmp_path / "logs" / f"dt={later}" / "a.jsonl", make_rows(150, good=0.6))
    run_night(nightly, later)
    (model,) = LearnedJudges(Files(nightly.store)).all()
    assert model.version == 1
    assert learn(nightly, Files(nightly.store), refit_after=1) is None


def next_version(nightly: Settings, **more: Any) -> LearnedModel:
    """A later version of the model, which is used."""
    files = Files(nightly.store)
    (model,) = LearnedJudges(files).all()
    prompts = [prompt.model_copy(update={"used": True, **more}) for prompt in model.prompts]
    model = model.model_copy(update={"version": 2, "prompts": prompts})
    LearnedJudges(files).save(model)
    return model


def test_the_next_night_uses_it(nightly: Settings) -> None:
    """Its plan names the version. This one gives every context the grades 0, 1 and 2 with equal
    chances: so every row has the cheap score 0.5, which agrees with nothing, and the mean is that
    of the judged rows. The judge's own numbers and the fingerprint of the metric stay.
    """
    first = run_night(nightly, NIGHT).manifest
    (fitted,) = LearnedJudges(Files(nightly.store)).all()
    flat = [0.0] * len(fitted.prompts[0].features)
    even = [[[math.log(2), *flat], [-math.log(2), *flat]]] * FOLDS
    model = next_version(nightly, coefficients=even)
    again = nightly.model_copy(update={"shards": 3})
    second = run_night(again, NIGHT).manifest
    assert second.run != first.run
    assert "version 2, 240 verdicts) scores all rows, for grade" in sample_note(second)
    plans = [json.loads(path.read_text()) for path in Path(nightly.store).rglob("sample.json")]
    newest = f"learned/{model.judge_fingerprint}/0002.json"
    assert {plan["cheap"] for plan in plans} == {"", newest}
    for before, now in zip(first.metrics, second.metrics, strict=True):
        assert before.fingerprint == now.fingerprint
        assert before.sample is not None
        assert now.sample is not None
        assert before.sample.mean == pytest.approx(now.sample.mean)
    relevance = second.metrics[0]
    assert relevance.sample is not None
    assert (relevance.sample.correlation, relevance.sample.weight) == (None, 0)
    parts = Path(nightly.store).rglob(f"run={second.run}/metric=context_relevance/*.parquet")
    cheap = [value for part in parts for value in pq.read_table(part)["cheap"].to_pylist()]
    assert cheap == pytest.approx([0.5] * 150)


def test_it_is_a_judge_like_any_other(nightly: Settings, judge_server: JudgeServer) -> None:
    """Alone, it costs nothing, is not sampled, and says that it is no LLM."""
    run_night(nightly, NIGHT)
    next_version(nightly)
    asked = judge_server.stats()["requests"]
    alone = {"name": "learned", "from": nightly.judge.model_dump(exclude={"learned_from"})}
    settings = make_settings({"judge": alone, "sample": {"rows": 10}})
    result = evaluate(
        make_rows(40, good=0.5), ["context_relevance"], settings=settings, store=nightly.store
    )
    assert judge_server.stats()["requests"] == asked
    (one,) = result.manifest.metrics
    assert (one.scored, one.sample) == (40, None)
    assert "good for trends" in result.manifest.judge.note


def test_the_command_prints_how_good_it_is(
    nightly: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of each prompt, or why there is no model of it; again there is nothing to do."""
    run_night(nightly, NIGHT)
    for path in Path(nightly.store).glob("learned/*/*.json"):
        path.unlink()
    values = nightly.model_dump(mode="json", include={"judge", "logs", "store", "metrics"})
    values["judge"].pop("learned_from", None)
    file = tmp_path / "ragmetrics.yaml"
    file.write_text(json.dumps(values))
    cli(settings=file)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Version 1: 240 verdicts of gpt-6-luna, from 1 night." in printed
    assert "prompt grade" in printed
    assert "verdicts 240" in printed
    assert "No model of support: 120 verdicts; 80 are missing of 200" in printed
    cli(settings=file)
    assert "Nothing to do" in capsys.readouterr().out
    with pytest.raises(Exit):
        cli(settings=file, store=str(tmp_path / "empty"))


def test_the_page_of_calibrations_shows_it(tmp_path: Path) -> None:
    """Its figures beside the lexical judge's, and what is not used; also without a labelled set.
    Names are escaped.
    """
    site = Files(str(tmp_path))
    model = learned(judge="<b>gpt</b>")
    path = write_calibrations(site, History(), "helpdesk", [model])
    assert path is not None
    page = (tmp_path / path).read_text()
    assert "&lt;b&gt;gpt&lt;/b&gt;" in page
    assert "<b>gpt</b>" not in page
    assert "version 3, 1,200 verdicts of 2 nights" in page
    assert "no: no better" in page
    assert "120 verdicts; 80 are missing of 200" in page
    assert page.count("learned-1-") >= 1


def test_a_judge_that_is_not_fitted_is_refused(tmp_path: Path) -> None:
    """By a sentence that names the command."""
    settings = make_settings({"judge": {"name": "learned", "from": "openai"}})
    with pytest.raises(JudgeRefused, match="ragmetrics learn"):
        evaluate(make_rows(3), ["context_relevance"], settings=settings, store=str(tmp_path))


def test_without_a_paid_judge_nothing_is_learned(tmp_path: Path) -> None:
    """The lexical judge costs nothing."""
    with pytest.raises(InputError, match="no judge over a network"):
        learn(make_settings({}), Files(str(tmp_path)))


def test_a_damaged_model_is_not_used(tmp_path: Path) -> None:
    """It is logged; the night uses the lexical judge."""
    files = Files(str(tmp_path))
    files.write("learned/abc/0001.json", b"{")
    assert LearnedJudges(files).newest("abc") is None
