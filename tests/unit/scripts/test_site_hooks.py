# ruff: noqa: E402 - what needs the extra is imported after it was looked for
"""The docs site: its navigation, its links, and that the repository and the site show the same."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

mkdocs = pytest.importorskip("mkdocs.config", reason="needs the extra docs")

from hypothesis import given, strategies as st
from markdown import Markdown
from markdown_it import MarkdownIt

from scripts import reference, store_page
from scripts.site_hooks import (
    DOCS,
    fill_nav,
    link_outside,
    on_page_markdown,
    readable,
    separate_lists,
)
from tests.fakes.processes import ROOT

REPOSITORY = "https://git.example.com/team/product"
PAGES = sorted(DOCS.rglob("*.md"))
_WORD = re.compile(r"\S*\w\S*")
_BLOCK = re.compile(r"<(h[1-6]|ul|ol|li|table|tr|pre)\b")


@pytest.fixture(scope="module")
def config() -> Any:
    """The configuration of the site."""
    return mkdocs.load_config(str(ROOT / "mkdocs.yml"))


def listed(nav: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(entry)


def test_every_page_is_in_the_navigation_once(config: Any) -> None:
    """A page that nobody finds is not there."""
    pages = [page.relative_to(DOCS).as_posix() for page in PAGES]
    assert sorted(listed(fill_nav(config["nav"]))) == pages


def test_the_parts_of_the_site_are_four_and_a_home(config: Any) -> None:
    """Tutorial, how-to, reference, explanation."""
    parts = [title for one in config["nav"] for title in one]
    assert parts == ["Home", "Tutorial", "How-to", "Reference", "Explanation"]


def test_a_pattern_stands_for_the_pages_that_it_matches() -> None:
    """In the order of their names; a part without pages is left out."""
    nav = [{"Tutorial": ["none/*.md"]}, {"Decisions": ["decisions/000*.md"]}]
    [part] = fill_nav(nav)
    assert list(part) == ["Decisions"]
    assert part["Decisions"][0] == "decisions/0001-run-id-from-content.md"
    assert part["Decisions"] == sorted(part["Decisions"])


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.stem)
def test_the_site_shows_the_same_blocks_as_the_repository(page: Path, config: Any) -> None:
    """Headings, lists, tables and code of each page: the two read Markdown by different rules."""
    text = page.read_text(encoding="utf-8")
    site = Markdown(
        extensions=config["markdown_extensions"], extension_configs=config["mdx_configs"]
    )
    plain = MarkdownIt("commonmark").enable("table")
    shown, expected = (
        Counter(_BLOCK.findall(html)) for html in (site.convert(readable(text)), plain.render(text))
    )
    assert shown == expected


def test_links_that_leave_the_docs_lead_to_the_repository() -> None:
    """To a file or a folder of it, with the anchor; links within the docs stay."""
    text = "[a](../../Makefile) [b](../../flows) [c](../reference/cli.md) [d](../../README.md#use)"
    assert link_outside(text, "how-to/logs.md", REPOSITORY) == (
        f"[a]({REPOSITORY}/blob/main/Makefile) [b]({REPOSITORY}/tree/main/flows) "
        f"[c](../reference/cli.md) [d]({REPOSITORY}/blob/main/README.md#use)"
    )


@pytest.mark.parametrize(
    ("source", "meta"),
    [("decisions/0001-a.md", {"search": {"exclude": True}}), ("how-to/logs.md", {})],
    ids=["a decision", "a page"],
)
def test_the_search_leaves_out_the_decisions(
    source: str, meta: dict[str, Any], config: Any
) -> None:
    """By the key of the theme's search; every other page is searched."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source), meta={})
    assert on_page_markdown("A text.\n", page, config, None) == "A text.\n"
    assert page.meta == meta


def test_code_may_have_a_title() -> None:
    """The name of a file after the language."""
    assert readable("```yaml ragmetrics.yaml\na: 1\n```\n") == (
        '```yaml title="ragmetrics.yaml"\na: 1\n```\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So:\n- one\n- two\n", "So:\n\n- one\n- two\n"),
        ("- one\n  goes on\n- two\n", "- one\n  goes on\n- two\n"),
        ("```text\nSo:\n- one\n```\n", "```text\nSo:\n- one\n```\n"),
        ("A range of 3\n- 4 rows.\n", "A range of 3\n\n- 4 rows.\n"),
    ],
    ids=["after a paragraph", "within a list", "within code", "as the repository shows it"],
)
def test_a_list_may_follow_a_paragraph(text: str, expected: str) -> None:
    """The repository needs no empty line before it."""
    assert separate_lists(text) == expected


@given(st.lists(st.sampled_from(["- a", "text", "  more", "", "```", "# t", "| c |", "1. x"])))
def test_only_empty_lines_are_added(lines: list[str]) -> None:
    """Any text keeps its other lines, and a second pass changes nothing."""
    text = "\n".join([*lines, "end"]) + "\n"
    once = separate_lists(text)
    assert [one for one in once.splitlines() if one] == [one for one in text.splitlines() if one]
    assert separate_lists(once) == once


def test_nothing_is_fetched_from_other_hosts(config: Any) -> None:
    """Fonts are the reader's own, no page asks for stars, no diagram needs a script."""
    assert config["theme"]["font"] is False
    assert not config["repo_url"]
    assert not [page for page in PAGES if "```mermaid" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("script", reference.PAGES, ids=lambda one: one.PAGE.name)
def test_pages_made_from_the_code_are_current(script: ModuleType) -> None:
    """Each is what its script writes now."""
    assert reference.is_current(script), "run: make reference"


def test_each_folder_of_a_fixture_store_is_in_the_reference() -> None:
    """What released versions wrote is in the table of docs/reference/store.md."""
    known = {path.partition("/")[0] for path, _, _ in store_page.FILES}
    for path in (ROOT / "tests/fixtures/stores").glob("*/store.zip"):
        with zipfile.ZipFile(path) as store:
            folders = re.findall(r"/store/([^/\n]+)/", "\n".join(store.namelist()))
        assert folders
        assert set(folders) <= known


def test_the_pages_written_by_hand_are_short() -> None:
    """Together at most 30,000 words: the README and the docs, without decisions, which are history,
    and without what is made from the code. The bars and rules of tables are no words."""
    made = {page.PAGE for page in reference.PAGES}
    pages = [page for page in PAGES if page not in made and page.parent.name != "decisions"]
    texts = [page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *pages]]
    assert sum(len(_WORD.findall(text)) for text in texts) <= 30_000


def test_the_recipes_for_plugins_are_one_page() -> None:
    """At most 900 words for the eight kinds together, so that a contributor reads all of one."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text.partition("## Adding a metric")[2].partition("\n## ")[0]
    assert 0 < len(_WORD.findall(recipes)) <= 900
