"""Style, scripts and Plotly: written once per site, named so that old pages keep their own."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from ragmetrics.storage import Files

_STYLES = (
    "tokens.css",
    "base.css",
    "parts.css",
    "plotly.css",
    "nights.css",
    "rows.css",
    "calibration.css",
    "compare.css",
    "print.css",
)
_SCRIPTS = {"js": "charts.js", "rows": "rows.js"}
"""By what templates call them; `js` is of all pages."""
_MAP_STYLE = re.compile(r'if\(!document\.getElementById\("[0-9a-f]{64}"\)\)')


def plotly_name() -> str:
    """File name of Plotly's script, without importing Plotly."""
    return f"plotly-{version('plotly')}-strict.min.js"


@cache
def _own() -> dict[str, bytes]:
    """Our style and scripts, by what templates call them."""
    folder = files("ragmetrics.report") / "assets"
    style = "\n".join((folder / name).read_text("utf-8") for name in _STYLES)
    scripts = {kind: (folder / name).read_bytes() for kind, name in _SCRIPTS.items()}
    return {"css": style.encode(), **scripts}


def own_name(kind: str) -> str:
    """File name of our `css`, of the `js` of all pages, or of that of `rows`.

    It has a hash in it: pages of older nights keep theirs.
    """
    suffix = "js" if kind in _SCRIPTS else kind
    return f"dashboard-{hashlib.sha256(_own()[kind]).hexdigest()[:10]}.{suffix}"


def _plotly() -> str:
    """Plotly's script without the style element that it writes for maps, which no chart here is:
    the pages' content security policy allows none. What else it styles is in plotly.css.
    """
    from plotly.offline import get_plotlyjs  # 5 MB of text: only where it is written

    script: str = get_plotlyjs()
    return _MAP_STYLE.sub("if(0)", script)


def write_assets(site: Files, *, charts: bool = True) -> None:
    """Write what all pages share, unless the site has it already; Plotly where there are charts."""
    for kind, data in _own().items():
        if not site.exists(f"assets/{own_name(kind)}"):
            site.write(f"assets/{own_name(kind)}", data)
    if charts and not site.exists(f"assets/{plotly_name()}"):
        site.write(f"assets/{plotly_name()}", _plotly().encode())
