"""Hooks of the docs site (`mkdocs.yml`): the same Markdown serves the repository and the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_ITEM = re.compile(r"(?:[-*+]|1[.)]) +\S")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_TITLE = re.compile(r"^( *```[a-z]+) ([^\n{=]+)$", re.MULTILINE)
_LINK = re.compile(r"(\]\()(\.\.?/[^)#\s]*)(#[^)\s]*)?(?=\))")


def on_config(config: Any) -> Any:
    """Fill in the navigation."""
    config["nav"] = fill_nav(config["nav"])
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that leave `docs/` lead to the repository; lists and code begin where it shows them.

    The search leaves out the decisions: they answer no question of a user.
    """
    if page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"exclude": True}
    outside = link_outside(markdown, page.file.src_uri, config["extra"]["repository"])
    return readable(outside)


def readable(markdown: str) -> str:
    """The text as the library of the site needs it: with the titles of code, such as the file name
    in "```yaml ragmetrics.yaml", as attributes, and with an empty line before each list.
    """
    return separate_lists(_TITLE.sub(r'\1 title="\2"', markdown))


def fill_nav(entry: Any) -> Any:
    """The navigation with, in place of each name that contains `*`, the pages that it matches."""
    if isinstance(entry, list):
        return [filled for one in entry for filled in _each(one)]
    if isinstance(entry, dict):
        return {title: fill_nav(inner) for title, inner in entry.items()}
    return entry


def _each(entry: Any) -> Iterator[Any]:
    if isinstance(entry, str) and "*" in entry:
        yield from (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob(entry)))
    elif not isinstance(entry, dict) or (entry := _without_empty(entry)):
        yield fill_nav(entry)


def _without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    """Without parts that have no page yet."""
    return {title: inner for title, inner in entry.items() if fill_nav(inner)}


def link_outside(markdown: str, source: str, repository: str) -> str:
    """The text of the page `source` with its links to folders, and to files outside `docs/`, as
    addresses of the repository. Links to files within `docs/` stay.
    """

    def address(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), found[2]))
        is_folder = (ROOT / target).is_dir()
        if target.startswith("docs/") and not is_folder:
            return found[0]
        kind = "tree" if is_folder else "blob"
        return f"{found[1]}{repository}/{kind}/main/{target}{found[3] or ''}"

    return _LINK.sub(address, markdown)


def separate_lists(markdown: str) -> str:
    """The text with an empty line before each list that follows a paragraph directly.

    The repository needs none there; the library of the site takes such a list for text.
    """
    lines: list[str] = []
    fenced = in_paragraph = False
    for line in markdown.splitlines():
        fenced ^= bool(_FENCE.match(line))
        is_item = not fenced and bool(_ITEM.match(line))
        if is_item and in_paragraph:
            lines.append("")
        begins = not lines or not lines[-1].strip()
        in_paragraph = bool(line.strip()) and not is_item and (in_paragraph or begins)
        in_paragraph = in_paragraph and not fenced and not line.startswith(("|", "#", "```"))
        lines.append(line)
    return "\n".join(lines) + "\n"
