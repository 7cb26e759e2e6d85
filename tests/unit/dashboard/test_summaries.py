"""A night on one page for e-mail, and its headline in Prefect: one table, in two forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard import night_markdown, night_summary, redacted
from ragmetrics.dashboard.summaries import summary_markdown, summary_page
from ragmetrics.errors import InputError
from ragmetrics.records import JudgeInfo, Manifest, Segment, Source
from ragmetrics.storage import Files, Runs
from tests.fakes.command import Run
from tests.fakes.nights import HOSTILE, as_worst, finding, night, summary, ten_nights, worst_row
from tests.fakes.pages import Outline, Site, text

DROP = {"drop": 0.22, "drop_low": 0.13, "drop_high": 0.31, "baseline": 0.92}
KNOWN = {"dashboard_url": "https://dash.example/rag/"}
CLIPPED = 100_000
"""Bytes from where on mail clients cut a page."""


def page(manifest: Manifest, *earlier: Manifest) -> str:
    """The page of a night."""
    return summary_page(manifest, earlier).decode()


def words(manifest: Manifest, *earlier: Manifest) -> str:
    """What it says."""
    return text(page(manifest, *earlier).replace("</t", " </t").replace("<br>", " "))


def hostile(**more: Any) -> Manifest:
    """A night full of long and evil texts."""
    evil = HOSTILE + "javascript:alert(1) <svg onload=x> | ` [a](http://b)\n=1+1 " + "&" * 100_000
    segment = Segment(tag=evil, value=evil)
    metrics = [summary(f"{number} {evil}", 0.5) for number in range(90)]
    rules = [finding(f"{n} {evil}", "breach", key=str(n), message=f"{n} {evil}") for n in range(90)]
    values: dict[str, Any] = {
        "judge": JudgeInfo(name=evil, fingerprint="f", note=evil),
        "metrics": metrics,
        "segments": [summary(one.metric, 0.1, segment=segment) for one in metrics],
        "findings": rules,
        "problems": [evil] * 50,
        "settings": {"dashboard_url": 'https://dash.example/"><script>alert(3)</script>'},
        "worst": as_worst(worst_row("q-1", evil)),
    }
    return night(**{**values, **more})


def test_it_says_how_the_night_stands_and_why() -> None:
    """Headline, alerts, each metric with change and interval, and where it is lowest."""
    *earlier, last = ten_nights()
    told = words(last, *earlier)
    assert "Night of 2026-11-19: 1 alert firing." in told
    assert "What: Context recall fell from 0.930 to 0.700, limit 0.8." in told
    assert "Where: section=billing (0.50)." in told
    line = "0.700 [0.670, 0.730] −0.230 [−0.272, −0.188] compared with 2026-11-18 200"
    assert f"Context recall firing {line}" in told
    assert "Lowest segments" in told
    assert "section=billing Context recall 0.500 [0.470, 0.530] 0.700 200" in told
    assert "200 rows read, 0 quarantined. Judge: lexical - a baseline." in told


def test_a_change_is_that_of_the_rule() -> None:
    """As on the night's page: question by question, against the rule's baseline."""
    rule = finding(level="breach", baseline_label="7 nights before", **DROP)
    for told in (words(night(findings=[rule])), summary_markdown(night(findings=[rule]), "/")):
        assert "−0.22 [−0.31, −0.13] compared with 7 nights before" in told.replace("\\", "")


def test_a_first_night_and_one_without_data_have_their_page() -> None:
    """Without a change there is none; without a number there is no segment."""
    assert "against" not in words(night())
    unread = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
    nothing = [summary("context_recall", None, status={})]
    empty = page(night(source=unread, metrics=nothing, segments=[], findings=[]))
    assert "no file under logs/" in text(empty)
    assert "<table role" in empty and "Metrics" not in text(empty)
    assert "Nothing was scored, so this night has no numbers." in text(empty)


def test_links_are_absolute_or_none() -> None:
    """A path leads nowhere from an inbox."""
    assert Outline(page(night())).all("a") == []
    rows = as_worst(worst_row("q-1", "Why?"))
    links = Outline(page(night(settings=KNOWN, worst=rows))).all("a")
    assert [one["href"] for one in links] == [
        "https://dash.example/rag/2026-11-10/index.html",
        "https://dash.example/rag/2026-11-10/rows.html",
        "https://dash.example/rag/index.html",
    ]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "s3://bucket/x", "/tmp/x", 7, None])
def test_only_the_web_is_linked(url: object) -> None:
    """What a mail client cannot open safely is no link."""
    assert Outline(page(night(settings={"dashboard_url": url}))).all("a") == []


def test_it_brings_everything_along() -> None:
    """No script, style sheet, picture or font; style stands in the elements."""
    for told in (page(ten_nights()[-1]), page(hostile())):
        outline = Outline(told)
        assert set(outline.tags) <= {
            *("html", "head", "meta", "title", "body", "main", "table", "thead", "tbody"),
            *("tr", "td", "th", "h1", "h2", "p", "ul", "li", "span", "a", "b", "br"),
        }
        assert not any(name.startswith("on") for _, own in outline.elements for name in own)
        assert "url(" not in told
        assert "default-src 'none'" in told


def test_hostile_texts_stay_texts_and_short() -> None:
    """Whatever stands in the logs: nothing of it acts, and no mail client cuts the page."""
    told = page(hostile())
    assert 40_000 < len(told.encode()) < CLIPPED
    assert "and 40 more metrics" in text(told)
    assert "<script>alert" not in told
    assert not any(sign in told for sign in ("\x00", "\u202e"))
    assert all(str(one["href"]).startswith("https://") for one in Outline(told).all("a"))


def test_the_artifact_is_bounded_and_inert() -> None:
    """Markdown below 100 kB in which texts are no markup; what is left out is counted."""
    told = summary_markdown(hostile(), "https://dash.example/")
    assert len(told.encode()) < CLIPPED
    assert not re.search(r"(?<!\\)<(?!https://dash)", told) and "\x00" not in told
    assert "[a](" not in told.replace("\\[a\\](", "")
    assert "And 84 more: see the rules." in told
    table = [line for line in told.splitlines() if line.startswith("|")]
    assert len(table) == 52 + 10
    assert {len(line.replace("\\|", "").split("|")) for line in table} == {7}


def test_the_site_has_the_page_of_each_night(tmp_path: Path) -> None:
    """Beside the night's others."""
    site = Site(tmp_path)
    site.night(night())
    assert site.html("2026-11-10/summary.html") == page(night())


class TestFromTheStore:
    @pytest.fixture
    def files(self, tmp_path: Path) -> Files:
        """A store of ten nights."""
        files = Files(str(tmp_path))
        for manifest in ten_nights():
            Runs(files).save(manifest)
        return files

    def test_the_command_prints_a_night(self, run: Run, files: Files) -> None:
        """To be piped into a mail program; characters beyond ASCII are written as entities."""
        ended = run("dashboard", files.root, "--summary", "2026-11-19")
        *earlier, last = ten_nights()
        assert ended.code == 0
        assert ended.out.isascii()
        assert text(ended.out) == text(page(last, *earlier))
        assert not files.exists("dashboard")

    def test_a_night_that_is_not_there_is_named(self, run: Run, files: Files) -> None:
        """With the newest one; and the command says what cannot go together."""
        ended = run("dashboard", files.root, "--summary", "2026-11-30")
        assert ended.code == 2
        assert "there is no night 2026-11-30; the newest is 2026-11-19" in ended.err
        assert run("dashboard", files.root, "--summary", "2026-11-19", "--open").code == 2

    def test_prefect_has_the_same_line(self, files: Files) -> None:
        """The artifact of the nightly, with the change since the night before."""
        told = night_markdown(files, ten_nights()[-1], "https://dash.example/")
        assert (
            "| Context recall | firing | 0.700 [0.670, 0.730] "
            "| −0.230 [−0.272, −0.188] compared with 2026-11-18 | 200 |" in told.replace("\\", "")
        )

    def test_a_redacted_store_shows_no_words(self, files: Files) -> None:
        """Neither form, even of a night before the setting."""
        problem = ["shard 1: How is an invoice changed?"]
        last = ten_nights()[-1]
        Runs(files).save(night(8, problems=problem))
        Runs(files).save(redacted(last))
        assert b"nvoice" not in night_summary(files, night(8).date)
        hidden = redacted(last.model_copy(update={"problems": problem}))
        assert "nvoice" not in night_markdown(files, hidden, "/")

    def test_an_empty_store_has_no_night(self, tmp_path: Path) -> None:
        """It says so."""
        with pytest.raises(InputError, match=r"there is no night 2026-11-10$"):
            night_summary(Files(str(tmp_path / "empty")), night().date)
