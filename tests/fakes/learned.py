"""A learned judge that was fitted to made-up items."""

from __future__ import annotations

from datetime import date

import numpy as np

from ragmetrics.judges import LearnedJudge
from ragmetrics.people.calibration.learned_fit import Examples, fit_prompt
from ragmetrics.records import LearnedModel


def examples(count: int = 600, *, questions: int = 60) -> Examples:
    """Items whose level follows from the second feature; the first says little."""
    random = np.random.default_rng(1)
    features = random.standard_normal((count, 4))
    strength = 0.3 * features[:, 0] + 2 * features[:, 1] + random.standard_normal(count)
    levels = (strength > 0).astype(int) + (strength > 1).astype(int)
    names = np.array([f"Question {number % questions}?" for number in range(count)])
    rows = np.array([str(number // 5) for number in range(count)])
    return Examples(features, levels, names, rows)


def learned(**more: object) -> LearnedModel:
    """A model of two prompts, of which one is used, and a prompt with too few verdicts."""
    found = fit_prompt("grade", "d1", 2, ["a", "b", "c", "d"], examples())
    worse = found.model_copy(update={"name": "needed", "digest": "d2", "used": False})
    model = LearnedModel(
        version=3,
        judge="gpt-6-luna",
        judge_fingerprint="abc123",
        code_version=LearnedJudge.code_version,
        nights=[date(2026, 11, 18), date(2026, 11, 19)],
        prompts=[found, worse],
        refused={"support": "120 verdicts; 80 are missing of 200"},
    )
    return model.model_copy(update=more)
