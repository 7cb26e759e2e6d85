"""Probabilities in place of verdicts: in the client, through a night, and in fingerprints."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragmetrics.config.judge import make_judge_section
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.judges.client import JudgeClient
from ragmetrics.judges.embeddings import EmbeddingClient
from ragmetrics.judges.lexical_judge import HashedEmbedder
from ragmetrics.judges.reply_reading import find_fit
from ragmetrics.metrics import GRADE, SUPPORT
from ragmetrics.pipeline import run_night
from ragmetrics.records import Ask, HasStrengths, Recalibration, StrengthMap
from ragmetrics.storage import Files, save_record
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

CLAIMS = {"question": "Why?", "contexts": ["It is blue."], "sentences": ["It is blue.", "No."]}
HALVED = StrengthMap(
    metric="context_recall", prompts=[SUPPORT.digest], c=0.0, a=0.0, b=0.0, labels=60, questions=60
)


def fitted(*maps: StrengthMap, judge: str = "") -> Recalibration:
    """A fit to the lexical judge."""
    known = LexicalJudge(Corpus())
    return Recalibration(
        judge=known.name,
        judge_fingerprint=judge or known.fingerprint,
        source="labels.jsonl",
        maps=list(maps),
    )


def test_a_verdict_becomes_its_expectation() -> None:
    """By a fit that gives every strength one half; a prompt without one keeps its verdict."""
    corpus = Corpus()
    client = JudgeClient(
        LexicalJudge(corpus), EmbeddingClient(HashedEmbedder(corpus)), fit=fitted(HALVED)
    )
    verdict = asyncio.run(client.answer("q", Ask(SUPPORT, CLAIMS)))
    assert isinstance(verdict, HasStrengths)
    assert verdict.strengths == (0.5, 0.5)
    graded = asyncio.run(client.answer("q", Ask(GRADE, {"question": "Why?", "context": "x"})))
    assert not isinstance(graded, HasStrengths)


@pytest.mark.parametrize("strength", [0.0, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("levels", [(0.5, 0.3, 0.2), (0.6, 0.0, 0.4), (0.0, 0.5, 0.5), None])
def test_a_distribution_has_the_mean_of_the_fit(
    strength: float, levels: tuple[float, float, float] | None
) -> None:
    """Over the levels of a grade too, in the proportions of its labels."""
    known = HALVED.model_copy(update={"c": 0.3, "a": 1.2, "b": 0.8, "levels": levels})
    plain = known.model_copy(update={"levels": None})
    ((_, p),), (found,) = plain.distributions([strength]), known.distributions([strength])
    assert sum(found) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in found)
    assert sum(n * share for n, share in enumerate(found)) / (len(found) - 1) == pytest.approx(p)


def test_labels_of_two_classes_give_no_grade_of_one() -> None:
    """Where no label is half, no context is."""
    known = HALVED.model_copy(update={"levels": (0.6, 0.0, 0.4)})
    assert known.distributions([0.3]) == [(0.5, 0.0, 0.5)]


def test_the_fit_of_another_judge_is_refused(tmp_path: Path) -> None:
    """Its strengths mean something else."""
    files, fit = Files(str(tmp_path)), fitted(HALVED, judge="another")
    save_record(files, fit.path, fit)
    chosen = make_judge_section({"name": "lexical", "calibration": fit.id})
    with pytest.raises(JudgeRefused, match="was fitted to lexical"):
        find_fit(chosen, LexicalJudge(Corpus()), files)


def test_without_a_calibration_the_fingerprint_is_that_of_the_judge() -> None:
    """Another fit is another judge."""
    prints = [
        make_judge_section({"name": "lexical", "calibration": fit}).scored_fingerprint("f1")
        for fit in (None, "fit-0123456789ab", "fit-ba9876543210")
    ]
    assert prints[0] == "f1"
    assert len(set(prints)) == 3


def test_a_night_is_scored_by_the_probabilities(tmp_path: Path) -> None:
    """Its values are expectations, with their spread, under a fingerprint of their own."""
    write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", make_rows(12))
    values = {"logs": "logs/{date}.jsonl", "metrics": ["context_recall"]}
    plain = run_night(night_settings(tmp_path, **values), NIGHT).manifest
    fit = fitted(HALVED)
    settings = night_settings(tmp_path, **values, judge={"name": "lexical", "calibration": fit.id})
    save_record(Files(settings.store, settings.storage_options), fit.path, fit)
    manifest = run_night(settings, NIGHT).manifest
    assert manifest.judge.fingerprint != plain.judge.fingerprint
    summary = manifest.summary("context_recall")
    assert summary is not None
    assert summary.mean == pytest.approx(0.5)
    assert summary.spread is not None and 0 < summary.spread <= 0.5
