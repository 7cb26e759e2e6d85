"""The page of two sides that were compared on request: compare/A--B.html."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from ragmetrics.dashboard.compare_view import compare_view
from ragmetrics.dashboard.formatting import brief
from ragmetrics.dashboard.page_writer import write_shared
from ragmetrics.dashboard.pages.comparisons import comparisons, comparisons_page
from ragmetrics.dashboard.templating import render_page
from ragmetrics.records import Comparison
from ragmetrics.storage import Files
from ragmetrics.version import __version__

_LONGEST_NAME = 60


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


def write_comparison(site: Files, path: str, comparison: Comparison) -> str:
    """Write the page, and the files that it needs, into a site or an empty folder."""
    write_shared(site, charts=False)
    home = site.exists("index.html")
    names = f"{brief(comparison.a.name, 60)} and {brief(comparison.b.name, 60)}"
    page = render_page(
        "comparison.html",
        1,
        dataset=comparison.b.dataset,
        title=names,
        crumbs=[*([("Comparisons", "../comparisons.html")] if home else []), (names, "")],
        subject="",
        view=compare_view(comparison),
        home=home,
        made=datetime.now(UTC),
        version=__version__,
    )
    site.write(path, page)
    if home:
        site.write(comparisons.file, comparisons_page(site, comparison.b.dataset))
    return path
