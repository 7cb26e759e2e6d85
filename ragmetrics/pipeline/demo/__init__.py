"""The demo: ten nights of real retrieval over a small help centre, with a damaged index build.

`scripts/make_demo.py` made the logs. On 2026-11-17 the index build lost three sections.
"""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

NIGHTS = tuple(date(2026, 11, 10) + timedelta(days=day) for day in range(10))

_SETTINGS = """\
# The help centre of Lumenroster, a product invented for this demo.
dataset: lumenroster-help
logs: logs/dt={date}/
golden: golden.jsonl
store: store
segments: [section, source, channel]
judge: lexical
shards: 2
alerts:
  rules:
    - {metric: context_relevance, max_drop: 0.05, versus: "trailing:7"}
    - {metric: context_recall, max_drop: 0.05, versus: "trailing:7"}
    - {metric: context_recall, min: 0.8}
"""


def unpack_demo(folder: Path) -> Path:
    """Copy the bundled logs, golden set and settings into a folder. Returns the settings file.

    A store of an earlier demo in the folder is removed, so that the demo starts with the first
    night.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "store", ignore_errors=True)
    with resources.as_file(resources.files(__package__)) as bundled:
        shutil.copytree(bundled / "logs", folder / "logs", dirs_exist_ok=True)
        shutil.copyfile(bundled / "golden.jsonl", folder / "golden.jsonl")
    settings = folder / "ragmetrics.yaml"
    settings.write_text(_SETTINGS, encoding="utf-8")
    return settings
