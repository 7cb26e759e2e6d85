"""A night whose every text attacks whoever shows it: it shows as text, and does nothing else.

The same night with the signs of the attacks taken out is what its pages are held against.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from ragmetrics.dashboard import gate_markdown, night_markdown, rebuild_dashboard
from ragmetrics.records import Silence
from ragmetrics.rules import silence
from ragmetrics.storage import Runs, open_store
from tests.fakes.browsing import Visit
from tests.fakes.clients import JudgeServer
from tests.fakes.every_text import NIGHTS, Told, tell_everything
from tests.fakes.logs import NIGHT
from tests.fakes.mrkdwn import StyledText, spans
from tests.fakes.slack import SlackServer

MARKUP = (
    "<script>alert(1)</script></script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    '<iframe src="https://evil.example"></iframe><a href="javascript:alert(4)">x</a> '
    "<!--  ]]> <!channel> <@U1> <https://evil.example|x> @here *b* _i_ ~s~ `c` :tada: "
    "[x](javascript:alert(5)) ![x](https://evil.example/x.png) | --- | {{ 7 * 7 }} "
    "\u202e\u2066\u200f\u2028\x00\x1b[31m\x07 \\ \" ' {# #}"
)
FORMULAS = {"user_input": "=HYPERLINK(1)", "id": "@SUM(1)", "tag value": "+1", "response": "-1"}
NAME = "<img src=x onerror=alert(6)> @channel =cmd \u202e javascript:alert(7)"
LONG = "<b>" + "x" * 1_000_000
PAGE_BYTES = 300_000
TITLES = {
    *(
        "broken logs",
        "quarantined rows",
        "Context recall is significantly worse",
        "Context relevance (graded) is significantly worse",
    ),
    *(
        "Mean",
        "Mean of all rows",
        "Mean of its rows",
        "Compared",
        "Before",
        "Drop",
        "Mix",
        "Scored",
    ),
    *("Since", "Questions", "Missing", "Limit", "What:", "Where:", "Why:", "When:"),
    *(
        "Still firing",
        "Also fired",
        "Worst questions",
        "Questions that got worse",
    ),
    *("Why", "Other metrics", "Significantly worse, without an alert rule"),
}
"""What messages set in bold."""
CELL = re.compile(r"[=+\-@\t\r]")
COUNT = """() => {
    const found = {};
    const add = (what) => { found[what] = (found[what] ?? 0) + 1; };
    for (const one of document.querySelectorAll("*")) {
        // Charts are as many elements as their numbers ask for; an icon shows a state.
        if (one.closest(".plot, svg.icon, #js-plotly-tester")) continue;
        if (/^(script|img|svg|iframe|object|embed|form|style|link|base|meta)$/i.test(one.tagName))
            add(one.tagName);
        for (const {name, value} of one.attributes) {
            if (name.startsWith("on")) add(name);
            const scheme = /^\\s*(javascript|https?):/i.exec(value);
            if (scheme && /^(href|src|action|xlink:href)$/.test(name)) add(`${name} ${scheme[1]}`);
        }
    }
    return found;
}"""
CENTRE = """one => {
    one.scrollIntoView({block: "center"});
    const {x, y, width, height} = one.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
}"""


def hostile(field: str) -> str:
    """What a log may hold in a field."""
    if field in ("file name", "set name"):
        return NAME
    return LONG if field == "long word" else FORMULAS.get(field, "") + MARKUP


def plain(field: str) -> str:
    """The same words without a sign."""
    return " ".join(re.sub(r"[^\w ]|_", " ", hostile(field)).split())


@dataclass(frozen=True)
class Night:
    """A store, and what Slack was told of it."""

    told: Told
    messages: list[dict[str, Any]]

    def page(self, name: str) -> str:
        """The address of a page."""
        return (self.told.site / name).as_uri()


@pytest.fixture(scope="module")
def nights(
    judge_process: JudgeServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Night]]:
    """The hostile night, with a note on each of its alerts, and the plain one."""
    judge_process.reset()
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "testing")
        for name, say in (("hostile", hostile), ("plain", plain)):
            with SlackServer().running() as slack:
                patch.setenv("SLACK_WEBHOOK_URL", slack.url)
                told = tell_everything(tmp_path_factory.mktemp(name), say, judge_process.base_url)
            _annotate(told, say("note"))
            found[name] = Night(told, slack.delivered)
        yield found


def _annotate(told: Told, note: str) -> None:
    """What people say of alerts is on the pages, too."""
    files = open_store(told.settings)
    newest = Runs(files).current(NIGHT)
    assert newest is not None
    for finding in newest.findings:
        if finding.state == "firing":
            at = datetime(2026, 11, 20, 9, tzinfo=UTC)
            silence(files, Silence(key=finding.key, at=at, by=note, note=note, since=finding.since))
    rebuild_dashboard(files, files.at("dashboard"))


def count(browser: Any, night: Night) -> Mapping[str, Any]:
    """By page, the elements that could do something, once its scripts are through."""
    found = {}
    context = browser.new_context(viewport={"width": 390, "height": 900})
    for path in night.told.pages:
        name = str(path.relative_to(night.told.site))
        visit = Visit(context.new_page())
        visit.watch()
        visit.page.goto(path.as_uri())
        visit.wait_for_charts()
        for point in visit.page.locator(".plot .point").all()[:1]:
            visit.page.mouse.move(*point.evaluate(CENTRE))  # what is told there is Plotly's work
        found[name] = visit.page.evaluate(COUNT)
        assert visit.complaints == [], name
        assert visit.overflow() <= 0, name
        visit.page.close()
    context.close()
    return found


def test_no_page_does_what_a_log_says(browser: Any, nights: dict[str, Night]) -> None:
    """No message, dialog or request; no element more than on the plain night's pages; no sideways
    scroll on a narrow screen."""
    assert count(browser, nights["hostile"]) == count(browser, nights["plain"])


def test_a_row_opens_as_text(visit: Visit, nights: dict[str, Night]) -> None:
    """Rows that scripts write are what the page's are: the same words, and none of them markup."""
    visit.page.goto(nights["hostile"].page(f"{NIGHT}/rows.html"))
    visit.page.locator("main a[href*='row=']:visible").first.click()
    article = visit.page.locator("article:visible")
    article.first.wait_for()
    assert article.locator("script, img, iframe, a[href^='javascript' i]").count() == 0
    assert "<script>alert(1)</script>" in article.first.inner_text()
    assert visit.complaints == []


def test_files_stay_small(nights: dict[str, Night]) -> None:
    """However long a word is: pages are cut, and so are the files of rows."""
    site = nights["hostile"].told.site
    sizes = {path.name: path.stat().st_size for path in nights["hostile"].told.pages}
    assert max(sizes.values()) < PAGE_BYTES, sizes
    rows = [path.stat().st_size for path in site.rglob("rows-*.js")]
    assert rows
    assert max(rows) < 1_100_000


def test_what_is_downloaded_runs_in_no_spreadsheet(
    visit: Visit, nights: dict[str, Night], tmp_path: Path
) -> None:
    """No cell of the CSV begins as a formula does, but for numbers."""
    visit.page.goto(nights["hostile"].page(f"{NIGHT}/rows.html"))
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    assert len({len(line) for line in lines}) == 1
    cells = [cell for line in lines for cell in line]
    assert [cell for cell in cells if CELL.match(cell) and not _is_number(cell)] == []
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def test_prometheus_reads_the_same_series(nights: dict[str, Night]) -> None:
    """As many of each name, whatever stands in labels; no label breaks a line."""
    found = {}
    for name, night in nights.items():
        text = (night.told.site / "metrics.prom").read_text("utf-8")
        families = list(text_string_to_metric_families(text))
        found[name] = [(family.name, len(family.samples)) for family in families]
        values = [v for family in families for s in family.samples for v in s.labels.values()]
        assert [v for v in values if _unseen(v)] == []
    assert found["hostile"] == found["plain"]


def test_slack_reads_no_markup_of_a_log(nights: dict[str, Night]) -> None:
    """No link, mention or style but bold titles, and those are ours; no sign that is not seen."""
    messages = nights["hostile"].messages
    assert len(messages) == 4  # both nights, the held build, and the one without a verdict
    styled = [one for message in messages for one in _styled(message)]
    assert {one.style for one in styled} == {"bold"}
    assert {one.text for one in styled} <= TITLES
    texts = [text for message in messages for _, text in _texts(message)]
    assert "&lt;script&gt;" in " ".join(texts)
    assert [text for text in texts if _unseen(text.replace("\n", "").replace("\u2060", ""))] == []


def _styled(message: dict[str, Any]) -> list[StyledText]:
    mrkdwn = [text for kind, text in _texts(message) if kind != "plain_text"]
    return [one for text in mrkdwn for one in spans(text) if one.style]


def _texts(part: Any, kind: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a message, each with the kind of text that Slack takes it for."""
    if isinstance(part, Mapping):
        kind = str(part.get("type", kind))
        for name, value in part.items():
            if isinstance(value, str) and name == "text":
                yield kind, value
            elif not isinstance(value, str):
                yield from _texts(value, kind)
    elif isinstance(part, list):
        for element in part:
            yield from _texts(element, kind)


def _unseen(text: str) -> bool:
    """Whether a text has controls or direction marks."""
    return any(unicodedata.category(one) in ("Cc", "Cf", "Cs") for one in text)


def test_artifacts_have_no_markup_of_a_log(nights: dict[str, Night]) -> None:
    """Read as Markdown with HTML, they are the elements of the plain night."""
    found = {}
    for name, night in nights.items():
        files = open_store(night.told.settings)
        runs = [one for day in NIGHTS if (one := Runs(files).current(day))]
        texts = [night_markdown(files, run, "https://dash.example") for run in runs]
        texts.append(gate_markdown(night.told.gate, "https://dash.example"))
        # The hostile night has other alerts and a held build, so other numbers of lines.
        found[name] = set(_elements("\n".join(texts)))
    # Only the held build lists questions that got worse.
    assert found["hostile"] == found["plain"] | {"<ul", "<li"}


def _elements(markdown: str) -> list[str]:
    """The elements of the HTML that a text of Markdown becomes, with the targets of links."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    return sorted(re.findall(r"<\w+(?: href=[^>]*)?", reader.render(markdown)))
