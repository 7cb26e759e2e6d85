"""Previews: every message as Slack would show it, on a terminal and on a page, sent to nobody."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.comparison import save_gate
from ragmetrics.config import load_settings
from ragmetrics.delivery import load_alerts, message_samples as samples, notify_channels
from ragmetrics.delivery.channel_kinds.slack_bot import API
from ragmetrics.delivery.state import advance_states
from ragmetrics.messages import Header, Message, Note, Section, links
from ragmetrics.messages.blocks import Block, bullets
from ragmetrics.metrics import display_name
from ragmetrics.pipeline.message_preview import Preview, Previews
from ragmetrics.rules import used_checks
from ragmetrics.storage import Files, Runs
from tests.fakes.command import Run
from tests.fakes.formats import slack_blocks, slack_json, terminal_text
from tests.fakes.gated import gate, promoted
from tests.fakes.mrkdwn import StyledText, spans
from tests.fakes.nights import FIRST, HOSTILE, finding, night
from tests.fakes.slack import TOKEN, SlackServer
from tests.unit.messages.test_night_message import validate

KINDS = (
    "Fired",
    "Fired, a warning",
    "Fired, on a sampled night",
    "Reminder, with one acknowledged and one snoozed",
    "Escalated",
    "Resolved",
    "Many at once",
    *(check.sample.title for check in used_checks() if check.sample),
    "Index build held",
    "Index build without verdict",
)
DRAWN = {"header", "section", "context", "actions", "divider"}


class Page(HTMLParser):
    """What a page would fetch or run, its links, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched, self.links, self.text = list[str](), list[str](), ""
        self.tags = set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what it points at."""
        self.tags.add(tag)
        for name, value in attributes:
            if name in ("src", "srcset", "data", "action") or (tag == "link" and name == "href"):
                self.fetched.append(f"{tag} {value}")
            elif name == "href":
                self.links.append(str(value))
            assert not name.startswith("on"), (tag, name, value)

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text += data


def page_of(path: Path, *messages: Message) -> Page:
    """The page of some messages."""
    Previews([Preview("A message", message) for message in messages]).write_page(path / "page.html")
    return Page((path / "page.html").read_text("utf-8"))


def message_of(*blocks: Block) -> Message:
    """A message of these blocks."""
    return Message("short", list(blocks))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A store with a quiet night and one that fired."""
    files = Files(str(tmp_path / "store"))
    for manifest in (night(0), night(1, recall=0.7)):
        Runs(files).save(manifest)
    return files


def preview(run: Run, files: Files, *words: object) -> Any:
    """`ragmetrics alerts preview ... --store ...`."""
    return run("alerts", "preview", *words, "--store", files.uri())


@pytest.mark.parametrize("redact", [False, True])
def test_every_kind_of_message_has_a_sample(redact: bool) -> None:
    """Written by the code that writes the real ones, within Slack's limits, and fit to be drawn."""
    told = samples.sample_messages(redact)
    assert tuple(title for title, _ in told) == KINDS
    for _, message in told:
        validate(message)
        assert {block["type"] for block in slack_blocks(message)} <= DRAWN
        assert ("refund" in slack_json(message)) <= (not redact)


def test_samples_show_what_their_title_says() -> None:
    """By the headline, and what a reader of the channel has to see."""
    told = {title: slack_json(message) for title, message in samples.sample_messages()}
    for title, words in {
        "Fired": "Critical: Context recall fell",
        "Fired, a warning": "Warning: Context relevance (graded) is low",
        "Reminder, with one acknowledged and one snoozed": "acknowledged by ada: the reranker",
        "Fired, on a sampled night": "estimated from 500 of 20,000 rows, 463 questions",
        "Resolved": "Back to normal",
        "Escalated": "Significantly worse than in the last message (2026-11-17): 0.714",
        "Many at once": "more",
        "Judge drift": "quadratic kappa",
        "Labels gone stale": "Warning: stale labels",
        "No data": "no log file",
        "Quarantined rows": "rows quarantined",
        "Judge failures": "quota exceeded",
    }.items():
        assert words in told[title], title
    assert "Snoozed" in told["Reminder, with one acknowledged and one snoozed"]


def test_many_alerts_are_one_message_worst_first() -> None:
    """45 of five metrics: wholes before segments, which share a line, the furthest fallen first."""
    (message,) = (one for title, one in samples.sample_messages() if title == "Many at once")
    validate(message)
    sections = [block for block in slack_blocks(message) if "fields" in block]
    shown = [section["text"]["text"].partition(" fell*")[0].strip("*") for section in sections]
    names = ["context_recall", "faithfulness", "context_relevance", "response_relevancy"]
    assert shown == [display_name(name) for name in names]
    (too,) = (one for one in terminal_text(message).split("\n\n") if one.startswith("Also fired"))
    first, second = too.split("\n• ")[1:3]
    assert first.startswith("Context precision fell from 0.806 to 0.745")
    assert " ".join(second.split()) == (
        "Context recall fell in 8 segments: "
        "section=limits 0.846 → 0.638 over the same 70 questions; "
        "section=mobile 0.846 → 0.648 over the same 70 questions; "
        "section=security 0.846 → 0.658 over the same 70 questions and 5 more"
    )


def test_what_has_no_room_is_on_the_dashboard(tmp_path: Path) -> None:
    """`and N more` is a link to the night's page; where no browser opens that, it is text."""
    page = "https://dash.example/a?b=1&c=2"
    lines = [f"line {number}" for number in range(12)]
    linked, told = (message_of(*bullets("Many", lines, one)) for one in (page, "/srv/dashboard"))
    assert in_slack(linked).endswith("\n<https://dash.example/a?b=1&amp;c=2|and 2 more>")
    assert in_slack(told).endswith("\nand 2 more")
    assert page_of(tmp_path, linked).links == [page]
    assert terminal_text(linked).endswith("• line 9\nand 2 more")
    long = "https://dash.example/" + "x" * 3_000
    assert len(in_slack(message_of(*bullets("Many", lines, long)))) < 3_000


def in_slack(message: Message) -> str:
    """The text of its only section."""
    (section,) = slack_blocks(message)
    return str(section["text"]["text"])


def test_samples_are_shown_without_a_store(
    run: Run, tmp_path: Path, slack_server: SlackServer
) -> None:
    """On the terminal, and on a page that names each; Slack hears nothing."""
    ended = run("alerts", "preview", "--sample", "--html", tmp_path / "page.html")
    assert (ended.code, ended.err) == (0, "")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    for kind in KINDS:
        assert kind in ended.out
        assert kind in page.text
    assert slack_server.received == []


def test_the_newest_night_is_shown_as_it_was_told(run: Run, files: Files) -> None:
    """Without more words; with the numbers of its record."""
    ended = preview(run, files)
    assert ended.code == 0, ended.err
    assert "Night of 2026-11-11" in ended.out
    assert "Context recall fell from 0.930 to 0.700" in ended.out


def test_a_preview_is_what_every_channel_gets(
    run: Run, tmp_path: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Block for block: by a bot what fired and what resolved are apart, a pager has no warnings."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv(API, slack_server.api)
    files, yaml = Files(str(tmp_path / "store")), tmp_path / "ragmetrics.yaml"
    pager = {"url_env": "PAGER_URL", "severity": "critical"}
    alerts = {"slack_channel": "#retrieval", "channels": [{"url_env": "TEAM_URL"}, pager]}
    yaml.write_text(json.dumps({"store": files.uri(), "alerts": alerts}))
    both = "context_recall", "context_relevance"
    for number, levels in enumerate((("breach", "ok"), ("ok", "breach"))):
        told = [
            finding(name, level=level, severity="warning")
            for name, level in zip(both, levels, strict=True)
        ]
        told = advance_states(load_alerts(files), told, night(number).date, 7)[1]
        Runs(files).save(night(number, findings=told))
        notify_channels(load_settings(yaml), files, night(number, findings=told))
    words = ("alerts", "preview", "--settings", yaml, "--json")
    shown = json.loads(run(*words).out)["messages"]
    assert [one["title"] for one in shown] == [
        "Night of 2026-11-11, to slack",
        "Night of 2026-11-11, to slack, in the thread of its alerts",
        "Night of 2026-11-11, to TEAM_URL",
    ]
    assert [one["message"]["blocks"] for one in shown[:2]] == [
        post["blocks"] for post in slack_server.posted[1:]
    ]


def test_a_night_that_tells_nothing_says_so(run: Run, files: Files, tmp_path: Path) -> None:
    """On the terminal, and on the page."""
    ended = preview(run, files, "--date", FIRST, "--html", tmp_path / "page.html")
    assert ended.out.startswith(f"Night of {FIRST}: no message.")
    assert "Nobody is notified." in Page((tmp_path / "page.html").read_text("utf-8")).text


def test_messages_are_shown_as_json(run: Run, files: Files) -> None:
    """As Slack's Block Kit Builder takes them."""
    (one,) = json.loads(preview(run, files, "--json").out)["messages"]
    assert one["title"] == "Night of 2026-11-11"
    assert one["message"]["blocks"][0]["type"] == "header"
    (one,) = json.loads(preview(run, files, "--json", "--date", FIRST).out)["messages"]
    assert one["message"] is None


def test_a_gate_is_shown_where_it_is_news(run: Run, files: Files) -> None:
    """A held build has its message, a promoted one has none."""
    save_gate(files, gate())
    save_gate(files, promoted())
    assert "index build idx-43 is held" in preview(run, files, "--build", "idx-43").out
    assert "idx-44: promote, no message" in preview(run, files, "--build", "idx-44").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--date", "2026-11-30"], "no night of 2026-11-30"),
        (["--date", "2026-11-30"], "the newest night is 2026-11-11"),
        (["--build", "idx-1"], "no verdict on the index build 'idx-1'"),
        (["--build", "../runs"], "no verdict on the index build '../runs'"),
        (["--sample", "--build", "idx-1"], "one of them at a time"),
        (["--date", "tomorrow"], "should be a date like 2026-11-19"),
        (
            ["--sample", "--html", "/dev/null/page.html"],
            "--html /dev/null/page.html: Not a directory",
        ),
    ],
)
def test_a_slip_is_one_clear_sentence(run: Run, files: Files, words: list[str], said: str) -> None:
    """Exit code 2."""
    ended = preview(run, files, *words)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_a_page_fetches_and_runs_nothing(tmp_path: Path) -> None:
    """Its links wait for somebody to follow them, and tell nobody where they stood."""
    page = page_of(tmp_path, *(message for _, message in samples.sample_messages()))
    assert page.fetched == []
    assert not page.tags & {"script", "img", "iframe", "object", "form", "base"}
    assert page.links
    assert all(link.startswith("https://") for link in page.links)
    html = (tmp_path / "page.html").read_text("utf-8")
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "@import" not in html


def test_a_page_shows_every_text_of_a_message(tmp_path: Path) -> None:
    """Headline, fields, small print and buttons, with the signs that they have."""
    message = message_of(
        Header("Head & <line>"),
        Section("bold", " T & <b>", facts=(("A", "1"),)),
        Note("small"),
        *links([("run", "https://e.example/?a=1&b=2")]),
    )
    page = page_of(tmp_path, message)
    for text in ("Head & <line>", "bold T & <b>", "A: 1", "small", "Open the run"):
        assert text in page.text
    assert page.links == ["https://e.example/?a=1&b=2"]


@pytest.mark.parametrize("place", ["header", "note", "list", "fact", "link"])
def test_hostile_text_is_text_on_the_page(tmp_path: Path, place: str) -> None:
    """Wherever it stands."""
    blocks: dict[str, Block] = {
        "header": Header(HOSTILE),
        "note": Note(HOSTILE),
        "list": bullets(HOSTILE, [HOSTILE])[0],
        "fact": Section(HOSTILE, HOSTILE, (HOSTILE,), ((HOSTILE, HOSTILE),)),
        "link": links([(HOSTILE, 'javascript:alert(1)//"onmouseover="x')])[0],
    }
    page = page_of(tmp_path, message_of(blocks[place]))
    assert not page.tags & {"script", "img"}
    assert not page.links
    assert "alert(1)" in page.text


def test_a_hostile_night_is_shown_inert(run: Run, files: Files, tmp_path: Path) -> None:
    """From the log's text to the page: no markup, and no escape code on the terminal."""
    one = finding(level="breach", transition="fired", message=HOSTILE + "\x1b[31m", rule=HOSTILE)
    Runs(files).save(night(2, findings=[one]))
    ended = preview(run, files, "--html", tmp_path / "page.html")
    assert "\x1b" not in ended.out
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert not page.tags & {"script", "img", "mark"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("plain", [StyledText("plain")]),
        ("*bold* rest", [StyledText("bold", "bold"), StyledText(" rest")]),
        ("_it_ ~no~ `*c*`", [("it", "italic"), ("no", "strike"), ("*c*", "code")]),
        ("2*3*4 snake_case_name ~/x", [StyledText("2*3*4 snake_case_name ~/x")]),
        ("* a * and *b*", [StyledText("* a * and "), StyledText("b", "bold")]),
        ("&lt;b&gt; &amp;amp; &quot;", [StyledText("<b> &amp; &quot;")]),
        (
            "<https://e.example/?a&amp;b|more>",
            [StyledText("more", "link", "https://e.example/?a&b")],
        ),
        ("<https://e.example>", [StyledText("https://e.example", "link", "https://e.example")]),
        ("<javascript:x|more>", [StyledText("more", "link")]),
        ("<!channel> <@U1> <!here|here>", ["@channel", "@U1", "@here"]),
        ("&lt;!channel&gt;", [StyledText("<!channel>")]),
        ("*one", [StyledText("*one")]),
    ],
)
def test_mrkdwn_is_read_as_slack_reads_it(text: str, told: list[Any]) -> None:
    """What acts there is shown to act, and nothing else does."""
    found = spans(text)
    if isinstance(told[0], tuple):
        assert [(one.text, one.style) for one in found if one.style] == told
    elif isinstance(told[0], str):
        assert [one.text for one in found if one.style == "mention"] == told
    else:
        assert found == told


@given(st.text(alphabet="ab*_~`<>|&!@# \n", max_size=60))
def test_no_text_is_lost_or_invented_in_reading_mrkdwn(text: str) -> None:
    """Letters come out as they went in, in order."""
    letters = "".join(one for one in text if one in "ab")
    shown = "".join(span.text for span in spans(text))
    shown += "".join(span.href for span in spans(text))
    if "|" not in text:
        assert "".join(one for one in shown if one in "ab") == letters
