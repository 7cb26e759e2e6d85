"""Visits to pages in a real browser, with all that they complain about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
_SHOWS_SERIES = """(plot, colour) => plot.checkVisibility()
    && [...plot.querySelectorAll(":scope > svg.chart path")].some(path => {
        const look = getComputedStyle(path);
        return path.getBoundingClientRect().width > 20 && [look.stroke, look.fill].includes(colour);
    })"""


@dataclass
class Visit:
    """A page with all that it complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note every message, error, dialog, failed request, and request to anywhere else."""
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._request)
        self.page.on("dialog", self._dialog)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.complaints.append(request.url)

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # a page that is left drops what it waits for
            self.complaints.append(request.url)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def charts_of_the_page(self, colour: str) -> list[bool]:
        """For each chart, whether it shows a series of this colour that no script has drawn."""
        charts = self.page.locator(".plot").all()
        return [chart.evaluate(_SHOWS_SERIES, colour) for chart in charts]

    def wait_for_charts(self) -> None:
        """Wait until all charts are drawn; a page without any has none to wait for."""
        if self.page.locator(".plot").count():
            self.page.wait_for_selector("html.drawn")


def options(**values: Any) -> pytest.MarkDecorator:
    """Open the page of a test in a context of its own kind."""
    return pytest.mark.parametrize("visit", [values], indirect=True)
