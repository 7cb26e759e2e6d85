"""The items of a page's list, as the first lines of a night's page are."""

from __future__ import annotations

from ragmetrics.messages import FORMATS, Block, Bullets, Place, Quote

PAGE = FORMATS.find("page")


def test_what_is_folded_belongs_to_the_item_before_it() -> None:
    """In one item, so that a reader who opens it sees what it explains."""
    blocks: list[Block] = [
        Bullets("", ("a fell",)),
        Bullets("explains 2 more", ("b", "c"), more=3, folded=True),
        Bullets("", ("d",)),
    ]
    inner = "<ul><li>b</li><li>c</li><li>and 3 more: see the rules below.</li></ul>"
    fold = f'<details class="fold"><summary>explains 2 more</summary>{inner}</details>'
    assert PAGE.render(blocks) == f"<li>a fell{fold}</li>\n<li>d</li>"


def test_a_place_is_a_link_where_it_leads_somewhere() -> None:
    """A text of a log keeps its direction to itself, and acts nowhere."""
    line = ("where ", Place("<b>", "#tag-x"), ": ", Quote('"q"'), " and ", Place("y", ""))
    assert PAGE.line(line) == (
        'where <a href="#tag-x"><bdi>&lt;b&gt;</bdi></a>: <bdi>&quot;q&quot;</bdi> and <bdi>y</bdi>'
    )
