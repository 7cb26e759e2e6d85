"""How endpoints were asked otherwise than planned, where that can change a reply:
`judges/FINGERPRINT.json`.

The fingerprint of a judge covers how it is planned to be asked, and names its cached replies. What
an endpoint refuses is known only after the first request. So that no scores are compared which were
asked in two ways, they are stored with a fingerprint that covers both.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.records import AskedWay, fingerprint
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import find_record, save_record

_PROBLEM = "not a way of asking"


@dataclass(frozen=True)
class AskedWays:
    """The ways of asking of a store's judges, by their fingerprints."""

    store: Files

    def compared(self, judge_fingerprint: str) -> str:
        """The fingerprint that scores of a judge have: its own, if it is asked as planned."""
        way = self._find(judge_fingerprint)
        return fingerprint(judge_fingerprint, "asked with", way) if way else judge_fingerprint

    def note(self, judge_fingerprint: str, way: str | None) -> None:
        """Store how a judge was asked; None: no request was sent. Raises StoreError."""
        if way is not None and way != self._find(judge_fingerprint):
            save_record(self.store, _path(judge_fingerprint), AskedWay(way=way))

    def copy_to(self, target: Files) -> None:
        """Copy all ways to another store, as for a run in a temporary one."""
        for info in self.store.glob(_path("*")):
            name = info.path.rpartition("/")[2].removesuffix(".json")
            AskedWays(target).note(name, self._find(name))

    def _find(self, judge_fingerprint: str) -> str:
        record = find_record(self.store, _path(judge_fingerprint), AskedWay, _PROBLEM)
        return record.way if record else ""


def _path(judge_fingerprint: str) -> str:
    return f"judges/{judge_fingerprint}.json"
