"""Alerts over nights: what is told, when, and that nothing is told twice or lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.delivery.state import AlertStates
from ragmetrics.records import AlertState, Finding, Level, Severity, Silence
from tests.fakes.alert_book import Book, advance, run
from tests.fakes.examples import examples

MONDAY = date(2026, 11, 16)


def a_finding(
    level: Level, key: str = "a", for_nights: int | None = 2, severity: Severity = "critical"
) -> Finding:
    """A finding of a rule on recall."""
    return Finding(
        key=key,
        kind="metric",
        level=level,
        severity=severity,
        rule="recall below 0.7",
        message="recall is low",
        metric="recall",
        for_nights=for_nights,
    )


def bare(book: Book) -> dict[str, AlertState]:
    """The states without their findings, which say what was told."""
    return {key: one.model_copy(update={"finding": None}) for key, one in book.states.items()}


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


def snoozed(until: int, key: str = "a") -> dict[str, Silence]:
    """A snooze until so many days after MONDAY."""
    day = MONDAY + timedelta(until)
    return {key: Silence(key=key, at=datetime.now(UTC), until=day)}


def acknowledged(since: date = MONDAY, severity: Severity = "critical") -> dict[str, Silence]:
    """An acknowledgement of the alert that fires since then."""
    return {"a": Silence(key="a", at=datetime.now(UTC), since=since, severity=severity)}


def transitions_of(
    levels: Sequence[Level | None],
    silences: Mapping[str, Silence],
    remind_days: int = 7,
    severities: Mapping[int, Severity] | None = None,
) -> list[str | None]:
    """What is told on nights in a row; the silences were there before the second night."""
    book, told = Book(), list[str | None]()
    for offset, level in enumerate(levels):
        severity = (severities or {}).get(offset, "critical")
        findings = [a_finding(level, severity=severity)] if level else []
        quiet = silences if offset else {}
        book, said = advance(book, findings, MONDAY + timedelta(offset), remind_days, quiet)
        told.append(said[0].transition if said else None)
    return told


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
    assert bare(again) == bare(book)
    assert (told[0].transition, told[0].state) == (None, "firing")


def test_rerun_with_another_result_tells_the_difference() -> None:
    """Fired by the first run and ok by the rerun: people are told that it resolved."""
    book, _, _ = play(["breach"])
    book, told = advance(book, [a_finding("ok")], MONDAY, 7)
    assert told[0].transition == "resolved"
    assert book.states["a"].nights == 0


def test_rerun_tells_again_what_was_not_delivered() -> None:
    """A rerun replaces a message that no channel has, or takes it back."""
    book, first = run(Book(), [a_finding("breach")], MONDAY, 7)
    for _ in range(2):
        book, told = run(book, [a_finding("breach")], MONDAY, 7)
        assert (told, len(book.waiting)) == (first, 1)
    book, told = run(book, [a_finding("ok")], MONDAY, 7)
    assert (told[0].transition, book.waiting) == (None, [])


def test_a_rerun_whose_message_waits_takes_back_nothing_that_was_delivered() -> None:
    """It told of another result: the next rerun replaces that, and what the first run of the night
    told stays told."""
    book, _, _ = play(["breach"])
    book, _ = run(book, [a_finding("ok")], MONDAY, 7)
    again, told = run(book, [a_finding("breach")], MONDAY, 7)
    assert (told[0].transition, again.waiting) == (None, [])
    assert bare(again) == bare(play(["breach"])[0])


def test_an_acknowledged_alert_is_not_reminded_of_and_is_resolved_aloud() -> None:
    """Somebody is at it: only its end is news."""
    told = transitions_of(["breach"] * 5 + ["ok"], acknowledged(), remind_days=2)
    assert told == ["fired", None, None, None, None, "resolved"]


def test_an_acknowledgement_is_good_for_one_spell() -> None:
    """The next time it fires it is told, and reminded of."""
    levels: list[Level | None] = ["breach", "ok", "breach", "breach", "breach"]
    told = transitions_of(levels, acknowledged(), remind_days=2)
    assert told == ["fired", "resolved", "fired", None, "reminded"]


def test_a_severity_that_gets_worse_is_told_at_once_whatever_was_acknowledged() -> None:
    """A warning was acknowledged, and it is critical now: it is told, and reminded of again."""
    quiet, severities = acknowledged(severity="warning"), dict.fromkeys((0, 1), "warning")
    told = transitions_of(["breach"] * 6, quiet, remind_days=3, severities=severities)
    assert told == ["fired", None, "reminded", None, None, "reminded"]
    assert transitions_of(["breach"] * 3, {}, severities=severities) == ["fired", None, "reminded"]


def test_a_snoozed_alert_is_silent_and_then_told_as_it_is() -> None:
    """Of what fired before, that it still does; the reminders count from there."""
    told = transitions_of(["breach"] * 7, snoozed(until=3), remind_days=2)
    assert told == ["fired", None, None, "reminded", None, "reminded", None]


@pytest.mark.parametrize(("after", "told"), [({}, "reminded"), (acknowledged(), None)])
def test_a_snooze_ends_though_nothing_judges_the_alert(
    after: dict[str, Silence], told: str | None
) -> None:
    """People are reminded of it once, unless they acknowledged it meanwhile."""
    book, _ = advance(Book(), [a_finding("breach")], MONDAY, 7)
    transitions = []
    for offset, quiet in ((1, snoozed(until=2)), (2, after), (3, after)):
        book, found = advance(book, [], MONDAY + timedelta(offset), 7, quiet)
        transitions.append(found[0].transition)
    assert transitions == [None, told, None]


def test_what_fires_while_it_is_snoozed_is_told_as_fired_afterwards() -> None:
    """With the first night of its spell; what is over by then was never there."""
    assert transitions_of(["ok", "breach", "breach", "breach"], snoozed(until=3))[-1] == "fired"
    assert transitions_of(["ok", "breach", "ok", "ok"], snoozed(until=3)) == [None] * 4


def test_what_people_knew_of_and_is_over_is_told_as_resolved_after_the_snooze() -> None:
    """Else the last that they heard would be that it fires; the spell is the one they knew of."""
    book, quiet = Book(), snoozed(until=3)
    for offset, level in enumerate(("breach", "breach", "ok", "ok")):
        night = MONDAY + timedelta(offset)
        book, (told,) = advance(book, [a_finding(level)], night, 7, quiet)
    assert transitions_of(["breach", "ok", "ok", "ok"], quiet)[-1] == "resolved"
    assert book.states["a"].told is None  # it fired on a snoozed night, so nobody knows of it
    assert told.transition is None


def test_a_rerun_after_a_snooze_tells_nothing_again() -> None:
    """The first night that is told of again tells once what has become of the alert."""
    book, quiet = Book(), snoozed(until=2)
    for offset in range(3):
        night = MONDAY + timedelta(offset)
        book, told = advance(book, [a_finding("breach")], night, 7, quiet if offset else {})
    assert told[0].transition == "reminded"
    again, told = advance(book, [a_finding("breach")], night, 7, quiet)
    assert (bare(again), told[0].transition) == (bare(book), None)


def test_a_snooze_taken_back_is_over_with_the_next_run() -> None:
    """Of a night that was kept from people, a rerun tells all the same."""
    book, _ = advance(Book(), [a_finding("breach")], MONDAY, 7, snoozed(until=5))
    _, told = advance(book, [a_finding("breach")], MONDAY, 7)
    assert told[0].transition == "fired"


def test_a_snoozed_alert_that_nothing_judges_is_closed_after_the_snooze() -> None:
    """And not before: people hear of it once."""
    levels: list[Level | None] = ["breach", *[None] * 7]
    told = transitions_of(levels, snoozed(until=6), remind_days=3)
    assert told == ["fired", None, None, None, None, None, "resolved", None]


def test_what_resolved_in_a_snooze_is_told_though_nothing_judges_it_any_more() -> None:
    """Its last finding was ok: it is back to normal, and not merely closed."""
    book = Book()
    for offset, level in enumerate(("breach", "ok", None, None)):
        findings = [a_finding(level)] if level else []
        quiet = snoozed(until=3) if offset else {}
        book, told = advance(book, findings, MONDAY + timedelta(offset), 7, quiet)
    assert [(one.transition, one.level, one.since) for one in told] == [("resolved", "ok", MONDAY)]


def test_findings_carry_the_silence_in_force() -> None:
    """So the dashboard and other messages can say why nobody is told."""
    book, _ = advance(Book(), [a_finding("breach")], MONDAY, 7)
    for quiet, words in (
        (acknowledged(), "acknowledged"),
        (acknowledged(since=MONDAY - timedelta(9)), None),  # of another spell
        (snoozed(until=4), "snoozed until 2026-11-20"),
        (snoozed(until=1), None),
    ):
        _, (told,) = advance(book, [a_finding("breach")], MONDAY + timedelta(1), 7, quiet)
        assert (str(told.silence) if told.silence else None) == words


def test_a_state_of_an_earlier_version_had_told_what_fired() -> None:
    """It does not say so, and its severity is that of its finding."""
    finding = a_finding("breach", severity="warning").model_dump(mode="json")
    old = {"state": "firing", "since": str(MONDAY), "last_sent": str(MONDAY), "finding": finding}
    state = AlertStates.model_validate({"night": MONDAY, "states": {"a": old}}).states["a"]
    assert (state.told, state.severity) == (MONDAY, "warning")
    assert state.notified and state.notified.night == MONDAY


def test_an_older_night_says_nothing() -> None:
    """Its findings are part of the history, and no message follows from that."""
    book, _, _ = play(["ok", "ok"])
    book, told = advance(book, [a_finding("breach")], MONDAY, 7)
    assert told[0].transition is None
    _, told = advance(book, [a_finding("ok")], MONDAY + timedelta(2), 7)
    assert told[0].transition is None


def test_unheard_alert_is_listed_then_closed_aloud() -> None:
    """A firing alert without findings is listed each night, and closed after `remind_days`."""
    book, transitions, told = play(["breach", None, None], remind_days=3)
    assert transitions == ["fired", None, None]
    assert (told[0].state, told[0].level) == ("firing", "no_data")
    assert told[0].message == "recall below 0.7; not checked since 2026-11-16"
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


def stale_log(level: Level) -> Finding:
    """A finding on a log that may be of another night."""
    return Finding(key="stale", kind="stale_log", level=level, rule="r", message="m")


def test_unheard_alert_stays_open_while_the_log_is_that_of_another_night() -> None:
    """No rule is checked on such nights, so they close no alert; where most rows are only outside
    the night, rules are checked.
    """
    book, _, _ = play(["breach"])
    later = MONDAY + timedelta(30)
    _, told = advance(book, [stale_log("no_data")], later, 7)
    assert [one.transition for one in told] == ["fired", None]
    _, told = advance(book, [stale_log("breach")], later, 7)
    assert [one.transition for one in told] == ["fired", "resolved"]


def test_a_log_that_is_not_renewed_escalates_once() -> None:
    """Rows outside the night, then those of an earlier night: on later nights it is no news."""
    book, transitions = Book(), list[str | None]()
    for offset, level in enumerate[Level](("breach", "no_data", "no_data", "no_data")):
        night = MONDAY + timedelta(offset)
        for _ in range(2):  # a repetition tells nothing again
            book, (found,) = advance(book, [stale_log(level)], night, 7)
            transitions.append(found.transition)
    assert transitions == ["fired", None, "escalated", *[None] * 5]


def test_quiet_keys_are_forgotten() -> None:
    """What is not firing and not judged any more leaves the book after `remind_days`."""
    book, _, _ = play(["ok"])
    assert advance(book, [], MONDAY + timedelta(6), 7)[0].states
    assert not advance(book, [], MONDAY + timedelta(7), 7)[0].states


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


@given(steps, st.integers(1, 5))
@settings(max_examples=examples(300), deadline=None)
def test_people_hear_a_sound_story(story, remind_days: int) -> None:
    """Whatever Slack does: fired and resolved alternate, nothing is lost, and the book agrees."""
    book, night, heard = Book(), MONDAY, []
    for days, findings, slack_answers in [*story, (400, {}, True)]:
        night += timedelta(days)
        book, _ = run(book, as_findings(findings), night, remind_days)
        if slack_answers:
            heard += [one.waiting[0].message for one in book.waiting]
            book = book.delivered()
    for key in "ab":
        said = [block.beside for one in heard for block in one.blocks if block.title == key]
        firing = False
        for transition in said:
            assert (transition == "fired") != firing
            firing = transition != "resolved"
        assert firing == (book.states.get(key, AlertState()).told is not None)


@given(steps, st.integers(1, 5))
@settings(max_examples=examples(200), deadline=None)
def test_reruns_change_nothing(story, remind_days: int) -> None:
    """A delivered night with the same findings again: same states, nothing told."""
    book, night = Book(), MONDAY
    for days, findings, _ in story:
        night += timedelta(days)
        book, told = advance(book, as_findings(findings), night, remind_days)
        again, retold = advance(book, as_findings(findings), night, remind_days)
        assert bare(again) == bare(book)
        assert not any(one.transition for one in retold)
        newest = {one.key: one.state for one in told if night == book.night}
        assert newest.items() >= {o.key: o.state for o in retold if night == book.night}.items()


@given(steps, st.integers(1, 5))
@settings(max_examples=examples(200), deadline=None)
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
@settings(max_examples=examples(200), deadline=None)
def test_counters_count_dates(story) -> None:
    """A count is never more than the distinct nights that were judged."""
    book, night, judged = Book(), MONDAY, set()
    for days, findings, _ in story:
        night += timedelta(days)
        book, _ = advance(book, as_findings(findings), night, 7)
        judged |= {(one.key, night) for one in as_findings(findings)}
        for key, state in book.states.items():
            assert state.nights <= sum(one == key for one, _ in judged)
