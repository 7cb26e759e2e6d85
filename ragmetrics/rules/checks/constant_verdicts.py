"""Constant verdicts: a judge gives nearly the same verdict to everything."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import Finding, VerdictCount
from ragmetrics.rules.checks.canaries import canaries
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check

_FEWEST = 50
"""Verdicts on a prompt from which a share is told: below, 90% may be chance."""
_DO = "look at some of them, and compare the judge with labels (`ragmetrics calibrate`)"


@check(
    "constant_verdicts",
    "a judge with one verdict for all",
    order=36,
    limit=Limit(0.9, 0.5, 1),
    sample=Sample(
        "One verdict for all",
        "at most 90% of a judge's verdicts are the same",
        f"openai smol-135m: 108 of 112 verdicts on grade are 1 (96%); {_DO}",
    ),
)
def constant_verdicts(tonight: Tonight) -> Iterator[Finding]:
    """More than 90% of at least fifty verdicts of a judge on one prompt are the same, and that says
    more of the judge than of the log.

    A share alone says little: at a recall of 0.97, more than 90% of the statements are supported,
    and people labelled 93% to 97% of the sentences of three sets as not needed, and all contexts of
    another one as relevant. So a verdict at either end of its scale (0 or 1; grade 0 or 2) counts
    only where the judge failed the canaries. A verdict between the ends (grade 1: some use) counts
    by itself: no log is known whose contexts all help in part (in seven sets the lexical judge
    gives it to 65% at most), while models that cannot judge often choose the middle.

    One finding for all judges; no finding in nights without counts, as those of earlier versions or
    of judges that compute their verdicts on this machine. An alert that is open then resolves where
    its judge was replaced.
    """
    verdicts = tonight.manifest.verdicts
    if not (verdicts or tonight.is_over):
        return
    constant = [
        f"{judge}: {_text(prompt, count)}"
        for judge, of_judge in verdicts.items()
        for prompt, count in of_judge.items()
        if _is_constant(tonight, judge, count)
    ]
    rule = f"at most {tonight.limit:.0%} of a judge's verdicts are the same"
    text = "; ".join([*constant, _DO]) if constant else "no judge has one verdict for all"
    yield tonight.finding("breach" if constant else "ok", rule, text)


def _is_constant(tonight: Tonight, judge: str, count: VerdictCount) -> bool:
    level, share = count.usual
    if count.verdicts < _FEWEST or share <= tonight.limit:
        return False
    report, least = tonight.manifest.canaries.get(judge), canaries.limit_of(tonight.settings)
    failed = report is not None and least is not None and report.fails(least)
    return failed or 0 < level < (count.top or 0)


def _text(prompt: str, count: VerdictCount) -> str:
    level, share = count.usual
    return (
        f"{count.levels[level]:,} of {count.verdicts:,} verdicts on {prompt} are {level} "
        f"({share:.0%})"
    )
