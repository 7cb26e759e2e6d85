"""Corpus turnover: stale labels, told from retrieval that got worse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import AlertSettings
from ragmetrics.delivery import notify_channels
from ragmetrics.logs import find_inputs
from ragmetrics.passages import IdReader
from ragmetrics.passages.diagnosis.document_ids import hashed, pieces
from ragmetrics.pipeline.publish import publish_run
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules.checks.stale_labels import StaleShare
from ragmetrics.scoring import judge_info, list_parts, plan_run, score_part, stage_run
from ragmetrics.storage import StoredPart, open_store
from tests.builders import night_settings
from tests.fakes.logs import write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

FIRST = date(2026, 11, 10)
COUNT = 60
Change = Callable[[int, dict[str, Any]], None]


def row(number: int) -> dict[str, Any]:
    """A question whose one right document is retrieved first; every tenth misses it."""
    names = [f"doc-{number}", f"doc-{(number + 7) % COUNT}"]
    names = names[1:] if number % 10 == 0 else names
    return {
        "user_input": f"How long may invoice number {number} be disputed by the customer?",
        "retrieved_context_ids": names,
        "retrieved_contexts": [text(int(name.removeprefix("doc-"))) for name in names],
        "reference_context_ids": [f"doc-{number}"],
    }


def text(number: int) -> str:
    """Two sentences, of which the first answers."""
    return (
        f"Invoice number {number} may be disputed by the customer for {number + 3} days. "
        f"Disputes about contract number {number} are to be sent to the billing desk."
    )


class Nights:
    """Nights with the lexical judge, of the same questions."""

    def __init__(self, folder: Path, *metrics: str, **rule: Any) -> None:
        self._folder, self._number = folder, 0
        rule = rule or {"max_drop": 0.05, "versus": "trailing:7"}
        self.settings = night_settings(
            folder,
            logs="{date}.jsonl",
            metrics=["id_recall", *metrics],
            rules=[{"metric": "id_recall", **rule}],
        )

    def run(self, change: Change = lambda number, row: None) -> Manifest:
        """The next night, with its rows changed one by one."""
        day = FIRST + timedelta(days=self._number)
        rows = [row(number) for number in range(COUNT)]
        for number, record in enumerate(rows):
            change(number, record)
        write_jsonl(self._folder / f"{day}.jsonl", rows)
        now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=1)
        info, embedder = judge_info(self.settings)
        inputs = find_inputs(self.settings, day)
        ref = plan_run(self.settings, day, inputs, f"{info.fingerprint}/{embedder}")
        staged = stage_run(self.settings, ref, inputs, now)
        for family, shard in list_parts(self.settings, staged):
            score_part(self.settings, ref, family, shard)
        self._number += 1
        manifest = publish_run(self.settings, staged, now)
        notify_channels(self.settings, open_store(self.settings), manifest)
        return manifest


def calm(nights: Nights) -> Nights:
    """The same after three nights on which nothing changed."""
    for _ in range(3):
        night = nights.run()
        assert all(finding.level == "ok" for finding in night.findings), night.findings
    return nights


def found(night: Manifest) -> tuple[Finding, Finding]:
    """What a night says of the labels, and of recall."""
    (labels,) = [finding for finding in night.findings if finding.kind == "stale_labels"]
    (recall,) = [finding for finding in night.findings if finding.kind == "metric"]
    return labels, recall


def renamed(_: int, row: dict[str, Any]) -> None:
    """Every document has another id."""
    row["retrieved_context_ids"] = [f"v2/{name}" for name in row["retrieved_context_ids"]]


def half_renamed(_: int, row: dict[str, Any]) -> None:
    """Every second document has another id."""
    row["retrieved_context_ids"] = [
        f"v2/{name}" if int(name.removeprefix("doc-")) % 2 else name
        for name in row["retrieved_context_ids"]
    ]


def split(_: int, row: dict[str, Any]) -> None:
    """Every document is two chunks now, of one sentence each."""
    names, contexts = row["retrieved_context_ids"], row["retrieved_contexts"]
    row["retrieved_context_ids"] = [f"{name}#{part}" for name in names for part in (0, 1)]
    row["retrieved_contexts"] = [f"{one}." for text in contexts for one in text.split(". ")]


def rewritten(number: int, row: dict[str, Any]) -> None:
    """Every document has another id and somewhat other words, which answer as well."""
    renamed(number, row)
    row["retrieved_contexts"] = [
        context.replace(" may be ", " can and may be ").replace(" are to be ", " shall be ")
        for context in row["retrieved_contexts"]
    ]


def broken(number: int, row: dict[str, Any]) -> None:
    """Retrieval brings documents that nobody saw, and that have nothing to do with it."""
    row["retrieved_context_ids"] = [f"far-{number}-0", f"far-{number}-1"]
    row["retrieved_contexts"] = [f"Ferries of line {number} leave the harbour every hour."] * 2


@pytest.mark.parametrize("change", [renamed, split])
def test_the_same_texts_under_other_ids_are_stale_labels(tmp_path: Path, change: Change) -> None:
    """Without any metric that reads them: sentences are found again, and recall does not fire."""
    labels, recall = found(calm(Nights(tmp_path)).run(change))
    assert (labels.level, labels.state, labels.severity) == ("breach", "firing", "warning")
    assert labels.message.startswith("labels of 60 questions are stale: 60 of 60 golden ids")
    assert "of their texts are retrieved under other ids" in labels.message
    assert (recall.level, recall.mean) == ("ok", 0.0)
    assert "the labels of 60 of 60 questions are stale" in recall.message


def test_other_texts_are_stale_labels_where_a_metric_that_reads_them_stands(
    tmp_path: Path,
) -> None:
    """context_relevance vouches for retrieval."""
    labels, recall = found(calm(Nights(tmp_path, "context_relevance")).run(rewritten))
    assert labels.state == "firing"
    assert "context_relevance unchanged" in labels.message
    assert recall.state == "ok"


@pytest.mark.parametrize("metrics", [(), ("context_relevance",)])
def test_retrieval_that_breaks_is_no_turnover(tmp_path: Path, metrics: tuple[str, ...]) -> None:
    """Its ids are new as well, but nothing vouches for it: recall fires, labels are suspects."""
    labels, recall = found(calm(Nights(tmp_path, *metrics)).run(broken))
    assert (labels.level, labels.state) == ("suspect", "pending")
    assert "or retrieval brings other documents" in labels.message
    assert recall.state == "firing"


def test_both_at_once_are_both_told(tmp_path: Path) -> None:
    """Half of the documents have other ids, and of the others half are not found any more."""

    def both(number: int, row: dict[str, Any]) -> None:
        half_renamed(number, row)
        if number % 4 == 0:
            row["retrieved_context_ids"] = [f"doc-{(number + 14) % COUNT}"]
            row["retrieved_contexts"] = row["retrieved_contexts"][:1]

    labels, recall = found(calm(Nights(tmp_path)).run(both))
    assert labels.state == "firing"
    assert recall.state == "firing"
    assert "without them the drop is" in recall.message


def test_stale_labels_are_no_fall_of_a_metric_that_no_rule_watches(tmp_path: Path) -> None:
    """The headline tells of the labels alone; ids that are found no more are a fall."""
    nights = calm(Nights(tmp_path))
    nights.settings = nights.settings.model_copy(update={"alerts": AlertSettings(rules=())})
    night = nights.run(half_renamed)
    assert night.falls == []
    assert [one.state for one in night.findings if one.kind == "stale_labels"] == ["firing"]


def test_it_lasts_until_the_labels_are_mended(tmp_path: Path) -> None:
    """The new ids are soon known, but the labels name what is gone; with those ids it resolves."""
    nights = calm(Nights(tmp_path))
    states = [found(nights.run(renamed))[0].state for _ in range(4)]
    assert states == ["firing"] * 4

    def mended(number: int, row: dict[str, Any]) -> None:
        renamed(number, row)
        row["reference_context_ids"] = [f"v2/doc-{number}"]

    labels, recall = found(nights.run(mended))
    assert (labels.level, labels.transition) == ("ok", "resolved")
    assert recall.state == "ok"


def test_a_line_is_held_against_the_live_labels(tmp_path: Path) -> None:
    """A `min` rule does not fire for labels alone."""

    nights = calm(Nights(tmp_path, min=0.7, min_rows=10))
    labels, recall = found(nights.run(half_renamed))
    assert labels.state == "firing"
    assert recall.mean is not None
    assert recall.mean < 0.7
    assert recall.level == "ok"


def test_nothing_is_said_without_ids_or_nights(tmp_path: Path) -> None:
    """Two nights before are needed to know what is usual."""
    nights = Nights(tmp_path)
    for _ in range(2):
        assert not [one for one in nights.run(renamed).findings if one.kind == "stale_labels"]
    assert [finding for finding in nights.run(renamed).findings if finding.kind == "stale_labels"]


@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 400), st.integers(1, 400))
def test_a_share_jumps_only_above_the_usual_one(count: int, of: int, usual: int, base: int) -> None:
    """And never of too few ids; a larger limit jumps less often."""
    share = StaleShare(min(count, of), of, min(usual, base), base)
    if share.jumped(0.1):
        assert share.value > share.usual + 0.1
        assert min(of, base) >= 20
    assert not share.jumped(1.0)
    assert share.jumped(0.3) <= share.jumped(0.1)


@given(st.lists(st.text(max_size=20), max_size=30))
def test_hashes_are_those_of_distinct_texts(texts: list[str]) -> None:
    """Any text has one, lone surrogates too."""
    assert len(hashed(texts)) <= len(set(texts))
    assert set(hashed(texts).tolist()) == set(hashed(reversed(texts)).tolist())


def test_sentences_are_the_same_whatever_the_chunk() -> None:
    """Case, spaces and where a text is cut make no difference; short ones do not count."""
    whole = pieces(["The old tower is 112 metres tall. It is red. Ferries leave  every hour!"])
    again = pieces(["the old tower is 112 metres TALL", "Ferries leave every hour"])
    assert whole.tolist() == again.tolist()
    assert len(whole) == 2


def test_texts_of_one_shard_at_a_time_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night's contexts may be gigabytes: of eight shards none is read while another is held."""
    held, columns = list[int](), StoredPart.columns

    def read(*args: Any) -> Any:
        held.append(pa.total_allocated_bytes())
        return columns(*args)

    nights = Nights(tmp_path)
    nights.settings = nights.settings.model_copy(update={"shards": 8})
    night = nights.run(lambda _, row: row.update(retrieved_contexts=["Long text. " * 20_000] * 2))
    monkeypatch.setattr(StoredPart, "columns", read)
    assert len(IdReader(open_store(nights.settings)).all_pieces(night)) == 0
    assert len(held) == 8
    assert max(held) - held[0] < 220_000


def test_hostile_ids_are_ids(tmp_path: Path) -> None:
    """Whatever stands in them: markup, control characters, very much. Blank
    ones are none, and nothing of them gets into a message.
    """
    odd = ["<!channel>", "\x1b[31m\u202e", "{{ 7 }}", "x" * 10_000, "=1+1"]

    def changed(number: int, row: dict[str, Any]) -> None:
        new = [f"{odd[number % 5]}{name}" for name in row["retrieved_context_ids"]]
        row["retrieved_context_ids"] = new
        row["reference_context_ids"] = [*row["reference_context_ids"], odd[number % 5], " "]

    nights = calm(Nights(tmp_path))
    labels, _ = found(nights.run(changed))
    assert labels.state == "firing"
    assert not set("<\x1b\u202e{=") & set(labels.message)
