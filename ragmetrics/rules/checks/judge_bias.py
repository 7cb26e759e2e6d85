"""Judge bias: a warning where people would say significantly otherwise than the judge.

The judge's mean is then wrong by about as much on every night, so no drop is explained and no rule
is silenced. The message goes out when it becomes significant, and as a reminder like others.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import BIASED, Finding, Manifest, PeopleMean
from ragmetrics.rules.night_check import Sample, Tonight, check

_RULE = "the judge agrees with people"


@check(
    "judge_bias",
    stage="rules",
    order=80,
    needs=("rows", "labels"),
    sample=Sample(
        "Judge bias",
        _RULE,
        "context_relevance: people's mean is 0.710 [0.640, 0.780] (60 labels); the judge's is "
        "0.800, significantly higher",
    ),
)
def judge_bias(tonight: Tonight) -> Iterator[Finding]:
    """The warning that people would say significantly otherwise than the judge. It silences no
    rule: alerts stay on the judge's mean.

    Whether judge and people disagree on any metric, each tested at 5% by the number of metrics.

    `no_data` where there are labels, and of no metric enough; no finding without labels.
    """
    manifest = tonight.manifest
    people = {one.metric: one.people for one in manifest.metrics if one.people}
    known = {name: one for name, one in people.items() if one.answered is None}
    if not known:
        if people:  # users who chose to answer say nothing of the judge's mean of all rows
            return
        problem = manifest.labels.problem if manifest.labels else ""
        why = problem or "too few labelled rows of the same judge"
        yield tonight.finding("no_data", _RULE, f"people's mean is not known: {why}")
        return
    apart = {name: one for name, one in known.items() if _is_apart(one, len(known))}
    text = "; ".join(f"{name}: {_text(manifest, name, one)}" for name, one in apart.items())
    text = text or "no significant difference between the judge and people"
    yield tonight.finding("breach" if apart else "ok", _RULE, text, affects=list(apart))


def _is_apart(one: PeopleMean, tests: int) -> bool:
    """Whether the difference stays significant over all metrics together (Bonferroni)."""
    return one.differs and (one.p_value is None or one.p_value < BIASED / tests)


def _text(manifest: Manifest, name: str, one: PeopleMean) -> str:
    summary = manifest.summary(name)
    return one.text(summary.mean if summary and summary.mean is not None else one.mean + one.bias)
