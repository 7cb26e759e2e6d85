"""Labelled sets: reads the files at a place, and makes the requests to a judge for each row.

    metric              request                        unit        label
    context_relevance   a grade per context            context     chunk_relevance
    context_relevancy   the needed sentences of all    sentence    overlaps a relevant span
    context_recall      the support of all statements  statement   statement_support, reference
    faithfulness        the support of all statements  statement   statement_support, response

Labels and verdicts are scaled to [0, 1]: a grade of 1, or partial support, is 0.5.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import FORMATS, log_set
from ragmetrics.metrics import GRADE, GROUNDED, NEEDED, SUPPORT, Support
from ragmetrics.people.calibration.labelled import (
    NIGHT,
    LabelledRow,
    Span,
    read_judged_night,
    read_labelled,
)
from ragmetrics.records import Ask, BadRow, BrokenFile, Prompt, Rejected
from ragmetrics.storage import Files
from ragmetrics.text import sentences

_WHOLE = 1.0
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_WILD = re.compile(r"[*?\[]")
_MOST_REASONS = 50


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """One request to the judge, with the label of each unit in its verdict."""

    ask: Ask
    units: tuple[str, ...]
    labels: tuple[float, ...]

    @property
    def content(self) -> str:
        """Digest of the data: equal for the same text, whatever the wording of the prompt."""
        return hashlib.blake2b(
            self.ask.text.encode("utf-8", "surrogatepass"), digest_size=4
        ).hexdigest()


Questions: TypeAlias = Callable[[LabelledRow], list[LabelQuestion]]


@dataclass(frozen=True)
class LabelTarget:
    """How one metric's verdicts are compared with labels.

    `verdicts` gives one value in [0, 1] per unit. A label is positive from `label_from` on, a
    verdict from `verdict_from` on.
    """

    metric: str
    unit: str
    label: str
    """Name of the labels in the row."""
    questions: Questions
    verdicts: Callable[[Any, LabelQuestion], list[float]]
    label_from: float = _WHOLE
    verdict_from: float = _WHOLE


def _grades(labelled: LabelledRow) -> list[LabelQuestion]:
    row, labels = labelled.row, labelled.labels
    if not row.user_input.strip():
        return []
    low, high = labels.chunk_relevance_scale
    pairs = zip(row.retrieved_contexts, labels.chunk_relevance or (), strict=False)
    return [
        LabelQuestion(
            Ask(GRADE, {"question": row.user_input, "context": context}),
            (str(number),),
            ((label - low) / (high - low),),
        )
        for number, (context, label) in enumerate(pairs)
        if context.strip()
    ]


def _needed(labelled: LabelledRow) -> list[LabelQuestion]:
    if labelled.labels.relevant_sentences is None or not labelled.row.user_input.strip():
        return []
    numbered: list[dict[str, str]] = []
    units: list[str] = []
    labels: list[float] = []
    for place, (context, relevant) in enumerate(
        zip(labelled.row.retrieved_contexts, labelled.labels.relevant_sentences, strict=True)
    ):
        spans = _spans(labelled, place)
        first = len(units) + 1
        numbered.append({str(first + i): context[a:b] for i, (a, b) in enumerate(spans)})
        units += [f"{place}:{i}" for i in range(len(spans))]
        labels += [float(any(_overlap(span, one) for one in relevant)) for span in spans]
    if not units:
        return []
    data = {"question": labelled.row.user_input, "contexts": numbered}
    return [LabelQuestion(Ask(NEEDED, data), tuple(units), tuple(labels))]


def _supports(source: str, prompt: Prompt[Support], name: str) -> Questions:
    """Requests about the statements of a reference or response; `name` is their key in the data."""

    def questions(labelled: LabelledRow) -> list[LabelQuestion]:
        labels, contexts = labelled.labels, labelled.row.retrieved_contexts
        statements = labels.statement_support if labels.statement_source == source else ()
        if not statements or not any(context.strip() for context in contexts):
            return []
        data = {
            "question": labelled.row.user_input,
            "contexts": list(contexts),
            name: [statement.text for statement in statements],
        }
        units = tuple(str(number) for number in range(len(statements)))
        return [LabelQuestion(Ask(prompt, data), units, tuple(one.label for one in statements))]

    return questions


def _supported(verdict: Support, question: LabelQuestion) -> list[float]:
    return [float(one) for one in verdict.supported]


TARGETS = (
    LabelTarget(
        "context_relevance",
        "context",
        "chunk_relevance",
        _grades,
        lambda verdict, _: [verdict.grade / 2],
        label_from=0.5,
        verdict_from=0.5,
    ),
    LabelTarget(
        "context_relevancy",
        "sentence",
        "relevant_sentences",
        _needed,
        lambda verdict, question: [
            float(number in set(verdict.needed)) for number in range(1, len(question.units) + 1)
        ],
    ),
    LabelTarget(
        "context_recall",
        "statement",
        "statement_support",
        _supports("reference", SUPPORT, "sentences"),
        _supported,
    ),
    LabelTarget(
        "faithfulness",
        "statement",
        "statement_support",
        _supports("response", GROUNDED, "statements"),
        _supported,
    ),
)


def _spans(labelled: LabelledRow, place: int) -> list[Span]:
    """The non-blank sentences of a context: as labelled, else as split by us."""
    context = labelled.row.retrieved_contexts[place]
    if labelled.labels.sentence_spans is not None:
        spans: Sequence[Span] = labelled.labels.sentence_spans[place]
    else:
        spans = locate(sentences(context, labelled.row.language), context)
    return [(start, end) for start, end in spans if context[start:end].strip()]


def locate(parts: Sequence[str], text: str) -> list[Span]:
    """The spans of a text's sentences. Splitting may change white space only.

    Raises BadRow where it changed more.
    """
    places = [place for place, sign in enumerate(text) if not sign.isspace()]
    sizes = [sum(not sign.isspace() for sign in part) for part in parts]
    if sum(sizes) != len(places):
        raise BadRow("labels: relevant_sentences: a sentence of ours is not found in its context")
    spans, begin = [], 0
    for size in sizes:
        spans.append((places[begin], places[begin + size - 1] + 1))
        begin += size
    return spans


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A labelled row with the requests to a judge, by metric."""

    labelled: LabelledRow
    questions: dict[str, list[LabelQuestion]]
    number: int
    """Position in the set."""


@dataclass
class LabelledSet:
    """Everything that was read at one place."""

    name: str
    source: str
    rows: list[AskedRow] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    broken: list[BrokenFile] = field(default_factory=list)

    def reasons(self) -> dict[str, int]:
        """Why rows were rejected, the most frequent reasons first."""
        return dict(self.rejected.most_common(_MOST_REASONS))

    def reject(self, bad: Rejected) -> None:
        """Count a row or file that could not be read."""
        if bad.whole_file:
            self.broken.append(BrokenFile(file=bad.file, line=bad.line, reason=bad.reason))
        else:
            self.rejected[bad.reason] += 1


def read_sets(
    settings: Settings, places: Sequence[str], limit: int | None = None, files: Files | None = None
) -> list[LabelledSet]:
    """Read the labelled sets, one per place, at most `limit` rows of each.

    The place `night:2026-11-19` is that night of the store `files`: the grades of its judge are the
    labels.

    Raises InputError for a place without usable rows, or for two sets with one name.
    """
    found = [_read_set(settings, place, limit, files) for place in places]
    names = Counter(one.name for one in found)
    for name, count in names.items():
        if count > 1:
            raise InputError(
                f"two labelled sets are named {name}: rename one, or run them separately"
            )
    return found


def _read_set(
    settings: Settings, place: str, limit: int | None, files: Files | None
) -> LabelledSet:
    found = LabelledSet(set_name(place), place)
    for item in _read_items(settings, place, files):
        if isinstance(item, Rejected):
            found.reject(item)
            continue
        try:
            questions = {target.metric: target.questions(item) for target in TARGETS}
        except BadRow as error:
            found.rejected[str(error)] += 1
            continue
        found.rows.append(AskedRow(item, questions, len(found.rows)))
        if len(found.rows) == limit:
            break
    if not found.rows:
        reason = next(iter(found.rejected), "") or next((one.reason for one in found.broken), "")
        raise InputError(f"{place}: no labelled row{f'; {reason}' if reason else ''}")
    return found


def _read_items(
    settings: Settings, place: str, files: Files | None
) -> Iterator[LabelledRow | Rejected]:
    if place.startswith(NIGHT):
        return read_judged_night(files, place.removeprefix(NIGHT), settings.feedback_labels)
    # Labelled rows have our own layout, whatever the layout of the logs is.
    plain = settings.model_copy(update={"preset": None, "columns": {}})
    return read_labelled(log_set(plain, place))


def set_name(place: str) -> str:
    """The name of the set at a place: that of its file or folder, without the ending.

    A glob is named after the last folder before its first wildcard.
    """
    parts = place.rstrip("/").split("/")
    wild = next((number for number, part in enumerate(parts) if _WILD.search(part)), None)
    last = parts[-1] if wild is None else "".join(parts[:wild][-1:])
    return _ODD.sub("-", FORMATS.sub("", last)).strip("-.") or "labelled"


def targets(wanted: Sequence[str] | None) -> list[LabelTarget]:
    """The targets of the wanted metrics; None means all metrics."""
    return [target for target in TARGETS if wanted is None or target.metric in wanted]
