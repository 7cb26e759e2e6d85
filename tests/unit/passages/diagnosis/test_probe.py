"""Lost passages, asked of the retriever: ranked below the cut, filtered out, gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import LostPassages
from tests.fakes import searching
from tests.fakes.retrievals import RetrievalNights, asked, text_of

NAMES = [f"p{number}" for number in range(12)]


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[RetrievalNights]:
    """Two nights: the questions 0 to 3 lose their passages on the second one."""
    made = RetrievalNights(tmp_path)
    rows = [asked(f"question {n}", name, golden=[name]) for n, name in enumerate(NAMES)]
    made.add(rows)
    made.add(
        [
            asked(f"question {n}", "x" if n < 4 else name, golden=[name], tags={"section": "hr"})
            for n, name in enumerate(NAMES)
        ]
    )
    searching.reset("x", "y", *NAMES)
    yield made
    searching.reset()


def probed(nights: RetrievalNights, **retriever: Any) -> LostPassages:
    """What the record says after the retriever was asked."""
    found = nights.lost(ask=True, retriever={**searching.SETTINGS, **retriever})
    assert found
    return found


def stages(found: LostPassages) -> dict[str, str]:
    """The stage of each lost passage by its id."""
    return {passage.id: passage.stage for passage in found.passages}


def test_a_deeper_k_gives_the_rank(nights: RetrievalNights) -> None:
    """The passages are at ranks 3 to 6, beyond the one that a question gets."""
    found = probed(nights)
    assert set(stages(found).values()) == {"below_cut"}
    assert "rank 3" in next(passage for passage in found.passages if passage.id == "p0").evidence
    assert all(passage.proven for passage in found.passages)


def test_the_tags_of_a_question_are_sent(nights: RetrievalNights) -> None:
    """`{tags.section}` in a parameter is the tag of the question's row."""
    probed(nights)
    assert searching.asked["question 0|100|True|hr"] == 1


def test_without_filters_a_hidden_passage_is_there(nights: RetrievalNights) -> None:
    """p0 and p1 are filtered out."""
    searching.hidden.update({"p0", "p1"})
    found = stages(probed(nights))
    assert found["p0"] == found["p1"] == "filtered"
    assert found["p2"] == "below_cut"


def test_a_passage_that_its_own_text_does_not_find_is_gone(nights: RetrievalNights) -> None:
    """The index has no p0: neither the question nor the text itself finds it."""
    searching.index.remove("p0")
    found = probed(nights)
    (one,) = (passage for passage in found.passages if passage.id == "p0")
    assert (one.stage, one.proven) == ("not_in_index", True)


def test_the_retriever_finds_a_text_under_another_id(nights: RetrievalNights) -> None:
    """No question retrieves the new id, but the index has it."""
    searching.index.remove("p0")
    searching.index.append("new")
    searching.texts["new"] = text_of("p0")
    assert stages(probed(nights))["p0"] == "renamed"


def test_the_look_up_says_what_a_shallow_search_cannot(nights: RetrievalNights) -> None:
    """A retriever without `k` finds neither; the look-up knows p1 and not p0."""
    searching.index.remove("p0")
    retriever = {
        "entrypoint": "tests.fakes.searching:search",
        "lookup": "tests.fakes.searching:known",
    }
    found = nights.lost(ask=True, retriever=retriever)
    assert found
    assert stages(found)["p0"] == "not_in_index"
    assert any("no `k`" in note for note in found.notes)


def test_no_more_requests_than_the_budget(nights: RetrievalNights) -> None:
    """Of four questions, the budget allows one deep question and one passage."""
    found = probed(nights, probe={"requests": 3, "unfiltered": {"filters": False}})
    assert found.requests <= 3
    assert sum(searching.asked.values()) <= 3
    assert any("of 4 questions" in note for note in found.notes)


def test_without_a_retriever_nothing_is_asked(nights: RetrievalNights) -> None:
    """No setting, no request; a note says what would decide."""
    found = nights.lost(ask=True)
    assert found
    assert not searching.asked
    assert found.requests == 0


def test_nothing_is_asked_where_nothing_stands_out(nights: RetrievalNights) -> None:
    """A night that is not worse costs no request."""
    found = nights.lost(ask=False, retriever=searching.SETTINGS)
    assert found
    assert not searching.asked


def test_a_retriever_that_refuses_is_a_note(nights: RetrievalNights) -> None:
    """The stages from the logs stay."""
    retriever = {"entrypoint": "tests.fakes.searching:refusing"}
    found = nights.lost(ask=True, retriever=retriever)
    assert found
    assert found.lost == 4
    assert any("no access" in note for note in found.notes)
