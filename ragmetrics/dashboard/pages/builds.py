"""The gates of index builds and their verdicts; each build has a page of its own.

builds.html, builds/BUILD.html
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice

from ragmetrics.comparison import (
    BUILD_PAGES,
    build_path,
    gate_path,
    load_compared,
    load_failed_gates,
    load_gates,
    save_failed_gate,
)
from ragmetrics.dashboard.compare_view import VERDICTS, gate_view
from ragmetrics.dashboard.formatting import duration
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.templating import render_page
from ragmetrics.records import (
    Comparison,
    FailedGate,
    Gate,
    MetricVerdict,
    build_words,
    movement_text,
)
from ragmetrics.storage import Files

_MOST_LINES = 100
_MOST_UNDECIDED = 20


def render(shown: Shown) -> bytes:
    """Write the pages of the builds that are new; return the page of all builds."""
    stored = (redacted(gate, shown.hide) for gate in load_gates(shown.files))
    gates = list(islice(stored, _MOST_LINES + 1))  # one more, to know that there are others
    infos = {info.path: info for info in shown.now.gates}
    pages = {
        build_path(gate.build): (info, partial(_write_build, shown, gate))
        for gate in gates
        if (info := infos.get(gate_path(gate.build)))  # a newer gate waits for the next round
    }
    shown.cache.each_unless_made(BUILD_PAGES, pages)
    failed = (redacted(gate, shown.hide) for gate in load_failed_gates(shown.files))
    return builds_page(gates, failed, shown.dataset)


def builds_page(
    gates: Iterable[Gate], undecided: Iterable[FailedGate] = (), dataset: str = ""
) -> bytes:
    """The page of all gates, newest first as given."""
    lines, lost = list(islice(gates, _MOST_LINES + 1)), list(islice(undecided, _MOST_UNDECIDED))
    return render_page(
        "builds.html",
        0,
        dataset=dataset,
        gates=lines[:_MOST_LINES],
        more=len(lines) > _MOST_LINES,
        undecided=lost,
        held=sum(gate.verdict == "hold" for gate in lines[:_MOST_LINES]),
        states=VERDICTS,
        build_path=build_path,
        lowest=_lowest,
    )


def build_page(gate: Gate, comparison: Comparison | None) -> bytes:
    """The page of one gate, with the comparison of the builds if there is one in the store."""
    return render_page(
        "comparison.html",
        1,
        place="Builds",
        dataset=gate.dataset,
        title=f"{gate.verdict}: index {build_words(gate.build)} {gate.dataset}",
        crumbs=[("Builds", "../builds.html"), (gate.build, "")],
        subject=f"Index {build_words(gate.build)}",
        view=gate_view(gate, comparison),
        moves=list(filter(None, dict.fromkeys(movement_text(m.movement) for m in gate.metrics))),
        took=duration(gate.finished_at - gate.started_at),
    )


def _write_build(shown: Shown, gate: Gate) -> None:
    found = load_compared(shown.files, gate.build)
    page = build_page(gate, redacted(found, shown.hide) if found else None)
    shown.site.write(build_path(gate.build), page)


def _lowest(gate: Gate) -> MetricVerdict | None:
    """The metric that decides the verdict: the one that fell most of those with the same one."""
    compared = [metric for metric in gate.metrics if metric.drop is not None]
    own = [one for one in compared if one.verdict == gate.verdict] or compared
    return max(own, key=lambda one: (one.drop or 0.0) - one.max_drop, default=None)


def _sample(files: Files, night: date, text: str) -> None:
    at = datetime(night.year, night.month, night.day, tzinfo=UTC)
    save_failed_gate(
        files, FailedGate(dataset="default", reason=f"refused: {text}", carried=text, at=at)
    )


builds = Page(
    "builds",
    "Index builds",
    __doc__,
    render,
    "site",
    place=20,
    shows=lambda shown: shown.now.gates,
    sample=_sample,
)
