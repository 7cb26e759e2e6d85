"""people/calibration/canaries: the bundled questions, and what judges say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import JudgeError
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics import GRADE
from ragmetrics.people.calibration.canaries import (
    Canary,
    _bundled,
    ask_canaries,
    canaries,
    usual_language,
)
from ragmetrics.records import Ask, CanaryReport, Usage
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer


def settings(server: JudgeServer, name: str = "openai", **more: Any) -> Settings:
    """Settings with a judge at the server, which has further keys."""
    return make_settings({"judge": judge_at(server, name, retries=0, **more)})


def ask(chosen: Settings, *languages: str) -> CanaryReport:
    """What the judge of the settings says."""
    return ask_at_cost(chosen, None, *languages)[0]


def ask_at_cost(
    chosen: Settings, store: Files | None, *languages: str
) -> tuple[CanaryReport, Usage]:
    """The same with a store, and its usage."""
    asked = ask_canaries(chosen, chosen.judge, languages, store)
    assert asked is not None
    return asked


@pytest.mark.parametrize("language", sorted(_bundled()))
def test_words_alone_tell_all_ten_apart(language: str) -> None:
    """In every language the judge that counts words gets them right: so they are obvious."""

    def graded(canary: Canary) -> int:
        data = {"question": canary.row.user_input, "context": canary.context}
        verdict = judge.reply_at_once(Ask(GRADE, data)).verdict
        assert isinstance(verdict, GRADE.verdict)
        return int(verdict.grade)

    asked, corpus = canaries(language), Corpus()
    for canary in asked:
        corpus.add([canary.context], canary.row.user_input)
    judge = LexicalJudge(corpus)
    assert len(asked) == 10
    assert sum(canary.answers for canary in asked) == 5
    assert [graded(canary) >= 1 for canary in asked] == [canary.answers for canary in asked]


@pytest.mark.parametrize(
    ("languages", "usual"),
    [
        (["de-AT", "de", "en"], "de"),
        ([None, float("nan"), " "], "en"),
        (["PT_br"], "pt"),
        ([], "en"),
    ],
)
def test_the_language_of_most_rows(languages: list[Any], usual: str) -> None:
    """Without its region; English where no row says one."""
    assert usual_language(languages) == usual


def test_a_language_that_is_not_bundled_is_asked_in_english() -> None:
    """A judge of another language can tell these apart all the same."""
    assert canaries("xx") == canaries("en")


def test_a_judge_that_grades_alike_gets_half_right(judge_server: JudgeServer) -> None:
    """And one that grades by the words gets all."""
    assert ask(settings(judge_server), "fr").right == 10
    judge_server.faults(grade=0)
    report = ask(settings(judge_server), "fr")
    assert (report.language, report.asked, report.right, report.yes) == ("fr", 10, 5, 0)


def test_an_unreadable_reply_is_wrong_and_a_failed_request_unknown(
    judge_server: JudgeServer,
) -> None:
    """Only a reply tells anything of the judge."""
    judge_server.faults(nonsense=True)
    report = ask(settings(judge_server))
    assert (report.asked, report.right) == (10, 0)
    assert report.problem
    judge_server.faults(nonsense=False, fail={"500": 1.0})
    report = ask(settings(judge_server))
    assert (report.asked, report.right) == (0, 0)
    assert "500" in report.problem


def test_cached_replies_are_asked_once(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Also after the judge changed without its fingerprint; `doctor` asks without a store."""
    store = Files(str(tmp_path))
    _, usage = ask_at_cost(settings(judge_server), store)
    assert (usage.requests, usage.answered_from_store) == (10, 0)
    judge_server.faults(grade=1)
    report, usage = ask_at_cost(settings(judge_server), store)
    assert (report.right, usage.requests, usage.answered_from_store) == (10, 0, 10)
    assert ask(settings(judge_server)).right == 5


@pytest.mark.parametrize("form", ["vllm", "cohere", "jina", "tei"])
def test_a_reranker_is_asked_once(judge_server: JudgeServer, tmp_path: Path, form: str) -> None:
    """The two contexts of a question share a request; after that the store has all ten grades."""
    judge_server.faults(reranker=form)
    store = Files(str(tmp_path))
    chosen = settings(judge_server, "rerank", model="bge", thresholds=[0.3, 0.7])
    report, usage = ask_at_cost(chosen, store)
    refused = judge_server.stats()["by_status"].get("422", 0)  # of the other form, asked first
    assert (report.right, usage.requests, usage.answered_from_store) == (10, 5 + refused, 0)
    again, usage = ask_at_cost(chosen, store)
    assert (again, usage.requests, usage.answered_from_store) == (report, 0, 10)


def test_other_thresholds_of_a_reranker_are_asked_anew(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """They are another judge, which may fail."""
    store = Files(str(tmp_path))
    for thresholds, right in (([0.3, 0.7], 10), ([8.0, 9.0], 5)):
        chosen = settings(judge_server, "rerank", model="bge", thresholds=thresholds)
        report, usage = ask_at_cost(chosen, store)
        assert (report.right, usage.requests) == (right, 5)


def test_a_judge_by_batches_is_asked_at_once(judge_server: JudgeServer) -> None:
    """A batch may take a day."""
    assert ask(settings(judge_server, "openai-batch")).right == 10


def test_a_judge_that_computes_is_not_asked() -> None:
    """It has no language to misunderstand; calibration says how good it is."""
    chosen = make_settings({"judge": "lexical"})
    assert ask_canaries(chosen, chosen.judge, ["en"]) is None


def test_a_refusal_is_an_error(judge_server: JudgeServer) -> None:
    """`doctor` says it as that of the judge."""
    judge_server.faults(fail={"401": 1.0})
    with pytest.raises(JudgeError, match="refused the key"):
        ask(settings(judge_server))
