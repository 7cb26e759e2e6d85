"""`ragmetrics init`: from a team's own log to its first dashboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml

from ragmetrics.config import PRESETS
from tests.fakes.clients import Bucket
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.own_logs import (
    DAY,
    OWN,
    ROWS,
    Row,
    chat_messages,
    german_keys,
    langchain_documents,
)

SAMPLES = PRESETS.bundled_names


@pytest.mark.parametrize("write", OWN)
def test_a_log_as_people_have_it_gets_to_a_dashboard_in_three_commands(
    write: Callable[[Path], str], run: Run
) -> None:
    """`init`, `nightly`, `dashboard`: no line of the settings is edited; every row is scored."""
    place = write(Path.cwd())
    made = run("init", place, "--yes")
    assert made.code == 0, made.err
    command = next(line for line in made.out.splitlines() if "ragmetrics nightly" in line)
    night = run(*command.split()[1:])
    assert night.code == 0, night.out + night.err
    assert "Rows: 40, quarantined: 0" in night.out
    assert run("dashboard").code == 0
    page = Path("ragmetrics-store/dashboard/index.html").read_text("utf-8")
    assert "context_relevance" in page


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_of_the_presets_get_to_a_dashboard(name: str, run: Run) -> None:
    """Their good rows are scored; each sample has bad ones on purpose, so the night says so."""
    write_jsonl(Path(f"{DAY}.jsonl"), PRESETS.find(name).sample)
    assert run("init", f"{DAY}.jsonl", "--yes").code in (0, 1)
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written.get("preset") == (None if name == "ragas" else name)
    run("nightly", "--date", DAY)
    assert Path("ragmetrics-store/dashboard/index.html").exists()


def test_from_a_bucket_to_the_first_dashboard(run: Run, s3: Bucket) -> None:
    """The store is in the bucket of the logs; three commands, and nothing is edited."""
    data = "".join(json.dumps(row) + "\n" for row in ROWS)
    s3.client.put_object(Bucket=s3.name, Key=f"logs/dt={DAY}/part-0.jsonl", Body=data.encode())
    made = run("init", f"{s3.uri}/logs/", "--yes")
    assert made.code == 0, made.err
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert (written["logs"], written["store"]) == (
        f"{s3.uri}/logs/dt={{date}}/",
        f"{s3.uri}/ragmetrics",
    )
    assert run("nightly", "--date", DAY).code == 0
    assert run("dashboard").code == 0
    assert "ragmetrics/dashboard/index.html" in s3.keys("ragmetrics/dashboard/")


def test_the_place_of_a_night_is_found(run: Run) -> None:
    """A folder with a date for each day becomes a location with {date}."""
    chat_messages(Path.cwd())
    report = json.loads(run("init", ".", "--json").out)
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["logs"] == "dt={date}/"
    assert report["night"] == DAY


def test_few_values_become_tags(run: Run) -> None:
    """A key with few values is a tag, so that scores are shown by it."""
    langchain_documents(Path.cwd())
    assert "these tags: section" in run("init", f"{DAY}.jsonl", "--yes").out


def test_a_log_in_our_own_layout_gets_tags_too(run: Run) -> None:
    """Its other keys with few values; those under `tags` are tags already."""
    rows = [
        {**row, "section": ("billing", "app")[number % 2]}
        for number, row in enumerate(make_rows(40))
    ]
    write_jsonl(Path(f"{DAY}.jsonl"), rows)
    said = run("init", f"{DAY}.jsonl", "--yes").out
    written = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))
    assert written["columns"] == {"tags.section": "section"}
    assert "channel" in said
    assert "section" in said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"question": "Why is it so?", "doc_ids": ["a-1", "b-2"]},
            "retrieved passages? Found: question, doc_ids.",
        ),
        (
            {"contexts": ["It is so."], "latency": 3},
            "question of the user? Found: contexts, latency.",
        ),
    ],
    ids=["no contexts", "no question"],
)
def test_what_is_missing_is_said_in_one_sentence(record: Row, said: str, run: Run) -> None:
    """A log without contexts or questions is refused; no file is written."""
    Path("a.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    ended = run("init", "a.jsonl", "--yes")
    assert (ended.code, Path("ragmetrics.yaml").exists()) == (2, False)
    ask = f"Unknown log format. Which field holds the {said}"
    assert ask in " ".join(ended.err.split())


def test_an_empty_log_is_refused(run: Run) -> None:
    """A log without a record ends with exit code 2, and no file is written."""
    Path("a.jsonl").write_text("", "utf-8")
    ended = run("init", "a.jsonl", "--yes")
    assert (ended.code, Path("ragmetrics.yaml").exists()) == (2, False)
    assert "no row can be read: the log is empty" in " ".join(ended.err.split())


def test_what_was_guessed_is_said(run: Run) -> None:
    """With the key, the field, and a request to look at it."""
    german_keys(Path.cwd())
    said = run("init", f"{DAY}.jsonl", "--yes").out
    assert "Guessed: `fundstellen` is read as retrieved_contexts. Please check." in said
    assert "Guessed: `antwort` is read as response. Please check." in said


def test_one_export_of_many_days_is_seen(run: Run) -> None:
    """Each day is a night; all but the newest are for the backfill."""
    days = [date(2026, 11, number) for number in (17, 18, 19)]
    write_jsonl(Path("export.jsonl"), [row for day in days for row in make_rows(30, night=day)])
    ended = run("init", "export.jsonl", "--yes")
    assert "rows of 3 days, 2026-11-17 to 2026-11-19: each is a night" in ended.out
    assert "backfill --first 2026-11-17 --last 2026-11-18" in ended.out
    assert yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["split_nights"] is True


def test_metrics_of_the_settings_get_rules(run: Run) -> None:
    """Not only those of the default settings; the table has the names of the pages."""
    rows = [
        {**row, "retrieved_context_ids": ["a", f"b{n}"], "reference_context_ids": ["a"]}
        for n, row in enumerate(ROWS)
    ]
    write_jsonl(Path(f"{DAY}.jsonl"), rows)
    Path("ragmetrics.yaml").write_text("metrics: [mrr, context_recall]\n", "utf-8")
    ended = run("init", f"{DAY}.jsonl", "--yes")
    rules = yaml.safe_load(Path("ragmetrics.yaml").read_text("utf-8"))["alerts"]["rules"]
    assert [rule["metric"] for rule in rules] == ["context_recall", "mrr"]
    assert "Context recall" in ended.out
