"""A site that has every page: the demo's, with index builds at the gate, a judge held against
labels, two nights compared, messages, and a night whose log is missing.

All of it is made from the demo's own logs, by the commands that users run. The golden questions
name the passages that answer them: by these its rows are labelled.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

from ragmetrics.config import load_settings
from ragmetrics.pipeline import NIGHTS, CoverageShort, run_night

BEFORE, GOOD, BAD = "2026-11-15", "2026-11-16", "2026-11-17"
MISSING = date(2026, 11, 20)
PAGES: Mapping[str, str] = {
    "overview": "index.html",
    "night": f"{BAD}/index.html",
    "night-good": f"{GOOD}/index.html",
    "night-first": f"{NIGHTS[0]}/index.html",
    "rows": f"{BAD}/rows.html",
    "changes": f"{BAD}/changes.html",
    "summary": f"{BAD}/summary.html",
    "questions": "questions.html",
    "comparisons": "comparisons.html",
    "builds": "builds.html",
    "build": f"builds/build-{BAD}.html",
    "calibration": "calibration.html",
    "compare": f"compare/{GOOD}--{BAD}.html",
    "glossary": "glossary.html",
    "messages": "messages.html",
    "labelling": "labelling.html",
}
AFTERWARDS: Mapping[str, str] = {
    "overview-missing": "index.html",
    "night-missing": f"{MISSING}/index.html",
}
"""What a reader sees after the night without a log."""

VERDICTS = (0, 1, 2)
"""Exit codes of a gate that promotes a build, holds it, or is not sure."""

_GATE = """
gate:
  logs: builds/{build}/
  rules:
    - {metric: context_recall, max_drop: 0.05}
    - {metric: context_relevance, max_drop: 0.05}
"""


def make_site(demo: Path, folder: Path) -> Path:
    """Copy the demo into a new folder, and add what it has no example of; return the site."""
    shutil.copytree(demo, folder)
    with (folder / "ragmetrics.yaml").open("a", encoding="utf-8") as settings:
        settings.write(_GATE)
    _run(folder, "dashboard", "store")
    _label(folder)
    _run(folder, "calibrate", "labelled.jsonl", "--settings", "ragmetrics.yaml")
    for day in (BEFORE, GOOD, BAD):
        shutil.copytree(folder / f"logs/dt={day}", folder / f"builds/build-{day}")
    for day, serving in ((GOOD, BEFORE), (BAD, GOOD)):
        sides = ("--build", f"build-{day}", "--against", f"build-{serving}")
        _run(folder, "gate", *sides, fine=VERDICTS)
    _run(folder, "compare", GOOD, BAD, "--page")
    _run(folder, "alerts", "preview", "--sample", "--html", "store/dashboard/messages.html")
    _run(folder, "golden", "suggest", "--out", "store/dashboard/labelling.html")
    return folder / "store" / "dashboard"


def question_page(site: Path) -> Mapping[str, str]:
    """The question that fell furthest on the bad night: its address by the name of its picture."""
    night = (site / PAGES["night"]).read_text("utf-8")
    link = re.search(r'href="(rows\.html#row=[^"]+)"', night)
    if link is None:
        raise SystemExit(f"{PAGES['night']} has no link to a question")
    return {"question": f"{BAD}/{link[1]}"}


def lose_a_log(folder: Path) -> None:
    """Run a night that finds no log: it is published as one without data, and fails."""
    with suppress(CoverageShort):
        run_night(load_settings(folder / "ragmetrics.yaml"), MISSING)
    for name in AFTERWARDS.values():  # no picture names a folder of this machine
        page = folder / "store/dashboard" / name
        page.write_text(page.read_text("utf-8").replace(str(folder), "/data/demo"), "utf-8")


def _label(folder: Path) -> None:
    """Write a night's golden rows with labels: relevant is a context that is a named passage."""
    golden = [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]
    answers = {one["user_input"]: one for one in golden}
    labelled = []
    with gzip.open(folder / f"logs/dt={GOOD}/retrieval.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if answer := answers.get(row["user_input"]):
                named = answer["reference_context_ids"]
                relevance = [int(one in named) for one in row["retrieved_context_ids"]]
                labels = {"labels": {"chunk_relevance": relevance}}
                labelled.append(json.dumps(row | {"reference": answer["reference"]} | labels))
    (folder / "labelled.jsonl").write_text("\n".join(labelled), encoding="utf-8")


def _run(folder: Path, *words: str, fine: Collection[int] = (0,)) -> None:
    """Run a command, which is to end with one of these exit codes."""
    done = subprocess.run(
        [sys.executable, "-m", "ragmetrics", *words], cwd=folder, capture_output=True, text=True
    )
    if done.returncode not in fine:
        told = done.stderr.strip() or done.stdout.strip()
        raise SystemExit(f"ragmetrics {' '.join(words)}: {told}")
