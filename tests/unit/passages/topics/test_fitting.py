"""Topics of questions without tags: groups that stay, and falls that are confined to one."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.config import make_settings
from ragmetrics.passages import PastQuestion
from ragmetrics.passages.topics.fallen_questions import find_fallen_group
from ragmetrics.passages.topics.fitting import fit_topics
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest, TopicModel, question_key
from ragmetrics.rules.corrections import JudgeFall, Sides
from ragmetrics.rules.topic_changes import fallen_topic
from ragmetrics.scoring import Assigner
from ragmetrics.stats import compare
from ragmetrics.text import words_of
from tests.builders import night_values
from tests.fakes.examples import examples
from tests.fakes.logs import write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

SUBJECTS = {
    "payroll": "salary payslip bonus overtime wage tax pension deduction",
    "leave": "vacation holiday sickness absence parental sabbatical balance carryover",
    "network": "router firewall wifi switch cable bandwidth proxy gateway",
    "kitchen": "oven dishwasher coffee fridge kettle toaster cutlery sink",
}
DAY = date(2026, 11, 9)


def make_questions(per_subject: int = 20, seed: int = 1) -> dict[str, PastQuestion]:
    """Questions of four subjects, each with a passage of its subject; by subject and number."""
    rng, found = random.Random(seed), {}
    for subject, words in SUBJECTS.items():
        for number in range(per_subject):
            a, b, c = rng.sample(words.split(), 3)
            text = f"How does the {a} of person {number} change the {b}?"
            found[f"{subject}/{number}"] = PastQuestion(text, [f"The {a} and the {b} and {c}."])
    return found


def fitted(questions: dict[str, PastQuestion], **more: Any) -> TopicModel:
    """The topics of some questions."""
    model = fit_topics(DAY, [], list(questions.values()), count=4, **more)
    assert model
    return model


def test_questions_of_one_subject_have_one_topic() -> None:
    """Four subjects with words of their own are four topics."""
    questions = make_questions()
    assigner = Assigner(fitted(questions))
    topics = {name.split("/")[0]: set[int | None]() for name in questions}
    for name, question in questions.items():
        topics[name.split("/")[0]].add(assigner.topic_of(question.text))
    assert all(len(own) == 1 for own in topics.values())
    assert len(set.union(*topics.values())) == 4


def test_the_same_questions_give_the_same_model() -> None:
    """Byte for byte: a night that runs again has the same tags."""
    questions = make_questions()
    assert fitted(questions).model_dump_json() == fitted(questions).model_dump_json()


def test_a_topic_has_words_and_typical_questions() -> None:
    """Its name has words of its subject, and its questions are of it."""
    for topic in fitted(make_questions()).topics:
        subject = next(one for one, words in SUBJECTS.items() if topic.name.split(", ")[0] in words)
        assert len(topic.questions) == 3
        assert all(set(words_of(one)) & set(words_of(SUBJECTS[subject])) for one in topic.questions)


def test_topics_keep_number_and_name_after_a_refit() -> None:
    """Other questions of the same subjects: the same topics."""
    first = fitted(make_questions(seed=1))
    again = fitted(make_questions(seed=2), before=first)
    assert {(topic.id, topic.name) for topic in again.topics} == {
        (topic.id, topic.name) for topic in first.topics
    }


def test_a_new_question_gets_the_topic_of_its_words() -> None:
    """And one without a known word gets none."""
    model = fitted(make_questions())
    assigner = Assigner(model)
    topic = assigner.topic_of("is my payslip with the bonus and the pension right")
    name = next(one.name for one in model.topics if one.id == topic)
    assert set(name.split(", ")) & set(words_of(SUBJECTS["payroll"]))
    assert assigner.topic_of("123 ?!") is None


def test_few_questions_have_no_topics() -> None:
    """Less than 50 questions are too few."""
    assert fit_topics(DAY, [], list(make_questions(per_subject=10).values())) is None


def test_a_fall_in_one_subject_is_found() -> None:
    """Half of the questions on the network lose everything."""
    questions = make_questions()
    before = dict.fromkeys(questions, 0.9)
    now = {
        name: 0.0 if name.startswith("network/") and int(name.split("/")[1]) % 2 else 0.9
        for name in questions
    }
    found = fallen_topic("context_recall", before, now, questions)
    assert found
    assert set(found.topic.split(", ")) & set(words_of(SUBJECTS["network"]))
    assert found.low > 0
    assert found.p_value < 0.01


class _OtherJudge(Sides):
    """Nights between which the judge's level fell far, as the labelled set shows."""

    def judge_fall(self) -> JudgeFall:
        """Nine tenths of a point on all questions."""
        fall = compare(
            {str(i): [1.0 - i / 1000] for i in range(40)}, {str(i): [0.1] for i in range(40)}
        )
        assert fall
        return JudgeFall(fall, 1.0)


def test_a_fall_that_is_the_judges_is_no_topic() -> None:
    """What judge drift explains of a topic's fall is none of the topic's."""
    questions = make_questions()
    before = dict.fromkeys(questions, 0.9)
    now = {name: 0.0 if name.startswith("network/") else 0.9 for name in questions}
    assert fallen_topic("context_recall", before, now, questions, sides=Sides())
    assert fallen_topic("context_recall", before, now, questions, sides=_OtherJudge()) is None


def test_a_fall_everywhere_is_no_topic() -> None:
    """All subjects fell alike: the fall is not confined."""
    questions, rng = make_questions(), random.Random(3)
    before = dict.fromkeys(questions, 0.9)
    now = {name: 0.0 if rng.random() < 0.3 else 0.9 for name in questions}
    assert fallen_topic("context_recall", before, now, questions) is None


def test_a_topic_that_rose_has_not_fallen() -> None:
    """The questions on the network come back: they have words in common, and fell in nothing."""
    questions, rng = make_questions(), random.Random(5)
    now = {name: 0.9 + rng.uniform(-0.1, 0.1) for name in questions}
    before = {
        name: 0.0 if name.startswith("network/") else 0.9 + rng.uniform(-0.1, 0.1)
        for name in questions
    }
    assert fallen_topic("context_recall", before, now, questions) is None


def test_redaction_hides_words_and_questions() -> None:
    """Words of a question are logged text."""
    questions = make_questions()
    before = dict.fromkeys(questions, 0.9)
    now = {name: 0.0 if name.startswith("network/") else 0.9 for name in questions}
    found = fallen_topic("context_recall", before, now, questions, redact=True)
    assert found
    assert not any(word in found.model_dump_json() for word in SUBJECTS["network"].split())


@hypothesis_settings(max_examples=examples(30))
@given(st.integers(0, 10_000))
def test_p_is_a_probability(seed: int) -> None:
    """Whatever the drops are, and small only seldom: the test is exact."""
    rng = np.random.default_rng(seed)
    weights = [{f"w{number % 5}": 1.0} for number in range(60)]
    found = find_fallen_group(weights, rng.normal(size=60))
    assert found
    assert 0 < found.p_value <= 1
    assert 5 <= found.members.sum() <= 20


@given(st.text(max_size=300))
def test_any_text_has_words(text: str) -> None:
    """Markup, other scripts and nonsense are words or nothing."""
    assert all(word and word == word.casefold() for word in words_of(text))


def night_rows(day: int, *, fallen: bool = False, own_topic: bool = False) -> list[dict[str, Any]]:
    """The rows of a night; with `fallen`, questions on the network get a passage on the kitchen."""
    rows = []
    for name, question in make_questions().items():
        lost = fallen and name.startswith("network/")
        contexts = ["The oven and the sink and the kettle."] if lost else list(question.contexts)
        tags = {"topic": "mine" if lost or "leave" in name else "yours"} if own_topic else {}
        reference = None if name.startswith("kitchen/") else question.contexts[0]
        rows.append(
            {
                "id": f"{day}-{name}",
                "user_input": question.text,
                "retrieved_contexts": contexts,
                "reference": reference,
                "tags": tags,
            }
        )
    return rows


def run(folder: Path, day: int, rows: list[dict[str, Any]] | None, **more: Any) -> Manifest:
    """A night with topics; without `rows`, that of the log that is there."""
    if rows is not None:
        write_jsonl(folder / f"2026-11-0{day}.jsonl", rows)
    settings = make_settings(
        night_values(
            folder,
            logs="{date}.jsonl",
            topics={"count": 4},
            rules=[{"metric": "context_recall", "max_drop": 0.1, "by": "topic", "min_rows": 5}],
        )
        | more
    )
    return run_night(settings, date(2026, 11, day)).manifest


@pytest.mark.pages
def test_rules_by_topic_work_without_tags(tmp_path: Path) -> None:
    """The first night has no topics; then the topic that fell fires, and is told with its words."""
    assert run(tmp_path, 1, night_rows(1)).topics is None
    good = run(tmp_path, 2, night_rows(2))
    assert good.topics
    assert not good.topics.fallen
    run(tmp_path, 3, night_rows(3))
    bad = run(tmp_path, 4, night_rows(4, fallen=True))
    fired = [finding for finding in bad.findings if finding.state == "firing" and finding.segment]
    assert len(fired) == 1
    assert fired[0].segment
    assert set(fired[0].segment.value.split(", ")) & set(words_of(SUBJECTS["network"]))
    assert bad.topics
    (topic,) = bad.topics.fallen
    assert set(topic.topic.split(", ")) & set(words_of(SUBJECTS["network"]))
    page = (tmp_path / "store" / "dashboard" / "2026-11-04" / "index.html").read_text()
    assert "Fell more than the other questions" in page


def test_a_night_that_runs_again_has_the_same_topics(tmp_path: Path) -> None:
    """The model is named after its first night, and used again."""
    run(tmp_path, 1, night_rows(1))
    first = run(tmp_path, 2, night_rows(2))
    again = run(tmp_path, 2, None)
    assert (first.run, first.topics) == (again.run, again.topics)
    assert len(list((tmp_path / "store" / "topics").iterdir())) == 1


def test_a_tag_of_the_log_stays(tmp_path: Path) -> None:
    """A log with a tag `topic` has its own topics."""
    run(tmp_path, 1, night_rows(1))
    found = run(tmp_path, 2, night_rows(2, own_topic=True))
    assert found.topics
    assert found.topics.rows == {}
    assert {str(segment.segment) for segment in found.segments} == {
        "topic=mine",
        "topic=yours",
    }


@pytest.mark.parametrize("redaction", [{"redact": True}, {"alerts": {"redact": True}}])
def test_with_redaction_topics_have_numbers(tmp_path: Path, redaction: dict[str, Any]) -> None:
    """Their names are words of questions. A run that was staged with names is not used."""
    run(tmp_path, 1, night_rows(1))
    words = run(tmp_path, 2, night_rows(2))
    found = run(tmp_path, 2, None, **redaction)
    assert found.run != words.run
    assert found.topics
    assert set(found.topics.rows) == {f"topic {number}" for number in (1, 2, 3, 4)}


def test_known_questions_are_found_by_their_keys() -> None:
    """The model stores keys, and no text but the typical questions."""
    model = fitted(make_questions())
    text = next(iter(make_questions().values())).text
    assert question_key(text) in model.known


@pytest.mark.pages
def test_a_topic_without_a_golden_question_is_named(tmp_path: Path) -> None:
    """All golden questions are on three subjects; nobody wrote one on the kitchen."""
    golden = [
        {"user_input": row["user_input"], "reference": row["reference"]}
        for row in night_rows(1)
        if row["reference"]
    ]
    write_jsonl(tmp_path / "golden.jsonl", golden)
    plain = [{**row, "reference": None} for row in night_rows(1)]
    more = {"golden": str(tmp_path / "golden.jsonl")}
    run(tmp_path, 1, plain, **more)
    found = run(tmp_path, 2, plain, **more)
    assert found.topics
    (topic,) = found.topics.without_golden
    assert set(topic.topic.split(", ")) & set(words_of(SUBJECTS["kitchen"]))
    assert topic.share == 0.25
    page = (tmp_path / "store" / "dashboard" / "2026-11-02" / "index.html").read_text()
    assert "No golden question is in 1 topic" in page


def test_a_topic_that_rises_in_traffic_is_named(tmp_path: Path) -> None:
    """After six usual nights, the questions on the network come four times as often."""
    for day in range(1, 8):
        rows = night_rows(day)
        moved = [row for n, row in enumerate(rows) if (n + day) % 7]
        run(tmp_path, day, moved)
    rows = night_rows(8)
    often = [row for row in rows if "network" in row["id"]]
    more = [{**row, "id": f"{row['id']}-{n}"} for n in range(3) for row in often]
    found = run(tmp_path, 8, [*rows, *more])
    assert found.topics
    (topic,) = found.topics.risen
    assert set(topic.topic.split(", ")) & set(words_of(SUBJECTS["network"]))
    assert topic.share > 0.5 > topic.before
