"""`redact: true`: no page holds a word of what was logged, and scores are all there."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparing.records import MovedContext
from ragmetrics.dashboard import rebuild_dashboard
from ragmetrics.demo import NIGHTS, unpack
from ragmetrics.gates.records import FallenQuestion
from ragmetrics.night import run_night
from ragmetrics.protocol import Score
from ragmetrics.report.redacting import hashed, is_redacted, redacted, redacted_row
from ragmetrics.report.rows_earlier import Earlier
from ragmetrics.rows import question_key
from ragmetrics.settings import load_settings, make_settings
from ragmetrics.store.files import Files
from ragmetrics.store.history import nights
from ragmetrics.store.parts import read_rows
from tests.fakes.nights import as_worst, night, worst_row
from tests.fakes.pages import Site, text

SECRET = "zanzibar"


def test_a_hash_is_that_of_the_scores() -> None:
    """Whoever has the store finds the question's rows by it; nothing stays nothing."""
    assert hashed("How is it done?") == f"[{question_key('how is it  done')}]"
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
    assert re.fullmatch(r"context_recall, row q-1: \[[0-9a-f]{8}\]", hidden.problems[0])
    assert (is_redacted(plain), is_redacted(hidden), is_redacted(None)) == (False, True, False)
    assert redacted(plain, hide=False) is plain


def test_a_question_is_hidden_in_any_record() -> None:
    """Comparisons and gates name questions by the same fields."""
    fallen = FallenQuestion(metric="mrr", user_input=SECRET, id="q-1", before=1.0, after=0.0)
    moved = MovedContext(text=SECRET, id="kb-1", rank_a=1, rank_b=None)
    assert redacted(fallen).user_input == hashed(SECRET)
    assert (redacted(moved).text, redacted(moved).id) == (hashed(SECRET), "kb-1")


def test_a_row_keeps_ids_tags_and_scores(tmp_path: Path) -> None:
    """Of texts, reasons, statements and what earlier nights retrieved there are hashes alone."""
    details = {
        "faithfulness": {"statements": [SECRET], "supported": [True]},
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
            tags={"section": "billing"},
            earlier=(
                Earlier(
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
    written = [one.read_text("utf-8") for one in tmp_path.rglob("*") if one.is_file()]
    assert not any(SECRET in one for one in written)
    rows = text(site.html("2026-11-10/rows.html"))
    for told in (
        "Texts are hidden",
        "section=billing",
        "grade 2",
        "0.400",
        "0.250",
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


@pytest.mark.parametrize("later", [False, True])
def test_no_published_byte_has_a_sentence_of_the_logs(tmp_path: Path, later: bool) -> None:
    """Neither where the nights ran with the setting, nor after it was added and all was rebuilt."""
    settings = load_settings(unpack(tmp_path))
    hidden = settings.model_copy(update={"redact": True})
    for number, day in enumerate(NIGHTS[:3]):
        run_night(hidden if number == 2 or not later else settings, day)
    files = Files(settings.store)
    site = files.at("dashboard")
    if later:
        site = files.at("elsewhere")
        rebuild_dashboard(files, site)
    published = "".join(
        site.read(one.path).decode() for one in site.below() if "plotly" not in one.path
    )
    said = set()
    for manifest in nights(files):
        for path in files.below(f"rows/dt={manifest.date}"):
            if path.path.endswith(".parquet"):
                for row in read_rows(files, path.path):
                    said |= {one[:30] for one in row.texts if len(one) >= 12}
    assert len(said) > 100
    assert [one for one in said if one in published] == []
