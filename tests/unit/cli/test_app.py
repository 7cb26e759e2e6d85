"""The command line: results on stdout, exit codes 0, 1 and 2, every option with its help."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ragmetrics import __version__
from ragmetrics.cli import app as cli
from ragmetrics.config import make_settings
from ragmetrics.metrics import metrics
from ragmetrics.pipeline import run_night
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Ended, Run
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import NIGHT, make_rows, write_jsonl


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log of twelve good rows."""
    return write_jsonl(tmp_path / "logs.jsonl", make_rows(12, good=0.75))


def commands() -> dict[str, Any]:
    """All commands by name, as typer's own copy of click has them."""
    return dict(cli.Commands().items())


def test_the_list_of_commands_has_the_first_sentence_of_each_help() -> None:
    """The list is printed without importing the commands, so it has sentences of its own."""
    for name, command in commands().items():
        assert cli.COMMANDS[name] == command.get_short_help_str(limit=200)


def test_the_help_fits_a_terminal_of_40_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns, with a line for each command below the heading of its group."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for title, group in cli.GROUPS.items():
        start = lines.index(f"{title}:") + 1
        shown = [line.split(maxsplit=1) for line in lines[start : start + len(group)]]
        assert shown == [[name, text] for name, text in group.items()]


def test_version(run: Run) -> None:
    """One line."""
    assert run("--version") == Ended(0, f"{__version__}\n", "")


@pytest.mark.parametrize("name", commands())
def test_everything_has_help(name: str) -> None:
    """Every command, argument and option says what it is for."""
    command = commands()[name]
    assert command.help
    for parameter in command.params:
        assert parameter.help, parameter.name


@pytest.mark.parametrize("name", commands())
def test_help_is_printed(run: Run, name: str) -> None:
    """For every command."""
    ended = run(name, "--help")
    assert ended.code == 0
    assert "Usage: ragmetrics" in ended.out


def test_score_prints_a_table(run: Run, logs: Path) -> None:
    """Mean and interval per metric, then rows, judge and the note that it is a baseline."""
    ended = run("score", logs, "--metrics", "context_relevance,context_recall")
    assert ended.code == 0
    for text in (
        "Context relevance (graded)",
        "Context recall",
        "Rows: 12, quarantined: 0",
        "Judge: ",
    ):
        assert text in ended.out
    assert "baseline" in ended.out
    assert ended.err == ""


@pytest.mark.parametrize("name", ["score", "check"])
def test_the_settings_of_the_folder_are_used(run: Run, logs: Path, name: str) -> None:
    """`ragmetrics.yaml` is read without --settings; a file that is named goes before."""
    Path("ragmetrics.yaml").write_text("metrics: [unheard_of]\n")
    Path("other.yaml").write_text("metrics: [context_recall]\n")
    ended = run(name, logs)
    assert (ended.code, "unheard_of" in ended.err) == (2, True)
    assert run(name, logs, "--settings", "other.yaml").code == 0


def test_a_calibration_is_kept_in_the_store_of_the_settings_of_the_folder(
    run: Run, tmp_path: Path
) -> None:
    """As with --settings."""
    labelled = write_jsonl(tmp_path / "labelled.jsonl", make_labelled())
    Path("ragmetrics.yaml").write_text("store: kept\n")
    assert run("calibrate", labelled, "--attacks", "0").code == 0
    assert list(Path("kept").glob("calibrations/**/*.json"))


def test_score_json_is_one_object_and_nothing_else(run: Run, logs: Path) -> None:
    """With exactly these keys, on which other programs rely."""
    ended = run("score", logs, "--metrics", "context_relevance", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    told = json.loads(ended.out)
    assert (told["rows"], told["quarantined"]) == (12, 0)
    assert set(told["judge"]) >= {"name", "fingerprint"}
    assert set(told["metrics"]) == {"context_relevance"}
    metric = told["metrics"]["context_relevance"]
    assert set(metric) >= {"mean", "low", "high", "scored", "status"}
    assert metric["low"] <= metric["mean"] <= metric["high"]
    assert (metric["scored"], metric["status"]) == (12, {"scored": 12})
    usage = told["usage"]
    names = {"requests", "answered_from_store", "prompt_tokens", "completion_tokens", "usd"}
    assert set(usage) >= names
    assert (usage["requests"], usage["usd"]) == (0, None), "this judge costs nothing"
    assert told["usage_by_metric"] == {}
    assert told["usage_by_judge"]["lexical"]["requests"] > 0


def test_score_asks_any_endpoint(run: Run, logs: Path, judge_server: JudgeServer) -> None:
    """By flags alone."""
    where = ["--judge", "openai", "--base-url", judge_server.base_url, "--model", "mine"]
    ended = run("score", logs, "--metrics", "context_recall", *where, "--json")
    told = json.loads(ended.out)
    assert told["judge"]["name"] == "openai:mine"
    assert told["usage"]["prompt_tokens"] > 0
    assert set(judge_server.stats()["by_model"]) == {"mine"}


@pytest.mark.parametrize("metric", ["context_recall", "response_relevancy"])
@pytest.mark.parametrize("judge", ["openai", "openai-batch"])
def test_a_store_that_cannot_be_written_costs_nothing(
    run: Run, logs: Path, judge_server: JudgeServer, tmp_path: Path, judge: str, metric: str
) -> None:
    """It is told before the first request, and not after replies were paid for."""
    (tmp_path / "store").write_text("a file")
    where = ["--judge", judge, "--base-url", judge_server.base_url, "--store", tmp_path / "store"]
    ended = run("score", logs, "--metrics", metric, *where)
    assert ended.code != 0
    assert f"writing to {tmp_path / 'store'}/judgements" in ended.err
    assert judge_server.stats()["requests"] == 0


def test_score_tells_what_each_metric_cost(
    run: Run, logs: Path, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A line per metric and judge where several asked, what failed, and one in total."""
    judge_server.faults(fail={"429": 1.0}, fail_attempts=1, prompt_cache="block")
    judge = judge_at(judge_server)
    prices = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2}
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text(json.dumps({"judge": judge | prices, "budget": {"max_requests": 1_000}}))
    names = "context_relevance,context_precision,context_recall"
    ended = run("score", logs, "--metrics", names, "--settings", settings)
    asked, refused = judge_server.stats()["requests"], judge_server.stats()["by_status"]["429"]
    assert (ended.code, refused) == (0, asked / 2)
    for told in (
        f"Requests: {asked}, reused from cache: 0, shared by equal ones: 24; tokens: ",
        "% cached)",
        f"Failed attempts (most were retried): rate_limited {refused}",
        f"Budget: 1,000 requests; spent: {asked} requests",
        "enough for all questions",
    ):
        assert told in ended.out
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["Context", "precision", "0", "24"] in [line[:4] for line in lines]
    again = json.loads(run("score", logs, "--metrics", names, "--settings", settings, "--json").out)
    told = again["usage_by_metric"]["context_relevance"]["openai:gpt-6-luna"]
    assert (told["requests"], told["answered_from_store"]) == (0, 24)
    assert again["budget"]["share"] == 1


def test_score_records_and_plays_back(run: Run, logs: Path, tmp_path: Path) -> None:
    """The same numbers, from the recording."""
    tape = tmp_path / "tape.jsonl"
    what = ["score", logs, "--metrics", "context_recall", "--json"]
    first = json.loads(run(*what, "--record", tape).out)
    again = json.loads(run(*what, "--judge", f"recorded:{tape}").out)
    assert again["metrics"] == first["metrics"]


def test_score_joins_a_golden_set(run: Run, tmp_path: Path) -> None:
    """References from another file."""
    bare = write_jsonl(tmp_path / "bare.jsonl", make_rows(5, reference=None))
    gold = write_jsonl(tmp_path / "gold.jsonl", make_rows(5))
    ended = run("score", bare, "--metrics", "context_recall", "--golden", gold, "--json")
    assert json.loads(ended.out)["metrics"]["context_recall"]["scored"] == 5


def test_score_reads_several_logs_and_a_limit(run: Run, logs: Path, tmp_path: Path) -> None:
    """One after the other."""
    more = write_jsonl(tmp_path / "more.jsonl", make_rows(3))
    what = ["score", logs, more, "--metrics", "context_relevance", "--json"]
    assert json.loads(run(*what).out)["rows"] == 15
    assert json.loads(run(*what, "--limit", "4").out)["rows"] == 4


def test_score_follows_a_settings_file(run: Run, tmp_path: Path) -> None:
    """Its columns, metrics and everything else."""
    path = write_jsonl(tmp_path / "a.jsonl", [{"question": "What is it?", "docs": ["It is so."]}])
    text = "columns: {user_input: question, retrieved_contexts: docs}\nmetrics: [context_relevance]"
    (tmp_path / "ragmetrics.yaml").write_text(text)
    told = json.loads(run("score", path, "--settings", tmp_path / "ragmetrics.yaml", "--json").out)
    assert (told["rows"], list(told["metrics"])) == (1, ["context_relevance"])


@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".csv"])
def test_score_out_has_one_line_per_row_and_metric(
    run: Run, logs: Path, tmp_path: Path, ending: str
) -> None:
    """In the format that the name says."""
    path = tmp_path / f"scores{ending}"
    names = "context_relevance,context_recall"
    assert run("score", logs, "--metrics", names, "--out", path).code == 0
    readers: dict[str, Callable[..., pd.DataFrame]] = {
        ".parquet": pd.read_parquet,
        ".csv": pd.read_csv,
        ".jsonl": lambda file: pd.read_json(file, lines=True),
    }
    table = readers[ending](path)
    columns = ["id", "metric", "value", "status", "reason", "details", "tags"]
    assert (len(table), list(table.columns)) == (24, columns)
    assert table["value"].between(0, 1).all()


@pytest.mark.parametrize("flag", ["--out", "--record"])
@pytest.mark.parametrize("kind", ["log", "golden"])
def test_score_never_writes_over_what_it_reads(
    run: Run, tmp_path: Path, flag: str, kind: str
) -> None:
    """Logs and golden set are as they were, and nothing was scored."""
    write_jsonl(tmp_path / "log.jsonl", make_rows(2))
    write_jsonl(tmp_path / "golden.jsonl", make_rows(2))
    file = tmp_path / f"{kind}.jsonl"
    before = file.read_bytes()
    what = [tmp_path / "log.jsonl", "--golden", tmp_path / "golden.jsonl", flag, file]
    ended = run("score", *what)
    assert (ended.code, ended.out) == (2, "")
    assert "is one of the inputs" in ended.err
    assert file.read_bytes() == before


def test_out_csv_is_safe_to_open(run: Run, tmp_path: Path) -> None:
    """An id that begins like a formula comes out as text."""
    rows = [{**row, "id": f"=cmd|{row['id']}"} for row in make_rows(3)]
    logs, path = write_jsonl(tmp_path / "evil.jsonl", rows), tmp_path / "scores.csv"
    run("score", logs, "--metrics", "context_relevance", "--out", path)
    with path.open(newline="") as file:
        assert all(line["id"].startswith("'=cmd") for line in csv.DictReader(file))


def test_check_tells_what_is_in_the_logs(run: Run, logs: Path) -> None:
    """Rows, fields, and for how many rows each metric can run."""
    ended = run("check", logs)
    assert ended.code == 0
    assert "Rows: 12, quarantined: 0" in ended.out
    told: dict[str, Any] = json.loads(run("check", logs, "--json").out)
    assert (told["files"], told["rows"], told["fields"]["reference"]) == (1, 12, 12)
    assert set(told["metrics"]) == set(metrics())
    assert (told["metrics"]["context_recall"], told["metrics"]["id_recall"]) == (12, 0)


def test_check_finds_bad_rows(run: Run, tmp_path: Path) -> None:
    """Exit code 1, each reason with its count and its first place."""
    logs = write_jsonl(tmp_path / "a.jsonl", [*make_rows(2, reference=None), "{", {"a": 1}])
    ended = run("check", logs)
    assert ended.code == 1
    assert "1  user_input: no question" in ended.out
    assert "first at a.jsonl, line 4" in ended.out
    assert "Without reference there is no Entity recall, " in ended.out


def test_check_knows_alternatives(run: Run, tmp_path: Path) -> None:
    """A metric that takes ids or texts runs on rows with either, whole."""
    ids = {"reference_context_ids": ["a"]}
    rows = [
        *make_rows(1, reference_contexts=["text"]),
        *make_rows(1, retrieved_context_ids=["a", "b"], **ids),
        *make_rows(1, **ids),
    ]
    logs = write_jsonl(tmp_path / "a.jsonl", rows)
    told = json.loads(run("check", logs, "--json").out)
    assert (told["metrics"]["mrr"], told["metrics"]["context_recall"]) == (2, 3)


def test_check_tells_what_a_sample_would_ask_the_judge_about(run: Run, tmp_path: Path) -> None:
    """A line, before a night is paid for; nothing where all rows are judged."""
    rows = [*make_rows(30), *make_rows(10, reference=None)]
    logs, path = write_jsonl(tmp_path / "a.jsonl", rows), tmp_path / "ragmetrics.yaml"
    base = {"metrics": ["context_relevance", "context_recall", "id_recall"], "judge": "openai"}

    def sample(**given: float) -> str:
        path.write_text(yaml.safe_dump({**base, "sample": given} if given else base))
        return run("check", logs, "--settings", path).out

    told = (
        "\nSample: the judge would be asked about {}. What that costs: ragmetrics score --dry-run\n"
    )
    assert told.format(
        "25 of 40 rows by Context relevance (graded); 25 of 30 rows by Context recall"
    ) in sample(rows=25)
    most = "at most 40 of 40 rows by Context relevance (graded); 30 of 30 rows by Context recall"
    assert told.format(most) in sample(half_width=0.02)
    assert "Sample" not in sample()


def test_check_finds_a_rule_that_watches_nothing(run: Run, tmp_path: Path) -> None:
    """A slip in a metric's name must not wait for the night."""
    logs, path = write_jsonl(tmp_path / "a.jsonl", make_rows(2)), tmp_path / "ragmetrics.yaml"
    path.write_text(yaml.safe_dump({"alerts": {"rules": [{"metric": "recal", "min": 0.5}]}}))
    ended = run("check", logs, "--settings", path)
    assert ended.code == 2
    assert "alerts: rules: 'recal' is not scored" in ended.err


def test_metrics_lists_all(run: Run) -> None:
    """For people and for programs."""
    listed = json.loads(run("metrics", "--json").out)
    assert [one["name"] for one in listed] == list(metrics())
    assert all(one["title"] and one["calls"] and one["needs"] for one in listed)
    assert run("metrics").code == 0


def test_dashboard_is_written_anew(run: Run, logs: Path, tmp_path: Path) -> None:
    """Into the store, or where `--out` says; its first page is printed."""
    store = tmp_path / "store"
    run_night(
        make_settings({"logs": str(logs), "store": str(store), "metrics": ["context_relevance"]}),
        NIGHT,
    )
    assert run("dashboard", store).out == f"{store}/dashboard/index.html\n"
    site = tmp_path / "site"
    assert run("dashboard", store, "--out", site).out == f"{site}/index.html\n"
    assert (site / str(NIGHT) / "index.html").is_file()


def test_a_folder_that_is_no_store_is_told(run: Run, tmp_path: Path) -> None:
    """Instead of an empty dashboard."""
    ended = run("dashboard", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"ragmetrics: {tmp_path}: not a store: it has no runs\n"


@pytest.mark.process
def test_an_error_is_one_line_in_a_process_of_its_own(tmp_path: Path) -> None:
    """As installed: exit code 2, one line on stderr, no traceback."""
    script = Path(sys.executable).with_name("ragmetrics")
    ended = subprocess.run(
        [script, "score", "nosuch.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("ragmetrics: nosuch.jsonl: no such log")
    assert ended.stderr.count("\n") == 1
