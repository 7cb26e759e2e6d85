"""A site that has every page: nights of every kind, builds, judges, a comparison, messages."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ragmetrics.dashboard import write_comparison
from ragmetrics.pipeline import Previews
from ragmetrics.records import JudgeInfo, Score, Source
from ragmetrics.storage import Files
from tests.fakes.calibrations import calibration, history, in_language, measured
from tests.fakes.comparisons import comparison
from tests.fakes.gated import gate, incomparable, promoted, undecided
from tests.fakes.learned import learned
from tests.fakes.nights import FIRST, night, ten_nights, worst_row, worst_rows
from tests.fakes.page_writing import (
    write_assets,
    write_build,
    write_builds,
    write_calibrations,
    write_changes,
    write_night,
    write_overview,
    write_questions,
)

FIRST_NIGHT, GOOD, BAD, EMPTY = (FIRST + timedelta(day) for day in (0, 8, 9, 10))
PAGES = (
    "index.html",
    "glossary.html",
    f"{FIRST_NIGHT}/index.html",
    f"{FIRST_NIGHT}/changes.html",
    f"{GOOD}/index.html",
    f"{BAD}/index.html",
    f"{BAD}/rows.html",
    f"{BAD}/changes.html",
    f"{BAD}/summary.html",
    f"{EMPTY}/index.html",
    "questions.html",
    "builds.html",
    "builds/idx-43.html",
    "builds/idx-45.html",
    "calibration.html",
    "compare/a--b.html",
    "messages.html",
    "new/index.html",
)
"""The last is the first page of a site that has no night yet."""


def make_whole_site(folder: Path) -> None:
    """Write all of them: ten nights, the tenth regressed, and an eleventh without data."""
    files = Files(str(folder))
    empty = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
    nights = [*ten_nights(), night(10, metrics=[], segments=[], findings=[], source=empty)]
    write_assets(files)
    for number, manifest in enumerate(nights):
        before = nights[number - 1] if number else None
        write_changes(files, manifest, before, comparison() if manifest.date == BAD else None)
        rows, since = worst_rows() if manifest.date == BAD else [], (before or manifest).date
        write_night(files, manifest, nights[:number], rows, changed_since=since)
    write_overview(files, nights[:10], _calibrations(files), _builds(files), [EMPTY])
    fine = [worst_row("q-1", "How is an invoice changed?", scores={"context_recall": Score(1.0)})]
    write_questions(files, nights[:10], {FIRST_NIGHT: fine, GOOD: fine, BAD: worst_rows()})
    write_comparison(files, "compare/a--b.html", comparison())
    Previews.of_samples(redact=False).write_page(folder / "messages.html")
    write_assets(files.at("new"))
    write_overview(files.at("new"), [])


def _builds(files: Files) -> str | None:
    """Builds of every verdict."""
    gates = [incomparable(), promoted(), gate()]
    for decided in gates:
        write_build(files, decided, comparison() if decided.metrics else None)
    return write_builds(files, gates, (undecided(),), "helpdesk")


def _calibrations(files: Files) -> str | None:
    """Two judges on a labelled set, of which one drifted in its third week; a learned judge."""
    metrics = [
        measured(segments=[in_language("de", 0.5), in_language("en", 0.8)]),
        measured("context_recall", unit="statement"),
    ]
    known = history(
        calibration(judge=JudgeInfo(name="openai:gpt-x", fingerprint="f2")),
        *(calibration(week, metrics=metrics) for week in range(3)),
        drifted=("context_relevance",),
    )
    return write_calibrations(files, known, "helpdesk", [learned()])
