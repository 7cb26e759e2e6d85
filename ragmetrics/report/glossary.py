"""The glossary: what each metric, statistic and state means, in one line each.

glossary.html

The same lines stand at hover and focus wherever a page uses the term: `_parts.html`, macro `term`.
"""

from __future__ import annotations

from ragmetrics.metrics import metrics
from ragmetrics.report.glossary_terms import GROUPS
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files

PAGE = "glossary.html"


def write_glossary(site: Files) -> str:
    """Write the page, unless the site has it as it would be; return its path."""
    page = render_page("glossary.html", 0, groups=GROUPS, metrics=metrics())
    if site.find(PAGE) != page:
        site.write(PAGE, page)
    return PAGE
