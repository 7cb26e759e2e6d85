"""A browser for the tests of the dashboard's pages, and a fresh page in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.browsing import ARGUMENTS, Visit


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """One browser for all tests of a file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh page; parametrise indirectly to set options of the browser's context."""
    context = browser.new_context(**getattr(request, "param", {}))
    visit = Visit(context.new_page())
    visit.watch()
    yield visit
    context.close()
