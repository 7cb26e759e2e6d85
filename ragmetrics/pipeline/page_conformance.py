"""The conformance test of pages: see `ragmetrics.testing`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragmetrics.config import make_settings
from ragmetrics.dashboard import Page, shown_now
from ragmetrics.pipeline.nightly import CoverageShort, run_night
from ragmetrics.plugins import hold
from ragmetrics.storage import Files

NIGHT = date(2026, 11, 19)
PLAIN = "quarzfels"
HOSTILE = (
    f"{PLAIN} </script></title><script>top.hostile</script><img class=hostile src=//x onerror=y>"
    "\"'><i class=hostile>{{ 7191 * 3 }} javascript:hostile \x00"
)
_LOADS = {"script": "src", "link": "href", "img": "src", "source": "src", "image": "href"}
_NEVER = ("iframe", "object", "embed", "base", "applet")
_METRICS = ("context_recall", "context_relevance", "id_recall")


def check_page(page: Page) -> None:
    """Raise AssertionError unless a page documents itself, shows its sample and a night without
    rows, runs no script of a log's texts, loads nothing from elsewhere, and with `redact: true`
    shows none of the texts.

    The sample is a store of two nights, and what `page.sample` adds.
    """
    hold(page.about.endswith("."), "its docstring begins with what it shows, in one sentence")
    hold(0 < len(page.title) <= 40, "its title has at most 40 characters")
    shown = _shown(page, PLAIN)
    hold(shown is not None, "it shows its sample")
    _check(_shown(page, HOSTILE) or "")
    hidden = _shown(page, PLAIN, redact=True) or ""
    hold(PLAIN not in hidden.lower(), "with `redact: true` it shows no text of a log")
    with _store(PLAIN, rows=0) as files:
        content = page.render(shown_now(files, files.at("site"), _day(page)))
        hold(isinstance(content, bytes | None), "a night without rows has a page, or none")


def _shown(page: Page, text: str, *, redact: bool = False) -> str | None:
    """The page of a store whose texts are all the same."""
    with _store(text, redact=redact) as files:
        page.sample(files, NIGHT, text)
        content = page.render(shown_now(files, files.at("site"), _day(page)))
    return content.decode() if content is not None else None


def _day(page: Page) -> date | None:
    return NIGHT if page.scope == "night" else None


def _check(html: str) -> None:
    """The elements of a page with hostile texts are those of its template."""
    hold("\x00" not in html, "it prints texts without control characters")
    hold("21573" not in html, "no text is a template")
    elements = _Elements(html).elements
    for tag, attributes in elements:
        hold("hostile" not in (attributes.get("class") or ""), f"no text is an element: {tag}")
        hold(tag not in _NEVER, f"it has no {tag}")
        hold(not any(name.startswith("on") for name in attributes), f"{tag} has no handler")
        links = [attributes.get(name) or "" for name in ("href", "src", "action")]
        is_script = any(link.strip().lower().startswith("javascript:") for link in links)
        hold(not is_script, f"no address of {tag} is a script")
        source = attributes.get(_LOADS.get(tag, "")) or ""
        hold("//" not in source or source.startswith("data:"), f"{tag} loads from this site")
    policies = [given.get("content") or "" for tag, given in elements if tag == "meta"]
    hold(any("default-src 'none'" in one for one in policies), "it forbids all but its own files")


class _Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@contextmanager
def _store(text: str, *, rows: int = 4, redact: bool = False) -> Iterator[Files]:
    """A copy of a store of two nights, with as many rows in the second one."""
    with TemporaryDirectory() as name:
        copy = Path(name) / "store"
        shutil.copytree(Path(_written(text, rows, redact).name) / "store", copy)
        yield Files(str(copy))


@cache
def _written(text: str, rows: int, redact: bool) -> TemporaryDirectory[str]:
    """The folder of such a store, which is removed with the process."""
    folder = TemporaryDirectory()
    settings = make_settings(
        {
            "store": f"{folder.name}/store",
            "logs": f"{folder.name}/logs/{{date}}.jsonl",
            "metrics": _METRICS,
            "redact": redact,
        }
    )
    (Path(folder.name) / "logs").mkdir()
    for day, count in ((NIGHT - timedelta(days=1), 4), (NIGHT, rows)):
        lines = "".join(json.dumps(_row(text, number, day)) + "\n" for number in range(count))
        (Path(folder.name) / f"logs/{day}.jsonl").write_text(lines or " ", encoding="utf-8")
        try:
            run_night(settings, day)
        except CoverageShort:
            continue  # the night is published all the same
    return folder


def _row(text: str, number: int, day: date) -> dict[str, Any]:
    """A row whose texts are all the same; on the second night, a question retrieves less."""
    contexts = [f"{text} {number}", f"{text} of all"][: 1 + (day < NIGHT or number > 0)]
    return {
        "id": f"row-{number}",
        "user_input": f"{text} {number}?",
        "retrieved_contexts": contexts,
        "response": f"{text} {number}.",
        "reference": f"{text} of all.",
        "retrieved_context_ids": ["first", "second"][: len(contexts)],
        "reference_context_ids": ["second"],
        "timestamp": f"{day}T08:00:00Z",
        "index_build": f"build-{day}",
        "tags": {"section": "billing"},
    }
