"""The newest night for Prometheus: what is exported, and what hostile texts cannot make of it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ragmetrics.dashboard import redacted, refresh_dashboard
from ragmetrics.dashboard.prometheus import (
    LONGEST,
    MOST_ALERTS,
    MOST_SEGMENTS,
    PATH,
    NightMetrics,
    label,
    metrics_text,
)
from ragmetrics.records import JudgeInfo, Manifest, Segment, Silence, Source
from ragmetrics.records.judging import Usage
from ragmetrics.storage import CONTENT_TYPES, Files, Runs
from tests.fakes.nights import HOSTILE, as_worst, finding, night, summary, ten_nights, worst_row
from tests.fakes.processes import ROOT

Samples = dict[str, list[tuple[dict[str, str], float]]]


def samples(manifest: Manifest) -> Samples:
    """What Prometheus reads of a night, by metric."""
    found: Samples = {}
    for family in text_string_to_metric_families(metrics_text(manifest).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def one(manifest: Manifest, name: str, **labels: str) -> float:
    """The value of the only sample that has these labels."""
    [value] = [
        value
        for known, value in samples(manifest)[f"ragmetrics_{name}"]
        if labels.items() <= known.items()
    ]
    return value


def test_scores_have_their_intervals() -> None:
    """Mean, low and high of a metric, each as a series of its own."""
    last = ten_nights()[-1]
    recall = {"dataset": "helpdesk", "metric": "context_recall"}
    got = [one(last, f"score_{name}", **recall) for name in ("mean", "low", "high")]
    assert got == pytest.approx([0.70, 0.67, 0.73])


def test_segments_have_names_of_their_own() -> None:
    """So that a mean over all series of a metric is none of rows that are counted twice."""
    last = ten_nights()[-1]
    billing = {"metric": "context_recall", "tag": "section", "value": "billing"}
    assert one(last, "segment_score_mean", **billing) == 0.5
    assert one(last, "segment_rows_scored", **billing) == 200
    assert len(samples(last)["ragmetrics_score_mean"]) == 2


def test_rows_are_counted_by_what_became_of_them() -> None:
    """Read, quarantined, and of each metric by status."""
    source = Source(logs="logs/", files=1, rows=200, quarantined=7, reasons={"not JSON": 7})
    partly = summary("context_recall", 0.9, status={"scored": 150, "judge_failed": 50})
    known = night(source=source, metrics=[partly])
    assert one(known, "rows") == 200
    assert one(known, "rows_quarantined") == 7
    assert one(known, "metric_rows", metric="context_recall", status="scored") == 150
    assert one(known, "metric_rows", metric="context_recall", status="judge_failed") == 50


def test_the_night_is_a_time_of_prometheus() -> None:
    """Its day at 00:00 UTC, by which a missing night is seen; samples have no time of their own."""
    assert one(night(), "night_timestamp_seconds") == datetime(2026, 11, 10, tzinfo=UTC).timestamp()
    lines = [line for line in metrics_text(night()).decode().splitlines() if line[0] != "#"]
    assert all(len(line.rpartition("}")[2].split()) == 1 for line in lines)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({}, 0),
        ({"compared": False}, 1),
        ({"level": "no_data"}, 2),
        ({"level": "suspect"}, 3),
        ({"level": "breach"}, 4),
    ],
)
def test_the_state_of_a_rule_is_a_number(change: dict[str, Any], value: int) -> None:
    """Worse is more; what was not compared is not ok."""
    rule = {"metric": "context_recall", "rule": "context_recall: below 0.8", "kind": "metric"}
    assert one(night(findings=[finding(**change)]), "alert_state", **rule) == value


def test_a_silenced_alert_is_known_as_such() -> None:
    """An alarm on top of these metrics can leave it out."""
    since = datetime(2026, 11, 1, tzinfo=UTC)
    quiet = Silence(key="context_recall/min", kind="ack", by="ann", at=since)
    known = night(findings=[finding(level="breach", silence=quiet), finding(key="other")])
    silenced = [value for _, value in samples(known)["ragmetrics_alert_silenced"]]
    assert sorted(silenced) == [0, 1]


def test_the_state_of_a_night_is_one_of_several() -> None:
    """1 of the state that it is in, 0 of the others."""
    states = {
        labels["state"]: value
        for labels, value in samples(ten_nights()[-1])["ragmetrics_night_state"]
    }
    assert [state for state, value in states.items() if value] == ["firing"]
    assert {"ok", "pending", "no_data", "fell", "incomplete"} <= set(states)


def test_requests_tokens_and_money_are_told() -> None:
    """Of what is reached over a network."""
    usage = Usage(requests=400, prompt_tokens=90_000, completion_tokens=1_000, usd=1.25)
    known = night(usage=usage)
    assert one(known, "judge_requests") == 400
    assert one(known, "judge_prompt_tokens") == 90_000
    assert one(known, "cost_usd") == 1.25


def test_what_is_not_known_is_left_out() -> None:
    """No 0 for a mean without rows, or for money without a price."""
    known = samples(night(metrics=[summary("context_recall", None)], segments=[]))
    assert "ragmetrics_score_mean" not in known
    assert "ragmetrics_segment_score_mean" not in known
    assert "ragmetrics_cost_usd" not in known
    assert one(night(usage=Usage()), "cost_usd") == 0


def test_a_night_without_data_is_told_as_such() -> None:
    """The state is there, the scores are not."""
    unread = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
    empty = night(source=unread, metrics=[], segments=[], findings=[])
    assert one(empty, "night_state", state="no_data") == 1
    assert "ragmetrics_score_mean" not in samples(empty)


def test_hostile_texts_are_label_values_and_nothing_else() -> None:
    """Quotes, line breaks, null bytes, direction marks, broken characters and very long words."""
    text = f'{HOSTILE}"}} 1\nevil_metric{{a="b"}} 2 \\ \ud800 ' + "w" * 1_000_000
    segment = Segment(tag=text, value=text)
    known = night(
        dataset="helpdesk",
        judge=JudgeInfo(name=text, fingerprint=text),
        metrics=[summary(text, 0.5)],
        segments=[summary(text, 0.4, segment=segment)],
        findings=[finding(text, rule=text, key=text, segment=segment, message=text)],
        worst=as_worst(worst_row(text, text)),
        problems=[text],
    )
    written = metrics_text(known).decode()
    assert len(written) < 20_000
    assert not any(sign in written for sign in ("\x00", "\u202e", "\r", "\u2028"))
    assert all(line.startswith(("# ", "ragmetrics_")) for line in written.splitlines())
    values = [v for own in samples(known).values() for labels, _ in own for v in labels.values()]
    assert max(map(len, values)) <= LONGEST


def test_two_texts_are_never_one_series() -> None:
    """Prometheus refuses a file in which a series stands twice."""
    values = ["a", "a\x00", "a\u202e", " a", "w" * 500, "w" * 501]
    rows = [summary("m", 0.5, segment=Segment(tag="t", value=value)) for value in values]
    series = Counter(
        (name, *sorted(labels.items()))
        for name, values in samples(night(segments=rows)).items()
        for labels, _ in values
    )
    assert max(series.values()) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a\u202e", label("a\u202e")),
        ("w" * 500, label("w" * 500)),
        ("\u202e", label("\u202e")),
        (
            "x\u200b\u200b\u2060\u202e\u200e\u200b\u200b\u202e\u200b\u200b",
            "x\u200e\u200b\u2060\u200e\u2060\u2060\u200e\u200e\u200b\u200b",
        ),
    ],
)
def test_nobody_can_write_two_texts_that_are_one_series(first: str, second: str) -> None:
    """Neither by logging what another text became, nor by a search for two of one digest: of four
    bytes 50,000 tries found the last pair.
    """
    assert label(first) != label(second)


@given(st.text(st.characters(), max_size=400), st.text(st.characters(), max_size=400))
def test_labels_are_bounded_printable_and_apart(first: str, second: str) -> None:
    """Of any two texts."""
    told = label(first)
    assert len(told) <= LONGEST
    assert "\n" not in told and "\x00" not in told
    told.encode()
    assert (told == label(second)) == (first == second)


def test_series_are_bounded() -> None:
    """However many tags the logs have; how many are left out is told."""
    rows = [
        summary("m", 0.5, segment=Segment(tag="t", value=str(number)))
        for number in range(MOST_SEGMENTS + 40)
    ]
    rules = [finding(key=str(number)) for number in range(MOST_ALERTS + 1)]
    known = night(segments=rows, findings=[*rules, finding(key="bad", level="breach")])
    assert len(samples(known)["ragmetrics_segment_score_mean"]) == MOST_SEGMENTS
    assert one(known, "segments_omitted") == 40
    states = [value for _, value in samples(known)["ragmetrics_alert_state"]]
    assert len(states) == MOST_ALERTS
    assert max(states) == 4


def test_no_question_is_exported() -> None:
    """Worst rows and problems are not there, with `redact` or without."""
    rows = as_worst(worst_row("q-1", "How is an invoice changed?"))
    known = night(worst=rows, problems=["shard 1: How is an invoice changed?"])
    for shown in (known, redacted(known)):
        assert "nvoice" not in metrics_text(shown).decode()


def test_publishing_writes_the_newest_night(tmp_path: Path) -> None:
    """Beside the overview, with the type by which a bucket serves it to Prometheus."""
    files = Files(str(tmp_path))
    for told in ten_nights()[-2:]:
        Runs(files).save(told)
    refresh_dashboard(files)
    written = files.read(f"dashboard/{PATH}")
    assert written == metrics_text(ten_nights()[-1])
    assert CONTENT_TYPES[".prom"] == "text/plain; version=0.0.4; charset=utf-8"


def test_every_metric_is_documented() -> None:
    """docs/how-to/monitoring.md names each."""
    page = (ROOT / "docs/how-to/monitoring.md").read_text()
    usage = Usage(requests=1, usd=1.0)
    for family in NightMetrics(ten_nights()[-1].model_copy(update={"usage": usage})).collect():
        assert f"`{family.name}`" in page
