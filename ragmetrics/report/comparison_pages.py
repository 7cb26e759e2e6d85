"""Index builds: the page of all gates, and of each a page with its verdict and what it rests on.

builds.html
builds/BUILD.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from ragmetrics.model import (
    Comparison,
    FailedGate,
    Gate,
    Manifest,
    MetricVerdict,
    Verdict,
    movement_text,
)
from ragmetrics.report.compare_view import Means, compare_view
from ragmetrics.report.formatting import duration
from ragmetrics.report.templating import render_page, write_assets
from ragmetrics.storage import Files, build_path
from ragmetrics.version import __version__

BUILDS = "builds.html"
_MOST_LINES = 100
_MOST_UNDECIDED = 20

STATES: dict[Verdict, tuple[str, str]] = {
    "promote": ("ok", "promote"),
    "hold": ("firing", "hold"),
    "inconclusive": ("pending", "inconclusive"),
}
"""Of each verdict, an icon's name and the word for it."""


def shown_gates(gates: Iterable[Gate]) -> list[Gate]:
    """Of all gates, newest first, those that are shown, and one more where there are others."""
    return list(islice(gates, _MOST_LINES + 1))


def write_builds(
    site: Files,
    gates: Iterable[Gate],
    undecided: Iterable[FailedGate] = (),
    dataset: str | None = None,
) -> str | None:
    """Write the page of all gates; return its path, or None where no build has been gated.

    `gates` and `undecided` are given newest first, and taken as far as they are shown; `dataset`
    names the site's first page. Each line links to the page of its build.
    """
    newest = iter(gates)
    shown, lost = list(islice(newest, _MOST_LINES)), list(islice(undecided, _MOST_UNDECIDED))
    if not shown and not lost:
        return None
    page = render_page(
        "builds.html",
        0,
        dataset=dataset,
        gates=shown,
        more=next(newest, None) is not None,
        undecided=lost,
        held=sum(gate.verdict == "hold" for gate in shown),
        states=STATES,
        anchor=anchor,
        build_path=build_path,
        lowest=_lowest,
    )
    site.write(BUILDS, page)
    return BUILDS


def write_build(site: Files, gate: Gate, found: Comparison | None) -> str:
    """Write the page of one gate; return its path.

    `found` is how the builds differ, where they could be compared and the store has it.
    """
    page = render_page(
        "build.html",
        1,
        gate=gate,
        view=compare_view(found) if found else None,
        states=STATES,
        moves=[text for text in dict.fromkeys(map(_moves, gate.metrics)) if text],
        took=lambda one: duration(one.finished_at - one.started_at),
    )
    site.write(build_path(gate.build), page)
    return build_path(gate.build)


def _moves(one: MetricVerdict) -> str:
    return movement_text(one.movement)


def anchor(build: str) -> str:
    """Where a build stands on the page of all."""
    return f"build-{build}"


def _lowest(gate: Gate) -> MetricVerdict | None:
    """The metric that speaks for the verdict: of those with it, the one that fell furthest."""
    compared = [one for one in gate.metrics if one.drop is not None]
    own = [one for one in compared if one.verdict == gate.verdict] or compared
    return max(own, key=lambda one: (one.drop or 0.0) - one.max_drop, default=None)


FOLDER = "compare"


_LONGEST = 60


def compare_path(a: str, b: str) -> str:
    """Where the comparison of two sides stands on the site, by what somebody calls them.

    A name that has more in it than letters, digits, `.`, `_` and `-`, or that is long, gets a
    digest, so that no two of them meet.
    """
    return f"{FOLDER}/{_name(a)}--{_name(b)}.html"


def _name(side: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", side)[:_LONGEST].strip(".-") or "side"
    if plain == side:
        return plain
    digest = hashlib.blake2b(side.encode("utf-8", "surrogatepass"), digest_size=4)
    return f"{plain}-{digest.hexdigest()}"


def write_comparison(site: Files, path: str, found: Comparison) -> str:
    """Write the page into a site, or into a folder that becomes one, with what it links to; return
    its path.
    """
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


CHANGES = "changes.html"


def write_changes(
    site: Files,
    manifest: Manifest,
    before: Manifest | None,
    found: Comparison | None,
    earlier: Sequence[Manifest] = (),
) -> str:
    """Write what changed since an earlier night; return the page's path.

    Without one that compares, the page says why there is none, given the `earlier` nights.
    """
    page = render_page(
        "changes.html",
        1,
        manifest=manifest,
        before=before if found else None,
        view=compare_view(found, _of_rows(before, manifest)) if found else None,
        lacking="" if found else _lacking(manifest, earlier),
    )
    path = f"{manifest.date}/{CHANGES}"
    site.write(path, page)
    return path


def _of_rows(before: Manifest | None, now: Manifest) -> dict[str, Means]:
    """The means of all rows in both nights, by metric."""
    if before is None:
        return {}
    then = {one.metric: one.mean for one in before.metrics}
    return {one.metric: (then.get(one.metric), one.mean) for one in now.metrics}


def _lacking(manifest: Manifest, earlier: Sequence[Manifest]) -> str:
    """Why no earlier night compares, in one sentence."""
    if not any(one.scored for one in manifest.metrics):
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
