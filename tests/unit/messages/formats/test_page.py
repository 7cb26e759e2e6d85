"""The description list of a page, as the first lines of a night's page are."""

from __future__ import annotations

from ragmetrics.messages import FORMATS, Place, Quote, Section

PAGE = FORMATS.find("page")


def test_a_label_stands_with_its_lines() -> None:
    """One sentence a line."""
    shown = PAGE.render([Section("What:", "a fell.", ("b fell.",)), Section("Why:", "c")])
    assert shown == (
        "<div><dt>What</dt><dd><p>a fell.</p><p>b fell.</p></dd></div>\n"
        "<div><dt>Why</dt><dd><p>c</p></dd></div>"
    )


def test_a_place_is_a_link_where_it_leads_somewhere() -> None:
    """A text of a log keeps its direction to itself, and acts nowhere."""
    line = ("where ", Place("<b>", "#tag-x"), ": ", Quote('"q"'), " and ", Place("y", ""))
    assert PAGE.line(line) == (
        'where <a href="#tag-x"><bdi>&lt;b&gt;</bdi></a>: <bdi>&quot;q&quot;</bdi> and <bdi>y</bdi>'
    )
