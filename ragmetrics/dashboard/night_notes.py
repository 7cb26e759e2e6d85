"""Notes on a night beside its incidents: what was not read, not scored or left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragmetrics.dashboard.costs import judged_rows, sample_text, was_over
from ragmetrics.messages import answered_notes
from ragmetrics.records import Manifest
from ragmetrics.rules import Incident, blind_texts
from ragmetrics.text import plural

_MOST_NOTES = 8
_ALIKE = 200
"""Characters that identify a problem."""
_LEAST = 20
"""Characters of the shortest reason that is recognised."""


def night_notes(
    manifest: Manifest, no_data: bool, shown: Sequence[Incident] = ()
) -> tuple[str, ...]:
    """The notes, without what the incidents say already; `no_data`: nothing was scored."""
    told = " ".join(incident.message for incident in shown)
    problem = manifest.source.problem or ("" if shown else "No row could be scored.")
    lacking = [problem] if no_data and problem and not _is_in(told, problem) else []
    resolved = sum(finding.transition == "resolved" for finding in manifest.findings)
    return (
        *lacking,
        *_of_rows(manifest),
        *answered_notes(manifest),
        *(f"{text}." for text in blind_texts(manifest.findings)),
        *(f"Damaged file: {damaged}." for damaged in manifest.damaged[:_MOST_NOTES]),
        *(
            f"Not scored: {problem}"
            for problem in manifest.problems[:_MOST_NOTES]
            if not _is_in(told, problem)
        ),
        *([f"{plural(resolved, 'alert')} resolved this night."] if resolved else ()),
    )


def _of_rows(manifest: Manifest) -> Iterator[str]:
    """Rows that have no time, were not read, or were left out by a budget or a sample."""
    source = manifest.source
    if source.undated:
        yield f"{source.rows:,} rows read, {source.undated}."
    if source.broken:
        yield f"{plural(len(source.broken), 'file')} could not be read to the end."
    if manifest.budget and was_over(manifest.budget):
        yield judged_rows(manifest.budget, source.rows, manifest.sample)
    if manifest.sample:
        yield f"A sample: {sample_text(manifest.sample, source.rows)}."


def _is_in(said: str, problem: str) -> bool:
    """Whether a problem is said already: its beginning, or its reason after the first colon."""
    line = " ".join(problem.split())
    reason = line.partition(": ")[2]
    return line[:_ALIKE] in said or (len(reason) > _LEAST and reason[:_ALIKE] in said)
