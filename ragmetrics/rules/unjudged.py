"""Findings that could not be evaluated, and those with the same problem as another one."""

from __future__ import annotations

from ragmetrics.records import Finding, Manifest


def are_alike(one: Finding, other: Finding) -> bool:
    """Whether both findings have the same problem, now or as a resolution."""
    over = one.transition == other.transition == "resolved"
    return one.level == other.level and (over or one.level not in ("ok", "no_data"))


def lacks_data(finding: Finding) -> bool:
    """Whether a finding could not be evaluated tonight and was not closed."""
    return finding.level == "no_data" and finding.transition != "resolved"


def lacks_rows(finding: Finding, night: Manifest) -> bool:
    """Whether a rule has too few rows although most rows of its metric were scored: then the log
    lacks rows, not the metric.
    """
    summary = night.summary(finding.metric or "")
    if not (finding.is_rule and finding.for_nights and lacks_data(finding)) or summary is None:
        return False
    return 2 * summary.scored >= sum(summary.status.values())


def is_for_lack_of_logs(cause: Finding, finding: Finding, night: Manifest) -> bool:
    """Whether missing, old or broken logs explain that another finding has no data or few rows."""
    if lacks_data(cause):
        return lacks_data(finding)
    return cause.level == "breach" and lacks_rows(finding, night)
