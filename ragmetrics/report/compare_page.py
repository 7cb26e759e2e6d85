"""The page of one comparison that somebody asked for: of logs, nights, runs or builds.

compare/A--B.html
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from ragmetrics.model import Comparison
from ragmetrics.report.assets import write_assets
from ragmetrics.report.compare_view import compare_view
from ragmetrics.report.glossary import write_glossary
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files
from ragmetrics.version import __version__

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
    write_glossary(site)
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
