"""Document ids of a night: those it retrieved, and those its labels name, read from its rows.

Ids are stored as 64-bit hashes, so a million of them take 8 MB. At most one shard's texts are in
memory. Nothing is stored beside the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragmetrics.records import Manifest, question_key
from ragmetrics.storage import Files, RunRef, StoredPart, passing_over
from ragmetrics.text import normalise

Ids: TypeAlias = NDArray[np.uint64]
T = TypeVar("T")
_PIECES = re.compile(r"[.!?。！？\n]+")
_SHORTEST_PIECE = 20
"""Characters of the shortest sentence that counts; shorter ones appear in many texts."""
_RETRIEVED, _GOLDEN = "retrieved_context_ids", "reference_context_ids"
_TEXTS = "retrieved_contexts"


@dataclass(frozen=True)
class SeenIds:
    """The ids of one night: retrieved ids and ids of its labels, each once and ascending."""

    retrieved: Ids
    golden: Ids


@dataclass(frozen=True)
class IdReader:
    """Reads the ids of nights of a store."""

    files: Files

    def seen(self, night: Manifest) -> SeenIds | None:
        """A night's ids; None where its rows are not stored, or have no ids."""

        def ids(table: Any) -> list[Ids]:
            return [hashed(_distinct(table[name])) for name in (_RETRIEVED, _GOLDEN)]

        shards = self._each(night, [_RETRIEVED, _GOLDEN], ids)
        retrieved, golden = (_together(shard[place] for shard in shards) for place in (0, 1))
        return SeenIds(retrieved, golden) if len(retrieved) else None

    def questions_of(self, night: Manifest, ids: Ids) -> set[str]:
        """The questions of a night whose labels name at least one of the ids."""

        def questions(table: Any) -> set[str]:
            named = is_in(elements(table[_GOLDEN]), ids)
            rows = np.unique(rows_of_elements(table[_GOLDEN])[named])
            return {question_key(one) for one in table["user_input"].take(rows).to_pylist()}

        return set().union(*self._each(night, ["user_input", _GOLDEN], questions))

    def texts_of(self, night: Manifest, ids: Ids) -> dict[int, Ids]:
        """The texts that were retrieved under the ids, as hashes of their sentences."""
        import pyarrow.compute as pc

        found: dict[int, Ids] = {}

        def look_for(table: Any) -> None:
            lengths = (pc.list_value_length(table[name]) for name in (_RETRIEVED, _TEXTS))
            table = table.filter(pc.equal(*lengths))
            names = elements(table[_RETRIEVED])
            places = np.flatnonzero(is_in(names, ids))
            _, first = np.unique(names[places], return_index=True)
            texts = pc.list_flatten(table[_TEXTS]).take(places[first]).to_pylist()
            for name, text in zip(names[places[first]].tolist(), texts, strict=True):
                found.setdefault(name, pieces([text or ""]))

        self._each(night, [_RETRIEVED, _TEXTS], look_for)
        return found

    def all_pieces(self, night: Manifest) -> Ids:
        """The sentences of all retrieved texts of a night, as hashes."""
        return _together(self._each(night, [_TEXTS], lambda one: pieces(_distinct(one[_TEXTS]))))

    def _each(self, night: Manifest, names: Sequence[str], read: Callable[[Any], T]) -> list[T]:
        """Apply `read` to columns of a night's rows, shard by shard to save memory."""
        ref = RunRef.of(night)
        with passing_over():
            return [
                read(StoredPart(self.files, ref.rows(n)).columns(names)) for n in range(ref.shards)
            ]
        return []


def pieces(texts: Iterable[str]) -> Ids:
    """The sentences of texts as ascending hashes, regardless of case and spaces; short sentences
    do not count.
    """
    return hashed(
        {
            piece
            for text in texts
            for part in _PIECES.split(text)
            if len(piece := normalise(part)) >= _SHORTEST_PIECE
        }
    )


def hashed(values: Iterable[str]) -> Ids:
    """Distinct texts as hashes, ascending."""
    return np.unique(in_order(list(values)))


def is_in(
    values: NDArray[Any], others: NDArray[Any], *, assume_unique: bool = False
) -> NDArray[np.bool_]:
    """Which values are among others. NumPy 2.0 looks large numbers up in a table, and fails."""
    found: NDArray[np.bool_] = np.isin(values, others, assume_unique=assume_unique, kind="sort")
    return found


def _together(found: Iterable[Ids]) -> Ids:
    return np.unique(np.concatenate([_NONE, *found]))


def in_order(values: Sequence[str]) -> Ids:
    """Texts as hashes, in their order."""
    from pandas.util import hash_array  # the import takes 0.1 s or more

    # A lone surrogate cannot be encoded.
    safe = [value.encode("utf-8", "replace").decode() for value in values]
    return hash_array(np.array(safe, dtype=object), categorize=False) if safe else _NONE


def _distinct(column: Any) -> list[str]:
    import pyarrow.compute as pc

    found = pc.unique(pc.list_flatten(column)).to_pylist()
    return [one for one in found if one and one.strip()]


def elements(column: Any) -> Ids:
    """The elements of all lists of a column as hashes, in order."""
    import pyarrow.compute as pc

    coded = pc.list_flatten(column).combine_chunks().dictionary_encode()
    if not len(coded):
        return _NONE
    hashes = in_order([one or "" for one in coded.dictionary.to_pylist()])
    found: Ids = hashes[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return found


def rows_of_elements(column: Any) -> NDArray[np.int64]:
    """The row of each element of a column's lists."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    return np.repeat(np.arange(len(lengths)), lengths)


_NONE: Ids = np.array([], dtype=np.uint64)
