"""The lost passages of a published night: which nights it is compared with, and when the corpus and
the retriever are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ragmetrics.config import Settings
from ragmetrics.passages import EARLIER_NIGHTS, VERDICTS, Run, try_lost_passages
from ragmetrics.records import Finding, LostPassages, Manifest
from ragmetrics.storage import Files, RunRef


def lost_passages_of(
    settings: Settings,
    files: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    findings: Sequence[Finding],
    *,
    ask: bool = True,
) -> LostPassages | None:
    """What happened to the passages that questions lost since the usual nights before.

    The corpus and the retriever are asked where a metric alert fires, or passages are lost
    significantly; never without `ask`, as for a night of the past: they know the index of today.
    """
    usual = usual_nights(earlier)
    if not usual:  # nothing was retrieved before that could be lost
        return None
    firing = any(finding.is_rule and finding.state == "firing" for finding in findings)
    return try_lost_passages(
        settings,
        run_of_night(files, manifest),
        [run_of_night(files, one) for one in usual],
        [one.lost_passages.counts for one in usual if one.lost_passages],
        during=[run_of_night(files, night) for night in losing_nights(earlier)],
        build=main_build(manifest),
        ask=lambda found: ask and (firing or found.significant),
    )


def usual_nights(earlier: Sequence[Manifest]) -> list[Manifest]:
    """The last nights that did not lose passages significantly."""
    return [night for night in earlier if not _loses(night)][-EARLIER_NIGHTS:]


def losing_nights(earlier: Sequence[Manifest]) -> list[Manifest]:
    """The nights of a loss that is on: those that lost passages, up to last night. At most seven;
    a question that was not asked in them retires from the loss. A night without data ends no loss.
    """
    known = (night for night in reversed(earlier) if night.lost_passages)
    on = list(takewhile(_loses, known))
    return on[:EARLIER_NIGHTS][::-1]


def _loses(night: Manifest) -> bool:
    lost = night.lost_passages
    return lost is not None and (lost.significant or lost.significant_by_logs)


def run_of_night(files: Files, manifest: Manifest) -> Run:
    """A night's run, as the diagnosis reads it."""
    verdicts = manifest.summary(VERDICTS)
    return Run(files, RunRef.of(manifest), judged=bool(verdicts and verdicts.scored))


def main_build(manifest: Manifest) -> str | None:
    """The index build of most rows; None where no row names one."""
    builds = manifest.source.index_builds
    return max(builds, key=lambda name: builds[name]) if builds else None
