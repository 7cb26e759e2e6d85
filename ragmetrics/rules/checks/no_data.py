"""Missing logs: a night without rows to score, or with files that are cut short."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import Finding
from ragmetrics.rules.night_check import Sample, Tonight, check, is_for_lack_of_logs

RULE = "every log file is present and complete"
_LOGS = "s3://example/logs/dt=2026-11-19/"
_PROBLEM = f"no log file below {_LOGS}"


def _title(finding: Finding, _: int) -> str:
    return "broken logs" if finding.level == "breach" else "no data"


@check(
    "no_data",
    _title,
    order=10,
    cause_order=20,
    severity="critical",
    needs=(),
    lasting=False,
    halts=True,
    lacks="scores",
    explains=is_for_lack_of_logs,
    sample=Sample(
        "No data",
        RULE,
        f"nothing to score: {_PROBLEM}",
        level="no_data",
        night={"source": {"logs": _LOGS, "files": 0, "rows": 0, "problem": _PROBLEM}},
    ),
)
def no_data(tonight: Tonight) -> Iterator[Finding]:
    """Whether there is something to score, and every file was read to its end."""
    source = tonight.manifest.source
    if source.problem:
        yield tonight.finding("no_data", RULE, f"nothing to score: {source.problem}")
    elif source.broken:
        first = source.broken[0]
        count = f"{len(source.broken)} log file(s) could not be read to the end"
        yield tonight.finding("breach", RULE, f"{count}: {first.file}: {first.reason}")
    else:
        without = f", {source.undated}" if source.undated else ""
        yield tonight.finding("ok", RULE, f"{source.rows:,} rows read{without}")
