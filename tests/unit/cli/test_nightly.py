"""`ragmetrics nightly` and `ragmetrics schema`, and the help of all commands."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
import yaml
from rich.console import Console

from ragmetrics.cli.nightly import print_night
from ragmetrics.config import load_settings
from ragmetrics.delivery.delivery import Delivery
from ragmetrics.pipeline import NightResult, unpack_demo
from tests.builders import save_settings
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import night as make_night

ROOT = Path(__file__).parents[3]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A settings file with one good night."""
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(30))
    return save_settings(tmp_path, metrics=["context_recall"])


def test_a_night_without_prefect(run: Run, settings: Path) -> None:
    """It is published, its scores are printed, and the exit code is 0."""
    ended = run("nightly", "--settings", settings, "--date", NIGHT)
    assert ended.code == 0
    assert "Context recall" in ended.out
    assert f"dashboard/{NIGHT}" in ended.out
    assert (settings.parent / "ragmetrics-store" / "dashboard" / "index.html").exists()


def test_a_night_that_fires_or_lacks_its_logs_exits_with_1(run: Run, settings: Path) -> None:
    """As the flow does."""
    rules = [{"metric": "context_recall", "min": 0.9}]
    settings.write_text(yaml.safe_dump({"metrics": ["context_recall"], "alerts": {"rules": rules}}))
    rows = make_rows(30, good=0.5)
    write_jsonl(settings.parent / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    ended = run("nightly", "--settings", settings, "--date", NIGHT, "--json")
    assert ended.code == 1
    assert "firing" in {finding["state"] for finding in json.loads(ended.out)["findings"]}
    ended = run("nightly", "--settings", settings, "--date", "2026-11-20")
    assert (ended.code, "no log file at" in ended.err) == (1, True)


def test_a_night_in_the_future_is_refused(run: Run, settings: Path) -> None:
    """A mistyped date writes no empty night; today may be evaluated before it is over."""
    ended = run("nightly", "--settings", settings, "--date", "2126-11-19")
    assert ended.code == 2
    assert "night 2126-11-19 is in the future; today is 20" in ended.err
    assert not (settings.parent / "ragmetrics-store").exists()


def test_a_log_without_times_is_told_with_the_night(run: Run, settings: Path) -> None:
    """Old rows cannot be told then, so the night that is fine says so."""
    rows = make_rows(30, timestamp=None)
    write_jsonl(settings.parent / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    ended = run("nightly", "--settings", settings, "--date", NIGHT)
    assert "30 rows read, 30 without a time, so whether they are of this night" in ended.out


def test_a_night_with_a_failure_is_printed_before_it(run: Run, settings: Path) -> None:
    """A broken file beside a good one: means, message and dashboard are told, and then the failure;
    with --json the manifest is printed. So is a night without logs.
    """
    write_jsonl(settings.parent / "logs" / f"dt={NIGHT}" / "b.jsonl.gz", make_rows(5))
    broken = settings.parent / "logs" / f"dt={NIGHT}" / "b.jsonl.gz"
    broken.write_bytes(broken.read_bytes()[:40])
    ended = run("nightly", "--settings", settings, "--date", NIGHT)
    assert ended.code == 1
    assert "Context recall" in ended.out
    assert f"dashboard/{NIGHT}" in ended.out
    assert "could not be read to the end" in ended.err
    ended = run("nightly", "--settings", settings, "--date", NIGHT, "--json")
    assert (ended.code, json.loads(ended.out)["date"]) == (1, str(NIGHT))
    ended = run("nightly", "--settings", settings, "--date", "2026-11-20")
    assert (ended.code, "dashboard/2026-11-20" in ended.out) == (1, True)


def test_all_that_happened_is_printed_where_no_message_says_it(settings: Path) -> None:
    """However much: in a terminal there is no page below a list that was cut."""
    damaged, problems = ([f"{what} {number}" for number in range(8)] for what in "fp")
    manifest = make_night(recall=0.5, damaged=damaged, problems=problems)
    console = Console(file=StringIO(), width=200)
    result = NightResult(manifest, Delivery(None, sent=False))
    print_night(console, load_settings(settings), result)
    assert isinstance(console.file, StringIO)
    printed = console.file.getvalue()
    assert all(f"Damaged file: {text}." in printed for text in damaged)
    assert all(f"Not scored: {text}" in printed for text in problems)


def test_another_store_may_be_named(run: Run, settings: Path, tmp_path: Path) -> None:
    """By --store, wherever a store is used; as an argument of those that need nothing else."""
    store = tmp_path / "other"
    assert run("nightly", "--settings", settings, "--date", NIGHT, "--store", store).code == 0
    for command in (["dashboard", store], ["dashboard", "--store", store]):
        assert run(*command).code == 0
    assert run("batches", "--store", store).out == "no open batch\n"
    ended = run("dashboard", store, "--store", "elsewhere")
    assert (ended.code, "two stores" in ended.err) == (2, True)


def test_the_schema_knows_every_setting(run: Run, tmp_path: Path) -> None:
    """The settings of the docs and the deployments are valid, a wrong key is not."""
    schema = json.loads(run("schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(yaml.safe_load(unpack_demo(tmp_path).read_text()))
    config_map = yaml.safe_load((ROOT / "deployments/kubernetes/settings.yaml").read_text())
    validator.validate(yaml.safe_load(next(iter(config_map["data"].values()))))
    validator.validate({"judge": "lexical", "judges": ["local", {"name": "openai"}]})
    assert list(validator.iter_errors({"metrcs": []}))
    assert schema["properties"]["language"]["description"] == "Language of rows without one."


def test_help_is_short_and_whole(run: Run) -> None:
    """`-h` works everywhere; the list of commands cuts no sentence."""
    ended = run("-h")
    assert ended.code == 0
    assert "..." not in ended.out.partition("Commands:")[2]
    assert "Score a night, publish" in run("nightly", "-h").out
    assert run("alerts", "list", "-h").code == 0


def test_completion_can_be_installed(run: Run) -> None:
    """By the shell's own means."""
    assert "--install-completion" in run("--help").out
