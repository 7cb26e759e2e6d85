"""What goes wrong around a night: wrong servers, damaged files, odd names. None of it is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet, find_logs
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.storage import Files, Runs
from tests.builders import night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.http_server import Handler, serving
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

ROWS = make_rows(6)


def dataset(tmp_path: Path, **more: Any) -> Settings:
    """Logs by date and a local store."""
    return make_settings(
        night_values(tmp_path, logs="logs/{date}/", metrics=["context_relevance"]) | more
    )


@pytest.mark.process
def test_a_judge_that_answers_with_a_web_page_is_refused(run: Run, tmp_path: Path) -> None:
    """A login page says 200 too: one line that asks about base_url, no traceback."""
    log = write_jsonl(tmp_path / "a.jsonl", ROWS)
    with serving(WebPage) as url:
        ended = run(
            "score", log, "--judge", "openai", "--base-url", url, "--metrics", "context_recall"
        )
    assert ended.code == 2
    assert "not that of an OpenAI-compatible server, is base_url right?" in ended.err


class WebPage(Handler):
    """Answers everything with a page."""

    def take(self) -> None:
        """Whatever was asked."""
        self.body()
        self.answer(200, b"<html>Please log in</html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize("name", ["b.jsonl.gz", "b.jsonl.zst", "b.csv.gz", "b.parquet"])
def test_an_empty_archive_is_a_broken_file(tmp_path: Path, name: str) -> None:
    """A broken upload leaves nothing behind: that is no whole file, and the night says so."""
    folder = tmp_path / "logs" / str(NIGHT)
    write_jsonl(folder / "a.jsonl", ROWS)
    (folder / name).write_bytes(b"")
    with pytest.raises(CoverageShort, match=f"could not be read to the end: {name}"):
        run_night(dataset(tmp_path), NIGHT)
    (manifest,) = Runs(Files(str(tmp_path / "store"))).nights()
    assert [one.file for one in manifest.source.broken] == [name]
    assert manifest.source.rows == len(ROWS)


def test_a_folder_may_be_named_like_a_log(tmp_path: Path) -> None:
    """Spark writes its parts below `log.parquet/`."""
    write_jsonl(tmp_path / "log.jsonl" / "part-0.jsonl", ROWS)
    files, infos = find_logs(str(tmp_path / "log.jsonl"))
    assert [info.path for info in infos] == ["log.jsonl/part-0.jsonl"]
    assert len(list(LogSet(files, infos).read())) == len(ROWS)


def test_a_damaged_part_is_made_again(tmp_path: Path) -> None:
    """A part that is no Parquet any more counts as missing: the rerun gives the same numbers."""
    settings = dataset(tmp_path)
    write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", ROWS)
    first = run_night(settings, NIGHT).manifest
    part = next(Path(settings.store).glob("scores/**/*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    assert run_night(settings, NIGHT).manifest.metrics == first.metrics


def test_a_rule_on_a_metric_that_is_not_scored_is_an_input_error(tmp_path: Path) -> None:
    """A misspelt rule would never fire: it is told before the night begins."""
    settings = dataset(tmp_path, alerts={"rules": [{"metric": "recall", "min": 0.5}]})
    with pytest.raises(InputError, match="rules: 'recall' is not scored; scored are: context"):
        run_night(settings, NIGHT)


def test_a_tag_of_its_own_in_each_row_costs_nothing(tmp_path: Path) -> None:
    """Of thousands of tag names the frequent ones are shown, and the night goes on."""
    rows = [
        {**row, "tags": {f"tag-{i}": "x", "team": "ab"[i % 2]}}
        for i, row in enumerate(make_rows(400))
    ]
    write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", rows)
    manifest = run_night(dataset(tmp_path), NIGHT).manifest
    assert {str(segment.segment) for segment in manifest.segments} == {"team=a", "team=b"}


def test_text_of_logs_cannot_forge_log_lines(tmp_path: Path) -> None:
    """Line breaks and escape codes of a tag are gone from every message."""
    rows = [{**row, "tags": {"team": "a\n\x1b[31mERROR"}} for row in ROWS]
    write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", rows)
    rules = {"rules": [{"metric": "context_relevance", "min": 0.5, "by": "team"}]}
    findings = run_night(dataset(tmp_path, alerts=rules), NIGHT).manifest.findings
    assert any("team=a" in finding.message for finding in findings)
    assert all(finding.message.isprintable() and finding.rule.isprintable() for finding in findings)


def test_scoring_nothing_is_not_exit_code_0(
    run: Run, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A judge that never gives a verdict, or a log without a row, must not look green in CI."""
    log = write_jsonl(tmp_path / "a.jsonl", ROWS)
    empty = write_jsonl(tmp_path / "empty.jsonl", [])
    judge_server.faults(nonsense=True)
    where = ["--judge", "openai", "--base-url", judge_server.base_url]
    assert run("score", log, "--metrics", "context_recall", *where).code == 1
    assert run("check", empty).code == 1
