"""The texts of questions of stored runs, with the passages that answer them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ragmetrics.records import question_key
from ragmetrics.storage import Files, RunRef, StoredPart, passing_over

MOST_QUESTIONS = 20_000


@dataclass(frozen=True)
class PastQuestion:
    """A question, and passages that were retrieved for it."""

    text: str
    contexts: Sequence[str]


def read_questions(
    files: Files,
    runs: Sequence[RunRef],
    only: Collection[str] | None = None,
    *,
    answering: bool = False,
) -> dict[str, PastQuestion]:
    """Questions of some runs by their keys, each of the newest run that asked it: at most 20,000.

    `runs` are oldest first. `answering` leaves only the passages that the labels name, or the first
    one. Runs whose rows are gone are left out. Raises StoreError where the store is down.
    """
    found: dict[str, PastQuestion] = {}
    for ref in reversed(runs):
        for number in range(ref.shards):
            with passing_over():
                _read(files, ref.rows(number), only, found, answering=answering)
        if len(found) >= MOST_QUESTIONS or (only is not None and len(found) == len(set(only))):
            break
    return dict(list(found.items())[:MOST_QUESTIONS])


def questions_with_reference(files: Files, run: RunRef) -> set[str]:
    """The keys of a run's questions that have a reference or labels. Raises StoreError."""
    names = ["user_input", "reference_context_ids", "reference"]
    return {
        question_key(record["user_input"])
        for number in range(run.shards)
        for record in StoredPart(files, run.rows(number)).records(names)
        if record["reference_context_ids"] or record["reference"]
    }


def _read(
    files: Files,
    path: str,
    only: Collection[str] | None,
    found: dict[str, PastQuestion],
    *,
    answering: bool,
) -> None:
    names = ["user_input", "retrieved_contexts", "retrieved_context_ids"]
    for record in StoredPart(files, path).records([*names, "reference_context_ids"]):
        key = question_key(record["user_input"])
        if key in found or (only is not None and key not in only):
            continue
        contexts = [context or "" for context in record["retrieved_contexts"] or ()]
        labels = set(record["reference_context_ids"] or ())
        if answering:
            ids = record["retrieved_context_ids"] or ()
            named = [text for text, name in zip(contexts, ids, strict=False) if name in labels]
            contexts = named or contexts[:1]
        found[key] = PastQuestion(record["user_input"], contexts)
