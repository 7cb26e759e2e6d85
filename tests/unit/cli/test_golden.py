"""A golden set that stays alive: the commands of `ragmetrics golden`."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from ragmetrics.config import Settings, load_settings
from ragmetrics.dashboard import write_labelling_page
from ragmetrics.errors import InputError
from ragmetrics.passages import (
    add_to_golden_set,
    anchor_golden_set,
    check_golden_set,
    read_golden_rows,
    retire_golden_questions,
    suggest_golden_questions,
)
from ragmetrics.passages.golden.confirmed import add_confirmed, read_suggestions
from ragmetrics.passages.golden.passage_search import PassageSearch
from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo
from ragmetrics.records import GoldenCheck, Suggestion, question_key
from ragmetrics.text import spreadsheet_safe, without_spreadsheet_signs
from tests.fakes.browsing import Visit
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl

BAD = date(2026, 11, 17)
LOST = ("payroll", "billing", "integrations")
Record = dict[str, Any]


def context_ids(health: GoldenCheck, status: str) -> set[str]:
    """The passages of the anchors with a status."""
    return {anchor.context_id for anchor in health.anchors if anchor.status == status}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's folder, with its nights scored by the metrics that suggestions and checks read;
    without pages, which take half of the time."""
    folder = tmp_path_factory.mktemp("demo")
    path = unpack_demo(folder)
    values = yaml.safe_load(path.read_text()) | {"metrics": ["context_relevance", "id_recall"]}
    path.write_text(yaml.safe_dump({**values, "alerts": {"rules": []}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragmetrics.pipeline.nightly.show_run", lambda *_, **__: None)
        for day in NIGHTS:
            run_night(load_settings(path), day)
    return folder


@pytest.fixture
def demo(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """A copy of it, which is the current folder."""
    folder = tmp_path / "demo"
    shutil.copytree(scored, folder, ignore=shutil.ignore_patterns("logs"))
    monkeypatch.chdir(folder)
    return folder


def settings_of(folder: Path) -> Settings:
    """The settings of the folder."""
    return load_settings(folder / "ragmetrics.yaml")


def read_lines(path: Path) -> list[Record]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def corpus() -> list[Record]:
    """The passages of the demo's help centre."""
    text = (resources.files("ragmetrics.pipeline.demo") / "corpus.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


# Check


def test_the_check_of_the_bad_build_names_exactly_the_lost_passages(demo: Path) -> None:
    """The index of 2026-11-17 lacks three sections."""
    found = check_golden_set(settings_of(demo), BAD)
    lost = {one["id"] for one in corpus() if one["section"] in LOST}
    assert context_ids(found, "gone") == lost
    assert {anchor.status for anchor in found.anchors} == {"same", "gone"}


def test_the_check_of_a_good_build_names_nothing(demo: Path, run: Run) -> None:
    """The newest night has all passages under their ids; exit code 0."""
    ended = run("golden", "check")
    assert ended.code == 0
    assert "under the same id, with its text" in ended.out
    assert "gone" not in ended.out


def test_what_is_stale_ends_with_exit_code_one(demo: Path, run: Run) -> None:
    """A pipeline can stop there; --json has every label."""
    ended = run("golden", "check", "--night", BAD, "--json")
    assert ended.code == 1
    assert len(json.loads(ended.out)["anchors"]) == 92


def test_questions_that_show_no_difference_are_counted(demo: Path) -> None:
    """Most questions of the three sections fell with the bad build; others never changed."""
    found = check_golden_set(settings_of(demo))
    changed = {line["id"] for line in read_lines(demo / "golden.jsonl")} - {
        constant.id for constant in found.constant
    }
    sections = {line["id"]: line["section"] for line in read_lines(demo / "golden.jsonl")}
    assert {sections[one] for one in changed} >= set(LOST)
    assert all(one.builds == 9 and one.nights == 9 for one in found.constant)


def test_a_passage_that_is_there_twice_is_named(demo: Path) -> None:
    """Retrieval may bring the copy, and a metric of ids would count that as a miss."""
    copies = [*corpus(), {**corpus()[0], "id": "copy"}]
    write_jsonl(demo / "passages.jsonl", copies)
    found = check_golden_set(settings_of(demo), passages=str(demo / "passages.jsonl"))
    [twice] = found.duplicates
    assert (twice.context_id, twice.same_as) == (corpus()[0]["id"], ["copy"])


def test_an_edited_passage_is_told_from_a_lost_one(demo: Path) -> None:
    """Its share of the earlier text is shown, so that a person can decide."""
    first, second, *others = corpus()
    words = first["text"].split()
    half = " ".join([*words[: int(len(words) * 0.6)], *(f"new{n}" for n in range(40))])
    write_jsonl(demo / "passages.jsonl", [{**first, "text": half}, *others])
    found = check_golden_set(settings_of(demo), passages=str(demo / "passages.jsonl"))
    [edited] = [anchor for anchor in found.anchors if anchor.status == "edited"]
    assert edited.context_id == first["id"]
    assert 0.5 <= (edited.share or 0) < 0.8
    assert context_ids(found, "gone") == {second["id"]}


def test_a_label_that_was_never_retrieved_is_told_from_a_lost_one(demo: Path) -> None:
    """Its text is not known, so nothing is claimed of it."""
    rows = read_lines(demo / "golden.jsonl")
    strange = {"id": "x", "user_input": "What is new?", "reference_context_ids": ["nowhere"]}
    write_jsonl(demo / "golden.jsonl", [*rows, strange])
    found = check_golden_set(settings_of(demo))
    assert context_ids(found, "never_retrieved") == {"nowhere"}


# Anchors


def two_sentences(passages: Iterable[Record]) -> list[Record]:
    """The corpus in chunks of two sentences."""
    found = []
    for passage in passages:
        sentences = re.split(r"(?<=[.!?])\s+", passage["text"])
        for at in range(0, len(sentences), 2):
            found.append({"of": [passage["id"]], "text": " ".join(sentences[at : at + 2])})
    return found


def windows(size: int, overlap: int) -> Callable[[Sequence[Record]], list[Record]]:
    """The corpus in windows of words that run over the ends of passages."""

    def cut(passages: Sequence[Record]) -> list[Record]:
        words = [(word, passage["id"]) for passage in passages for word in passage["text"].split()]
        return [
            {"of": sorted({name for _, name in own}), "text": " ".join(word for word, _ in own)}
            for at in range(0, len(words) - overlap, size - overlap)
            if (own := words[at : at + size])
        ]

    return cut


@pytest.mark.parametrize(
    "chunk",
    [two_sentences, windows(40, 0), windows(40, 10), windows(150, 30)],
    ids=["two sentences", "40 words", "40 words, overlapping", "150 words, overlapping"],
)
def test_anchors_survive_another_chunker(
    demo: Path, chunk: Callable[[Sequence[Record]], list[Record]]
) -> None:
    """At least 95% of the labels name chunks of their own passage, and every other one is told."""
    chunks = [{**one, "id": f"c{n}"} for n, one in enumerate(chunk(corpus()))]
    write_jsonl(demo / "chunks.jsonl", chunks)
    out = demo / "new.jsonl"
    anchors = anchor_golden_set(settings_of(demo), out, passages=str(demo / "chunks.jsonl"))
    of_chunk = {chunk["id"]: chunk["of"] for chunk in chunks}
    kept = [anchor for anchor in anchors if anchor.status == "moved"]
    assert len(kept) >= 0.95 * len(anchors)
    assert all(one.context_id in of_chunk[name] for one in kept for name in one.to)
    assert all(anchor.status in ("edited", "gone") for anchor in anchors if anchor not in kept)
    for record in read_lines(out):
        found = set(record["reference_context_ids"])
        expected = {name for anchor in anchors if anchor.id == record["id"] for name in anchor.to}
        lost = {one.context_id for one in anchors if one.id == record["id"] and not one.to}
        assert found == expected | lost


def test_only_the_chunks_that_the_answer_needs_are_labelled() -> None:
    """Where a passage was split, the words of the right answer decide."""
    first, second = (
        " ".join(f"{name}{n}" for n in range(30)) + f" {fact}."
        for name, fact in (("a", "costs twelve crowns yearly"), ("b", "opens every Sunday morning"))
    )
    old = f"{first} {second}"
    search = PassageSearch([("one", first), ("two", second)], [old])
    assert {passage.id for passage in search.cover(old).passages} == {"one", "two"}
    [needed] = search.cover(old, "It opens on Sunday morning.").passages
    assert needed.id == "two"


def test_what_is_not_found_stays_and_is_named(demo: Path, run: Run) -> None:
    """Without `billing`, its labels keep their ids, and the command ends with exit code 1."""
    write_jsonl(demo / "chunks.jsonl", [one for one in corpus() if one["section"] != "billing"])
    ended = run("golden", "anchor", "--passages", "chunks.jsonl", "--out", "new.jsonl")
    assert ended.code == 1
    assert "billing-01" in ended.out
    assert read_lines(demo / "new.jsonl") == read_lines(demo / "golden.jsonl")


def test_texts_of_labels_follow_their_ids(demo: Path) -> None:
    """A row with `reference_contexts` gets the texts of the new labels, and keeps other fields."""
    first = corpus()[0]
    row = {
        "id": "g",
        "user_input": "For how many weeks can I create a new roster?",
        "reference_contexts": [first["text"]],
        "reference_context_ids": ["old name"],
        "owner": "Ada",
    }
    write_jsonl(demo / "golden.jsonl", [row])
    write_jsonl(demo / "chunks.jsonl", [{"id": "new name", "text": first["text"]}])
    anchor_golden_set(settings_of(demo), demo / "new.jsonl", passages=str(demo / "chunks.jsonl"))
    [found] = read_lines(demo / "new.jsonl")
    assert found == row | {"reference_context_ids": ["new name"]}


@given(
    st.lists(st.text("abcdefg ", min_size=30, max_size=200), min_size=1, max_size=6),
    st.integers(5, 40),
)
def test_a_text_is_found_in_any_chunks_of_at_least_a_shingle(texts: list[str], size: int) -> None:
    """Chunks of five words or more hold every word of the text that they were cut from."""
    words = " ".join(texts).split()
    if len(words) < size:
        return
    starts = [*range(0, len(words) - size, size), len(words) - size]
    chunks = [(f"c{at}", " ".join(words[at : at + size])) for at in starts]
    text = " ".join(words)
    search = PassageSearch(chunks, [text])
    cover = search.cover(text)
    assert not cover.passages or cover.share <= 1.0
    held = {name for name, chunk in chunks if search.share_under(name, text)}
    assert held == {name for name, _ in chunks}


# Suggestions


def planted(demo: Path, *sections: str) -> Settings:
    """Settings whose golden set lacks some sections."""
    rows = [line for line in read_lines(demo / "golden.jsonl") if line["section"] not in sections]
    write_jsonl(demo / "golden.jsonl", rows)
    return settings_of(demo)


@pytest.mark.parametrize(
    "sections", [("payroll", "integrations"), ("leave", "billing"), ("swaps",)]
)
def test_topics_without_golden_questions_are_found(demo: Path, sections: tuple[str, ...]) -> None:
    """Most of the suggested topics are those of the missing sections, and each is among them.

    Two passages of the demo have no golden question in any case; their questions are suggested too.
    """
    found = suggest_golden_questions(planted(demo, *sections), None, count=60)
    topics = [one for one in found if one.reason == "topic"]
    named = [topic.tags["section"] for topic in topics]
    assert set(named) >= set(sections)
    assert sum(one in sections for one in named) >= 0.6 * len(named)
    first = topics[: len(sections)]
    assert all(one.tags["section"] in sections for one in first)


def test_golden_questions_are_not_suggested(demo: Path) -> None:
    """Neither those in use nor those that were retired."""
    rows = [{**line, "until": "2026-01-01"} for line in read_lines(demo / "golden.jsonl")]
    write_jsonl(demo / "golden.jsonl", rows)
    found = suggest_golden_questions(settings_of(demo), None, count=500)
    assert found
    assert not {one.user_input for one in found} & {row["user_input"] for row in rows}


def test_questions_that_fell_are_suggested_with_their_numbers(demo: Path) -> None:
    """On the night of the bad build, live questions of the lost sections fell."""
    found = suggest_golden_questions(settings_of(demo), None, BAD, count=60)
    fell = [one for one in found if one.reason == "fall"]
    assert fell and all(one.tags["section"] in LOST for one in fell)
    assert all(re.fullmatch(r"context_relevance fell from .* to .*", one.why) for one in fell)


def test_a_suggestion_proposes_the_passages_that_the_judge_found_relevant(demo: Path) -> None:
    """They are in rank order, with their ids; without a relevant one nothing is proposed."""
    found = suggest_golden_questions(settings_of(demo), None, count=60)
    failed = [one for one in found if one.reason == "failure"]
    assert failed and not any(own.relevant for one in failed for own in one.passages)
    others = [one for one in found if one.reason == "topic"]
    assert any(own.relevant for other in others for own in other.passages)
    names = {one["id"] for one in corpus()}
    assert all(own.id in names for one in found for own in one.passages)


def test_the_same_store_gives_the_same_suggestions(demo: Path) -> None:
    """Nothing is drawn at random."""
    once, again = (suggest_golden_questions(settings_of(demo), None) for _ in range(2))
    assert once == again


def test_without_a_golden_set_everything_is_uncovered(demo: Path, run: Run) -> None:
    """The first golden set begins with the largest topics."""
    path = demo / "ragmetrics.yaml"
    path.write_text(path.read_text().replace("golden: golden.jsonl\n", ""))
    ended = run("golden", "suggest", "--json")
    found = json.loads(ended.out)["suggestions"]
    assert len(found) == 20
    assert sum(one["reason"] == "topic" for one in found) >= 7


def test_redacted_questions_are_not_printed(demo: Path, run: Run) -> None:
    """They go only to a file that the user names."""
    path = demo / "ragmetrics.yaml"
    path.write_text(path.read_text() + "redact: true\n")
    assert run("golden", "suggest").code == 2
    ended = run("golden", "suggest", "--out", "s.csv")
    assert ended.code == 0
    assert read_suggestions(demo / "s.csv")[0]["user_input"] not in ended.out


# From a suggestion to a golden question


def confirm(path: Path, count: int) -> list[str]:
    """Confirm the first suggestions of a CSV file, as a spreadsheet saves it. Returns them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:count]:
        row |= {"confirmed": "yes", "reference": "As the help centre says."}
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [row["user_input"] for row in rows[:count]]


def test_confirmed_suggestions_become_golden_questions_from_a_date_on(demo: Path, run: Run) -> None:
    """They have their date of birth; the others are left out; twice the same adds nothing."""
    suggest_golden_questions(settings_of(demo), demo / "s.csv")
    confirmed = confirm(demo / "s.csv", 3)
    ended = run("golden", "add", "s.csv", "--out", "golden.jsonl", "--on", "2026-11-20")
    assert "83 questions: 3 added" in ended.out
    new = read_lines(demo / "golden.jsonl")[80:]
    assert [one["user_input"] for one in new] == confirmed
    assert {one["since"] for one in new} == {"2026-11-20"}
    again = add_to_golden_set(settings_of(demo), demo / "s.csv", demo / "golden.jsonl")
    assert (again.added, again.known) == (0, 3)


def test_a_confirmed_question_needs_a_right_answer(demo: Path) -> None:
    """Neither a reference nor a passage: an error that names the question."""
    with pytest.raises(InputError, match=r"What now\?.*neither a reference nor a passage"):
        add_confirmed([], [{"user_input": "What now?", "confirmed": "yes"}], date.today())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.csv", "confirmed\nyes\n", "row 1 has no user_input"),
        ("s.csv", "user_input,reference_context_ids\na,[1\n", "s.csv"),
        ("s.jsonl", "[1]\n", "row 1 has no user_input"),
        ("s.jsonl", "{\n", "s.jsonl"),
        ("none.csv", None, "none.csv"),
    ],
)
def test_a_file_of_suggestions_that_cannot_be_read_is_an_error(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    """The message names the file."""
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_suggestions(tmp_path / name)


@given(st.text())
def test_a_spreadsheet_runs_no_cell_and_the_text_comes_back(text: str) -> None:
    """Except for texts that begin with an apostrophe of their own."""
    safe = spreadsheet_safe(text)
    assert not safe.startswith(("=", "+", "-", "@", "\t", "\r"))
    if "'" not in text:
        assert without_spreadsheet_signs(safe) == text


def test_a_retired_question_keeps_its_row_and_its_date(demo: Path, run: Run) -> None:
    """Nights before that date use it still."""
    ended = run("golden", "retire", "g-001", "--out", "golden.jsonl", "--on", "2026-11-15")
    assert ended.code == 0
    golden = read_golden_rows(settings_of(demo))
    days = [date(2026, 11, 14), date(2026, 11, 15)]
    assert [len(golden.used_on(day)) for day in days] == [80, 79]
    with pytest.raises(InputError, match="no golden question has the id 'g-999'"):
        retire_golden_questions(settings_of(demo), ["g-999"], demo / "x.jsonl")


def test_a_golden_set_with_unreadable_rows_is_not_written_again(demo: Path) -> None:
    """They would be lost."""
    with (demo / "golden.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(InputError, match="1 rows cannot be read"):
        retire_golden_questions(settings_of(demo), ["g-001"], demo / "new.jsonl")
    assert not (demo / "new.jsonl").exists()


# Nights are compared over questions that both of them use


def asked_nights(folder: Path, golden: Sequence[Record], wrong: set[str]) -> Settings:
    """Settings with three nights: 20 questions are right on all, those in `wrong` on none."""
    write_jsonl(folder / "golden.jsonl", golden)
    for day in range(1, 5):
        rows = [
            {
                "id": f"{day}-{n}",
                "user_input": row["user_input"],
                "retrieved_contexts": ["A text."],
                "retrieved_context_ids": ["other" if row["user_input"] in wrong else f"p{n}"],
            }
            for n, row in enumerate(golden)
        ]
        write_jsonl(folder / f"2026-11-0{day}.jsonl", rows)
    path = folder / "ragmetrics.yaml"
    rules = [{"metric": "id_recall", "max_drop": 0.05, "versus": "trailing:7", "min_rows": 5}]
    path.write_text(
        yaml.safe_dump(
            {
                "logs": "{date}.jsonl",
                "golden": "golden.jsonl",
                "metrics": ["id_recall"],
                "alerts": {"rules": rules},
            }
        )
    )
    return load_settings(path)


def question(number: int, **more: str) -> Record:
    """A golden question."""
    return {
        "id": f"g{number}",
        "user_input": f"What is known of subject number {number}?",
        "reference_context_ids": [f"p{number}"],
        **more,
    }


def test_new_hard_questions_are_no_drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty questions that fail are added before the fourth night: the mean falls, and no rule
    fires; without dates in the golden set it would."""
    monkeypatch.chdir(tmp_path)
    old = [question(n) for n in range(20)]
    new = [question(n, since="2026-11-04") for n in range(20, 50)]
    settings = asked_nights(tmp_path, [*old, *new], {one["user_input"] for one in new})
    nights = [run_night(settings, date(2026, 11, day)).manifest for day in range(1, 5)]
    means = [night.metrics[0].mean for night in nights]
    assert means == pytest.approx([1.0, 1.0, 1.0, 0.4])
    assert [night.metrics[0].scored for night in nights] == [20, 20, 20, 50]
    assert len(nights[-1].source.golden_since) == 30
    [finding] = [finding for finding in nights[-1].findings if finding.kind == "metric"]
    assert (finding.state, finding.drop) == ("ok", pytest.approx(0.0))


def test_retired_questions_are_no_rise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty questions that fail are retired, and five others fall: the mean rises, the rule
    fires."""
    monkeypatch.chdir(tmp_path)
    kept = [question(n) for n in range(20)]
    gone = [question(n, until="2026-11-04") for n in range(20, 50)]
    hard = {one["user_input"] for one in gone}
    settings = asked_nights(tmp_path, [*kept, *gone], hard)
    rows = read_lines(tmp_path / "2026-11-04.jsonl")
    rows = [{**one, "retrieved_context_ids": ["x"]} if n < 8 else one for n, one in enumerate(rows)]
    write_jsonl(tmp_path / "2026-11-04.jsonl", rows)
    nights = [run_night(settings, date(2026, 11, day)).manifest for day in range(1, 5)]
    means = [night.metrics[0].mean for night in nights]
    assert means[0] == pytest.approx(0.4) and means[-1] == pytest.approx(0.6)
    [finding] = [finding for finding in nights[-1].findings if finding.kind == "metric"]
    assert (finding.state, finding.drop) == ("firing", pytest.approx(0.4))


def test_a_date_that_cannot_be_read_is_counted(tmp_path: Path, run: Run) -> None:
    """The question stays in use, and the check says so."""
    write_jsonl(tmp_path / "golden.jsonl", [question(1, since="soon"), question(2)])
    write_jsonl(
        tmp_path / "log.jsonl",
        [{"id": "1", "user_input": question(1)["user_input"], "retrieved_contexts": ["a"]}],
    )
    ended = run("check", tmp_path / "log.jsonl", "--golden", tmp_path / "golden.jsonl")
    assert "since: should be a date like 2026-11-19" in ended.out


# The labelling page


def opened(visit: Visit, page: Path) -> Any:
    """The page in the browser."""
    visit.page.goto(page.as_uri())
    return visit.page


def suggestion(text: str, passage: str = "A passage.", response: str = "") -> Suggestion:
    """A suggestion with one passage."""
    return Suggestion.model_validate(
        {
            "reason": "failure",
            "why": "nothing relevant was retrieved, asked 3 times",
            "user_input": text,
            "asked": 3,
            "night": "2026-11-19",
            "response": response,
            "passages": [{"id": "p1", "text": passage}, {"id": "p2", "text": "Another."}],
        }
    )


def test_a_labelled_page_becomes_golden_questions(tmp_path: Path, visit: Visit) -> None:
    """By the keyboard alone: choose a passage, write an answer, confirm, skip, download, add."""
    page = tmp_path / "s.html"
    write_labelling_page(page, [suggestion("First?"), suggestion("Second?", response="Yes.")])
    tab = opened(visit, page)
    tab.keyboard.press("y")
    assert "choose a passage" in tab.inner_text("#message")
    tab.keyboard.press("2")
    tab.keyboard.press("y")
    assert tab.inner_text("#question") == "Second?"
    tab.click("summary")
    tab.keyboard.press("u")
    assert tab.input_value("#reference") == "Yes."
    tab.keyboard.press("n")
    with tab.expect_download() as downloaded:
        tab.keyboard.press("d")
    path = tmp_path / "suggestions.jsonl"
    downloaded.value.save_as(path)
    found = add_confirmed([], read_suggestions(path), date(2026, 11, 20))
    [record] = found.records
    assert (record["user_input"], record["reference_context_ids"]) == ("First?", ["p2"])
    assert found.unconfirmed == 1


def test_hostile_text_stays_text_on_the_page(tmp_path: Path, visit: Visit) -> None:
    """Markup of a log is shown as it is; the page sends no request and logs no error."""
    evil = "</script><img src=x onerror=alert(1)>"
    page = tmp_path / "s.html"
    write_labelling_page(page, [suggestion(evil, evil, evil)])
    tab = opened(visit, page)
    assert tab.inner_text("#question") == evil
    assert tab.inner_text("#passages .text >> nth=0") == evil
    assert tab.locator("img").count() == 0
    assert not visit.complaints


def test_questions_of_one_key_are_one_suggestion(demo: Path) -> None:
    """Case and spaces do not make another question."""
    found = suggest_golden_questions(settings_of(demo), None, count=500)
    keys = [question_key(one.user_input) for one in found]
    assert len(keys) == len(set(keys))
