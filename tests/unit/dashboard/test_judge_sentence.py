"""The sentence on a judge: agreement in words, by metric where they differ, and what fools it."""

from __future__ import annotations

import pytest

from ragmetrics.dashboard.judge_sentence import judge_sentence
from ragmetrics.records import AttackName, AttackResult, Figure
from tests.fakes.calibrations import calibration, measured


def attack(name: AttackName, lifted: float, contexts: int = 20) -> AttackResult:
    """An attack that raised this share of the grades."""
    return AttackResult(attack=name, contexts=contexts, lifted=Figure(value=lifted))


@pytest.mark.parametrize(
    ("kappa", "word"),
    [
        (-0.1, "only by chance"),
        (0.2, "slightly"),
        (0.4, "fairly"),
        (0.6, "moderately"),
        (0.8, "substantially"),
        (0.81, "almost perfectly"),
    ],
)
def test_kappa_has_the_words_of_landis_and_koch(kappa: float, word: str) -> None:
    """Each upper end belongs to the lower word."""
    found = judge_sentence(calibration(metrics=[measured(kappa=kappa)]))
    assert found == f"agrees {word} with people."


def test_metrics_are_named_where_they_differ() -> None:
    """By their display names, together where they have the same word."""
    metrics = [
        measured(),
        measured("context_recall", kappa=0.1),
        measured("context_precision", kappa=0.5),
    ]
    assert judge_sentence(calibration(metrics=metrics)) == (
        "agrees with people moderately on Context relevance (graded) and Context precision, "
        "slightly on Context recall."
    )


def test_the_worst_attack_is_named_with_its_count() -> None:
    """Of those that had contexts to attack."""
    attacks = [attack("echo", 0.5), attack("padding", 1.0), attack("orders", 1.0, contexts=0)]
    assert judge_sentence(calibration(attacks=attacks)) == (
        "agrees moderately with people; it is fooled by keyword stuffing in 20 of 20."
    )


def test_a_judge_that_no_attack_fooled_is_praised() -> None:
    """Attacks that lifted nothing are news too."""
    found = judge_sentence(calibration(attacks=[attack("padding", 0.0)]))
    assert found == "agrees moderately with people; no attack fooled it."


def test_without_a_kappa_no_agreement_is_claimed() -> None:
    """A judge that gave no verdict."""
    silent = measured(overall=None, status={"judge_failed": 12})
    assert judge_sentence(calibration(metrics=[silent])) == (
        "gave no verdicts that could be compared with people."
    )
