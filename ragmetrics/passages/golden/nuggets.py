"""Nuggets of golden references: the facts that a right answer states.

A judge cuts a reference once, and a person reviews what it cut. The record of a golden question has

    nuggets            [{"text": ..., "importance": "vital" or "okay"}, ...], as TREC's nuggetizer
    nuggets_of         key of the reference that they were cut from: a changed one is cut again
    nuggets_reviewed   date of the review

Source: Pradeep et al. 2025 (arXiv 2504.15068), where nuggets are created and then weighed; here one
request does both for one reference, which is short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.judges import ask_writer
from ragmetrics.logs import NUGGETS_OF, GoldenRow
from ragmetrics.passages.golden.golden_file import record_of
from ragmetrics.records import IMPORTANCE, Ask, Data, NuggetReview, Prompt, Size, question_key
from ragmetrics.storage import open_store

_MOST = 20
REVIEWED = "nuggets_reviewed"
VERDICTS = "importance"
"""Field of a reviewed file: what a person says of each nugget."""
_REMOVE = "remove"


class _Fact(BaseModel):
    text: str
    importance: Literal["vital", "okay"]


class Cut(BaseModel):
    """The nuggets of a reference, in the order in which it states them."""

    nuggets: list[_Fact]


def _check(verdict: Cut, data: Data) -> None:
    texts = [fact.text.strip().casefold() for fact in verdict.nuggets]
    if not all(texts):
        raise UnreadableReply("nuggets: a text is blank")
    if len(set(texts)) < len(texts):
        raise UnreadableReply("nuggets: a text is there twice")
    if len(texts) > _MOST:
        raise UnreadableReply(f"nuggets: {len(texts)}, and {_MOST} are allowed")


CUT = Prompt(
    name="cut_nuggets",
    version=1,
    verdict=Cut,
    instruction="""
Cut the right answer to a question into nuggets: short sentences in the language of the answer, each
of one fact, each understood on its own, with names in place of pronouns. Add nothing that the
answer does not say, leave out what it repeats, and give at most 20. A nugget is `vital` if an
answer without it would not be right, and `okay` if it is worth saying and not needed. An answer
that states no fact, such as "I do not know", has an empty list.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower built?",
                "reference": "From 1887 to 1889, by Gustave Eiffel's company.",
            },
            {
                "nuggets": [
                    {
                        "text": "The Eiffel Tower was built from 1887 to 1889.",
                        "importance": "vital",
                    },
                    {
                        "text": "The company of Gustave Eiffel built the Eiffel Tower.",
                        "importance": "okay",
                    },
                ]
            },
        ),
    ),
    check=_check,
    sizes=lambda data: {"nuggets": Size(0, _MOST)},
)


@dataclass(frozen=True)
class CutNuggets:
    """A golden set with the nuggets that were cut now."""

    records: list[dict[str, Any]]
    cut: int
    """References that were cut now."""
    known: int
    """Those that were cut before."""
    later: int
    """Those that are left for another time."""
    failed: dict[str, int] = field(default_factory=dict)
    """Why references could not be cut, and how many."""
    reviews: list[NuggetReview] = field(default_factory=list)
    """Nuggets that nobody has reviewed."""


def cut_nuggets(
    settings: Settings, golden: Sequence[GoldenRow], day: date, count: int | None = None
) -> CutNuggets:
    """Ask a judge for the nuggets of references that have none, of at most `count`.

    Retired questions are left out. Raises InputError if no judge writes texts, JudgeRefused if no
    request can succeed, StoreError where the store is down.
    """
    with_reference = [
        row
        for row in golden
        if (row.row.reference or "").strip() and (row.until is None or day < row.until)
    ]
    open_ = [row for row in with_reference if row.row.nuggets is None]
    todo = open_[:count]
    asks = [
        Ask(CUT, {"question": row.row.user_input, "reference": row.row.reference}) for row in todo
    ]
    files = open_store(settings) if asks else None
    answers = ask_writer(settings, asks, "cut nuggets", files) if asks else []
    failed = Counter(answer.reason for answer in answers if isinstance(answer, Unanswered))
    new = {
        id(row): [fact.model_dump() for fact in answer.nuggets]
        for row, answer in zip(todo, answers, strict=True)
        if isinstance(answer, Cut)
    }
    records = [_record(row, new.get(id(row))) for row in golden]
    paired = zip(golden, records, strict=True)
    return CutNuggets(
        records=records,
        cut=len(new),
        known=len(with_reference) - len(open_),
        later=len(open_) - len(todo),
        failed=dict(failed),
        reviews=[
            review for row, record in paired if (review := _review(row, record, new)) is not None
        ],
    )


def _record(row: GoldenRow, nuggets: list[dict[str, str]] | None) -> dict[str, Any]:
    record = record_of(row)
    if nuggets is None:
        return record
    record.pop(REVIEWED, None)
    return record | {"nuggets": nuggets, NUGGETS_OF: question_key(row.row.reference or "")}


def _review(
    row: GoldenRow, record: Mapping[str, Any], new: Mapping[int, Any]
) -> NuggetReview | None:
    """The nuggets of a question, unless it has none or they are reviewed."""
    nuggets = new.get(id(row), list(row.row.nuggets or ()))
    if not nuggets or record.get(REVIEWED):
        return None
    reference = row.row.reference or ""
    return NuggetReview(
        id=row.row.id,
        user_input=row.row.user_input,
        reference=reference,
        nuggets=nuggets,
        nuggets_of=question_key(reference),
    )


def nugget_record(review: NuggetReview) -> dict[str, Any]:
    """The nuggets of a question as a row of the reviewed file."""
    return review.model_dump(include={"id", "user_input", "nuggets", NUGGETS_OF})


def add_reviews(
    golden: Sequence[GoldenRow], reviews: Iterable[Mapping[str, Any]], day: date
) -> list[GoldenRow]:
    """The golden questions with the nuggets that a person has reviewed.

    Raises InputError for a review that does not fit its nuggets, or whose question or reference
    has changed.
    """
    reviewed = {str(review.get("id")): review for review in reviews}
    found = [
        _reviewed(row, reviewed.pop(row.row.id), day) if row.row.id in reviewed else row
        for row in golden
    ]
    if reviewed:
        raise InputError(f"nuggets of {next(iter(reviewed)):.100}: there is no such question")
    return found


def _reviewed(row: GoldenRow, review: Mapping[str, Any], day: date) -> GoldenRow:
    name, key = f"{row.row.id:.100}", question_key(row.row.reference or "")
    if review.get(NUGGETS_OF) != key:
        raise InputError(
            f"nuggets of {name}: its reference has changed, so cut it again by "
            "`ragmetrics golden nuggets`"
        )
    new = {"nuggets": _kept(name, review), NUGGETS_OF: key, REVIEWED: day.isoformat()}
    return replace(row, record={**row.record, **new})


def _kept(name: str, review: Mapping[str, Any]) -> list[dict[str, str]]:
    """The nuggets that were not removed, with the importance that the person gave."""
    nuggets, words = review.get("nuggets"), review.get(VERDICTS)
    if not isinstance(nuggets, list) or not isinstance(words, list) or len(nuggets) != len(words):
        raise InputError(f"nuggets of {name}: not one word in `{VERDICTS}` for each nugget")
    if strange := [word for word in words if word not in (*IMPORTANCE, _REMOVE)]:
        raise InputError(f"nuggets of {name}: {strange[0]!r:.50} is not vital, okay or remove")
    texts = [nugget.get("text") if isinstance(nugget, Mapping) else None for nugget in nuggets]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(f"nuggets of {name}: a nugget has no text")
    return [
        {"text": str(text), "importance": word}
        for text, word in zip(texts, words, strict=True)
        if word != _REMOVE
    ]
