"""The glossary: what each metric, statistic and state means, in one line each.

glossary.html

The same lines stand at hover and focus wherever a page uses the term: `_parts.html`, macro `term`.
"""

from __future__ import annotations

from ragmetrics.metrics.registry import metrics
from ragmetrics.report.glossary_terms import GROUPS
from ragmetrics.report.templating import render
from ragmetrics.storage.files import Files

PAGE = "glossary.html"


def write_glossary(site: Files) -> str:
    """Write the page, unless the site has it as it would be; return its path."""
    page = render("glossary.html", 0, groups=GROUPS, metrics=metrics())
    if site.find(PAGE) != page:
        site.write(PAGE, page)
    return PAGE
