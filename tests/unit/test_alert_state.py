"""Alerts over nights: what is told, when, and that nothing is told twice or lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmetrics.alerts.state import AlertState, Book, Message, advance, deliver
from ragmetrics.errors import RagmetricsError
from ragmetrics.records import Finding, Level

MONDAY = date(2026, 11, 16)
HELLO = Message(text="hello", blocks=[{"type": "divider"}])


def a_finding(level: Level, key: str = "a", for_nights: int | None = 2) -> Finding:
    """A finding of a rule on recall."""
    return Finding(
        key=key,
        kind="metric",
        level=level,
        rule="recall below 0.7",
        message="recall is low",
        metric="recall",
        for_nights=for_nights,
    )


def play(
    levels: Sequence[Level | None], book: Book | None = None, remind_days: int = 7
) -> tuple[Book, list[str | None], list[Finding]]:
    """One night after the other, all delivered; None is a night without the finding."""
    book = book or Book()
    transitions: list[str | None] = []
    told: list[Finding] = []
    for offset, level in enumerate(levels):
        findings = [a_finding(level)] if level else []
        book, told = advance(book, findings, MONDAY + timedelta(offset), remind_days)
        transitions.append(told[0].transition if told else None)
    return book, transitions, told


class FlakyError(RagmetricsError):
    transient = True


def failing(error: RagmetricsError) -> Callable[[Message], None]:
    """A `send` that always fails like this."""

    def send(message: Message) -> None:
        raise error

    return send


@pytest.mark.parametrize("level", ["breach", "no_data"])
def test_sure_findings_fire_at_once(level: Level) -> None:
    """A breach and a night without data need no second night."""
    _, transitions, told = play([level])
    assert transitions == ["fired"]
    assert (told[0].state, told[0].since) == ("firing", MONDAY)


def test_suspects_fire_after_nights_in_a_row() -> None:
    """The second suspect night fires, and the spell counts from the first."""
    _, transitions, told = play(["suspect", "suspect"])
    assert transitions == [None, "fired"]
    assert told[0].since == MONDAY


def test_suspects_that_wait_for_evidence_stay_pending() -> None:
    """Without a number of nights only a breach fires, with the spell's first night."""
    book = Book()
    for offset, level in enumerate(("suspect", "suspect", "suspect", "breach")):
        finding = a_finding(level, for_nights=None)
        book, (told,) = advance(book, [finding], MONDAY + timedelta(offset), 7)
        assert told.state == ("firing" if level == "breach" else "pending")
    assert told.since == MONDAY


def test_pending_goes_back_to_ok_in_silence() -> None:
    """A suspect night followed by a good one is never told, and the count starts anew."""
    _, transitions, told = play(["suspect", "ok", "suspect"])
    assert transitions == [None, None, None]
    assert (told[0].state, told[0].since) == ("pending", MONDAY + timedelta(2))


def test_firing_resolves_once_with_the_spell_that_ended() -> None:
    """Back to ok is told once, with the first night of the ended spell."""
    book, transitions, told = play(["breach", "ok"])
    assert transitions == ["fired", "resolved"]
    assert (told[0].state, told[0].since) == ("ok", MONDAY)
    _, told = advance(book, [a_finding("ok")], MONDAY + timedelta(2), 7)
    assert (told[0].transition, told[0].since) == (None, None)


def test_only_ok_resolves() -> None:
    """A firing alert that is merely suspect stays firing, without a message."""
    _, transitions, told = play(["breach", "suspect", "suspect"])
    assert transitions == ["fired", None, None]
    assert told[0].state == "firing"


def test_reminder_after_the_days_set() -> None:
    """A firing alert is told again when `remind_days` have passed since the last message."""
    _, transitions, _ = play(["breach"] * 7, remind_days=3)
    assert transitions == ["fired", None, None, "reminded", None, None, "reminded"]


def test_rerun_tells_nothing_again_and_counts_nothing() -> None:
    """A delivered night run again changes no state and has no transition."""
    book, _, _ = play(["suspect", "breach"])
    again, told = advance(book, [a_finding("breach")], MONDAY + timedelta(1), 7)
    assert again.states == book.states
    assert (told[0].transition, told[0].state) == (None, "firing")


def test_rerun_with_another_result_tells_the_difference() -> None:
    """Fired by the first run and ok by the rerun: people are told that it resolved."""
    book, _, _ = play(["breach"])
    book, told = advance(book, [a_finding("ok")], MONDAY, 7)
    assert told[0].transition == "resolved"
    assert book.states["a"].nights == 0


def test_rerun_tells_again_what_was_not_delivered() -> None:
    """An undelivered message is taken back by a rerun, whose transitions replace it."""
    book, first = advance(Book(), [a_finding("breach")], MONDAY, 7)
    book, errors = deliver(book.queue(HELLO), failing(FlakyError("down")))
    assert len(errors) == len(book.outbox) == 1
    for _ in range(2):
        book, told = advance(book, [a_finding("breach")], MONDAY, 7)
        assert (told, book.outbox) == (first, ())
        book = book.queue(HELLO)
    book, told = advance(book, [a_finding("ok")], MONDAY, 7)
    assert (told[0].transition, book.outbox) == (None, ())


def test_older_night_changes_nothing() -> None:
    """A backfill of an earlier night has no transitions and leaves the book as it is."""
    book, _, _ = play(["ok", "ok"])
    same, told = advance(book, [a_finding("breach"), a_finding("breach", "b")], MONDAY, 7)
    assert same is book
    assert [one.transition for one in told] == [None, None]


def test_unheard_alert_is_listed_then_closed_aloud() -> None:
    """A firing alert without findings is listed each night, and closed after `remind_days`."""
    book, transitions, told = play(["breach", None, None], remind_days=3)
    assert transitions == ["fired", None, None]
    assert (told[0].state, told[0].level) == ("firing", "no_data")
    assert told[0].message == "recall: not checked since 2026-11-16"
    book, told = advance(book, [], MONDAY + timedelta(3), 3)
    assert (told[0].transition, told[0].since) == ("resolved", MONDAY)
    assert "its rule was removed" in told[0].message
    assert advance(book, [], MONDAY + timedelta(4), 3)[1] == []


def test_unheard_alert_stays_open_while_the_night_has_troubles() -> None:
    """Nights without data judge no metric; that closes no alert."""
    book, _, _ = play(["breach"])
    nothing = Finding(key="n", kind="no_data", level="no_data", rule="r", message="m")
    _, told = advance(book, [nothing], MONDAY + timedelta(30), 7)
    assert [one.transition for one in told] == ["fired", None]


def test_quiet_keys_are_forgotten() -> None:
    """What is not firing and not judged any more leaves the book after `remind_days`."""
    book, _, _ = play(["ok"])
    assert advance(book, [], MONDAY + timedelta(6), 7)[0].states
    assert not advance(book, [], MONDAY + timedelta(7), 7)[0].states


def test_outbox_is_sent_in_order_and_kept_on_failure() -> None:
    """A transient error ends the round; a refused message lets the next one try."""
    book, _ = advance(Book(), [], MONDAY, 7)
    book = book.queue(HELLO)
    book, _ = advance(book, [], MONDAY + timedelta(1), 7)
    book = book.queue(Message("second", []))
    assert len(deliver(book, failing(FlakyError()))[1]) == 1
    kept, errors = deliver(book, failing(RagmetricsError()))
    assert (kept, len(errors)) == (book, 2)
    sent: list[Message] = []
    done, errors = deliver(book, sent.append)
    assert [message.text for message in sent] == ["hello", "second"]
    assert (done.outbox, errors) == ((), [])


def test_queue_needs_a_night() -> None:
    """A book that was never advanced has no night to queue a message for."""
    with pytest.raises(ValueError, match="advance"):
        Book().queue(HELLO)


def test_book_survives_json() -> None:
    """The book is the same after a trip through alerts/state.json."""
    book, _, _ = play(["suspect", "breach"])
    book = book.queue(HELLO)
    assert Book.model_validate_json(book.model_dump_json()) == book


levels = st.sampled_from(["ok", "suspect", "breach", "no_data", None])
steps = st.lists(
    st.tuples(
        st.integers(-2, 3),  # days to go on; 0 is a rerun, less is a backfill
        st.dictionaries(st.sampled_from("ab"), levels),
        st.booleans(),  # whether Slack answers
    ),
    max_size=25,
)


def as_findings(night: dict[str, Level | None]) -> list[Finding]:
    """The findings of a night; a key without level was not judged."""
    return [a_finding(level, key) for key, level in night.items() if level]


def tell(told: Sequence[Finding]) -> Message:
    """A message that carries the transitions."""
    return Message("", [{"key": one.key, "said": one.transition} for one in told if one.transition])


@given(steps, st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_people_hear_a_sound_story(story, remind_days: int) -> None:
    """Whatever Slack does: fired and resolved alternate, nothing is lost, and the book agrees."""
    book, night, heard = Book(), MONDAY, []
    for days, findings, slack_answers in story:
        night += timedelta(days)
        book, told = advance(book, as_findings(findings), night, remind_days)
        if any(one.transition for one in told):
            book = book.queue(tell(told))
        if slack_answers:
            book, _ = deliver(book, heard.append)
    book, _ = deliver(book, heard.append)
    for key in "ab":
        said = [block["said"] for one in heard for block in one.blocks if block["key"] == key]
        firing = False
        for transition in said:
            assert (transition == "fired") != firing
            firing = transition != "resolved"
        assert firing == (book.states.get(key, AlertState()).state == "firing")


@given(steps, st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_reruns_change_nothing(story, remind_days: int) -> None:
    """A delivered night with the same findings again: same states, nothing told."""
    book, night = Book(), MONDAY
    for days, findings, _ in story:
        night += timedelta(days)
        book, told = advance(book, as_findings(findings), night, remind_days)
        again, retold = advance(book, as_findings(findings), night, remind_days)
        assert again.states == book.states
        assert not any(one.transition for one in retold)
        newest = {one.key: one.state for one in told if night == book.night}
        assert newest.items() >= {o.key: o.state for o in retold if night == book.night}.items()


@given(steps, st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_what_is_given_back_may_be_given_again(story, remind_days: int) -> None:
    """Publishing stores the findings with their states; alerting from these changes nothing."""
    book, night = Book(), MONDAY
    for days, findings, _ in story:
        night += timedelta(days)
        after, told = advance(book, as_findings(findings), night, remind_days)
        assert advance(book, told, night, remind_days)[1] == told
        assert not any(one.transition for one in advance(after, told, night, remind_days)[1])
        book = after


@given(steps)
@settings(max_examples=200, deadline=None)
def test_counters_count_dates(story) -> None:
    """A count is never more than the distinct nights that were judged."""
    book, night, judged = Book(), MONDAY, set()
    for days, findings, _ in story:
        night += timedelta(days)
        book, _ = advance(book, as_findings(findings), night, 7)
        judged |= {(one.key, night) for one in as_findings(findings)}
        for key, state in book.states.items():
            assert state.nights <= sum(one == key for one, _ in judged)
