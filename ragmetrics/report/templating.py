"""Templates to HTML: everything printed is cleaned and escaped here, whoever prints it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from ragmetrics.metrics import metrics
from ragmetrics.model import compared_words, over_questions
from ragmetrics.report import assets, costs, formatting as words
from ragmetrics.report.coverage import STATUS, needs
from ragmetrics.report.figure_layout import Figure
from ragmetrics.report.glossary_terms import TERMS, anchor_of
from ragmetrics.report.night_status import LABELS, rule_state
from ragmetrics.text import share, slug

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, depth: int, **values: Any) -> bytes:
    """A page as bytes; `depth` is the number of folders between it and the site's root."""
    return _environment(depth).get_template(template).render(**values).encode()


def meaning(metric: str) -> str:
    """What a metric measures, in one line; nothing for one that is not installed."""
    known = metrics().get(metric)
    return known.title.replace("`", "") if known else ""


def island(figure: Figure) -> Markup:
    """A figure as JSON that cannot end the script element it stands in."""
    text = json.dumps(figure, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028 either
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - the three signs that matter to HTML are gone


def breakable(name: str) -> Markup:
    """A name that may go on in the next line after one of the signs _ : / and =."""
    told = escape(words.clean(name))
    for sign in "_:/=":
        told = told.replace(sign, Markup(f"{sign}<wbr>"))  # noqa: S704 - one of these signs
    return told


def metric_anchor(metric: str) -> str:
    """Where a metric stands in the glossary."""
    return f"metric-{words.anchor(metric)}"


def web(address: str) -> str:
    """An address that a link may lead to; nothing for one of another kind, as `javascript:`."""
    return address if re.match(r"https?://[^\s/]", address) else ""


_FILTERS = {
    "number": words.number,
    "p_value": words.p_value,
    "signed": words.signed,
    "count": words.count,
    "plural": words.plural,
    "brief": words.brief,
    "slug": slug,
    "anchor": words.anchor,
    "island": island,
    "breakable": breakable,
    "rule_state": rule_state,
    "web": web,
}
_GLOBALS = {
    "terms": TERMS,
    "anchor_of": anchor_of,
    "metric_anchor": metric_anchor,
    "needs": needs,
    "interval": words.interval,
    "over_questions": over_questions,
    "compared_words": compared_words,
    "moved_words": words.moved,
    "drop_words": words.drop,
    "share": share,
    "money": costs.money,
    "all_costs": costs.all_costs,
    "bill": costs.money_text,
    "spent": costs.usage_text,
    "cached_share": costs.cached_share,
    "budget_limits": costs.limits_text,
    "budget_words": costs.budget_text,
    "sampled": costs.sample_text,
    "sample_cost": costs.sample_cost_text,
    "narrowed": costs.narrowed_text,
    "too_wide": costs.too_wide,
    "meaning": meaning,
    "rule_state": rule_state,
    "labels": LABELS,
    "statuses": STATUS,
}


@cache
def _environment(depth: int) -> Environment:
    """Templates for pages so many folders below the site's root: macros know the way up, too."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ragmetrics", "report/templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.tests["fine"] = lambda finding: rule_state(finding) == "ok"
    names = {one: assets.own_name(one) for one in ("css", "js", "rows")}
    environment.globals |= _GLOBALS | {
        "up": "../" * depth,
        "assets": {**names, "plotly": assets.plotly_name()},
    }
    return environment


def _finalize(value: Any) -> Any:
    """Clean and bound what a template prints; markup of macros passes as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return words.clean(value[: words.LONGEST])
    return value
