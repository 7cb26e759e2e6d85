"""Anchors: where the passages of golden labels are now, by their texts.

same              the id is there, with at least 95% of the shingles of its earlier text
moved             other ids hold at least 80% of its text together
edited            its own id or other ids hold at least 50% of it
gone              less is left: proven by a list of all passages; by a night, where a question that
                  retrieved it before was asked again
not_asked         a night did not retrieve it, and did not ask such a question
never_retrieved   neither this night nor an earlier one retrieved it, and its text is not known
unknown           it is in the list under its id, or not at all, and its earlier text is not known

The earlier text of a label is what an earlier night retrieved under its id, or else the entry of
`reference_contexts` at the same place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.logs import GoldenRow
from ragmetrics.passages.golden.passage_search import PassageSearch
from ragmetrics.passages.golden.passages import EarlierPassage, Passages, earlier_passages
from ragmetrics.records import Anchor, AnchorStatus, Manifest
from ragmetrics.storage import Files

_SAME = 0.95
_MOVED = 0.8
_EDITED = 0.5


def find_anchors(
    rows: Sequence[GoldenRow], passages: Passages, files: Files, earlier: Sequence[Manifest]
) -> tuple[list[Anchor], PassageSearch]:
    """The status of every label of golden questions, in their order; and the search, for more.

    `passages` are those of now, and `earlier` the nights before, oldest first. No request is sent.
    Raises StoreError where the store is down.
    """
    labels = {name for row in rows for name in row.row.reference_context_ids or ()}
    known = earlier_passages(files, earlier, labels)
    texts = {(row.row.id, name): text for row in rows for name, text in _texts(row, known)}
    search = PassageSearch(passages.read(), set(texts.values()))
    found = [
        _anchor(row, name, texts.get((row.row.id, name)), known.get(name), passages, search)
        for row in rows
        for name in dict.fromkeys(row.row.reference_context_ids or ())
    ]
    return found, search


def _texts(one: GoldenRow, known: Mapping[str, EarlierPassage]) -> list[tuple[str, str]]:
    """The earlier text of each label of a question that has one."""
    ids, own = one.row.reference_context_ids or (), one.row.reference_contexts or ()
    beside = dict(zip(ids, own, strict=True)) if len(ids) == len(own) else {}
    found = [(name, known[name].text if name in known else beside.get(name, "")) for name in ids]
    return [(name, text) for name, text in found if text.strip()]


def _anchor(
    one: GoldenRow,
    name: str,
    text: str | None,
    known: EarlierPassage | None,
    passages: Passages,
    search: PassageSearch,
) -> Anchor:
    def anchor(status: AnchorStatus, to: Sequence[str] = (), share: float | None = None) -> Anchor:
        return Anchor(
            id=one.row.id,
            user_input=one.row.user_input,
            context_id=name,
            status=status,
            to=list(dict.fromkeys(to)),
            share=share,
        )

    if text is None:
        if not passages.complete:
            return anchor("same", [name]) if name in search.ids else anchor("never_retrieved")
        return anchor("unknown", [name] if name in search.ids else [])
    own = search.share_under(name, text)
    if own is not None and own >= _SAME:
        return anchor("same", [name], own)
    cover = search.cover(text, one.row.reference)
    ids = [passage.id for passage in cover.passages]
    if cover.share >= _MOVED:
        return anchor("moved" if ids != [name] else "edited", ids, cover.share)
    if own is not None and own >= _EDITED:
        return anchor("edited", [name], own)
    if cover.share >= _EDITED:
        return anchor("edited", ids, cover.share)
    if passages.complete or (known and not known.questions.isdisjoint(passages.asked)):
        return anchor("gone", share=max(cover.share, own or 0.0))
    return anchor("not_asked", share=max(cover.share, own or 0.0))
