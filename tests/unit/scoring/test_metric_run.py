"""Texts are split once, and those that take long beside the event loop."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from ragmetrics.metrics import Grade, select
from ragmetrics.records import Ask, LogRow
from ragmetrics.scoring.metric_run import MetricRun, is_heavy
from ragmetrics.text import SizedCache, sentence_splitter as module, sentences

PROSE = "The plug gets hot. Pull it out and wait for an hour. Then call Dr. No."
LISTED = " ".join(f"{number}. item" for number in range(100))


def test_a_text_is_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics that need the sentences of one text share them."""
    asked: list[str] = []
    split = module._split
    monkeypatch.setattr(module, "_recent", SizedCache(1 << 20))
    monkeypatch.setattr(
        module, "_split", lambda text, code: asked.append(text) or split(text, code)
    )
    assert sentences(PROSE) == sentences(PROSE)
    assert asked == [PROSE]


def row(*contexts: str) -> LogRow:
    """A row that retrieved these."""
    return LogRow("1", "Why?", contexts)


def test_rows_of_long_texts_and_of_long_lists_are_heavy() -> None:
    """Prose weighs its characters; a list, over which pysbd takes many steps, weighs more."""
    assert not is_heavy(row(PROSE * 200))
    assert is_heavy(row(PROSE * 2_000))
    assert len(LISTED) < 1_000 and is_heavy(row(*[LISTED] * 10))


def test_a_heavy_row_is_split_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others on the loop go on while a thread splits; a light row needs none."""
    threads: list[bool] = []

    def watched(text: str | None, language: str | None = None) -> tuple[str, ...]:
        threads.append(threading.current_thread() is threading.main_thread())
        return sentences(text, language)

    metric = select(["context_relevancy"])[0]
    monkeypatch.setattr(
        sys.modules["ragmetrics.metrics.bundled.context_relevancy"], "sentences", watched
    )
    for heavy in (False, True):
        asyncio.run(MetricRun(metric, row(PROSE), heavy=heavy).advance(None))
    assert threads == [True, False]


def test_probabilities_give_a_score_its_standard_deviation() -> None:
    """Of two supported sentences, one with 0.5 and one surely: sqrt(0.25) / 2."""
    metric = select(["context_recall"])[0]
    run = MetricRun(metric, LogRow("1", "Why?", ("Because.",), reference="It is. It was."))
    run.step(None)
    (ask,) = run.requests
    assert isinstance(ask, Ask) and ask.prompt.expect
    run.step([ask.prompt.expect([(0.5, 0.5), (0.0, 1.0)], ask.data)])
    assert run.score is not None
    assert (run.score.value, run.score.spread) == (0.75, 0.25)


def test_a_score_of_verdicts_without_probabilities_has_no_spread() -> None:
    """Nothing is known of it from one asking."""
    run = MetricRun(select(["context_relevance"])[0], row("Because."))
    run.step(None)
    run.step([Grade(grade=1)])
    assert run.score is not None
    assert (run.score.value, run.score.spread) == (0.5, None)
