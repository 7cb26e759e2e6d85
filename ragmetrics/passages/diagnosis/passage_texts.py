"""The texts of lost passages, and where these texts are now: under their own id, or in other texts
that are new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import Ids, elements, is_in
from ragmetrics.passages.diagnosis.losses import Pairs
from ragmetrics.passages.diagnosis.retrievals import Run, of_build, pair_keys
from ragmetrics.passages.diagnosis.text_match import Shingles, contained, shingles_of
from ragmetrics.records import BUILDS
from ragmetrics.storage import StoredPart, passing_over

_COMMON = 5
"""A shingle in more texts than this is boilerplate, and shows nothing."""
_CHUNK = 2_000
"""Texts that are split into words at once."""
_MOST_HOLDERS = 3


@dataclass(frozen=True)
class OldPassage:
    """A lost passage as it was last retrieved."""

    id: str
    """Empty where the row has no ids."""
    text: str
    user_input: str


@dataclass(frozen=True)
class Holder:
    """A new text that holds a part of a lost passage."""

    id: str
    share: float
    """Share of the lost passage that it holds."""
    back: float
    """Share of the holder that is in the lost passage."""


@dataclass(frozen=True)
class TextEvidence:
    """Where the text of a lost passage is now."""

    own: float | None
    """Share of the old text that the text under the same id still holds; None: the id is not
    retrieved now."""
    holders: tuple[Holder, ...] = ()
    """New texts that hold parts of it, the one with the largest part first."""
    total: float = 0.0
    """Share of the old text that the new texts hold together."""


def old_passages(
    earlier: Sequence[Run], pairs: Pairs, places: NDArray[np.intp]
) -> list[OldPassage | None]:
    """The passages of some pairs as they were; None where the rows are gone from the store."""
    found: list[OldPassage | None] = [None] * len(places)
    groups: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(places.tolist()):
        groups.setdefault((int(pairs.run[place]), int(pairs.shard[place])), []).append(number)
    for (run, shard), numbers in groups.items():
        positions = {int(pairs.position[places[number]]) for number in numbers}
        records = _records(earlier[run], shard, positions)
        for number in numbers:
            record = records.get(int(pairs.position[places[number]]))
            rank = int(pairs.rank[places[number]]) - 1
            if record and rank < len(record["retrieved_contexts"] or ()):
                ids = record["retrieved_context_ids"] or ()
                found[number] = OldPassage(
                    str(ids[rank] or "") if rank < len(ids) else "",
                    record["retrieved_contexts"][rank] or "",
                    record["user_input"] or "",
                )
    return found


def _records(run: Run, shard: int, positions: Collection[int]) -> Mapping[int, Mapping[str, Any]]:
    columns = ["user_input", "retrieved_contexts", "retrieved_context_ids"]
    with passing_over():
        return StoredPart(run.files, run.ref.rows(shard)).at(positions, columns)
    return {}


def find_texts(
    now: Sequence[Run], before: Sequence[Run], passages: Ids, old: Sequence[OldPassage | None]
) -> list[TextEvidence]:
    """The evidence on each of some distinct passages, whose earlier texts are `old`.

    `now` are the runs in which texts are looked for, newest first. `before` are earlier runs: a
    text that they retrieved is not new.
    """
    texts = [one.text if one else "" for one in old]
    wanted = shingles_of(texts)
    current = _texts_by_id(now, passages)
    own = [
        _kept(shingle, text, current.get(int(name)))
        for shingle, text, name in zip(wanted, texts, passages, strict=True)
    ]
    changed = [place for place, share in enumerate(own) if share is None or share < 1]
    found = _find_holders(now, before, [wanted[place] for place in changed])
    holders = dict(zip(changed, found, strict=True))
    nowhere: tuple[tuple[Holder, ...], float] = ((), 0.0)
    return [TextEvidence(share, *holders.get(place, nowhere)) for place, share in enumerate(own)]


def _kept(wanted: Shingles, old: str, new: str | None) -> float | None:
    """The share of an old text that a text of now keeps; 1 only for an equal text."""
    if new is None:
        return None
    if new.split() == old.split():
        return 1.0
    return min(contained(wanted, shingles_of([new])[0]), 0.99)


@dataclass(frozen=True)
class _Texts:
    """Retrieved passages of a shard."""

    names: list[str]
    passages: Ids
    texts: list[str]
    identities: Ids
    """Of each passage, its id with its text as one number."""


def _read_texts(run: Run) -> Iterator[_Texts]:
    """The retrieved passages of each shard."""
    for ids, contexts in _columns(run):
        texts, digests = _flat(contexts), elements(contexts)
        names = [""] * len(texts) if ids is None else _flat(ids)
        passages = digests if ids is None else elements(ids)
        yield _Texts(names, passages, texts, pair_keys(passages, digests))


def _columns(run: Run) -> Iterator[tuple[Any, Any]]:
    """The ids and the contexts of the rows of each shard; None for ids that do not match."""
    import pyarrow.compute as pc

    for number in range(run.ref.shards):
        columns = ["retrieved_context_ids", "retrieved_contexts"]
        table = StoredPart(run.files, run.ref.rows(number)).columns([*columns, BUILDS])
        table = table.filter(of_build(table, run.build))
        lengths = [pc.list_value_length(table[name]) for name in columns]
        named = pc.fill_null(pc.equal(*lengths), False)
        yield tuple(table[name].filter(named) for name in columns)
        yield None, table["retrieved_contexts"].filter(pc.invert(named))


def _flat(column: Any) -> list[str]:
    import pyarrow.compute as pc

    return [one or "" for one in pc.list_flatten(column).to_pylist()]


def _texts_by_id(now: Sequence[Run], passages: Ids) -> dict[int, str]:
    """The text of each passage that is retrieved now."""
    found: dict[int, str] = {}
    for shard in chain.from_iterable(map(_read_texts, now)):
        places = np.flatnonzero(is_in(shard.passages, passages))
        _, first = np.unique(shard.passages[places], return_index=True)
        for place in places[first].tolist():
            found.setdefault(int(shard.passages[place]), shard.texts[place])
    return found


@dataclass(frozen=True)
class _Match:
    """A text of now that shares shingles with lost passages."""

    name: str
    identity: int
    """Its id with its text."""
    size: int
    shared: Shingles


def _find_holders(
    now: Sequence[Run], before: Sequence[Run], wanted: Sequence[Shingles]
) -> list[tuple[tuple[Holder, ...], float]]:
    """The new texts that hold parts of each passage, and the share that they hold together."""
    if not any(map(len, wanted)):
        return [((), 0.0)] * len(wanted)
    matches = _new_matches(now, before, np.unique(np.concatenate(wanted)))
    of_match = np.repeat(np.arange(len(matches)), [len(match.shared) for match in matches])
    shared = np.concatenate([_NONE, *(match.shared for match in matches)])
    order = np.argsort(shared, kind="stable")
    shared, of_match = shared[order], of_match[order]

    def of_passage(own: Shingles) -> tuple[tuple[Holder, ...], float]:
        start, end = (np.searchsorted(shared, own, side) for side in ("left", "right"))
        held, telling = end > start, end - start <= _COMMON
        spans = [of_match[a:b] for a, b in zip(start[held], end[held], strict=True)]
        if not (held & telling).any():
            return (), 0.0
        numbers, counts = np.unique(np.concatenate(spans), return_counts=True)
        best = np.lexsort((numbers, -counts))[:_MOST_HOLDERS]
        holders = tuple(
            Holder(matches[n].name, float(c / len(own)), float(c / matches[n].size))
            for n, c in zip(numbers[best], counts[best], strict=True)
        )
        return holders, float(held[telling].mean())

    return [of_passage(own) for own in wanted]


def _new_matches(now: Sequence[Run], before: Sequence[Run], wanted: Shingles) -> list[_Match]:
    """The texts of now that share shingles with the wanted ones, and that no earlier run had."""
    seen: set[int] = set()
    found = []
    for shard in chain.from_iterable(map(_read_texts, now)):
        _, first = np.unique(shard.identities, return_index=True)
        fresh = [place for place in first.tolist() if int(shard.identities[place]) not in seen]
        seen.update(shard.identities[fresh].tolist())
        for start in range(0, len(fresh), _CHUNK):
            places = fresh[start : start + _CHUNK]
            split = shingles_of([shard.texts[place] for place in places])
            for place, pieces in zip(places, split, strict=True):
                shared = pieces[is_in(pieces, wanted)]
                if len(shared):
                    identity = int(shard.identities[place])
                    found.append(_Match(shard.names[place], identity, len(pieces), shared))
    identities = np.array([one.identity for one in found], dtype=np.uint64)
    for run in before:
        identities = identities[~is_in(identities, known_identities(run))]
    new = set(identities.tolist())
    return [one for one in found if one.identity in new]


def known_identities(run: Run) -> Ids:
    """The identities, of ids with their texts, that a run has retrieved, sorted; none where its
    rows were removed. Raises StoreError where the store is down.
    """
    with passing_over():
        found = [identities for _, identities in passages_and_identities(run)]
        return np.unique(np.concatenate([_NONE, *found]))
    return _NONE


def passages_and_identities(run: Run) -> Iterator[tuple[Ids, Ids]]:
    """All retrieved passages, and of each its id with its text as one number, shard by shard."""
    for ids, contexts in _columns(run):
        passages = elements(contexts if ids is None else ids)
        yield passages, pair_keys(passages, elements(contexts))


_NONE: Shingles = np.array([], dtype=np.uint64)
