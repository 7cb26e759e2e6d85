"""Messages that earlier versions left in the outbox, as Slack's Block Kit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ragmetrics.delivery import sample_messages
from ragmetrics.messages import Message, earlier
from tests.fakes.formats import slack_blocks, slack_text

STORED = TypeAdapter(Message)


@pytest.mark.parametrize(("title", "message"), sample_messages())
def test_a_stored_message_is_sent_as_it_was(title: str, message: Message) -> None:
    """Block for block: what was escaped for Slack is read and escaped again."""
    stored = {"text": slack_text(message), "blocks": slack_blocks(message), "about": ["a"]}
    read = STORED.validate_python(stored)
    assert slack_blocks(read) == stored["blocks"], title
    assert (slack_text(read), read.about) == (stored["text"], ("a",))


@pytest.mark.parametrize(("title", "message"), sample_messages())
def test_a_message_of_today_is_read_as_it_is(title: str, message: Message) -> None:
    """Also by a version that knows the earlier ones."""
    assert STORED.validate_json(STORED.dump_json(message)) == message, title


@pytest.mark.parametrize(
    "blocks", [[{"type": 3}], [{"type": "section"}], [{"type": "context", "elements": 3}], []]
)
def test_a_message_with_damaged_blocks_keeps_its_headline(blocks: list[Any]) -> None:
    """A block that is none says nothing, and holds no message back."""
    read = STORED.validate_python({"text": "A headline", "blocks": blocks})
    assert slack_text(read) == "A headline"


def test_a_message_whose_blocks_are_no_list_is_refused() -> None:
    """By the one error that readers of the outbox know."""
    with pytest.raises(ValidationError, match="blocks"):
        STORED.validate_python({"text": "A headline", "blocks": "x"})


def test_without_an_earlier_message_nothing_reads_block_kit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of messages of today, stored or new, the reader of earlier ones is not asked."""
    monkeypatch.setattr(earlier, "from_block_kit", None)
    for _, message in sample_messages():
        assert STORED.validate_json(STORED.dump_json(message)) == message
