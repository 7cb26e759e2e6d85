"""One sentence on a calibrated judge: how well it agrees with people, and what fools it.

The words of quadratic kappa are those of Landis and Koch 1977, "The measurement of observer
agreement for categorical data", as adverbs: kappa up to 0 only by chance, 0.2 slightly, 0.4 fairly,
0.6 moderately, 0.8 substantially, above almost perfectly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.dashboard.formatting import listed
from ragmetrics.metrics import display_name
from ragmetrics.records import AttackName, AttackResult, Calibration, MetricCalibration
from ragmetrics.text import clean

_WORDS = (
    (0.0, "only by chance"),
    (0.2, "slightly"),
    (0.4, "fairly"),
    (0.6, "moderately"),
    (0.8, "substantially"),
)
_ATTACKS: Mapping[AttackName, str] = {
    "echo": "a repeated question",
    "padding": "keyword stuffing",
    "orders": "instructions in the text",
    "invisible": "invisible instructions",
}


def judge_sentence(calibration: Calibration) -> str:
    """`agrees moderately with people; it is fooled by keyword stuffing in 20 of 20.`

    The judge's name comes before it. Metrics are named where their words differ. No attack tried:
    none is mentioned.
    """
    agrees, fooled = _agreement(calibration.metrics), _fooled(calibration.attacks)
    return f"{'; '.join(filter(None, (agrees, fooled)))}."


def _agreement(metrics: Sequence[MetricCalibration]) -> str:
    """`agrees with people moderately on Context recall, slightly on Context precision`."""
    by_word: dict[str, list[str]] = {}
    for measured in metrics:
        kappa = measured.overall and measured.overall.figures.get("kappa_quadratic")
        if kappa and kappa.value is not None:
            name = clean(display_name(measured.metric), 80)
            by_word.setdefault(_word(kappa.value), []).append(name)
    if not by_word:
        return "gave no verdicts that could be compared with people"
    if len(by_word) == 1:
        return f"agrees {next(iter(by_word))} with people"
    levels = [f"{word} on {listed(names)}" for word, names in by_word.items()]
    return f"agrees with people {', '.join(levels)}"


def _word(kappa: float) -> str:
    return next((word for most, word in _WORDS if kappa <= most), "almost perfectly")


def _fooled(attacks: Sequence[AttackResult]) -> str:
    """The attack that raised most grades of irrelevant contexts; empty: none was tried."""
    tried = [attack for attack in attacks if attack.contexts and attack.lifted.value is not None]
    if not tried:
        return ""
    worst = max(tried, key=lambda attack: attack.lifted.value or 0.0)
    often = round((worst.lifted.value or 0.0) * worst.contexts)
    if not often:
        return "no attack fooled it"
    return f"it is fooled by {_ATTACKS[worst.attack]} in {often:,} of {worst.contexts:,}"
