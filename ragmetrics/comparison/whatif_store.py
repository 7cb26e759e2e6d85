"""What-ifs in a store: one per night, `whatif/dt=DATE.json`."""

from __future__ import annotations

from datetime import date

from ragmetrics.records import WhatIf
from ragmetrics.storage import Files, find_record, save_record

FOLDER = "whatif"


def save_whatif(files: Files, found: WhatIf) -> None:
    """Write the what-if of a night in place of an earlier one."""
    save_record(files, _path(found.night), found)


def load_whatif(files: Files, night: date) -> WhatIf | None:
    """The what-if of a night, if there is one that can be read."""
    return find_record(files, _path(night), WhatIf, "not a what-if")


def _path(night: date) -> str:
    return f"{FOLDER}/dt={night.isoformat()}.json"
