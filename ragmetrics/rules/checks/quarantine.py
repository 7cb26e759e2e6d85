"""Quarantine: too many rows of the logs could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import Finding, Manifest
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check, lacks_rows, suppresses_rules

_LOGS = "s3://example/logs/dt=2026-11-19/"


def _explains(cause: Finding, finding: Finding, night: Manifest) -> bool:
    """That nothing is left to score, or that a rule has too few rows."""
    nothing_left = not night.source.rows and suppresses_rules(finding)
    left = nothing_left and finding.transition != "resolved"
    return cause.level == "breach" and (left or lacks_rows(finding, night))


def _title(finding: Finding, _: int) -> str:
    return f"{'more ' if finding.transition == 'escalated' else ''}quarantined rows"


@check(
    "quarantine",
    _title,
    order=20,
    cause_order=10,
    severity="critical",
    needs=(),
    limit=Limit(),
    lasting=False,
    lacks="rows",
    explains=_explains,
    sample=Sample(
        "Quarantined rows",
        "at most 5% of the rows quarantined",
        "540 of 1,240 rows quarantined (43.5%)",
        night={"source": {"logs": _LOGS, "files": 4, "rows": 700, "quarantined": 540}},
    ),
)
def quarantine(tonight: Tonight) -> Iterator[Finding]:
    """The share of the rows that are quarantined, where anything was read."""
    source = tonight.manifest.source
    total, share = source.rows + source.quarantined, source.quarantined_share
    if not total:  # without rows, a firing alert must not look resolved
        return
    text = f"{source.quarantined:,} of {total:,} rows quarantined ({share:.1%})"
    if source.reasons:
        reason, count = next(iter(source.reasons.items()))
        text += f"; most often: {reason[:200]} ({count:,})"
    rule = f"at most {tonight.limit:.0%} of the rows quarantined"
    yield tonight.finding("breach" if share > tonight.limit else "ok", rule, text)
