"""One cause, one incident: in messages, in the banner, in the summaries and on the terminal."""

from __future__ import annotations

import io
from datetime import date, timedelta
from pathlib import Path

import pytest

from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.table import make_console
from ragmetrics.dashboard import night_markdown, night_summary
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.delivery import Delivery
from ragmetrics.messages import compose
from ragmetrics.pipeline import CoverageShort, NightResult, run_night
from ragmetrics.records import Manifest
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.formats import terminal_text
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.unit.dashboard.test_refresh import text

METRICS = [
    "context_relevance",
    "context_precision",
    "context_recall",
    "context_relevancy",
    "faithfulness",
    "context_entity_recall",
]
LINES = (0.97, 0.98)
"""Two `min` rules on each metric that no night of these logs holds."""


class Site:
    """A dataset with a judge over HTTP, and all that is told of its nights."""

    def __init__(self, folder: Path, server: JudgeServer) -> None:
        self.folder = folder
        rules = [
            {"metric": name, "min": line, "min_rows": 5} for name in METRICS[:4] for line in LINES
        ]
        self.settings = night_settings(
            folder,
            logs="logs/{date}/",
            metrics=METRICS,
            judge=judge_at(server, retries=0),
            rules=rules,
        )

    def night(self, day: date, good: float | None = 0.4) -> tuple[Manifest, str]:
        """Run a night, without a log where `good` is None; its record and its error, if any."""
        if good is not None:
            rows = make_rows(20, good=good, night=day)
            for row in rows:  # new questions, or the judge's answers are known
                row["user_input"] = f"On {day}: {row['user_input']}"
            write_jsonl(self.folder / "logs" / str(day) / "a.jsonl", rows)
        error = ""
        try:
            run_night(self.settings, day)
        except CoverageShort as short:
            error = str(short)
        found = Runs(open_store(self.settings)).current(day)
        assert found is not None
        return found, error

    def told(self, manifest: Manifest, error: str = "") -> dict[str, str]:
        """What each view says of a night."""
        files = open_store(self.settings)
        message = compose(manifest, manifest.findings, dashboard=None, redact=False)
        out = io.StringIO()
        console = make_console(file=out, width=400)
        tables.print_nights(console, [NightResult(manifest, Delivery(None, sent=False))])
        pages = {
            name: files.read(f"dashboard/{path}").decode()
            for name, path in (
                ("overview", "index.html"),
                ("night", f"{manifest.date}/index.html"),
            )
        }
        heroes = {
            name: page.split('<dl class="story">')[1].split("</dl>")[0]
            for name, page in pages.items()
        }
        return {
            "slack": terminal_text(message) if message else "",
            "terminal": out.getvalue(),
            "artifact": night_markdown(files, manifest, "https://example.com/").replace("\\", ""),
            "e-mail": text(night_summary(files, manifest.date).decode()),
            "error": error,
            **{name: text(hero) for name, hero in heroes.items()},
        }


@pytest.fixture
def site(tmp_path: Path, judge_server: JudgeServer) -> Site:
    """Before any night."""
    return Site(tmp_path, judge_server)


def test_a_judge_that_is_down_is_told_once(site: Site, judge_server: JudgeServer) -> None:
    """Six metrics have no verdict and eight alerts are not checked, for one reason."""
    site.night(NIGHT - timedelta(days=1))
    judge_server.faults(models=())
    manifest, error = site.night(NIGHT)
    kinds = [finding.kind for finding in manifest.findings if finding.level != "ok"]
    assert (kinds.count("judge_failures"), kinds.count("metric")) == (6, 8)
    for name, message in site.told(manifest, error).items():
        words = " ".join(message.split())
        if name == "terminal":
            assert words.count("fired:") == 1
            assert "unanswered (explains 13 more alerts)" in words
            continue
        assert words.count("the judge has no model") == 1, name
        if name == "error":  # of a command, with the names of the settings
            assert "failed in 6 metrics; context_relevance: 20 of 20 rows" in words
            assert "in context_precision, context_recall, context_relevancy, faithf" in words
            continue
        assert "failed in 6 metrics; Context relevance (graded): 20 of 20 rows" in words, name
        assert "in Context precision, Context recall, Sentences needed, Faithfulness" in words, name
        assert "explains 8 more alerts without data: Context relevance (graded) (2)," in words, name
    assert [len(incident.findings) for incident in find_night_status(manifest).incidents] == [14]


def test_a_missing_log_is_told_first_and_alone(site: Site) -> None:
    """Eight alerts that fire are not checked: they are counted below the cause."""
    site.night(NIGHT - timedelta(days=1))
    manifest, error = site.night(NIGHT, good=None)
    assert [finding.kind for finding in manifest.findings].count("metric") == 8
    for name, message in site.told(manifest, error).items():
        words = " ".join(message.split())
        if name == "terminal":
            assert "fired: every log file is present and complete (explains 8 more alerts)" in words
            continue
        assert words.lower().count("nothing to score: no log file at") == 1, name
        if name != "error":
            first, _, rest = words.partition(
                "xplains 8 more alerts without data: Context relevance (graded) (2)"
            )
            assert "nothing to score: no log file at" in first.lower() and rest, name
            assert "not checked since" not in first, name
    (incident,) = find_night_status(manifest).incidents
    assert (incident.cause.kind, len(incident.explained)) == ("no_data", 8)


def test_a_judge_that_is_back_resolves_once(site: Site, judge_server: JudgeServer) -> None:
    """Six alerts of the judge resolve as one; the rules are held again."""
    judge_server.faults(models=())
    site.night(NIGHT - timedelta(days=1))
    judge_server.reset()
    manifest, _ = site.night(NIGHT, good=1.0)
    slack = " ".join(site.told(manifest)["slack"].split())
    print(slack)
    assert "Back to normal" in slack
    assert slack.count("got no usable verdict") == 1
