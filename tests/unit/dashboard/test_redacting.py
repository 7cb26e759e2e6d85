"""`redact: true`: no page holds a word of what was logged, and scores are all there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import run_gate
from ragmetrics.config import make_settings
from ragmetrics.dashboard import rebuild_dashboard, redacted, refresh_builds, refresh_dashboard
from ragmetrics.dashboard.redacting import redacted_row
from ragmetrics.dashboard.row_selection import EarlierNight
from ragmetrics.delivery import notify_failed_gate
from ragmetrics.messages import compose
from ragmetrics.people import calibrate
from ragmetrics.pipeline import run_night
from ragmetrics.records import (
    BrokenFile,
    FallenTopic,
    Finding,
    IndexBuild,
    LabelReport,
    MovedContext,
    Score,
    Segment,
    Source,
    TopicReport,
    WorseQuestion,
    hashed,
    question_key,
)
from ragmetrics.rules.checks.judge_bias import judge_bias
from ragmetrics.storage import Files
from ragmetrics.testing import findings_of
from tasks import index_build as gate_tasks
from tests.builders import night_settings
from tests.fakes.build_logs import damaged, gate_settings, golden, write_build
from tests.fakes.comparisons import comparison, side
from tests.fakes.gated import gate as gated
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import as_worst, night, summary, worst_row
from tests.fakes.pages import Site, text

SECRET = "zanzibar"


def test_reasons_of_metrics_are_hashed() -> None:
    """A metric of one's own may quote a row in them."""
    made = night(metrics=[summary("own", None, not_applicable={f"no {SECRET}": 3})])
    assert redacted(made).metrics[0].not_applicable == {hashed(f"no {SECRET}"): 3}


def test_words_of_topics_are_hashed() -> None:
    """Of a night before redaction: in the report, in segments and in the findings that name them;
    the number that redaction gives a topic stays."""
    name = f"{SECRET}, payroll"
    fallen = FallenTopic(
        topic=name, metric="context_recall", before=0.9, now=0.2, drop=0.7, low=0.6, high=0.8,
        p_value=0.01, questions=40, typical=[f"Where is {SECRET}?"],
    )  # fmt: skip
    segment = Segment(tag="topic", value=name)
    low = Finding(
        key=f"default/context_recall/topic={name}/min", kind="metric", level="breach",
        rule=f"context_recall of topic={name}: below 0.8", segment=segment,
        message=f"context_recall of topic={name}: mean 0.200, below 0.8",
    )  # fmt: skip
    report = TopicReport(model=NIGHT, topics=2, rows={name: 40, "topic 3": 60}, fallen=[fallen])
    rest = FallenTopic(**{**fallen.model_dump(), "topic": "topic 3", "typical": []})
    made = night(findings=[low]).model_copy(
        update={"topics": report.model_copy(update={"fallen": [fallen, rest]})}
    )
    shown = redacted(made)
    assert SECRET not in shown.model_dump_json()
    assert shown.topics
    assert [topic.topic for topic in shown.topics.fallen] == [hashed(name), "topic 3"]


def test_why_labels_could_not_be_read_is_hashed() -> None:
    """In the manifest, in the finding that repeats it, and in the message of that finding."""
    labels = LabelReport(place="labels.csv", problem=f"line 3: {SECRET}")
    made = night(settings={"redact": True}).model_copy(update={"labels": labels})
    (found,) = findings_of(judge_bias, made)
    assert SECRET in found.message
    fired = found.model_copy(update={"level": "breach", "state": "firing", "transition": "fired"})
    hidden = redacted(made.model_copy(update={"findings": [fired]}))
    assert SECRET not in hidden.model_dump_json()
    assert hidden.findings[0].message.endswith(f"line 3: {hashed(SECRET)}")
    sent = compose(made, [fired], dashboard=None, redact=True)
    assert sent is not None
    assert SECRET not in str(sent)


def test_a_hash_is_not_that_of_the_scores() -> None:
    """That has no key, so whoever sees it may guess the question; nothing stays nothing."""
    assert hashed("How is it done?") == hashed("how is it  done")
    assert question_key("How is it done?") not in hashed("How is it done?")
    assert hashed("") == ""
    assert hashed(hashed("How?")) == hashed("How?")


def test_a_manifest_keeps_its_numbers() -> None:
    """Worst rows lose their questions, problems what they quote; from then on it is redacted."""
    worst = as_worst(worst_row("q-1", SECRET))
    plain = night(worst=worst, problems=[f"context_recall, row q-1: {SECRET}"])
    hidden = redacted(plain)
    assert SECRET not in hidden.model_dump_json()
    assert (hidden.worst[0].id, hidden.worst[0].value) == ("q-1", 0.0)
    assert hidden.metrics == plain.metrics
    assert re.fullmatch(r"context_recall, row q-1: \[[0-9a-f]{16}\]", hidden.problems[0])
    assert (plain.redacts, hidden.redacts) == (False, True)
    assert redacted(plain, hide=False) is plain


def test_a_question_is_hidden_in_any_record() -> None:
    """Comparisons and gates name questions by the same fields."""
    fallen = WorseQuestion(metric="mrr", user_input=SECRET, id="q-1", before=1.0, after=0.0)
    moved = MovedContext(text=SECRET, id="kb-1", rank_a=1, rank_b=None)
    assert redacted(fallen).user_input == hashed(SECRET)
    assert (redacted(moved).text, redacted(moved).id) == (hashed(SECRET), "kb-1")


def test_a_row_keeps_ids_tags_and_scores(tmp_path: Path) -> None:
    """Of texts, reasons, statements and what earlier nights retrieved there are hashes alone."""
    details = {
        "faithfulness": {"statements": [SECRET], "supported": [True]},
        "nugget_recall": {"support": [1]},
        "response_relevancy": {"questions": [SECRET], "cosines": [0.4], "noncommittal": False},
        "context_recall": {
            "judges": {"gpt": {"value": 0.25, "status": "scored", "reason": SECRET}}
        },
    }
    row = redacted_row(
        worst_row(
            "q-1",
            SECRET,
            details=details,
            scores={"mrr": Score(0.0, SECRET)},
            response=SECRET,
            reference=SECRET,
            retrieved_contexts=(SECRET, SECRET),
            reference_contexts=(SECRET,),
            nuggets=({"text": SECRET, "importance": "vital"},),
            tags={"section": "billing"},
            earlier=(
                EarlierNight(
                    date(2026, 11, 9),
                    "idx-1",
                    {},
                    (MovedContext(text=SECRET, rank_a=1, rank_b=None),),
                ),
            ),
        )
    )
    site = Site(tmp_path)
    page = site.night(redacted(night(worst=as_worst(row))), [row])
    written = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET in one for one in written)
    rows = text(site.html("2026-11-10/rows.html"))
    for told in (
        "Texts are hidden",
        "section billing",
        "grade 2",
        "vital, partly supported",
        "0.40",
        "0.25",
        hashed(SECRET),
    ):
        assert told in rows, told
    assert hashed(SECRET) in page


def test_messages_are_redacted_too() -> None:
    """The one setting is enough; that of the alerts is for messages alone."""
    settings: list[dict[str, Any]] = [{}, {"alerts": {"redact": True}}, {"redact": True}]
    found = [make_settings(values) for values in settings]
    assert [one.redacts_messages for one in found] == [False, True, True]
    assert [one.redact for one in found] == [False, False, True]


# Nights and builds that were redacted, and a newest night that is not


def log_of(folder: Path, day: date, context: str) -> None:
    """A night's log, in which every question has this context first."""
    rows = make_rows(8)
    for row in rows:
        row["retrieved_contexts"] = [context, *row["retrieved_contexts"]]
        row["retrieved_context_ids"] = [context[:5], *(row.get("retrieved_context_ids") or ["x"])]
    write_jsonl(folder / "logs" / str(day) / "a.jsonl", rows)


def published(files: Files) -> dict[str, str]:
    """The files of the dashboard."""
    site = files.at("dashboard")
    paths = (one.path for one in site.below())
    return {path: site.read(path).decode() for path in paths if "plotly" not in path}


def test_a_redacted_night_stays_so_on_the_pages_of_later_ones(tmp_path: Path) -> None:
    """Neither the rows nor the changes of a night that is not redacted show what was retrieved on
    the one before, which is.
    """
    days = (NIGHT - timedelta(days=1), NIGHT)
    for day, word, hide in zip(days, (SECRET, "berlin"), (True, False), strict=True):
        log_of(tmp_path, day, f"{word} has no tower.")
        settings = night_settings(tmp_path, logs="logs/{date}/", redact=hide)
        run_night(settings, day)
    files = Files(settings.store)
    site = published(files)
    assert "berlin" in site[f"{NIGHT}/rows.html"]
    assert hashed(f"{SECRET} has no tower.") in site[f"{NIGHT}/rows-1.js"]
    assert [path for path, page in site.items() if SECRET in page] == []
    rebuild_dashboard(files, files.at("dashboard"))
    assert [path for path, page in published(files).items() if SECRET in page] == []


def test_a_comparison_with_a_redacted_night_is_redacted() -> None:
    """Whoever makes it: `compare` may be called without the settings of the night."""
    found = comparison(SECRET, a=side("night 1", redact=True), b=side("night 2"))
    shown = redacted(found, hide=False)
    assert {row.user_input for row in shown.rows} == {hashed(SECRET)}
    assert redacted(comparison(), hide=False) == comparison()


def test_a_build_is_redacted_where_no_night_says_so(tmp_path: Path) -> None:
    """A gate ran with the setting, in a store that has no night, or none with the setting."""
    rows = golden(30)
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.4, seed=1))
    settings = gate_settings(tmp_path, redact=True)
    gate = run_gate(settings, IndexBuild(dataset="towers", build="b2", serving="b1"))
    assert gate.fallen
    notify_failed_gate(settings, f"index build: {SECRET}", SECRET)
    files = Files(settings.store)
    refresh_builds(files)
    site = published(files)
    assert hashed(gate.fallen[0].user_input) in site["builds/b2.html"]
    assert [path for path, page in site.items() if SECRET in page] == []
    said = [one.user_input for one in gate.fallen]
    assert [path for path, page in site.items() for one in said if one in page] == []


def test_a_calibration_is_redacted_where_no_night_says_so(tmp_path: Path) -> None:
    """Its rows in quarantine may have keys of their own."""
    labelled = make_labelled(8)
    bad = labelled[0] | {"labels": {"gold": {SECRET: "no number"}}}
    path = write_jsonl(tmp_path / "people.jsonl", [*labelled, bad])
    settings = make_settings({"store": f"{tmp_path}/store", "redact": True})
    files = Files(settings.store)
    calibrate(settings, [str(path)], ["context_relevance"], files=files)
    refresh_dashboard(files)
    site = published(files)
    assert f"gold.{hashed(SECRET)}" in text(site["calibration.html"])
    assert [path for path, page in site.items() if SECRET in page] == []


def test_the_event_of_a_verdict_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a build's log could not give is quoted in its reasons; Prefect keeps events for all."""
    sent: list[dict[str, Any]] = []

    async def post(events: Sequence[dict[str, Any]]) -> None:
        sent.extend(events)

    monkeypatch.setattr("tasks.events._post", post)
    broken = BrokenFile(file="b2.jsonl", line=3, reason=f"not JSON: {SECRET}")
    source = Source(logs="b2.jsonl", files=1, rows=3, broken=[broken])
    reason = f"b2.jsonl is read in part: not JSON: {SECRET}"
    held = gated(reasons=[reason], source=source)
    for hide in (False, True):
        settings = make_settings({"store": str(tmp_path), "redact": hide})
        gate_tasks.announce.fn(settings, held)
    open_event, hidden = sent
    assert SECRET in json.dumps(open_event["payload"])
    assert hashed(SECRET) in json.dumps(hidden["payload"])
    assert SECRET not in json.dumps(hidden)
    assert open_event["id"] == hidden["id"]
