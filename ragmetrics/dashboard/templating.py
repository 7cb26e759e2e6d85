"""Pages from templates, and the files that all pages share: style, scripts, Plotly.

All text that a template prints is cleaned and escaped here.

assets/            file names contain a hash, so older pages keep the version that they need
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from ragmetrics.dashboard import costs, formatting as words
from ragmetrics.dashboard.figure_layout import Figure, bin_label
from ragmetrics.dashboard.glossary import TERMS, anchor_of
from ragmetrics.dashboard.night_status import LABELS, rule_state
from ragmetrics.dashboard.night_tables import STATUS, needs
from ragmetrics.dashboard.svg import svg
from ragmetrics.dashboard.tiles import SHOWN as TILES_SHOWN
from ragmetrics.messages import FORMATS, Block, in_display_names
from ragmetrics.metrics import display_name, find_metric, unit_of
from ragmetrics.records import over_questions
from ragmetrics.storage import Files
from ragmetrics.text import plural, share, short, slug, with_unit

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket

_STYLES = (
    "tokens.css",
    "base.css",
    "parts.css",
    "plotly.css",
    "nights.css",
    "rows.css",
    "questions.css",
    "calibration.css",
    "compare.css",
    "print.css",
)
_SCRIPTS = {"js": "charts.js", "rows": "rows.js", "questions": "questions.js"}
"""Scripts by their names in templates. All pages load `js`."""
PLACES = (
    ("Overview", "index.html"),
    ("Nights", "index.html#nights"),
    ("Questions", "questions.html"),
    ("Builds", "builds.html"),
    ("Judge", "calibration.html"),
    ("Help", "glossary.html"),
)
"""The places in the header of every page, with their addresses on the site."""
_MAP_STYLE = re.compile(r'if\(!document\.getElementById\("[0-9a-f]{64}"\)\)')


def render_page(template: str, depth: int, **values: Any) -> bytes:
    """A page as bytes, for a path `depth` folders below the site's root.

    `template` is a file of `templates/`, or the text of a template.
    """
    environment = _environment(depth)
    is_file = template.endswith(".html")
    page = environment.get_template(template) if is_file else environment.from_string(template)
    return page.render(**values).encode()


def meaning(metric: str) -> str:
    """What a metric measures, in one line; empty if the metric is not installed."""
    known = find_metric(metric)
    return known.title.replace("`", "") if known else ""


def measured(value: float | None, metric: str, *, brief: bool = False) -> str:
    """A mean of a metric in its unit; without one it has three digits, or two with `brief`."""
    unit = unit_of(metric)
    if unit:
        return with_unit(value, unit)
    return short(value) if brief else words.number(value)


def interval(low: float | None, high: float | None, digits: int = 3, *, metric: str = "") -> str:
    """The interval of a mean, in the unit of its metric: `[0.4%, 1.2%]`."""
    unit = unit_of(metric) if metric else ""
    if not unit or low is None or high is None:
        return words.interval(low, high, digits)
    ends = (with_unit(low, "%" if unit == "%" else ""), with_unit(high, unit))
    return f"[{', '.join(ends)}]"


def island(figure: Figure) -> Markup:
    """A figure as JSON that cannot end its script element."""
    text = json.dumps(figure, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028 either
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - the three signs that matter to HTML are gone


def breakable(name: str) -> Markup:
    """A name in which a line may break after _ : / and =."""
    shown = escape(words.clean(name))
    for sign in "_:/=":
        shown = shown.replace(sign, Markup(f"{sign}<wbr>"))  # noqa: S704 - one of these signs
    return shown


def metric_anchor(metric: str) -> str:
    """A metric's place in the glossary."""
    return f"metric-{words.anchor(metric)}"


def web(address: str) -> str:
    """An address of the web; empty for other addresses, such as `javascript:`."""
    return address if re.match(r"https?://[^\s/]", address) else ""


def unbroken(text: str) -> Markup:
    """A text whose numbers and dates stay on a line."""
    return Markup(FORMATS.find("page").escape(text))  # noqa: S704 - escaped


def list_items(blocks: Sequence[Block]) -> Markup:
    """Blocks as the items of a description list."""
    return Markup(FORMATS.find("page").render(blocks))  # noqa: S704 - escaped


_FILTERS = {
    "named": display_name,
    "number": words.number,
    "p_value": words.p_value,
    "signed": words.signed,
    "count": words.count,
    "plural": plural,
    "brief": words.brief,
    "one_line": words.one_line,
    "slug": slug,
    "anchor": words.anchor,
    "island": island,
    "breakable": breakable,
    "rule_state": rule_state,
    "web": web,
    "list_items": list_items,
    "unbroken": unbroken,
    "in_names": in_display_names,
    "svg": svg,
    "short": short,
    "measured": measured,
}
_GLOBALS = {
    "places": PLACES,
    "most_tiles": TILES_SHOWN,
    "terms": TERMS,
    "anchor_of": anchor_of,
    "metric_anchor": metric_anchor,
    "needs": needs,
    "interval": interval,
    "over_questions": over_questions,
    "moved_words": words.moved,
    "drop_words": words.drop,
    "share": share,
    "bin_label": bin_label,
    "money": costs.money,
    "all_costs": costs.all_costs,
    "bill": costs.money_text,
    "spent": costs.usage_text,
    "cached_text": costs.cached_text,
    "unknown_text": costs.unknown_text,
    "certain_text": costs.certain_text,
    "budget_limits": costs.limits_text,
    "budget_words": costs.budget_text,
    "sampled": costs.sample_text,
    "sample_cost": costs.sample_cost_text,
    "narrowed": costs.narrowed_text,
    "active": costs.active_text,
    "too_wide": costs.too_wide,
    "meaning": meaning,
    "rule_state": rule_state,
    "labels": LABELS,
    "statuses": STATUS,
}


@cache
def _environment(depth: int) -> Environment:
    """The environment of pages that are `depth` folders below the site's root."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ragmetrics", "dashboard/templates"),
        autoescape=True,
        finalize=_clean_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_compiled_templates(),
    )
    environment.filters |= _FILTERS
    environment.tests["fine"] = lambda finding: rule_state(finding) == "ok"
    environment.globals |= _GLOBALS | {
        "up": "../" * depth,
        "assets": {file: own_name(file) for file in _own_files()} | {"plotly": _plotly_name()},
    }
    return environment


def _compiled_templates() -> BytecodeCache | None:
    """The user's cache of compiled templates: to compile those of a night takes 0.4 seconds.

    None if the folder of temporary files is not safe or not writable.
    """
    from jinja2 import FileSystemBytecodeCache

    class Optional(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):  # no space left: the page is written all the same
                super().dump_bytecode(bucket)

    try:
        return Optional()
    except (OSError, RuntimeError):
        return None


def _clean_text(value: Any) -> Any:
    """Clean and bound a text that a template prints; the markup of macros stays as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return words.clean(value[: words.LONGEST])
    return value


def write_assets(site: Files, *, charts: bool = True) -> None:
    """Write what all pages share and the site lacks; Plotly only if a page has charts."""
    for kind, data in _own_files().items():
        if not site.exists(f"assets/{own_name(kind)}"):
            site.write(f"assets/{own_name(kind)}", data)
    if charts and not site.exists(f"assets/{_plotly_name()}"):
        site.write(f"assets/{_plotly_name()}", _plotly().encode())


def own_name(kind: str) -> str:
    """File name of our `css`, of the `js` of all pages, or of the script of `rows`."""
    suffix = "js" if kind in _SCRIPTS else kind
    return f"dashboard-{hashlib.sha256(_own_files()[kind]).hexdigest()[:10]}.{suffix}"


@cache
def _own_files() -> dict[str, bytes]:
    """Our style and scripts, by their names in templates."""
    folder = files("ragmetrics.dashboard") / "assets"
    style = "\n".join((folder / name).read_text("utf-8") for name in _STYLES)
    scripts = {kind: (folder / name).read_bytes() for kind, name in _SCRIPTS.items()}
    return {"css": style.encode(), **scripts}


def _plotly_name() -> str:
    """File name of Plotly's script, without importing Plotly."""
    return f"plotly-{version('plotly')}-strict.min.js"


def _plotly() -> str:
    """Plotly's script without the style element that it adds for maps.

    The pages' content security policy forbids that element, and no chart is a map. plotly.css has
    the rest of Plotly's style.
    """
    from plotly.offline import get_plotlyjs  # 5 MB of text: only where it is written

    script: str = get_plotlyjs()
    return _MAP_STYLE.sub("if(0)", script)
