"""Finds texts of earlier passages among the passages of now, by word shingles.

    cover(old)  = the fewest passages that together hold what all passages hold of the old text,
                  found greedily
    share(old)  = share of the words of the old text that are in a shingle which the cover holds

Where the right answer is known, the cover keeps only the passages that are needed for the answer:
those that hold the words of the answer which the old text had, weighed by their rarity.
Sources: Broder 1997, "On the resemblance and containment of documents"; Chvatal 1979, "A greedy
heuristic for the set-covering problem".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from ragmetrics.passages.diagnosis.text_match import WORDS, ordered_shingles_of, shingles_of
from ragmetrics.text import words_of

_CHUNK = 2_000
"""Texts that are split into words at once."""
_COMMON = 5
"""A shingle in more passages than this is boilerplate: it finds nothing by itself."""
_LEAST_GAIN = 0.05
"""Share of the old text below which a further passage is not taken."""
_COPY = 0.95
"""Share of the shingles of a passage that a copy of it has."""
_ANSWERED = 0.9
"""Share of the weight of the answer's words from which a cover has the answer."""
Places: TypeAlias = Sequence[int]


@dataclass(frozen=True)
class Found:
    """A passage of now that shares text with an earlier one."""

    id: str
    text: str
    held: frozenset[int]
    """The shingles of earlier passages that it has."""


@dataclass(frozen=True)
class Cover:
    """The passages that hold an earlier text."""

    passages: tuple[Found, ...]
    share: float


class PassageSearch:
    """Searches the passages of now, which are read once."""

    def __init__(self, passages: Iterable[tuple[str, str]], wanted: Collection[str]) -> None:
        texts = list(wanted)
        ordered = zip(texts, ordered_shingles_of(texts), strict=True)
        self._order: dict[str, list[int]] = {text: pieces.tolist() for text, pieces in ordered}
        self._old = {text: frozenset(order) for text, order in self._order.items()}
        every = frozenset().union(*self._old.values())
        self._found: list[Found] = []
        self._by_shingle: dict[int, list[int]] = {}
        self._by_id: dict[str, int] = {}
        self._words: Counter[str] = Counter()
        self.count = 0
        self.ids: set[str] = set()
        """The ids of all passages."""
        reader = iter(passages)
        while chunk := list(islice(reader, _CHUNK)):
            self._read(chunk, every)

    def _read(self, chunk: Sequence[tuple[str, str]], every: frozenset[int]) -> None:
        split = shingles_of([text for _, text in chunk])
        for (name, text), pieces in zip(chunk, split, strict=True):
            self.count += 1
            self.ids.add(name)
            self._words.update(set(words_of(text)))
            held = every.intersection(pieces.tolist())
            if held:
                place = len(self._found)
                self._by_id.setdefault(name, place)
                self._found.append(Found(name, text, held))
                for piece in held:
                    self._by_shingle.setdefault(piece, []).append(place)

    def share_under(self, name: str, text: str) -> float | None:
        """The share of an earlier text that the passage of an id has; None without such an id."""
        if name not in self.ids:
            return None
        place = self._by_id.get(name)
        return self._share(text, self._found[place].held if place is not None else frozenset())

    def _share(self, text: str, held: frozenset[int]) -> float:
        """The share of the words of an earlier text that held shingles have."""
        order = self._order[text]
        if not order:
            return 0.0
        covered = {
            word
            for place, piece in enumerate(order)
            if piece in held
            for word in range(place, place + WORDS)
        }
        return len(covered) / (len(order) + WORDS - 1)

    def text_of(self, name: str) -> str | None:
        """The text of a passage that shares text with an earlier one; None for any other."""
        place = self._by_id.get(name)
        return self._found[place].text if place is not None else None

    def copies_of(self, name: str) -> list[str]:
        """The ids of other passages that hold what a passage holds of earlier texts."""
        own = self._found[self._by_id[name]]
        counts = Counter(place for one in own.held for place in self._by_shingle[one])
        least = _COPY * len(own.held)
        found = [self._found[place].id for place in sorted(counts) if counts[place] >= least]
        return [one for one in found if one != name]

    def cover(self, text: str, answer: str | None = None) -> Cover:
        """The passages that hold an earlier text, or the part of it that an answer needs."""
        own = self._old[text]
        places = {place for one in own for place in self._by_shingle.get(one, ())}
        telling = {one for one in own if len(self._by_shingle.get(one, ())) <= _COMMON}
        held = {place: self._found[place].held & own for place in places}
        if not any(telling & one for one in held.values()):
            return Cover((), 0.0)
        chosen: Places = _greedy(
            {place: {one: 1.0 for one in held[place]} for place in held}, len(own)
        )
        share = self._share(text, frozenset().union(*(held[place] for place in chosen)))
        if answer and len(chosen) > 1:
            chosen = self._answering(chosen, text, answer)
        return Cover(tuple(self._found[place] for place in chosen), share)

    def _answering(self, places: Places, old: str, answer: str) -> Places:
        """Of some passages, those that have the words of the answer; all where they have none."""
        wanted = set(words_of(answer)) & set(words_of(old))
        weight = {one: math.log((1 + self.count) / (1 + self._words[one])) for one in wanted}
        there = {
            place: {one: weight[one] for one in wanted & set(words_of(self._found[place].text))}
            for place in places
        }
        chosen = _greedy(there, sum(weight.values()), enough=_ANSWERED)
        return chosen or places


def _greedy(
    weights: Mapping[int, Mapping[int, float] | Mapping[str, float]],
    whole: float,
    enough: float = 1.0,
) -> list[int]:
    """The places that cover most weight, the one that adds most first, until `enough` of what all
    of them cover is covered, or the next one adds too little of the `whole`.
    """
    every: dict[int | str, float] = {k: v for own in weights.values() for k, v in own.items()}
    left, chosen = dict(every), list[int]()
    total = sum(every.values())
    while left and total - sum(left.values()) < enough * total:
        gain = {
            place: sum(left.get(part, 0.0) for part in parts)
            for place, parts in weights.items()
            if place not in chosen
        }
        best = max(gain, key=lambda place: (gain[place], -place), default=None)
        if best is None or gain[best] <= 0 or (chosen and gain[best] < _LEAST_GAIN * whole):
            break
        chosen.append(best)
        for part in weights[best]:
            left.pop(part, None)
    return chosen
