"""Loads the sides of a comparison: reads stored scores, and scores logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ragmetrics.comparison import ScoredSide, read_nights, scored_side
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.judges import Corpus
from ragmetrics.model import LogRow
from ragmetrics.pipeline.comparison_inputs import Found, Logs, Stored
from ragmetrics.pipeline.evaluation import Progress, score_inputs, temporary
from ragmetrics.scoring import load_corpus, summarise_run
from ragmetrics.storage import open_store, ref_of

_OWN_WEIGHTS = (
    "its words are weighted by their frequency in its own rows, because the word counts of the "
    "other side are no longer in the store; equal rows may get slightly different scores"
)


def load_sides(
    settings: Settings,
    found: tuple[Found, Found],
    metrics: Sequence[str],
    tags: Sequence[str],
    folder: Path,
    progress: Progress | None = None,
) -> tuple[ScoredSide, ScoredSide]:
    """The scores of both sides by some metrics, with some tags. Logs are scored in a folder.

    A judge that weighs words by frequency uses the same word counts for both sides, so that equal
    rows get equal scores. Two logs use the counts of both; a log and a night use those of the
    night. Raises InputError for logs without a row, and what scoring raises.
    """
    weighed_by, sides = _weighed_by(settings, found), []
    for letter, one in zip("AB", found, strict=True):
        if isinstance(one, Stored):
            sides.append(_stored(one, metrics, tags))
            continue
        run = temporary(settings.model_copy(update={"segments": ()}), str(folder / letter))
        cache, report = open_store(settings), _labelled(letter, progress)
        try:
            staged = score_inputs(run, one.inputs, cache, progress=report, weighed_by=weighed_by)
        except InputError as error:
            raise InputError(f"{letter}, {one.name}: {error}") from None
        files = open_store(run)
        manifest, _ = summarise_run(run, files, staged, datetime.now(UTC))
        side = _stored(Stored(one.name, files, [manifest]), metrics, tags)
        unlike = [_OWN_WEIGHTS] if weighed_by is None and settings.reads_corpus else []
        notices = [*side.notices, *unlike]
        sides.append(replace(side, notices=notices, usage=manifest.usage))
    return sides[0], sides[1]


def _weighed_by(settings: Settings, found: tuple[Found, Found]) -> Corpus | None:
    """The word counts for logs; None when no judge needs them, or a night's counts are gone."""
    logs = [one for one in found if isinstance(one, Logs)]
    if not settings.reads_corpus or not logs:
        return None
    for one in found:
        if isinstance(one, Stored):
            ref = ref_of(one.nights[0])
            stored = one.files.exists(f"{ref.folder('rows')}/corpus.bin")
            return load_corpus(one.files, ref) if stored else None
    corpus = Corpus()
    for log in sorted(logs, key=Logs.places):  # the order of A and B does not matter
        for item in (item for logset in log.inputs.logs for item in logset.read()):
            if isinstance(item, LogRow):
                corpus.add(item.retrieved_contexts, item.user_input)
    return corpus


def _labelled(letter: str, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda name, done, total: progress(f"{letter}: {name}", done, total)


def _stored(found: Stored, metrics: Sequence[str], tags: Sequence[str]) -> ScoredSide:
    scores = {
        metric: read_nights(found.files, found.nights, metric, tags, found.build)
        for metric in metrics
    }
    return scored_side(found.name, found.files, found.nights, scores)
