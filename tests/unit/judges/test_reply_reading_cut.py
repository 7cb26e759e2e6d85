"""A server that cuts a prompt at its context and says nothing."""

from __future__ import annotations

import pytest

from ragmetrics import evaluate, make_settings
from ragmetrics.errors import JudgeError
from ragmetrics.judges.base import Reply
from ragmetrics.judges.reply_reading import check_read
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows


def ask(text: str) -> Ask:
    """A request with a context."""
    return Ask(GRADE, {"question": "What is this?", "context": text})


def test_a_prompt_that_was_cut_is_told_with_its_length() -> None:
    """Ollama with its default context: 4,096 tokens of 100,000 characters."""
    request = ask("These are words. " * 6_000)
    with pytest.raises(JudgeError, match=r"too long for the judge: it read 4,096 tokens of .*102,"):
        check_read(request, Reply("{}", prompt_tokens=4_096))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("word " * 20_000, 20_000),
        ("word " * 20_000, 0),  # the server reports none
        ("word " * 20_000, 900),  # of a server that reports those outside its cache
        (" " * 60_000 + "-" * 60_000, 1_100),  # long blanks are few tokens
        ("internationalisation " * 5_000, 15_000),
    ],
)
def test_other_prompts_were_read(text: str, tokens: int) -> None:
    """No row is lost where the number can be right, or says nothing."""
    check_read(ask(text), Reply("{}", prompt_tokens=tokens))


def test_a_row_of_which_a_part_was_read_has_no_score(judge_server: JudgeServer) -> None:
    """It fails with its reason, and the other rows are scored."""
    judge_server.faults(reads=2_000)
    rows = make_rows(3)
    rows[1]["retrieved_contexts"] = ["These are words. " * 6_000]
    judge = {"name": "openai", "base_url": judge_server.base_url, "model": "judge"}
    result = evaluate(rows, metrics=["context_relevance"], settings=make_settings({"judge": judge}))
    (summary,) = result.manifest.metrics
    assert summary.status == {"judge_failed": 1, "scored": 2}
    assert "too long for the judge" in next(iter(summary.unanswered))
