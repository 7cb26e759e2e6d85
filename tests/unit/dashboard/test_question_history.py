"""The questions of the newest nights: what a night leaves for the next, and what that reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from ragmetrics.dashboard.question_history import (
    FILE,
    NIGHTS,
    QuestionHistory,
    asked_on,
    hidden,
    joined,
    packed,
    read_history,
    write_history,
)
from ragmetrics.dashboard.row_selection import EarlierNight
from ragmetrics.records import Manifest, Score, question_key
from ragmetrics.storage import Files
from tests.fakes.nights import FIRST, HOSTILE, night, summary, worst_row

ASKED = "How is an invoice changed?"
RECALL = "context_recall"


def of(manifest: Manifest, value: float = 1.0, question: str = ASKED) -> QuestionHistory:
    """A night on which one question was asked."""
    row = worst_row("q-1", question, scores={RECALL: Score(value)}, index_build="idx-1")
    return asked_on(manifest, [row])


def values(history: QuestionHistory, question: str = ASKED) -> list[float]:
    """The scores of a question, oldest first."""
    return history.questions[question_key(question)].values(RECALL)


def through_a_file(history: QuestionHistory, folder: Path) -> QuestionHistory:
    """What the next night reads of it."""
    write_history(Files(str(folder)), packed(history, [RECALL, "context_relevance"]))
    return read_history(Files(str(folder)))


def test_a_question_has_its_scores_of_all_nights() -> None:
    """Each night adds its own."""
    nights = [night(0), night(1)]
    history = joined([of(nights[0], 0.9), of(nights[1], 0.2)], nights)
    assert values(history) == [0.9, 0.2]


def test_the_next_night_reads_what_was_written(tmp_path: Path) -> None:
    """Texts, tags, rows, builds and scores are the same."""
    nights = [night(0), night(1)]
    history = joined([of(nights[0], 0.9, HOSTILE), of(nights[1], 0.2)], nights)
    read = through_a_file(history, tmp_path)
    assert joined([read], nights).runs == history.runs
    shown = [RECALL, "context_relevance"]
    assert packed(joined([read], nights), shown) == packed(history, shown)


def test_no_text_of_a_log_ends_the_script(tmp_path: Path) -> None:
    """The signs of markup are escaped in it."""
    through_a_file(joined([of(night(), 1.0, HOSTILE)], [night()]), tmp_path)
    assert not set("<>&") & set((tmp_path / FILE).read_text("utf-8"))


@pytest.mark.parametrize("damage", [b"", b"globalThis.QUESTIONS = {", b"\xff", b"[]"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    """It is made again."""
    (tmp_path / FILE).write_bytes(damage)
    assert read_history(Files(str(tmp_path))) == QuestionHistory()


def test_a_number_without_a_night_is_damage(tmp_path: Path) -> None:
    """A file that was cut and joined has no meaning."""
    content = packed(joined([of(night())], [night()]), [RECALL])
    write_history(Files(str(tmp_path)), {**content, "nights": []})
    assert read_history(Files(str(tmp_path))) == QuestionHistory()


def test_a_night_that_was_run_again_replaces_its_scores() -> None:
    """What the earlier run left is not shown until the later one is read."""
    before, again = night(0), night(0, run="run-again")
    assert joined([of(before, 0.9)], [again]).runs == {}
    history = joined([of(before, 0.9), of(again, 0.4)], [again])
    assert values(history) == [0.4]


def test_a_night_that_was_read_again_has_only_what_it_has_now() -> None:
    """Its rows may be gone from the store, and their page with them."""
    nights = [night(0), night(1)]
    known = joined([of(nights[0], 0.9), of(nights[1], 0.2)], nights)
    assert values(joined([known, asked_on(nights[1], [])], nights)) == [0.9]


def test_only_the_newest_nights_count() -> None:
    """A question that was asked on none of them is gone."""
    nights = [night(number) for number in range(NIGHTS + 1)]
    old = of(nights[0], 1.0, "Old?")
    history = joined([old, of(nights[-1])], nights)
    assert list(history.questions) == [question_key(ASKED)]


def test_scores_by_another_judge_are_left_out() -> None:
    """They do not compare with the newest ones."""
    other = night(0, metrics=[summary(RECALL, 0.9, "another")])
    history = joined([of(other, 0.9), of(night(1), 0.2)], [other, night(1)])
    assert values(history) == [0.2]


def test_a_row_has_its_question_on_the_nights_before() -> None:
    """Where no earlier night kept it, the scores are there, without a row."""
    then = EarlierNight(FIRST, "idx-0", {RECALL: 0.9}, ())
    row = worst_row("q-1", ASKED, earlier=(then,), scores={RECALL: Score(0.1)})
    history = joined([asked_on(night(1), [row])], [night(0), night(1)])
    (question,) = history.questions.values()
    assert question.values(RECALL) == [0.9, 0.1]
    assert [asking.row for asking in question.askings.values()] == ["", "q-1"]


def test_a_night_that_was_read_replaces_what_a_later_row_says_of_it() -> None:
    """Its row is known then, in whichever order they come."""
    then = EarlierNight(FIRST, "idx-0", {RECALL: 0.9}, ())
    later = asked_on(night(1), [worst_row("q-2", ASKED, earlier=(then,))])
    for histories in ([of(night(0)), later], [later, of(night(0))]):
        (question,) = joined(histories, [night(0), night(1)]).questions.values()
        assert question.askings[FIRST].row == "q-1"
        assert question.newest == FIRST + timedelta(days=1)


def test_of_several_rows_of_a_question_the_first_counts() -> None:
    """Rows come with the worst first."""
    rows = [worst_row(name, ASKED, scores={RECALL: Score(v)}) for name, v in (("a", 0), ("b", 1))]
    assert values(asked_on(night(), rows)) == [0]


def test_hidden_questions_are_hashes(tmp_path: Path) -> None:
    """Those that an earlier night left too; a hash stays as it is."""
    history = hidden(through_a_file(of(night()), tmp_path))
    (question,) = history.questions.values()
    assert ASKED not in question.text
    assert hidden(history) == history


def test_long_texts_are_cut() -> None:
    """A question has at most 300 characters here."""
    (question,) = of(night(), 1.0, "long " * 1000).questions.values()
    assert len(question.text) <= 300


def test_an_older_night_does_not_change_the_tags() -> None:
    """They are those of the newest night."""
    newer = asked_on(night(1), [worst_row("q-1", ASKED, tags={"section": "new"})])
    older = asked_on(night(0), [worst_row("q-1", ASKED, tags={"section": "old"})])
    (question,) = joined([newer, older], [night(0), night(1)]).questions.values()
    assert question.tags == (("section", "new"),)
    assert replace(question, tags=()).newest == date(2026, 11, 11)
