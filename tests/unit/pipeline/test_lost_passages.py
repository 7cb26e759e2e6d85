"""Lost passages: at which stage a passage was lost, from logs, corpus and labels."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.dashboard import redacted
from ragmetrics.messages import FORMATS, bullets
from ragmetrics.messages.gate_result import lost_passage_lines
from ragmetrics.passages import try_lost_passages
from ragmetrics.passages.diagnosis.passage_texts import passages_and_identities
from ragmetrics.passages.diagnosis.shares import predictive_p_value
from ragmetrics.passages.diagnosis.text_match import contained, shingles
from ragmetrics.pipeline import run_night
from ragmetrics.pipeline.lost_passages import losing_nights
from ragmetrics.records import LostPassages, StageCounts
from ragmetrics.stats import share_interval
from tests.builders import night_settings
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl
from tests.fakes.nights import FIRST, night
from tests.fakes.retrievals import RetrievalNights, asked, text_of

QUESTIONS = [f"question {number}" for number in range(12)]


@pytest.fixture
def nights(tmp_path: Path) -> RetrievalNights:
    """No night yet."""
    return RetrievalNights(tmp_path)


def usual(**changes: Any) -> list[dict[str, Any]]:
    """Twelve questions, each with its own passage first and that of the next question second.

    `changes` give the names that a question retrieves now: `q3=("p4",)`.
    """
    return [
        asked(
            question,
            *changes.get(f"q{number}", (f"p{number}", f"p{(number + 1) % 12}")),
            golden=[f"p{number}"],
        )
        for number, question in enumerate(QUESTIONS)
    ]


def stages(found: LostPassages | None) -> dict[str, str]:
    """The stage of each lost passage by its id."""
    return {passage.id: passage.stage for passage in found.passages} if found else {}


def test_nothing_is_lost_on_equal_nights(nights: RetrievalNights) -> None:
    """Equal retrieval loses nothing, and the needed passages are counted."""
    nights.add(usual())
    nights.add(usual())
    found = nights.lost()
    assert found
    assert (found.questions, found.needed, found.lost, found.sentence) == (12, 12, 0, "")


def test_a_first_night_has_nothing_to_lose(nights: RetrievalNights) -> None:
    """Without an earlier night nothing is known."""
    nights.add(usual())
    assert nights.lost() is None


def test_a_passage_that_another_question_retrieves_is_in_the_index(nights: RetrievalNights) -> None:
    """Question 3 loses p3, which question 2 still retrieves."""
    nights.add(usual())
    nights.add(usual(q3=("p4", "p5")))
    assert stages(nights.lost()) == {"p3": "in_index"}


def test_a_passage_that_no_question_retrieves_is_probably_gone(nights: RetrievalNights) -> None:
    """Both questions that had p3 lost it, while all others keep theirs."""
    nights.add(usual())
    nights.add(usual(q2=("p2",), q3=("p4",)))
    found = nights.lost()
    assert stages(found) == {"p3": "not_in_index"}
    assert found
    assert not found.passages[0].proven


def test_an_outage_says_nothing_of_the_index(nights: RetrievalNights) -> None:
    """Where nothing is retrieved for any question, no passage is told to be gone."""
    nights.add(usual())
    nights.add(usual())
    nights.add([asked(question, golden=[f"p{n}"]) for n, question in enumerate(QUESTIONS)])
    found = nights.lost()
    assert found
    assert set(stages(found).values()) == {"undecided"}


def test_one_question_alone_cannot_tell(nights: RetrievalNights) -> None:
    """Where passages come and go, one question that lost its own passage decides nothing."""
    first = [asked(q, f"p{n}", f"x{n % 3}", golden=[f"p{n}"]) for n, q in enumerate(QUESTIONS)]
    second = [
        asked(q, *([f"p{n}"] if n % 3 else []), "x0", golden=[f"p{n}"])
        for n, q in enumerate(QUESTIONS)
    ]
    nights.add(first)
    nights.add(second)
    assert set(stages(nights.lost()).values()) == {"undecided"}


def test_an_equal_text_under_another_id_is_renamed(nights: RetrievalNights) -> None:
    """All rows name the documents anew."""
    nights.add(usual())
    renamed = [
        {**row, "retrieved_context_ids": tuple(f"new-{n}" for n in row["retrieved_context_ids"])}
        for row in usual()
    ]
    nights.add(renamed)
    found = nights.lost()
    assert found
    assert set(stages(found).values()) == {"renamed"}
    assert "new-p" in found.passages[0].evidence


def test_parts_of_a_text_in_new_texts_are_re_chunked(nights: RetrievalNights) -> None:
    """p3 comes back as two parts with ids of their own."""
    nights.add(usual())
    words = text_of("p3").split()
    halves = {"p3#0": " ".join(words[:28]), "p3#1": " ".join(words[22:])}
    now = usual(q2=("p2",), q3=("p4",))
    now[3] |= {
        "retrieved_contexts": tuple(halves.values()),
        "retrieved_context_ids": tuple(halves),
    }
    nights.add(now)
    assert stages(nights.lost()) == {"p3": "rechunked"}


def test_a_similar_document_that_was_there_before_is_no_re_chunk(nights: RetrievalNights) -> None:
    """A copy of p3 that another question had on the night before explains nothing."""
    copy = {"retrieved_contexts": (text_of("p3"),), "retrieved_context_ids": ("copy",)}
    extra = {**asked("asks for the copy", golden=["copy"]), **copy}
    nights.add([*usual(), extra])
    nights.add([*usual(q2=("p2",), q3=("p4",)), extra])
    assert stages(nights.lost()) == {"p3": "not_in_index"}


def test_another_text_under_the_same_id_is_edited(nights: RetrievalNights) -> None:
    """Question 2 retrieves p3 with a text that shares a third with the old one."""
    nights.add(usual())
    now = usual(q3=("p4", "p5"))
    edited = text_of("p3").split(". ")[0] + ". Everything else was written anew last night."
    now[2] |= {"retrieved_contexts": (text_of("p2"), edited)}
    nights.add(now)
    assert stages(nights.lost()) == {"p3": "edited"}


def test_without_ids_a_passage_is_its_text(nights: RetrievalNights) -> None:
    """Rows without ids: the reference contexts say which texts are needed."""
    rows = [
        {**row, "retrieved_context_ids": None, "reference_context_ids": None}
        | {"reference_contexts": (text_of(f"p{number}").split(". ")[0],)}
        for number, row in enumerate(usual())
    ]
    nights.add(rows)
    now = [dict(row) for row in rows]
    for number in (2, 3):
        left = tuple(one for one in now[number]["retrieved_contexts"] if one != text_of("p3"))
        now[number]["retrieved_contexts"] = left
    nights.add(now)
    found = nights.lost()
    assert found
    assert [(passage.stage, passage.id, passage.text) for passage in found.passages] == [
        ("not_in_index", "", text_of("p3"))
    ]


@pytest.mark.parametrize("first", [True, False])
def test_a_night_without_ids_is_compared_by_texts(nights: RetrievalNights, first: bool) -> None:
    """Where only one of two nights has ids, equal texts are the same passage."""
    plain = [{**row, "retrieved_context_ids": None} for row in usual(q3=("p4", "p5"))]
    if first:
        nights.add([{**row, "retrieved_context_ids": None} for row in usual()], grades={})
        nights.add(usual(q3=("p4", "p5")))
        assert stages(nights.lost()) == {}  # without ids nothing says what was needed
    else:
        nights.add(usual())
        nights.add(plain)
        found = nights.lost()
        assert found
        assert [(passage.id, passage.stage) for passage in found.passages] == [("p3", "in_index")]


def test_a_live_question_needs_what_the_judge_graded_as_an_answer(nights: RetrievalNights) -> None:
    """Grade 2 makes a passage needed, grade 1 does not."""
    rows = [asked("live", "a", "b"), asked("other", "a", "b")]
    nights.add(rows, grades={"live": [2, 1], "other": [0, 0]})
    nights.add([asked("live", "c"), asked("other", "a", "b")], grades={})
    found = nights.lost()
    assert found
    assert (found.questions, found.needed) == (1, 1)
    assert stages(found) == {"a": "in_index"}


def test_a_changed_label_is_no_loss(nights: RetrievalNights) -> None:
    """The golden set names p5 for question 3 now, so p3 is not needed any more."""
    nights.add(usual())
    now = usual(q3=("p5",))
    now[3]["reference_context_ids"] = ("p5",)
    nights.add(now)
    assert stages(nights.lost()) == {}


def test_the_newest_night_that_asked_a_question_counts(nights: RetrievalNights) -> None:
    """Question 3 was not asked last night; the night before had p3."""
    nights.add(usual())
    nights.add([row for row in usual() if row["user_input"] != QUESTIONS[3]])
    nights.add(usual(q3=("p4", "p5")))
    found = nights.lost()
    assert stages(found) == {"p3": "in_index"}
    assert found
    assert found.passages[0].night == nights.runs[0].ref.date


def test_only_the_rows_of_a_build_count(nights: RetrievalNights) -> None:
    """A night with rows of two builds: the other build's row hides no loss."""
    nights.add([{**row, "index_build": "b1"} for row in usual()], build="b1")
    now = [{**row, "index_build": "b2"} for row in usual(q2=("p2",), q3=("p4",))]
    nights.add([*now, {**usual()[3], "index_build": "b1"}], build="b2")
    assert stages(nights.lost()) == {"p3": "not_in_index"}


def test_rows_that_are_gone_from_the_store_are_no_error(
    nights: RetrievalNights, tmp_path: Path
) -> None:
    """Prune has removed the earlier rows."""
    nights.add(usual())
    nights.add(usual())
    (tmp_path / nights.runs[0].ref.rows(0)).unlink()
    assert nights.lost() is None


def test_damaged_rows_never_fail_a_night(nights: RetrievalNights, tmp_path: Path) -> None:
    """What happened is not known then."""
    nights.add(usual())
    nights.add(usual(q3=("p4", "p5")))
    path = tmp_path / nights.runs[1].ref.rows(0)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    settings = make_settings({"store": str(tmp_path)})
    assert try_lost_passages(settings, nights.runs[1], nights.runs[:1]) is None


def test_a_stage_is_significant_beside_the_nights_before(nights: RetrievalNights) -> None:
    """Six of twelve questions lose a passage: told where that never happens, not where it does."""
    tags = [{"section": "payroll" if number < 6 else "leave"} for number in range(12)]
    nights.add([{**row, "tags": tag} for row, tag in zip(usual(), tags, strict=True)])
    gone = {f"p{number}" for number in range(6)}
    rows = []
    for row, tag in zip(usual(), tags, strict=True):
        names = tuple(one for one in row["retrieved_context_ids"] if one not in gone)
        golden = row["reference_context_ids"]
        rows.append(asked(row["user_input"], *names, golden=golden, tags=tag))
    nights.add(rows)
    found = nights.lost([StageCounts(of=12)] * 7)
    assert found
    assert found.sentence == (
        "6 passages are no longer retrieved by any question: probably gone from the index "
        "(all from section payroll)"
    )
    assert str(found.segments[0].segment) == "section=payroll"
    often = StageCounts(of=12, stages={"not_in_index": 6})
    again = nights.lost([often] * 7)
    assert again
    assert again.sentence == ""


def without(*gone: str, rows: slice = slice(None)) -> list[dict[str, Any]]:
    """Some of the usual rows, where no question retrieves some passages."""
    return [
        asked(
            row["user_input"],
            *(name for name in row["retrieved_context_ids"] if name not in gone),
            golden=row["reference_context_ids"],
        )
        for row in usual()[rows]
    ]


GONE = tuple(f"p{number}" for number in range(6))


def test_a_loss_is_carried_on_while_its_questions_are_not_asked(nights: RetrievalNights) -> None:
    """Six questions lose a passage. The next night asks four of the other questions alone: the loss
    is on, and the sentence says how many of its questions were not asked since.
    """
    nights.add(usual())
    nights.add(without(*GONE))
    nights.add(without(*GONE, rows=slice(7, 11)))
    found = nights.lost([StageCounts(of=12)] * 7, losing=1)
    assert found
    assert (found.fallen, found.carried, found.significant) == (6, 6, True)
    assert found.sentence.endswith("; 6 of the questions were not asked since")
    assert {passage.asked for passage in found.passages} == {nights.runs[1].ref.date}
    assert {(passage.shard, passage.position) for passage in found.passages} == {(None, None)}


def test_a_question_that_is_asked_again_shows_its_newest_state(nights: RetrievalNights) -> None:
    """Two of six questions are asked again, on two nights: one is healed, one is not."""
    nights.add(usual())
    nights.add(without(*GONE))
    nights.add(without(*GONE[1:], rows=slice(0, 1)))
    nights.add(without(*GONE[1:], rows=slice(1, 2)))
    found = nights.lost([StageCounts(of=12)] * 7, losing=2)
    assert found
    assert (found.questions, found.fallen, found.carried) == (12, 5, 4)
    lost_now = {passage.id for passage in found.passages if passage.asked is None}
    assert lost_now == {"p1"}


def test_nothing_is_carried_on_when_all_questions_are_healed(nights: RetrievalNights) -> None:
    """The night after the loss asks them all, and retrieves what they need."""
    nights.add(usual())
    nights.add(without(*GONE))
    nights.add(usual())
    found = nights.lost([StageCounts(of=12)] * 7, losing=1)
    assert found
    assert (found.fallen, found.carried, found.sentence) == (0, 0, "")


def test_the_nights_of_a_loss_end_with_a_usual_one() -> None:
    """At most seven: a question that none of them asked retires."""
    lost = LostPassages(questions=9, needed=9, fallen=9, lost=9, significant_by_logs=True)
    fine = LostPassages(questions=9, needed=9, fallen=0, lost=0)
    nights = [night(number) for number in range(12)]
    with_losses = [
        manifest.model_copy(update={"lost_passages": passages})
        for manifest, passages in zip(nights, [fine, lost, fine, *[lost] * 9], strict=True)
    ]
    assert [one.date.day for one in losing_nights(with_losses)] == list(range(15, 22))
    assert losing_nights(with_losses[:3]) == []
    without_data = with_losses[8].model_copy(update={"lost_passages": None})
    broken_off = [*with_losses[:8], without_data, *with_losses[9:]]
    assert [one.date.day for one in losing_nights(broken_off)] == [14, *range(15, 18), 19, 20, 21]


def test_a_night_that_asks_other_questions_does_not_end_a_loss(tmp_path: Path) -> None:
    """Real nights: three are usual, the fourth loses the passages of twelve questions, the fifth
    asks other questions alone. It carries the loss on, and the sixth, which asks all, ends it.
    """
    questions = [f"What is rule {number}?" for number in range(24)]
    whole = [
        asked(q, f"p{n // 3}", f"x{n % 5}", golden=[f"p{n // 3}"]) for n, q in enumerate(questions)
    ]
    broken = [
        asked(q, *([f"p{n // 3}"] if n >= 12 else []), f"x{n % 5}", golden=[f"p{n // 3}"])
        for n, q in enumerate(questions)
    ]
    settings = night_settings(tmp_path, logs="logs/{date}.jsonl", metrics=["id_recall"], rules=[])
    found = []
    for number, rows in enumerate([whole] * 3 + [broken, broken[16:20], whole]):
        day = FIRST + timedelta(days=number)
        named = [{"id": f"{number}-{n}", **row} for n, row in enumerate(rows)]
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", named)
        found.append(run_night(settings, day).manifest.lost_passages)
    losses = [(one.fallen, one.carried, one.significant) for one in found if one]
    assert losses == [(0, 0, False)] * 2 + [(12, 0, True), (12, 12, True), (0, 0, False)]


def test_another_text_under_a_golden_id_is_told(nights: RetrievalNights) -> None:
    """The id is retrieved as before, so no passage is lost; but its label may not hold any more."""
    nights.add(usual())
    now = usual()
    edited = text_of("p3").replace("third", "last")
    for number in (2, 3):
        now[number]["retrieved_contexts"] = tuple(
            edited if name == "p3" else text_of(name)
            for name in now[number]["retrieved_context_ids"]
        )
    nights.add(now)
    found = nights.lost()
    assert found
    assert found.lost == 0
    assert found.edited == (
        "Another text under the same id: 1 of 12 golden passages; the source was edited, or is cut "
        "otherwise"
    )
    nights.add(now)
    again = nights.lost()
    assert again
    assert again.edited == ""


def test_golden_texts_are_read_of_the_nights_that_asked_golden_questions_last(
    nights: RetrievalNights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are most of a night's bytes: a question of traffic has none of an older night read."""
    rare = asked("asked on the first night and tonight", "p1")
    for rows in ([*usual(), rare], usual(), [*usual(), rare]):
        nights.add(rows)
    read: list[Any] = []

    def look(run: Any) -> Any:
        read.append(run.ref.date)
        return passages_and_identities(run)

    monkeypatch.setattr("ragmetrics.passages.diagnosis.sentence.passages_and_identities", look)
    assert nights.lost()
    assert len(set(read)) == 2


@pytest.mark.parametrize(
    ("corpus", "build", "missing"),
    [
        (
            False,
            None,
            "`corpus:` in the settings, `retriever:` in the settings and an index_build in the "
            "rows",
        ),
        (False, "b2", "`corpus:` in the settings and `retriever:` in the settings"),
        (True, "b2", "`retriever:` in the settings"),
    ],
)
def test_all_that_is_missing_to_decide_more_is_named(
    nights: RetrievalNights, tmp_path: Path, corpus: bool, build: str | None, missing: str
) -> None:
    """With one part of it alone, most passages would stay undecided."""
    documents = [{"id": f"p{n}", "text": text_of(f"p{n}")} for n in range(12)]
    file = write_jsonl(tmp_path / "documents.jsonl", documents)
    nights.add([asked(q, f"p{n}", f"x{n % 3}", golden=[f"p{n}"]) for n, q in enumerate(QUESTIONS)])
    nights.add(
        [
            asked(q, *([f"p{n}"] if n % 3 else []), "x0", golden=[f"p{n}"])
            for n, q in enumerate(QUESTIONS)
        ]
    )
    found = nights.lost(build=build, ask=True, **({"corpus": str(file)} if corpus else {}))
    assert found
    assert found.notes == [f"Undecided lost passages: 4. Missing to decide them: {missing}"]


def test_the_corpus_tells_edited_from_removed(nights: RetrievalNights, tmp_path: Path) -> None:
    """p3 is rewritten by two thirds, p6 is not there, p9 is unchanged."""
    nights.add(usual())
    gone = {f"q{n}": (f"p{n}",) for n in (2, 5, 8)} | {f"q{n}": (f"p{n + 1}",) for n in (3, 6, 9)}
    nights.add(usual(**gone))
    documents = {f"p{n}": text_of(f"p{n}") for n in range(12) if n != 6}
    documents["p3"] = text_of("p3").split(". ")[0] + ". All else is new in this document."
    lines = [json.dumps({"id": name, "text": text}) for name, text in documents.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join([*lines, "no JSON", '{"id": "p0"}']))
    found = nights.lost(ask=True, corpus=str(tmp_path / "corpus.jsonl"))
    assert stages(found) == {"p3": "edited", "p6": "not_in_corpus", "p9": "not_in_index"}
    assert found
    assert found.notes[0].startswith("2 records of the corpus have no text")


def test_a_corpus_may_be_a_folder_of_text_files(nights: RetrievalNights, tmp_path: Path) -> None:
    """Each file is a document, its path without ending the id."""
    nights.add(usual())
    nights.add(usual(q2=("p2",), q3=("p4",)))
    folder = tmp_path / "documents" / "deep"
    folder.mkdir(parents=True)
    for number in range(12):
        if number != 3:
            (folder / f"p{number}.md").write_text(text_of(f"p{number}"))
    found = nights.lost(ask=True, corpus=str(tmp_path / "documents"))
    assert stages(found) == {"p3": "not_in_corpus"}


@pytest.mark.parametrize("content", [None, '{"id": "a"}\n', "no JSON"])
def test_a_corpus_without_texts_is_a_note(
    nights: RetrievalNights, tmp_path: Path, content: str | None
) -> None:
    """A missing or useless corpus decides nothing, and the record says so."""
    nights.add(usual())
    nights.add(usual(q2=("p2",), q3=("p4",)))
    place = tmp_path / "corpus.jsonl"
    if content is not None:
        place.write_text(content)
    found = nights.lost(ask=True, corpus=str(place))
    assert stages(found) == {"p3": "not_in_index"}
    assert found
    assert any("corpus" in note for note in found.notes)


def test_a_message_has_two_lines_without_markup(nights: RetrievalNights) -> None:
    """Slack shows names from logs as text, and with redaction no question is in the message."""
    name = "<!channel> *bold*"
    rows = [asked(f"<@U123> {number}", name, golden=[name]) for number in range(12)]
    nights.add(rows)
    nights.add([asked(f"<@U123> {number}", "x", golden=[name]) for number in range(12)])
    lines = lost_passage_lines(nights.lost(), redact=False)
    assert len(lines) == 2
    shown = json.dumps(FORMATS.find("slack").render(bullets("Lost passages", lines)))
    assert "channel" in shown
    assert "<!channel>" not in shown
    assert "<@U123>" not in shown
    hidden = lost_passage_lines(nights.lost(), redact=True)
    assert "U123" not in str(hidden[1])


def test_redaction_hides_texts_and_questions(nights: RetrievalNights) -> None:
    """Ids and stages stay."""
    nights.add(usual())
    nights.add(usual(q3=("p4", "p5")))
    found = nights.lost()
    assert found
    (one,) = redacted(found).passages
    assert (one.id, one.stage) == ("p3", "in_index")
    assert text_of("p3")[:20] not in one.model_dump_json()
    assert QUESTIONS[3] not in one.model_dump_json()


@given(
    st.integers(1, 60).flatmap(
        lambda of: st.tuples(st.just(of), st.integers(0, of), st.integers(0, 400))
    ),
    st.integers(0, 400),
)
def test_the_p_value_falls_with_the_count(case: tuple[int, int, int], before: int) -> None:
    """A probability, 1 for no loss, and smaller for each further question."""
    of, count, more = case
    p = predictive_p_value(count, of, before, before + more)
    assert 0 <= p <= 1
    if count:
        assert p <= predictive_p_value(count - 1, of, before, before + more) + 1e-9
    else:
        assert p == 1


def test_the_p_value_is_that_of_scipy() -> None:
    """The beta-binomial tail of `scipy.stats`."""
    from scipy.stats import betabinom

    expected = float(betabinom.sf(4, 80, 1 + 3, 19 + 500 - 3))
    assert predictive_p_value(5, 80, 3, 500) == pytest.approx(expected, rel=1e-9)


def test_more_than_all_is_an_error() -> None:
    """A count above its total is a mistake of the caller."""
    with pytest.raises(ValueError, match="more than all"):
        predictive_p_value(5, 4, 0, 0)


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_interval_of_a_share_holds_the_share(count: int, more: int) -> None:
    """Within [0, 1], around the share, with a width."""
    low, high = share_interval(count, count + more)
    assert 0 <= low <= count / (count + more) <= high <= 1
    assert low < high


@given(st.text(max_size=200), st.text(max_size=200))
def test_containment_is_a_share(part: str, whole: str) -> None:
    """Between 0 and 1, and 1 for any text with words in itself, whatever surrounds it."""
    own = shingles(part)
    assert 0 <= contained(own, shingles(whole)) <= 1
    if len(own):
        assert contained(own, own) == 1


def test_scripts_without_spaces_have_shingles() -> None:
    """Each sign of Japanese is a word."""
    whole = shingles("退職金の計算は給与規程に従い、翌月に支給する。")
    assert contained(shingles("給与規程に従い"), whole) == 1
    assert contained(shingles("有給休暇の申請方法"), whole) == 0


def as_log(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as dicts for the Python API."""
    return [{"id": str(number), **row} for number, row in enumerate(rows)]


def test_a_comparison_says_what_happened(run: Run, tmp_path: Path) -> None:
    """The record has it, and the command prints it below the verdict."""
    changed = {f"q{n}": ("x",) for n in range(6)} | {"q11": ("p11",)}
    a, b = as_log(usual()), as_log(usual(**changed))
    found = ragmetrics.compare(a, b, metrics=["id_recall"])
    assert found.lost_passages
    assert found.lost_passages.lost == 6
    assert "passages are no longer retrieved" in found.lost_passages.sentence
    files = write_jsonl(tmp_path / "a.jsonl", a), write_jsonl(tmp_path / "b.jsonl", b)
    out = " ".join(run("compare", *files, "--metrics", "id_recall").out.split())
    assert f"Why: Counting only questions of both sides, {found.lost_passages.sentence}." in out


@pytest.mark.parametrize(("sizes", "hop"), [((1, 1), 1), ((0, 2), 2), (None, None)])
def test_a_lost_passage_is_attributed_to_the_hop_that_had_found_it(
    nights: RetrievalNights, sizes: tuple[int, ...] | None, hop: int | None
) -> None:
    """By the trace of the earlier night; a single retrieval has no hops."""
    hops = {"hop_queries": ("who?", "where?"), "hop_sizes": sizes}
    nights.add([{**row, **hops} for row in usual()])
    nights.add([{**row, **hops} for row in usual(q2=("p2", "x"), q3=("p4", "x"))])
    found = nights.lost()
    assert found
    assert [passage.hop for passage in found.passages] == [hop]
    assert found.hops == ({hop: 1} if hop else {})
