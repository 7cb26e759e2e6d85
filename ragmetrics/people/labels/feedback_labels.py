"""What users said as labels: `feedback_labels` names a metric, and the one whose scores label it.

Rows are labelled by those who chose to answer, and not by a draw: what people would say is then
what users who answer would say, and its text says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from ragmetrics.people.labels.label_file import MOST_LABELS, LabelSet, RowLabel
from ragmetrics.people.labels.labelled_scores import UNDATED_DAYS
from ragmetrics.records import Manifest, PeopleMean
from ragmetrics.storage import Files, RunRef, StoredPart, passing_over

USERS = "users"
"""The person of such a label."""


def add_feedback(
    read: LabelSet, files: Files, wanted: Mapping[str, str], nights: Sequence[Manifest]
) -> None:
    """Add what users said on the last of these nights, tonight's first, to the labels.

    Raises StoreError where the store is down.
    """
    for night in nights:
        if night.date < nights[0].date - timedelta(days=UNDATED_DAYS):
            continue
        for metric, source in wanted.items():
            if night.summary(source) is not None:
                read.labels += _said(files, night, metric, source)
    if len(read.labels) > MOST_LABELS:
        read.problem = f"only the first {MOST_LABELS:,} labels were used"
        del read.labels[MOST_LABELS:]


def _said(files: Files, night: Manifest, metric: str, source: str) -> list[RowLabel]:
    ref, found = RunRef.of(night), []
    for shard in range(ref.shards):
        with passing_over():
            part = StoredPart(files, ref.scores(source, shard))
            for record in part.columns(["id", "question", "value"]).to_pylist():
                if record["value"] is not None:
                    names = str(record["question"]), str(record["id"])
                    found.append(RowLabel(*names, night.date, metric, record["value"], USERS))
    return found


def with_answered(people: PeopleMean | None, tonight: Manifest, source: str) -> PeopleMean | None:
    """The mean with the share of tonight's rows whose users answered."""
    said = tonight.summary(source)
    if people is None or said is None or people.method != "labels":
        return people
    share = said.scored / max(sum(said.status.values()), 1)
    return people.model_copy(update={"answered": share})
