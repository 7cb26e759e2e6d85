"""People's labels: read, joined with scores, told as what people would say; rows to label."""

from __future__ import annotations

import csv
import json
import random
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics import evaluate
from ragmetrics.config import Settings, load_settings, make_settings
from ragmetrics.dashboard import write_label_page
from ragmetrics.dashboard.prometheus import metrics_text
from ragmetrics.errors import InputError
from ragmetrics.people import check_labels, read_labels, suggest_labels
from ragmetrics.pipeline import examine, run_night
from ragmetrics.records import LabelSuggestion, Manifest, PeopleMean
from ragmetrics.storage import RunRef, Runs, StoredPart, open_store
from tests.builders import judge_at, save_settings
from tests.fakes.browsing import Visit
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl

DAYS = [date(2026, 11, 17), date(2026, 11, 18), date(2026, 11, 19)]
Record = dict[str, Any]


def log_rows(day: date, count: int = 120) -> list[Record]:
    """The rows of a night; every second context is about the question."""
    chance = random.Random(day.isoformat())
    return [
        {
            "id": f"{day:%d}-{number:03}",
            "user_input": f"When does museum number {number} open on that day?",
            "retrieved_contexts": [
                f"Museum number {number} opens at {number} on that day."
                if chance.random() < 0.6
                else "A recipe for bread needs flour, water and salt."
                for _ in range(3)
            ],
            "reference": f"Museum number {number} opens at {number}. Entry is free.",
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the settings and two scored nights; the log of a third waits."""
    folder = tmp_path_factory.mktemp("labels")
    for day in DAYS:
        write_jsonl(folder / "logs" / f"dt={day}" / "rows.jsonl", log_rows(day))
    save_settings(folder, metrics=["context_relevance", "context_recall"], alerts={"rules": []})
    for day in DAYS[:2]:
        run_night(load_settings(folder / "ragmetrics.yaml"), day)
    return folder


@pytest.fixture
def folder(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """A copy of it, which is the current folder."""
    copy = tmp_path / "night"
    shutil.copytree(scored, copy)
    monkeypatch.chdir(copy)
    return copy


def labelled(folder: Path, records: list[Record], name: str = "a.jsonl") -> Settings:
    """The settings with labels."""
    write_jsonl(folder / "labels" / name, records)
    values = yaml.safe_load((folder / "ragmetrics.yaml").read_text())
    path = save_settings(folder, **values, labels="labels/")
    return load_settings(path)


def scores(folder: Path, day: date, metric: str = "context_relevance") -> dict[str, float]:
    """The judge's scores of a night, by id."""
    files = open_store(load_settings(folder / "ragmetrics.yaml"))
    (night,) = [night for night in Runs(files).nights() if night.date == day]
    ref = RunRef.of(night)
    return {
        record["id"]: record["value"]
        for shard in range(ref.shards)
        for record in StoredPart(files, ref.scores(metric, shard)).records(["id", "value"])
    }


def biased_labels(folder: Path, day: date, count: int = 60, by: float = 0.1) -> list[Record]:
    """Labels of rows of a night by people who say less than the judge."""
    chance, judge = random.Random(count), scores(folder, day)
    rows = {row["id"]: row["user_input"] for row in log_rows(day)}
    return [
        {
            "id": name,
            "user_input": rows[name],
            "date": day.isoformat(),
            "context_relevance": min(1, max(0, judge[name] - by + chance.uniform(-0.1, 0.1))),
        }
        for name in chance.sample(sorted(judge), count)
    ]


def people_of(manifest: Manifest, metric: str = "context_relevance") -> PeopleMean:
    """What people would say, which is known."""
    summary = manifest.summary(metric)
    assert summary is not None
    assert summary.people is not None
    return summary.people


def read(tmp_path: Path, text: str, name: str = "labels.jsonl") -> Any:
    """What is read of a file of labels."""
    (tmp_path / name).write_text(text)
    settings = make_settings({"labels": str(tmp_path / name)})
    return read_labels(settings)


# Reading


def test_all_forms_of_a_label_are_read(tmp_path: Path) -> None:
    """A value by its metric, in two columns, and unit by unit."""
    lines = [
        {"user_input": "a", "id": "1", "context_recall": 0.5, "person": "Ada"},
        {"user_input": "b", "id": "2", "metric": "context_relevance", "value": "0,25"},
        {"user_input": "c", "grades": [0, 1, 2], "supported": [1, 0], "date": "2026-11-19"},
        {"user_input": "d", "needed": "1 0 0 0", "sampling_weight": 2},
        {"user_input": "e", "context_recall": None},
    ]
    found = read(tmp_path, "\n".join(map(json.dumps, lines)))
    told = {(label.metric, label.value) for label in found.labels}
    assert told == {
        ("context_recall", 0.5),
        ("context_relevance", 0.25),
        ("context_relevance", 0.5),
        ("context_relevancy", 0.25),
    }
    assert len(found.labels) == 5
    assert (found.empty, found.rejected.total()) == (1, 0)
    assert {label.person for label in found.labels} == {"Ada", "labels.jsonl"}


HOSTILE = [
    ({"context_recall": 2}, "context_recall: should be a number from 0 to 1"),
    ({"context_recall": -0.1}, "context_recall: should be a number from 0 to 1"),
    ({"context_recall": "=1+1"}, "context_recall: should be a number"),
    ({"context_recall": "NaN"}, "context_recall: should be a number"),
    ({"context_recall": {"a": 1}}, "context_recall: should be a number"),
    ({"context_recall": 1, "user_input": None}, "user_input: no question"),
    ({"value": 1}, "metric: is missing beside value"),
    ({"value": 1, "metric": "<script>"}, "metric: this metric is not scored"),
    ({"grades": [3]}, "grades: should be whole numbers from 0 to 2"),
    ({"grades": [0.5]}, "grades: should be whole numbers from 0 to 2"),
    ({"grades": "[" * 5_000}, "grades: should be a list of numbers"),
    ({"grades": [0] * 20_000}, "grades: should be a list of numbers"),
    ({"context_recall": 1, "date": "yesterday"}, "date: should be a date like 2026-11-19"),
    (
        {"context_recall": 1, "sampling_weight": 1e9},
        "sampling_weight: should be a number from 0.001 to 1000",
    ),
]


@pytest.mark.parametrize(("record", "reason"), HOSTILE)
def test_a_bad_label_is_counted_with_its_reason(
    tmp_path: Path, record: Record, reason: str
) -> None:
    """The reason quotes nothing of the file; the first place is kept; the others are read."""
    good = {"user_input": "q", "context_recall": 1, "id": "g"}
    bad = json.dumps({"user_input": "q", **record})
    found = read(tmp_path, f"{json.dumps(good)}\n{bad}\n{bad}\n")
    assert dict(found.rejected) == {reason: 2}
    assert (found.first[reason].path, found.first[reason].number) == ("labels.jsonl", 2)
    assert [label.id for label in found.labels] == ["g"]


def test_contradictions_count_for_nothing_and_repetitions_once(tmp_path: Path) -> None:
    """Two values of one person are no label; those of two people are two."""
    rows = [("1", 1, "Ada"), ("1", 0, "Ada"), ("2", 1, "Ada"), ("2", 1, "Ada"), ("2", 0, "Bob")]
    lines = [
        json.dumps({"user_input": "q", "id": name, "context_recall": value, "person": person})
        for name, value, person in rows
    ]
    found = read(tmp_path, "\n".join(lines))
    assert [(label.id, label.value, label.person) for label in found.labels] == [
        ("2", 1, "Ada"),
        ("2", 0, "Bob"),
    ]
    assert dict(found.rejected) == {
        "the same person gave this row two values": 2,
        "the same label again": 1,
    }


def test_a_spreadsheet_brings_the_labels_back(tmp_path: Path) -> None:
    """A question that looks like a formula is the same question again; lists have spaces."""
    text = 'id;user_input;grades\n1;\'=HYPERLINK(1);2 0\n2;"a;b";[1]\n'
    found = read(tmp_path, text, "labels.csv")
    other = read(tmp_path, json.dumps({"user_input": "=HYPERLINK(1)", "grades": [2, 0]}))
    assert [label.value for label in found.labels] == [0.5, 0.5]
    assert found.labels[0].question == other.labels[0].question


@pytest.mark.parametrize("content", [b"\xff\xfei\x00d\x00", b"\x00\x01\x02", b"{", b"", b"[1, 2"])
def test_a_file_that_is_none_costs_no_night(folder: Path, content: bytes) -> None:
    """The night says what is wrong and is published as without labels."""
    settings = labelled(folder, [])
    (folder / "labels" / "bad.csv").write_bytes(content)
    (folder / "labels" / "bad.jsonl").write_bytes(content)
    manifest = run_night(settings, DAYS[2]).manifest
    assert manifest.labels is not None
    assert manifest.labels.rows == {}
    assert all(metric.people is None and metric.mean is not None for metric in manifest.metrics)


def test_missing_labels_cost_no_night(folder: Path) -> None:
    """The place is named in the manifest, and `doctor` warns."""
    settings = load_settings(folder / "ragmetrics.yaml").model_copy(update={"labels": "none/"})
    manifest = run_night(settings, DAYS[2]).manifest
    assert manifest.labels is not None
    assert manifest.labels.problem == "labels none/: no such file"
    (found,) = [one for one in examine(settings, DAYS[2]) if one.name == "labels"]
    assert found.state == "warning"


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "user_input", "date", "value", "metric", "grades", "person"]),
            st.none() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=3),
        ),
        max_size=8,
    )
)
@hypothesis_settings(deadline=None)
def test_any_record_is_a_label_or_counted(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record]
) -> None:
    """Whatever a record holds, it is a label in range, empty, or counted with a reason."""
    folder = tmp_path_factory.mktemp("any")
    found = read(folder, "".join(f"{json.dumps(record)}\n" for record in records))
    assert all(0 <= label.value <= 1 for label in found.labels)
    assert len(found.labels) + found.empty + found.rejected.total() >= len(records)


# What people would say


def test_a_night_tells_what_people_would_say(folder: Path) -> None:
    """By labels of the night before: the bias is found, warned of, shown and given to Prometheus;
    alerts and the judge's mean stay as they are.
    """
    before = run_night(load_settings(folder / "ragmetrics.yaml"), DAYS[2]).manifest
    settings = labelled(folder, biased_labels(folder, DAYS[1]))
    manifest = run_night(settings, DAYS[2]).manifest
    people = people_of(manifest)
    assert people.bias == pytest.approx(0.1, abs=0.04)
    assert people.differs
    assert (people.labels, people.people, people.nights, people.oldest) == (60, 1, 1, DAYS[1])
    summary = manifest.summary("context_relevance")
    assert summary is not None
    assert summary.model_copy(update={"people": None}) == before.summary("context_relevance")
    assert people.mean + people.bias == pytest.approx(summary.mean)
    (found,) = [finding for finding in manifest.findings if finding.kind == "judge_bias"]
    assert (found.level, found.severity, found.transition) == ("breach", "warning", "fired")
    assert "(60 labels); the judge's is" in found.message
    assert not [finding for finding in before.findings if finding.kind == "judge_bias"]
    assert "ragmetrics_people_mean" in metrics_text(manifest).decode()
    page = (folder / "ragmetrics-store" / "dashboard" / str(DAYS[2]) / "index.html").read_text()
    assert "people&#39;s mean is" in page


def test_a_judge_that_agrees_is_ok(folder: Path) -> None:
    """No significant difference is no warning."""
    manifest = run_night(labelled(folder, biased_labels(folder, DAYS[1], by=0.0)), DAYS[2]).manifest
    assert not people_of(manifest).differs
    (found,) = [finding for finding in manifest.findings if finding.kind == "judge_bias"]
    assert (found.level, found.state) == ("ok", "ok")


def test_too_few_labels_are_counted(folder: Path) -> None:
    """With 29 rows there is no mean of people, and the check says what is missing."""
    settings = labelled(folder, biased_labels(folder, DAYS[1], 29))
    report, night = check_labels(settings)
    assert night is not None
    assert all(metric.people is None for metric in night.metrics)
    assert report.lacking == {"context_relevance": 29}


def test_unused_labels_have_a_reason(folder: Path) -> None:
    """Unknown rows, unknown nights, and rows of several scores."""
    one = biased_labels(folder, DAYS[1], 1)[0]
    several = {"user_input": one["user_input"], "context_relevance": 1}
    bad = [
        {**one, "user_input": "another question"},
        {**one, "date": "2020-01-01"},
        {**one, "date": "2030-01-01"},
        {**several, "id": "nobody"},
    ]
    report, _ = check_labels(labelled(folder, [one, *bad]))
    assert report.rows == {"context_relevance": 1}
    assert report.unused == {
        "its night has no such row": 1,
        "the store has no such night among the last 60": 1,
        "its night is later than this one": 1,
        "no row of the last 14 nights has its question and id": 1,
    }


def test_labels_of_another_judge_are_not_used(folder: Path) -> None:
    """Nights that another prompt or judge scored say nothing of this one's bias."""
    labels = biased_labels(folder, DAYS[1], 30)
    settings = labelled(folder, labels)
    files = open_store(settings)
    (path,) = [one.path for one in files.below("runs") if str(DAYS[1]) in one.path]
    record = json.loads(files.read(path))
    for metric in record["metrics"]:
        metric["fingerprint"] = "another"
    files.write(path, json.dumps(record).encode())
    manifest = run_night(settings, DAYS[2]).manifest
    assert manifest.labels is not None
    assert manifest.labels.unused == {
        "another judge, prompt or metric version scored that night": 30
    }


def test_labels_of_a_replaced_judge_are_not_used_for_the_new_one(
    folder: Path, judge_server: JudgeServer
) -> None:
    """Its nights are moved by the offset of both judges, and their raw values are not."""
    settings = labelled(folder, biased_labels(folder, DAYS[1], 30))
    judge = {"judge": judge_at(judge_server, replaces="lexical")}
    settings = make_settings(settings.model_dump(exclude_unset=True) | judge)
    manifest = run_night(settings, DAYS[2]).manifest
    assert manifest.bridge
    assert {one.apart for one in manifest.bridge.offsets} == {""}
    assert manifest.labels is not None
    assert manifest.labels.unused == {
        "another judge, prompt or metric version scored that night": 30
    }


def test_several_people_agree_or_not(folder: Path) -> None:
    """The mean of two people counts as one label, and their agreement is told."""
    ada = [label | {"person": "Ada"} for label in biased_labels(folder, DAYS[1], 40)]
    bob = [one | {"person": "Bob"} for one in ada]
    people = people_of(run_night(labelled(folder, ada + bob), DAYS[2]).manifest)
    assert (people.labels, people.people) == (40, 2)
    assert people.agreement == pytest.approx(1)


def test_score_tells_it_without_dates(folder: Path) -> None:
    """`score` uses labels of the rows that it scores, whatever night they name."""
    settings = labelled(folder, biased_labels(folder, DAYS[1]))
    found = evaluate(log_rows(DAYS[1]), settings=settings)
    people = found.as_json()["metrics"]["context_relevance"]["people"]
    assert people["bias"] == pytest.approx(0.1, abs=0.04)
    assert found.as_json()["labels"]["rows"] == {"context_relevance": 60}


# Rows to label


def test_suggested_rows_come_back_as_labels(folder: Path, run: Run) -> None:
    """The CSV of `suggest`, filled in, is a file of labels; its rows are not suggested again."""
    settings = load_settings(folder / "ragmetrics.yaml")
    path = folder / "labels.csv"
    first = suggest_labels(settings, path, count=40)
    assert first.uniform
    with path.open(newline="") as file:
        records = list(csv.DictReader(file))
    assert len(records) == 40
    for record in records:
        record["grades"] = json.dumps([1] * len(json.loads(record["contexts"])))
    filled = labelled(folder, [])
    with (folder / "labels" / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    report, night = check_labels(filled)
    assert report.rows == {"context_relevance": 40}
    assert report.rejected == {}
    assert night is not None
    assert people_of(night).mean == pytest.approx(0.5)
    again = suggest_labels(filled, None, count=500, metrics=["context_relevance"])
    assert not {row.id for row in again.rows} & {record["id"] for record in records}
    assert not again.uniform
    assert len(again.rows) == 80
    told = run("labels", "check")
    assert told.code == 0
    assert "people's mean is 0.500" in told.out


def test_more_rows_only_add_to_the_draw(folder: Path) -> None:
    """The first rows of a larger draw are those of a smaller one, on any day that it is made."""
    settings = load_settings(folder / "ragmetrics.yaml")
    few, many = (suggest_labels(settings, None, count=count).rows for count in (5, 50))
    assert few == many[:5]


def test_redacted_questions_are_not_printed(folder: Path, run: Run) -> None:
    """With `redact: true` the rows only go into the file that the user names."""
    values = yaml.safe_load((folder / "ragmetrics.yaml").read_text())
    save_settings(folder, **values, redact=True)
    refused = run("labels", "suggest")
    assert refused.code == 2
    told = run("labels", "suggest", "--out", "rows.html", "--rows", "5", "--json")
    assert told.code == 0
    assert "museum" not in told.out.casefold()
    assert "museum" in (folder / "rows.html").read_text().casefold()


def test_wrong_input_of_suggest_is_named(folder: Path) -> None:
    """A metric without a score, and a night that is not there."""
    settings = load_settings(folder / "ragmetrics.yaml")
    with pytest.raises(InputError, match="has no score of it"):
        suggest_labels(settings, None, metrics=["faithfulness"])
    with pytest.raises(InputError, match="no night 2020-01-01"):
        suggest_labels(settings, None, date(2020, 1, 1))
    with pytest.raises(InputError, match="should end in"):
        suggest_labels(settings, folder / "rows.xlsx")


# The labelling page


def suggestion(text: str, **more: Any) -> LabelSuggestion:
    """A row of two contexts and one sentence."""
    values = {
        "id": "1",
        "user_input": text,
        "night": "2026-11-19",
        "sampling_weight": 1.5,
        "metrics": ["context_relevance", "context_recall"],
        "contexts": ["First context.", "Second context."],
        "sentences": ["It is so."],
    }
    return LabelSuggestion.model_validate(values | more)


def test_rows_are_labelled_by_the_keyboard(tmp_path: Path, visit: Visit) -> None:
    """A number answers the marked item, and the next row follows; open rows are no labels."""
    page = tmp_path / "rows.html"
    last = suggestion("Third?", id="3", contexts=[])
    rows = [suggestion("First?"), suggestion("Second?", id="2"), last]
    write_label_page(page, rows)
    visit.page.goto(page.as_uri())
    visit.page.fill("#person", "Ada")
    visit.page.keyboard.press("Escape")
    for key in ("2", "9", "1", "0"):
        visit.page.keyboard.press(key)
    assert visit.page.inner_text("#question") == "Second?"
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("2")
    with visit.page.expect_download() as downloaded:
        visit.page.keyboard.press("d")
    path = tmp_path / "labels.jsonl"
    downloaded.value.save_as(path)
    found = read(tmp_path, path.read_text())
    told = {(one.id, one.metric, one.value, one.person, one.weight) for one in found.labels}
    assert told == {
        ("1", "context_relevance", 0.75, "Ada", 1.5),
        ("1", "context_recall", 0.0, "Ada", 1.5),
        ("3", "context_relevance", 0.0, "Ada", 1.5),
    }
    assert found.rejected.total() == 0
    assert not visit.complaints


def test_hostile_text_stays_text_on_the_page(tmp_path: Path, visit: Visit) -> None:
    """Markup of a log is shown as it is; the page sends no request and logs no error."""
    evil = "</script><img src=x onerror=alert(1)>"
    page = tmp_path / "rows.html"
    write_label_page(page, [suggestion(evil, contexts=[evil], response=evil, reference=evil)])
    visit.page.goto(page.as_uri())
    assert visit.page.inner_text("#question") == evil
    assert visit.page.inner_text("#groups .text >> nth=0") == evil
    assert visit.page.locator("img").count() == 0
    assert not visit.complaints
