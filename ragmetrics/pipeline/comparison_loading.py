"""Loading the sides of a comparison: scores are read from the store, and logs are scored now."""

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

_OWN_WORDS = (
    "it is weighed by its own words, as those of the other side are no longer in the store: equal "
    "rows may differ a little"
)


def load_sides(
    settings: Settings,
    found: tuple[Found, Found],
    metrics: Sequence[str],
    tags: Sequence[str],
    folder: Path,
    progress: Progress | None = None,
) -> tuple[ScoredSide, ScoredSide]:
    """Both sides by some metrics, with some tags; logs are scored in a folder, by the settings.

    Where the judge weighs words by how common they are, both sides are weighed alike, so that equal
    rows get equal scores: two logs by the words of both, a log and a night by those of the night.
    Raises InputError for logs without a row, and what scoring raises.
    """
    weighed_by, sides = _weighed_by(settings, found), []
    for letter, one in zip("AB", found, strict=True):
        if isinstance(one, Stored):
            sides.append(_stored(one, metrics, tags))
            continue
        run = temporary(settings.model_copy(update={"segments": ()}), str(folder / letter))
        kept, told = open_store(settings), _named(letter, progress)
        try:
            staged = score_inputs(run, one.inputs, kept, progress=told, weighed_by=weighed_by)
        except InputError as error:
            raise InputError(f"{letter}, {one.name}: {error}") from None
        files = open_store(run)
        manifest, _ = summarise_run(run, files, staged, datetime.now(UTC))
        side = _stored(Stored(one.name, files, [manifest]), metrics, tags)
        unlike = [_OWN_WORDS] if weighed_by is None and settings.reads_corpus else []
        notices = [*side.notices, *unlike]
        sides.append(replace(side, notices=notices, usage=manifest.usage))
    return sides[0], sides[1]


def _weighed_by(settings: Settings, found: tuple[Found, Found]) -> Corpus | None:
    """The word counts for logs; None where nobody weighs words, or a night's are not kept."""
    logs = [one for one in found if isinstance(one, Logs)]
    if not settings.reads_corpus or not logs:
        return None
    for one in found:
        if isinstance(one, Stored):
            ref = ref_of(one.nights[0])
            kept = one.files.exists(f"{ref.folder('rows')}/corpus.bin")
            return load_corpus(one.files, ref) if kept else None
    corpus = Corpus()
    for log in sorted(logs, key=Logs.places):  # whichever is A: texts of equal hash count once
        for item in (item for logset in log.inputs.logs for item in logset.read()):
            if isinstance(item, LogRow):
                corpus.add(item.retrieved_contexts, item.user_input)
    return corpus


def _named(letter: str, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda name, done, total: progress(f"{letter}: {name}", done, total)


def _stored(found: Stored, metrics: Sequence[str], tags: Sequence[str]) -> ScoredSide:
    scores = {
        metric: read_nights(found.files, found.nights, metric, tags, found.build)
        for metric in metrics
    }
    return scored_side(found.name, found.files, found.nights, scores)
