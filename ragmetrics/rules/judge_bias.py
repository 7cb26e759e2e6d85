"""Judge bias: a warning where people would say significantly otherwise than the judge.

The judge's mean is then wrong by about as much on every night, so no drop is explained and no rule
is silenced. The message goes out when it becomes significant, and as a reminder like others.
"""

from __future__ import annotations

from ragmetrics.records import BIASED, Finding, Level, Manifest, PeopleMean


def bias_finding(manifest: Manifest) -> Finding | None:
    """Whether judge and people disagree on any metric, each tested at 5% by the number of metrics.

    `no_data` where there are labels, and of no metric enough; None without labels.
    """
    if manifest.labels is None:
        return None
    known = {one.metric: one.people for one in manifest.metrics if one.people}
    if not known:
        why = manifest.labels.problem or "too few labelled rows of the same judge"
        return _finding(manifest, "no_data", f"what people would say is not known: {why}")
    apart = {name: one for name, one in known.items() if _is_apart(one, len(known))}
    text = "; ".join(f"{name}: {_text(manifest, name, one)}" for name, one in apart.items())
    found = _finding(
        manifest,
        "breach" if apart else "ok",
        text or "no significant difference between the judge and people",
    )
    return found.model_copy(update={"affects": list(apart)})


def _is_apart(one: PeopleMean, tests: int) -> bool:
    """Whether the difference stays significant over all metrics together (Bonferroni)."""
    return one.differs and (one.p_value is None or one.p_value < BIASED / tests)


def _text(manifest: Manifest, name: str, one: PeopleMean) -> str:
    summary = manifest.summary(name)
    return one.text(summary.mean if summary and summary.mean is not None else one.mean + one.bias)


def _finding(manifest: Manifest, level: Level, text: str) -> Finding:
    return Finding(
        key=f"{manifest.dataset}/judge_bias",
        kind="judge_bias",
        level=level,
        severity="warning",
        rule="the judge says what people would say",
        message=text,
    )
