"""The pages of comparisons: two sides on request, a night and the night before, index builds.

compare/A--B.html
2026-11-19/changes.html
builds.html, builds/BUILD.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from ragmetrics.comparison import build_path
from ragmetrics.dashboard.compare_view import Means, compare_view
from ragmetrics.dashboard.formatting import duration
from ragmetrics.dashboard.templating import render_page, write_assets
from ragmetrics.records import (
    Comparison,
    FailedGate,
    Gate,
    Manifest,
    MetricVerdict,
    Verdict,
    movement_text,
)
from ragmetrics.storage import Files
from ragmetrics.version import __version__

BUILDS = "builds.html"
CHANGES = "changes.html"
_LONGEST_NAME = 60
_MOST_LINES = 100
_MOST_UNDECIDED = 20
_STATES: dict[Verdict, tuple[str, str]] = {
    "promote": ("ok", "promote"),
    "hold": ("firing", "hold"),
    "inconclusive": ("pending", "inconclusive"),
}
"""For each verdict, the name of an icon and the word."""


def compare_path(a: str, b: str) -> str:
    """The path of a comparison's page on the site, by the names of its sides.

    A long name, or one with characters beside letters, digits, `.`, `_` and `-`, gets a digest, so
    that different names have different paths.
    """
    return f"compare/{_file_name(a)}--{_file_name(b)}.html"


def _file_name(side: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", side)[:_LONGEST_NAME].strip(".-") or "side"
    if plain == side:
        return plain
    digest = hashlib.blake2b(side.encode("utf-8", "surrogatepass"), digest_size=4)
    return f"{plain}-{digest.hexdigest()}"


def write_comparison(site: Files, path: str, found: Comparison) -> str:
    """Write the page, and the files that it needs, into a site or an empty folder."""
    write_assets(site, charts=False)
    page = render_page(
        "compare.html",
        1,
        view=compare_view(found),
        home=site.exists("index.html"),
        made=datetime.now(UTC),
        version=__version__,
    )
    site.write(path, page)
    return path


def write_changes(
    site: Files,
    manifest: Manifest,
    before: Manifest | None,
    found: Comparison | None,
    earlier: Sequence[Manifest] = (),
) -> str:
    """Write what changed since the night `before`; return the page's path.

    If no night compares, the page says why, which it finds from the `earlier` nights.
    """
    page = render_page(
        CHANGES,
        1,
        manifest=manifest,
        before=before if found else None,
        view=compare_view(found, _means_of_rows(before, manifest)) if found else None,
        reason="" if found else _why_not_compared(manifest, earlier),
    )
    path = f"{manifest.date}/{CHANGES}"
    site.write(path, page)
    return path


def _means_of_rows(before: Manifest | None, now: Manifest) -> dict[str, Means]:
    """The means of all rows in both nights, by metric."""
    if before is None:
        return {}
    then = {metric.metric: metric.mean for metric in before.metrics}
    return {metric.metric: (then.get(metric.metric), metric.mean) for metric in now.metrics}


def _why_not_compared(manifest: Manifest, earlier: Sequence[Manifest]) -> str:
    if not any(metric.scored for metric in manifest.metrics):
        return "Nothing was scored in this night."
    known = [one for one in earlier if any(summary.scored for summary in one.metrics)]
    if not known:
        return (
            "It is the first night with scores. From the next one on, this page says what changed."
        )
    last = known[-1]
    if last.judge.fingerprint != manifest.judge.fingerprint:
        return (
            f"The judge changed since {last.date}, and numbers of different judges are never "
            "compared. From the next night on, this page says what changed."
        )
    return (
        f"No metric was scored as in an earlier night: since {last.date} prompts, parameters or "
        "metrics changed. From the next night on, this page says what changed."
    )


def shown_gates(gates: Iterable[Gate]) -> list[Gate]:
    """The gates that the page of builds shows, newest first, and one more if there are others."""
    return list(islice(gates, _MOST_LINES + 1))


def write_builds(
    site: Files,
    gates: Iterable[Gate],
    undecided: Iterable[FailedGate] = (),
    dataset: str | None = None,
) -> str | None:
    """Write the page of all gates; return its path, or None if no build has been gated.

    `gates` and `undecided` are given newest first. `dataset` is the name of the site's first page.
    """
    shown, lost = shown_gates(gates), list(islice(undecided, _MOST_UNDECIDED))
    if not shown and not lost:
        return None
    page = render_page(
        BUILDS,
        0,
        dataset=dataset,
        gates=shown[:_MOST_LINES],
        more=len(shown) > _MOST_LINES,
        undecided=lost,
        held=sum(gate.verdict == "hold" for gate in shown[:_MOST_LINES]),
        states=_STATES,
        build_path=build_path,
        lowest=_lowest,
    )
    site.write(BUILDS, page)
    return BUILDS


def write_build(site: Files, gate: Gate, found: Comparison | None) -> str:
    """Write the page of one gate; return its path.

    `found` is the comparison of the builds, if they could be compared and the store has it.
    """
    page = render_page(
        "build.html",
        1,
        gate=gate,
        view=compare_view(found) if found else None,
        states=_STATES,
        moves=list(filter(None, dict.fromkeys(movement_text(m.movement) for m in gate.metrics))),
        took=duration(gate.finished_at - gate.started_at),
    )
    site.write(build_path(gate.build), page)
    return build_path(gate.build)


def _lowest(gate: Gate) -> MetricVerdict | None:
    """The metric that decides the verdict: the one that fell most of those with the same one."""
    compared = [metric for metric in gate.metrics if metric.drop is not None]
    own = [one for one in compared if one.verdict == gate.verdict] or compared
    return max(own, key=lambda one: (one.drop or 0.0) - one.max_drop, default=None)
