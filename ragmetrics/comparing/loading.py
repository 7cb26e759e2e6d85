"""Loading the sides of a comparison: scores are read from the store, and logs are scored now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ragmetrics.causes import BUILDS
from ragmetrics.comparing.records import ComparedSide
from ragmetrics.comparing.sides import Found, Logs, Stored
from ragmetrics.errors import InputError
from ragmetrics.evaluation import Progress, score_inputs, temporary
from ragmetrics.judges.corpus import Corpus
from ragmetrics.protocol import Status
from ragmetrics.publish import summarise_run
from ragmetrics.records import Manifest, Usage
from ragmetrics.rows import LogRow
from ragmetrics.settings import Settings
from ragmetrics.stage import load_corpus, open_store
from ragmetrics.store.files import Files
from ragmetrics.store.history import ref_of
from ragmetrics.store.parts import RunRef, scored_rows
from ragmetrics.summarise import MetricScores, load_scores

_OWN_WORDS = (
    "it is weighed by its own words, as those of the other side are no longer in the store: equal "
    "rows may differ a little"
)
_UNSETTLED = (Status.JUDGE_FAILED.value, Status.UNREADABLE.value)


@dataclass(frozen=True)
class Side:
    """One side with its scores."""

    about: ComparedSide
    scores: Mapping[str, MetricScores]
    """By metric; `night` in their tables is the place of the row's run in `runs`."""
    files: Files
    runs: Sequence[RunRef]
    notices: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    """What was asked for it now."""

    def rows_of(self, questions: Collection[str]) -> dict[str, LogRow]:
        """The first row of each question, of those whose rows are still there."""
        places: dict[str, tuple[int, int, int]] = {}
        for one in self.scores.values():
            rows = one.table[one.table["question"].isin(set(questions) - places.keys())]
            columns = (rows[name] for name in ("question", "night", "shard", "position"))
            for question, night, shard, position in zip(*columns, strict=True):
                places.setdefault(question, (int(night), int(shard), int(position)))
        nights = {night for night, _, _ in places.values()}
        found = {night: self._rows_at(night, places.values()) for night in nights}
        return {
            question: found[night][shard, position]
            for question, (night, shard, position) in places.items()
            if (shard, position) in found[night]
        }

    def _rows_at(
        self, night: int, places: Collection[tuple[int, int, int]]
    ) -> dict[tuple[int, int], LogRow]:
        wanted: dict[int, set[int]] = {}
        for of_night, shard, position in places:
            if of_night == night and self.files.exists(self.runs[night].rows(shard)):
                wanted.setdefault(shard, set()).add(position)
        rows = scored_rows(self.files, self.runs[night], [], wanted)
        return {place: one.row for place, one in rows.items()}


def load_sides(
    settings: Settings,
    found: tuple[Found, Found],
    metrics: Sequence[str],
    tags: Sequence[str],
    folder: Path,
    progress: Progress | None = None,
) -> tuple[Side, Side]:
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


def _stored(found: Stored, metrics: Sequence[str], tags: Sequence[str]) -> Side:
    scores = {metric: _read(found, metric, tags) for metric in metrics}
    sources = [night.source for night in found.nights]
    about = ComparedSide(
        name=found.name,
        dataset=found.nights[0].dataset,
        judge=found.nights[0].judge,
        rows=max(len(one.table) for one in scores.values()),
        quarantined=sum(one.quarantined for one in sources),
    )
    broken = (f"{one.file} is read in part: {one.reason}" for s in sources for one in s.broken)
    problems = (problem for night in found.nights for problem in night.problems)
    notices = [*dict.fromkeys([*broken, *problems]), *_unsettled(scores), *_samples(found.nights)]
    return Side(about, scores, found.files, [ref_of(one) for one in found.nights], notices)


def _read(found: Stored, metric: str, tags: Sequence[str]) -> MetricScores:
    import pandas as pd

    tables, better = [], True
    for number, night in enumerate(found.nights):
        if summary := night.summary(metric):
            table = load_scores(found.files, ref_of(night), metric, tags).table
            if found.build is not None:
                table = table[table[BUILDS] == found.build]
            tables.append(table.assign(night=number))
            better = summary.higher_is_better
    return MetricScores(metric, pd.concat(tables, ignore_index=True), better)


def _unsettled(scores: Mapping[str, MetricScores]) -> list[str]:
    """Rows that the judge gave no verdict on: what is compared may not stand for them."""
    told = []
    for name, one in scores.items():
        counts = Counter(one.table["status"])
        lacking = sum(counts[status] for status in _UNSETTLED)
        if lacking:
            told.append(
                f"{name}: the judge gave no verdict on {lacking:,} of {len(one.table):,} rows"
            )
    return told


def _samples(nights: Sequence[Manifest]) -> list[str]:
    """That not all rows were judged, and why."""
    shares = [night.budget.share for night in nights if night.budget and night.budget.share < 1]
    told = [f"a budget let {min(shares):.1%} of the questions be judged"] if shares else []
    counts = [(night.sample.judged, night.source.rows) for night in nights if night.sample]
    judged, rows = (sum(count) for count in zip(*counts, strict=True)) if counts else (0, 0)
    if judged < rows:
        told.append(f"a sample of {judged:,} of {rows:,} rows was judged: only these are compared")
    return told
