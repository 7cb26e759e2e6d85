"""Canaries: a judge of the night cannot tell an obvious yes from an obvious no."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import CANARIES, LEAST_RIGHT, Finding, Level
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check

_FAILS = "cannot tell an obvious yes from an obvious no"
_DO = (
    "its scores are meaningless: choose another or larger model, then run `ragmetrics doctor --ask`"
)


@check(
    "canaries",
    "a judge that cannot tell yes from no",
    order=35,
    limit=Limit(LEAST_RIGHT, 0, CANARIES),
    sample=Sample(
        "A judge at chance",
        "at least 8 of 10 obvious questions right",
        f"openai smol-135m {_FAILS}: 5 of 10 obvious questions right (yes to 10); {_DO}",
    ),
)
def canaries(tonight: Tonight) -> Iterator[Finding]:
    """Ten contexts, five that answer their question and five about something else, which each judge
    that can be asked at once grades in every night. One that gets fewer than eight right is at
    chance.

    One finding for all judges of the night. Right are at least the limit (8); 0: they are not
    asked. `no_data` where too few were replied to. None where no judge was asked, as in nights of
    earlier versions, or on which every row failed; but an alert that is open resolves where its
    judge was replaced.
    """
    reports = tonight.manifest.canaries
    if not (reports or tonight.is_over):
        return
    least = tonight.limit
    failed = [f"{name} {_FAILS}: {one.text}" for name, one in reports.items() if one.fails(least)]
    unknown = [f"{name}: {one.text}" for name, one in reports.items() if one.right < least]
    passed = [f"{name}: {one.text}" for name, one in reports.items()] or ["no judge is asked"]
    level: Level = "breach" if failed else "no_data" if unknown else "ok"
    text = "; ".join([*failed, _DO] if failed else unknown or passed)
    yield tonight.finding(level, f"at least {least:g} of {CANARIES} obvious questions right", text)
