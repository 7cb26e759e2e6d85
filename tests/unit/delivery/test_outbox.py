"""The outbox: no message is lost, whoever else writes the state of the alerts meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import delivery as deliver, load_alerts, notify_channels, outbox
from ragmetrics.delivery.outbox import MessageBatch, Waiting, load_batches
from ragmetrics.errors import StoreError
from ragmetrics.messages import Message, Note
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, Runs
from tests.fakes.nights import FIRST, finding, night
from tests.fakes.published import published
from tests.fakes.slack import SlackServer

SETTINGS = make_settings({})
HELLO = MessageBatch(
    night=FIRST, waiting=[Waiting(message=Message(text="hello", blocks=[Note("a line")]))]
)


class Killed(BaseException):
    """As by `kill -9`."""


def bad(number: int = 0, metric: str = "context_recall", **change: Any) -> Manifest:
    """A night on which a metric's alert fires."""
    return night(number, findings=[finding(metric, level="breach")], **change)


def told(files: Files, manifest: Manifest) -> deliver.Delivery:
    """The night, published and told."""
    return notify_channels(SETTINGS, files, published(files, manifest))


def waiting(files: Files) -> list[date]:
    """The nights of the batches that wait."""
    return [one.night for one in load_batches(files).waiting.values()]


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something after the next alert has read the state, and before it writes it."""
    compose = deliver.compose

    def composed(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(deliver, "compose", compose)
        act()
        return compose(*args, **more)

    monkeypatch.setattr(deliver, "compose", composed)


def test_what_was_delivered_leaves_nothing_behind(files: Files, slack_server: SlackServer) -> None:
    """The message is in the outbox while it is sent, and gone when the state is written."""
    assert told(files, bad()).sent
    assert len(slack_server.delivered) == 1
    assert files.below(outbox.FOLDER) == []
    assert waiting(files) == []


def test_what_slack_refused_waits_in_a_file_of_its_own(
    files: Files, slack_server: SlackServer
) -> None:
    """By night; the next run sends it, and then its own."""
    slack_server.fail("500")
    assert told(files, bad()).errors
    (info,) = files.below(outbox.FOLDER)
    assert info.path.startswith(f"{outbox.FOLDER}/{FIRST}.")
    slack_server.fail(None)
    told(files, bad(1, "context_relevance"))
    first, second = (message["text"] for message in slack_server.delivered)
    assert "Context recall" in first
    assert "Context relevance" in second
    assert files.below(outbox.FOLDER) == []


def test_a_rerun_without_a_webhook_loses_no_message(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, where Slack's address is not in the environment: what Slack refused goes on waiting,
    and what the rerun found to be well is not told."""
    slack_server.fail("500")
    told(files, bad())
    slack_server.fail(None)
    with monkeypatch.context() as by_hand:
        by_hand.delenv("SLACK_WEBHOOK_URL")
        told(files, bad())
    assert len(waiting(files)) == 1
    assert told(files, bad(1)).message is None
    assert len(slack_server.delivered) == 1

    slack_server.fail("500")
    told(files, bad(2, "context_relevance"))
    with monkeypatch.context() as by_hand:
        by_hand.delenv("SLACK_WEBHOOK_URL")
        told(files, night(2, findings=[finding("context_relevance", level="ok")]))
    assert files.below(outbox.FOLDER) == []


def test_a_message_under_another_name_is_sent_once(files: Files, slack_server: SlackServer) -> None:
    """Another version may have written and named it otherwise: it does not stay for ever."""
    outbox.queue_batch(files, HELLO)
    (info,) = files.below(outbox.FOLDER)
    files.write(f"{outbox.FOLDER}/other.json", files.read(info.path).replace(b"{", b'{"v": 2,', 1))
    files.remove(info.path)
    for number in (1, 2):
        told(files, night(number))
    assert [message["text"] for message in slack_server.delivered] == ["hello"]
    assert files.below(outbox.FOLDER) == []


def test_two_nights_that_end_at_once_lose_no_message(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While Slack is down: the second state is written over what the first run read, and both
    messages wait."""
    slack_server.fail("500")
    Runs(files).save(bad(0))
    meanwhile(monkeypatch, lambda: told(files, bad(1, "context_relevance")))
    notify_channels(SETTINGS, files, bad(0))
    assert waiting(files) == [FIRST, FIRST + timedelta(1)]
    assert load_alerts(files).night == FIRST + timedelta(1)


def test_the_same_night_at_once_is_told_twice_at_worst(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its state is that of one run: a third run tells nothing."""
    meanwhile(monkeypatch, lambda: told(files, bad()))
    told(files, bad())
    assert len(slack_server.delivered) == 2
    assert told(files, bad()).message is None
    (state,) = load_alerts(files).states.values()
    assert (state.state, state.nights, state.since) == ("firing", 1, FIRST)


def test_the_same_night_at_once_while_slack_is_down_is_told_later(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the same message, which is one; the rerun takes it back and tells it."""
    slack_server.fail("500")
    meanwhile(monkeypatch, lambda: told(files, bad()))
    told(files, bad())
    assert len(files.below(outbox.FOLDER)) == 1
    slack_server.fail(None)
    assert told(files, bad()).sent
    assert len(slack_server.delivered) == 1
    assert files.below(outbox.FOLDER) == []


def test_a_later_night_written_meanwhile_is_kept(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the newest night stays, though an older one is written after it."""
    Runs(files).save(bad(0))
    meanwhile(monkeypatch, lambda: told(files, bad(1)))
    notify_channels(SETTINGS, files, bad(0))
    assert load_alerts(files).night == FIRST + timedelta(1)


def test_a_run_that_died_before_it_wrote_the_state_is_repeated(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message is in the outbox; the rerun tells it once, and undoes nothing of other nights."""
    told(files, bad(0))
    before = load_alerts(files)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(deliver, "_send_all", die)
        with pytest.raises(Killed):
            told(files, bad(1, "context_relevance"))
    assert waiting(files) == [FIRST + timedelta(1)]
    told(files, bad(1, "context_relevance"))
    assert len(slack_server.delivered) == 2
    assert load_alerts(files).states[finding("context_recall").key].since == FIRST
    assert files.below(outbox.FOLDER) == []
    assert before.states.keys() <= load_alerts(files).states.keys()


@pytest.mark.parametrize(("noted", "deliveries"), [(0, [2, 1, 1]), (1, [1, 2, 1]), (2, [1, 1, 2])])
def test_a_run_that_dies_after_slack_took_a_message_repeats_that_one_alone(
    files: Files,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    noted: int,
    deliveries: list[int],
) -> None:
    """Two messages wait, and tonight's is the third. Each is noted once Slack took it: whichever
    note is the first that is not made, the rerun sends one message again."""
    two_wait(files)
    with monkeypatch.context() as dying:
        notes = iter(range(noted))  # both acts count
        for name in ("write", "remove"):
            dying.setattr(Files, name, after(notes, slack_server, getattr(Files, name), Killed()))
        with pytest.raises(Killed):
            told(files, bad(2))
    told(files, bad(2))
    texts = Counter(message["text"] for message in slack_server.delivered)
    assert list(texts.values()) == deliveries
    assert told(files, bad(2)).message is None
    assert files.below(outbox.FOLDER) == []


@pytest.mark.parametrize(("noted", "deliveries"), [(0, [2, 2, 2]), (1, [1, 2, 2]), (2, [1, 1, 2])])
def test_a_store_that_takes_no_note_keeps_no_message_waiting(
    files: Files,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    noted: int,
    deliveries: list[int],
) -> None:
    """All go out, the run says what was not noted, and the next one repeats only that."""
    two_wait(files)
    error = StoreError("the bucket is out")
    with monkeypatch.context() as dying:
        notes = iter(range(noted))
        for name in ("write", "remove"):
            dying.setattr(Files, name, after(notes, slack_server, getattr(Files, name), error))
        delivery = told(files, bad(2))
    assert len(slack_server.delivered) == 3
    assert delivery.errors == (
        "the alerts cannot be stored, messages may be sent twice: the bucket is out",
    )
    told(files, bad(2))
    texts = Counter(message["text"] for message in slack_server.delivered)
    assert list(texts.values()) == deliveries
    assert files.below(outbox.FOLDER) == []


def two_wait(files: Files) -> None:
    """Messages of two earlier nights wait in the outbox."""
    for number in (0, 1):
        message = Message(text=f"of night {number}", blocks=[])
        batch = MessageBatch(night=FIRST + timedelta(number), waiting=[Waiting(message=message)])
        outbox.queue_batch(files, batch)


def after(
    notes: Iterator[int], slack: SlackServer, act: Callable[..., None], error: BaseException
) -> Callable[..., None]:
    """The act; from Slack's first ok on it raises the error, but for so many notes."""

    def acting(*args: Any) -> None:
        if slack.delivered and next(notes, None) is None:
            raise error
        act(*args)

    return acting


def test_a_message_of_an_earlier_version_is_sent(files: Files, slack_server: SlackServer) -> None:
    """It has a file to itself, with states of its alerts; where Slack is down, it stays."""
    old = {"night": str(FIRST), "message": {"text": "hello", "blocks": []}, "turn": 1, "redo": {}}
    files.write(f"{outbox.FOLDER}/{FIRST}.1a2b3c.json", json.dumps(old).encode())
    slack_server.fail("500")
    told(files, night(0, findings=[finding("context_recall", level="ok")]))
    assert waiting(files) == [FIRST]
    slack_server.fail(None)
    told(files, night(2))
    assert [message["text"] for message in slack_server.delivered] == ["hello"]
    assert files.below(outbox.FOLDER) == []


def test_what_is_no_message_is_left_aside(
    files: Files, slack_server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """And named; the others go."""
    outbox.queue_batch(files, HELLO)
    files.write(f"{outbox.FOLDER}/2026-11-10.broken.json", b"{")
    told(files, night(1))
    assert [message["text"] for message in slack_server.delivered] == ["hello"]
    assert "2026-11-10.broken.json is not a message" in caplog.text
    assert len(files.below(outbox.FOLDER)) == 1


def test_a_run_that_was_overtaken_sends_what_waits(files: Files, slack_server: SlackServer) -> None:
    """It tells nothing of its own night, and changes no state."""
    overtaken = bad(0, run="slow", seen_at=night(0).started_at)
    Runs(files).save(night(0, run="quick", seen_at=night(0).finished_at))
    outbox.queue_batch(files, HELLO)
    delivery = told(files, overtaken)
    assert delivery.message is None
    assert [message["text"] for message in slack_server.delivered] == ["hello"]
    assert files.below(outbox.FOLDER) == []


def test_a_rerun_that_dies_replaces_what_waits(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run's message waits, a rerun dies once its own is in the outbox, and nobody runs
    that night again: the next night sends that one, and follows upon it.
    """
    slack_server.fail("500")
    told(files, bad(0))
    both = [finding(level="breach"), finding("b", level="breach")]
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(deliver, "_send_all", killed)
        told(files, night(0, findings=both))
    assert len(files.below(outbox.FOLDER)) == 1
    slack_server.fail(None)
    told(files, night(1, findings=[finding(level="ok"), finding("b", level="ok")]))
    first, second = (message["text"] for message in slack_server.delivered)
    assert "B is low" in first
    assert "Resolved" in second
    assert files.below(outbox.FOLDER) == []


def killed(*_: object, **__: object) -> None:
    """The machine goes away."""
    raise Killed


def test_a_rerun_waits_beside_a_damaged_batch_that_was_delivered(
    files: Files, slack_server: SlackServer
) -> None:
    """It has the same name. The rerun tells again, as what was told is not known; while Slack is
    down, its message waits, and no run takes it for delivered.
    """
    told(files, bad())
    (info,) = files.below(outbox.DELIVERED)
    files.write(info.path, b"{broken")
    slack_server.delivered.clear()
    slack_server.fail("500")
    told(files, bad())
    assert waiting(files) == [FIRST]
    slack_server.fail(None)
    told(files, bad(1))
    assert len(slack_server.delivered) == 1
    assert files.below(outbox.FOLDER) == []
    assert [one.night for one in load_batches(files).done] == [FIRST]


def test_a_rerun_of_an_old_night_reads_no_newer_batches(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backfill of a year reads of each night what was told until then."""
    for number in range(6):
        told(files, bad(number) if number % 2 else night(number, findings=[finding(level="ok")]))
    read: list[str] = []
    really = Files.find

    def noted(self: Files, path: str) -> Any:
        read.append(path)
        return really(self, path)

    monkeypatch.setattr(Files, "find", noted)
    notify_channels(SETTINGS, files, bad(1, silent=True, alerts={}))
    assert [one for one in read if one.startswith(outbox.DELIVERED)] == [
        f"{outbox.DELIVERED}/2026-11-11.0.json"
    ]
