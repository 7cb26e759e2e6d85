"""A night against the one before it: the page of what changed.

2026-11-19/changes.html
"""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.model import Comparison, Manifest
from ragmetrics.report.compare_view import Means, compare_view
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files

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
