"""One number per night and metric: the same, with the same digits, wherever the night is told."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest

from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.table import make_console
from ragmetrics.dashboard import night_markdown, night_summary
from ragmetrics.messages import compose
from ragmetrics.pipeline import run_night
from ragmetrics.storage import open_store
from tests.builders import night_settings
from tests.fakes.formats import terminal_text
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.unit.dashboard.test_refresh import text


def test_all_views_have_the_same_mean_and_name_what_is_of_other_rows(tmp_path: Path) -> None:
    """Some questions come more often on the second night, so the mean of all rows is not that of
    the questions, each counted once: only sentences with a drop have the latter, and say so.
    """
    rules = [{"metric": "context_recall", "max_drop": 0.05, "versus": "previous"}]
    settings = night_settings(tmp_path, logs="logs/{date}/", judge="lexical", rules=rules)
    for day, good in ((NIGHT - timedelta(days=1), 1.0), (NIGHT, 0.5)):
        rows = make_rows(40, good=good, night=day)
        often = [{**row, "id": f"{row['id']}-again"} for row in rows[:30:2]] if good < 1 else []
        write_jsonl(tmp_path / "logs" / str(day) / "a.jsonl", [*rows, *often])
        manifest = run_night(settings, day).manifest
    (whole,) = manifest.metrics
    (found,) = (finding for finding in manifest.findings if finding.kind == "metric")
    assert whole.mean is not None and found.means is not None and found.drop is not None
    mean, once = f"{whole.mean:.3f}", f"{found.means.now:.3f}"
    assert mean != once
    assert found.means.before - found.means.now == pytest.approx(found.drop)
    files, out = open_store(settings), io.StringIO()
    tables.print_summary(make_console(file=out, width=200), manifest)
    message = compose(manifest, manifest.findings, dashboard=None, redact=False)
    assert message is not None
    pages = {
        name: text(files.read(f"dashboard/{name}").decode().replace("</t", " </t"))
        for name in ("index.html", f"{NIGHT}/index.html", f"{NIGHT}/changes.html")
    }
    told = {
        "notification": message.text,
        "slack": terminal_text(message),
        "terminal": out.getvalue(),
        "artifact": night_markdown(files, manifest, ""),
        "e-mail": text(night_summary(files, NIGHT).decode()),
        **pages,
    }
    compared = f"to {once} over the same 40 questions"
    for name, message in told.items():
        words = " ".join(message.split())
        assert mean in words, name
        for before in words.split(once)[1:]:  # whatever has the other number says of what it is
            assert before.startswith((" over the same 40 questions", " all rows")), name
    assert f"mean of all rows {mean}" in pages["index.html"]
    for name in ("index.html", f"{NIGHT}/index.html"):
        assert compared in pages[name], name
