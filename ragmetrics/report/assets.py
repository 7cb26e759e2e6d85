"""Style, scripts and Plotly: written once per site, named so that old pages keep their own."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from ragmetrics.store.files import Files

_STYLES = ("tokens.css", "base.css", "parts.css", "rows.css", "calibration.css", "print.css")


def plotly_name() -> str:
    """File name of Plotly's script, without importing Plotly."""
    return f"plotly-{version('plotly')}.min.js"


@cache
def _own() -> dict[str, bytes]:
    """Our style and script by kind of file."""
    folder = files("ragmetrics.report") / "assets"
    style = "\n".join((folder / name).read_text("utf-8") for name in _STYLES)
    return {"css": style.encode(), "js": (folder / "charts.js").read_bytes()}


def own_name(kind: str) -> str:
    """File name of our `css` or `js`, with a hash: pages of older nights keep theirs."""
    return f"dashboard-{hashlib.sha256(_own()[kind]).hexdigest()[:10]}.{kind}"


def write_assets(site: Files) -> None:
    """Write what all pages share, unless the site has it already."""
    for kind, data in _own().items():
        if not site.exists(f"assets/{own_name(kind)}"):
            site.write(f"assets/{own_name(kind)}", data)
    if not site.exists(f"assets/{plotly_name()}"):
        from plotly.offline import get_plotlyjs  # 5 MB of text: only where it is written

        site.write(f"assets/{plotly_name()}", get_plotlyjs().encode())
