"""Labelled sets: reads the files at a place, and makes the requests to a judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragmetrics.calibration.label_mapping import TARGETS, LabelQuestion, LabelTarget
from ragmetrics.calibration.labelled import LabelledRow, read_labelled
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import FORMATS, log_set
from ragmetrics.model import BadRow, BrokenFile, Rejected

_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_WILD = re.compile(r"[*?\[]")
_MOST_REASONS = 50


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A labelled row with the requests to a judge, by metric."""

    labelled: LabelledRow
    questions: dict[str, list[LabelQuestion]]
    number: int
    """Position in the set."""


@dataclass
class LabelledSet:
    """Everything that was read at one place."""

    name: str
    source: str
    rows: list[AskedRow] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    broken: list[BrokenFile] = field(default_factory=list)

    def reasons(self) -> dict[str, int]:
        """Why rows were rejected, the most frequent reasons first."""
        return dict(self.rejected.most_common(_MOST_REASONS))

    def reject(self, bad: Rejected) -> None:
        """Count a row or file that could not be read."""
        if bad.whole_file:
            self.broken.append(BrokenFile(file=bad.file, line=bad.line, reason=bad.reason))
        else:
            self.rejected[bad.reason] += 1


def read_sets(
    settings: Settings, places: Sequence[str], limit: int | None = None
) -> list[LabelledSet]:
    """Read the labelled sets, one per place, at most `limit` rows of each.

    Raises InputError for a place without usable rows, or for two sets with one name.
    """
    found = [_read_set(settings, place, limit) for place in places]
    names = Counter(one.name for one in found)
    for name, count in names.items():
        if count > 1:
            raise InputError(
                f"two labelled sets are named {name}: rename one, or run them separately"
            )
    return found


def _read_set(settings: Settings, place: str, limit: int | None) -> LabelledSet:
    found = LabelledSet(set_name(place), place)
    # Labelled rows have our own layout, whatever the layout of the logs is.
    plain = settings.model_copy(update={"preset": None, "columns": {}})
    for item in read_labelled(log_set(plain, place)):
        if isinstance(item, Rejected):
            found.reject(item)
            continue
        try:
            questions = {target.metric: target.questions(item) for target in TARGETS}
        except BadRow as error:
            found.rejected[str(error)] += 1
            continue
        found.rows.append(AskedRow(item, questions, len(found.rows)))
        if len(found.rows) == limit:
            break
    if not found.rows:
        reason = next(iter(found.rejected), "") or next((one.reason for one in found.broken), "")
        raise InputError(f"{place}: no labelled row{f'; {reason}' if reason else ''}")
    return found


def set_name(place: str) -> str:
    """The name of the set at a place: that of its file or folder, without the ending.

    A glob is named after the last folder before its first wildcard.
    """
    parts = place.rstrip("/").split("/")
    wild = next((number for number, part in enumerate(parts) if _WILD.search(part)), None)
    last = parts[-1] if wild is None else "".join(parts[:wild][-1:])
    return _ODD.sub("-", FORMATS.sub("", last)).strip("-.") or "labelled"


def targets(wanted: Sequence[str] | None) -> list[LabelTarget]:
    """The targets of the wanted metrics; None means all metrics."""
    return [one for one in TARGETS if wanted is None or one.metric in wanted]
