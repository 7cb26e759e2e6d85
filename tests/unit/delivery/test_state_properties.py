"""Whatever happens, people hear a sound story: random nights, reruns, backfills, silences, deaths.

Of each alert: never `fired` twice without `resolved` between, never `resolved`, `reminded` or
`escalated` without `fired`; on a snoozed night nothing but an escalation, no reminder of what was
acknowledged; no fall below the last notification stays without a message; reruns change nothing.
A `fired` that died with its run is told later, or with its `resolved` where it is over by then.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ragmetrics.config import make_settings
from ragmetrics.config.alerts import STEP
from ragmetrics.delivery import delivery as deliver, load_alerts, notify_channels, outbox
from ragmetrics.delivery.channel_kinds import slack_webhook as webhook
from ragmetrics.delivery.channel_kinds.slack_webhook import SlackError
from ragmetrics.delivery.outbox import Outbox, Waiting, load_batches
from ragmetrics.messages import Message, Section
from ragmetrics.records import AlertState, Escalation, Finding, Manifest, Notification, Silence
from ragmetrics.rules import silence, silences, unsilence
from ragmetrics.storage import Files
from tests.fakes.alert_book import Book, advance
from tests.fakes.examples import examples
from tests.fakes.nights import FIRST, night
from tests.fakes.published import known, published

SETTINGS = make_settings({"alerts": {"remind_days": 3}})
KEYS = st.sampled_from("ab")
LEVELS = st.dictionaries(
    KEYS, st.sampled_from(["ok", "suspect", "breach", "breach 0.3", "breach 0.1", "no_data"])
)
"""Levels with the mean, 0.5 where there is none."""
SEVERITIES = st.sampled_from(["warning", "critical"])
SLACK = st.sampled_from(["up", "up", "down", "refuses"])
DEATHS = st.sampled_from(["before Slack has it", "after Slack has it", "before the outbox"])
LOST = "lost"
"""What nobody heard: an alert fired, and its run died before the message was in the outbox."""


class Killed(BaseException):
    """As by `kill -9`."""


def findings_of(levels: dict[str, Any], severity: Any = "critical") -> list[Finding]:
    """A finding of each key that was judged."""
    found = []
    for key, said in levels.items():
        level, _, mean = said.partition(" ")
        values: dict[str, Any] = {"level": level, "severity": severity}
        values["mean"] = None if level == "no_data" else float(mean or 0.5)
        found.append(Finding(key=key, kind="metric", rule="r", message="m", **values))
    return found


def as_rules_say(
    findings: Sequence[Finding], notified: Mapping[str, Notification]
) -> list[Finding]:
    """The findings with their escalations, by the means alone."""
    return [
        one.model_copy(update={"escalation": further(notified.get(one.key), one)})
        for one in findings
    ]


def further(last: Notification | None, finding: Finding) -> Escalation | None:
    """The fall since the last notification, where it is more than a step."""
    if last is None or last.mean is None or finding.mean is None or finding.level == "ok":
        return None
    means = {"before": last.mean, "now": finding.mean, "drop": last.mean - finding.mean}
    rest = {"low": 0.0, "high": 1.0, "p_value": 0.0, "n": 9, "limit": STEP}
    found = Escalation(notified=last, label=str(last.night), **means, **rest)
    return found if found.drop > STEP else None


def bare(states: Mapping[str, AlertState]) -> dict[str, Any]:
    """The states without what names the run that they are of."""
    parts = {"finding", "notified"}
    return {
        key: (one.model_dump(exclude=parts), one.notified and one.notified.mean)
        for key, one in states.items()
    }


def tell(manifest: Manifest, findings: Sequence[Finding], **_: Any) -> Message | None:
    """A message of the transitions alone, which a test can read."""
    told = [
        Section(one.key, one.transition, (str(manifest.date),))
        for one in findings
        if one.transition
    ]
    return Message("", told) if told else None


def story(told: Iterable[tuple[str, str]], key: str) -> bool:
    """Whether an alert fires, for all that people heard; fails where it makes no sense."""
    fires, lost = False, False
    for said in (said for which, said in told if which == key):
        if said == LOST:
            lost = True
            continue
        assert (said == "fired") != fires or (lost and said == "resolved"), [*told]
        fires, lost = said != "resolved", False
    return fires


class Nights(RuleBasedStateMachine):
    """Nights told from a real store, to a Slack that may be down, by runs that may die."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.folder = pytest.MonkeyPatch(), tempfile.TemporaryDirectory()
        self.files = Files(self.folder.name)
        self.day, self.runs, self.begun = FIRST, 0, False
        self.newest: list[Finding] = []
        self.slack, self.heard = "up", list[tuple[str, str]]()
        self.repeated: list[dict[str, Any]] | None = None
        self.past_changed = False
        """Whether a silence or a night of the past came after the newest night ran."""
        self.patch.setenv("SLACK_WEBHOOK_URL", "https://hooks.example/services/T0/B0/secret")
        self.patch.setattr(deliver, "compose", self.compose)
        self.patch.setattr(webhook, "send", self.send)
        write = Files.write

        def written(files: Files, path: str, data: bytes) -> None:
            if path.startswith(outbox.FOLDER) and self.slack == "before the outbox":
                raise Killed
            write(files, path, data)

        self.patch.setattr(Files, "write", written)
        give_up = Outbox.give_up

        def given_up(outbox: Outbox, path: str, waiting: Waiting) -> str:
            """After two weeks: people read in the failed run what no channel took."""
            self.heard += [(block.title, block.beside) for block in waiting.message.blocks]
            return give_up(outbox, path, waiting)

        self.patch.setattr(Outbox, "give_up", given_up)

    def teardown(self) -> None:
        """Slack is well at last: then people know how it is. Whatever comes, no patch stays."""
        try:
            self.run(self.day + timedelta(400), [])
            states = load_alerts(self.files, 3).states
            for key in "ab":
                told = states.get(key, AlertState()).told
                assert story(self.heard, key) == (told is not None)
            assert load_batches(self.files).waiting == {}
        finally:
            self.patch.undo()
            self.folder.cleanup()

    def compose(self, manifest: Manifest, findings: Sequence[Finding], **_: Any) -> Message | None:
        """What is told keeps to the silences."""
        quiet = silences(self.files)
        for finding in (one for one in findings if one.transition):
            said = quiet.get(finding.key)
            if said and finding.unsilenced and said.at <= finding.unsilenced:
                continue  # an escalation ended it
            assert not (said and said.until and manifest.date < said.until)
            if finding.transition == "reminded" and said and said.since == finding.since:
                assert (said.severity, finding.severity) == ("warning", "critical")
        return tell(manifest, findings)

    def send(self, message: Message, *_: Any) -> None:
        """Slack, in its present mood."""
        if self.slack in ("down", "refuses"):
            raise SlackError("Slack is out", transient=self.slack == "down")
        if self.slack == "before Slack has it":
            raise Killed
        if self.repeated is None or message.blocks != self.repeated:
            self.heard += [(block.title, block.beside) for block in message.blocks]
        else:  # at most once: the next time it counts
            self.repeated = None
        if self.slack == "after Slack has it":
            self.repeated = message.blocks
            raise Killed

    def run(self, day: date, findings: list[Finding], slack: str = "up") -> None:
        """One run, which speaks for its night; of a night of the past it is silent."""
        self.runs, self.slack = self.runs + 1, slack
        seen = datetime(2026, 12, 1, tzinfo=UTC) + timedelta(minutes=self.runs)
        offset = (day - FIRST).days
        values: dict[str, Any] = {"run": f"run-{self.runs}", "seen_at": seen, "finished_at": seen}
        manifest = night(offset, silent=self.begun and day < self.day, **values)
        states = known(self.files, manifest, 3)
        said = as_rules_say(findings, states.notified)
        manifest = published(self.files, manifest.model_copy(update={"findings": said}), 3)
        self.begun = True
        if day >= self.day:
            self.day, self.newest, self.past_changed = day, findings, False
        else:
            self.past_changed = True
        try:
            notify_channels(SETTINGS, self.files, manifest)
        except Killed:
            if slack == "before the outbox":
                self.heard += [
                    (one.key, LOST) for one in manifest.findings if one.transition == "fired"
                ]
            raise

    @rule(days=st.integers(1, 5), levels=LEVELS, severity=SEVERITIES, slack=SLACK)
    def a_night_follows(self, days: int, levels: Any, severity: Any, slack: str) -> None:
        """Or follows after some without a run."""
        self.run(self.day + timedelta(days), findings_of(levels, severity), slack)

    @rule(levels=LEVELS, slack=SLACK)
    def late_rows_change_the_newest_night(self, levels: Any, slack: str) -> None:
        """A rerun comes to other findings."""
        self.run(self.day, findings_of(levels), slack)

    @precondition(lambda self: self.begun and not self.past_changed)
    @rule(slack=SLACK)
    def the_newest_night_is_run_again(self, slack: str) -> None:
        """The same findings: no state changes, and only what waits is told."""
        before = load_alerts(self.files, 3)
        batches = load_batches(self.files).waiting.values()
        waiting = [block for one in batches for block in one.waiting[0].message.blocks]
        heard = len(self.heard)
        self.run(self.day, self.newest, slack)
        assert bare(load_alerts(self.files, 3).states) == bare(before.states)
        assert len(self.heard) - heard in (0, len(waiting))

    @precondition(lambda self: self.begun)
    @rule(days=st.integers(1, 9), levels=LEVELS, slack=SLACK)
    def a_night_of_the_past_is_told(self, days: int, levels: Any, slack: str) -> None:
        """A backfill tells nothing; what waits is sent."""
        before = load_batches(self.files)
        self.run(self.day - timedelta(days), findings_of(levels), slack)
        assert load_batches(self.files).told == before.told

    @rule(days=st.integers(0, 5), levels=LEVELS, death=DEATHS)
    def a_run_dies_and_is_started_again(self, days: int, levels: Any, death: str) -> None:
        """It may not die where nothing is told; else one message may come a second time."""
        day, findings = self.day + timedelta(days), findings_of(levels)
        try:
            self.run(day, findings, death)
        except Killed:
            self.run(day, findings)
        self.repeated = None

    @rule(days=st.integers(0, 5), levels=LEVELS, later=LEVELS, death=DEATHS)
    def a_run_dies_and_the_next_night_follows(
        self, days: int, levels: Any, later: Any, death: str
    ) -> None:
        """Nobody starts it again: what it was about to tell is told, and followed upon."""
        day = self.day + timedelta(days)
        with contextlib.suppress(Killed):
            self.run(day, findings_of(levels), death)
        self.run(day + timedelta(1), findings_of(later))
        self.repeated = None

    @precondition(lambda self: self.begun)
    @rule(key=KEYS, severity=SEVERITIES)
    def somebody_acknowledges(self, key: str, severity: Any) -> None:
        """Where it fires."""
        state = load_alerts(self.files, 3).states.get(key)
        if state and state.state == "firing":
            self.say(Silence(key=key, at=self.now(), since=state.since, severity=severity))

    @rule(key=KEYS, days=st.integers(1, 6))
    def somebody_snoozes(self, key: str, days: int) -> None:
        """Whether it fires or not."""
        self.say(Silence(key=key, at=self.now(), until=self.day + timedelta(days)))

    @rule(key=KEYS)
    def somebody_takes_it_back(self, key: str) -> None:
        """What is not there cannot be taken back."""
        self.past_changed |= unsilence(self.files, key)

    def say(self, one: Silence) -> None:
        """Silence an alert; the next run hears of it."""
        silence(self.files, one)
        self.past_changed = True

    def now(self) -> datetime:
        """Later than before."""
        self.runs += 1
        return datetime(2026, 11, 1, tzinfo=UTC) + timedelta(minutes=self.runs)

    @invariant()
    def the_story_is_sound(self) -> None:
        """So far."""
        for key in "ab":
            story(self.heard, key)


TestNights = Nights.TestCase
TestNights.settings = settings(max_examples=examples(40), stateful_step_count=20, deadline=None)

steps = st.lists(
    st.tuples(
        st.integers(-1, 3),  # days to go on; 0 is a rerun, less is a backfill
        LEVELS,
        SEVERITIES,
        st.dictionaries(KEYS, st.one_of(st.none(), st.integers(1, 5))),  # None: acknowledged
    ),
    max_size=25,
)


def quieted(book: Book, night: date, said: dict[str, int | None]) -> dict[str, Silence]:
    """Snoozes of so many days, and acknowledgements of what fires."""
    found = {}
    for key, days in said.items():
        since = book.states.get(key, AlertState()).since
        until = night + timedelta(days) if days else None
        found[key] = Silence(key=key, at=datetime.now(UTC), since=since, until=until)
    return found


@given(steps, st.integers(1, 5))
@settings(max_examples=examples(200), deadline=None)
def test_whoever_is_told_of_everything_hears_a_sound_story(sequence: Any, remind: int) -> None:
    """Of the states alone, all messages delivered: many more sequences, with all silences."""
    book, day, heard = Book(), FIRST, list[tuple[str, str]]()
    for days, levels, severity, said in sequence:
        day += timedelta(days)
        quiet = quieted(book, day, said)
        found = as_rules_say(findings_of(levels, severity), book.known(day).notified)
        book, told = advance(book, found, day, remind, quiet)
        heard += [(one.key, one.transition) for one in told if one.transition]
        for twice in (found, as_rules_say(findings_of(levels, severity), book.known(day).notified)):
            again, retold = advance(book, twice, day, remind, quiet)
            assert bare(again.states) == bare(book.states)
            assert not any(one.transition for one in retold)
    for key in "ab":
        assert story(heard, key) == (book.states.get(key, AlertState()).told is not None)


@given(steps, st.integers(1, 5))
@settings(max_examples=examples(200), deadline=None)
def test_no_fall_below_what_was_last_told_stays_untold(sequence: Any, remind: int) -> None:
    """Whatever was acknowledged or snoozed: of an alert that people know of, they know the level.

    An escalation leaves no silence in force, and the same silence does not come back.
    """
    book, day, known = Book(), FIRST, dict[str, float]()
    for days, levels, severity, said in sequence:
        day += timedelta(abs(days))
        quiet = quieted(book, day, said)
        found = as_rules_say(findings_of(levels, severity), book.known(day).notified)
        book, told = advance(book, found, day, remind, quiet)
        for finding in told:
            if finding.transition == "resolved":
                known.pop(finding.key, None)
            elif finding.transition and finding.mean is not None:
                known[finding.key] = finding.mean
            if finding.transition == "escalated":
                assert (finding.state, finding.silence) == ("firing", None)
                over = advance(book, findings_of(levels, severity), day + timedelta(1), 99, quiet)[
                    1
                ]
                assert all(late.silence is None for late in over if late.key == finding.key)
            if finding.state == "firing" and finding.mean is not None and finding.key in known:
                assert known[finding.key] - finding.mean <= STEP


@given(st.lists(st.tuples(st.sampled_from(["breach", "suspect"]), st.floats(-0.02, 0.02))))
@settings(max_examples=examples(100), deadline=None)
def test_noise_around_what_was_last_told_escalates_nothing(nights: Any) -> None:
    """A level that goes up and down by less than the step is told once, and reminded of."""
    book = Book()
    for place, (level, noise) in enumerate(nights):
        day = FIRST + timedelta(place)
        found = findings_of({"a": f"{level} {0.4 + noise}"})
        book, (told,) = advance(book, as_rules_say(found, book.known(day).notified), day, 3)
        assert told.transition != "escalated"


@given(steps)
@settings(max_examples=examples(100), deadline=None)
def test_without_silences_people_know_how_it_is(sequence: Any) -> None:
    """What they were told and what is are apart only by a snooze, or a backfill."""
    book, day = Book(), FIRST
    for days, levels, severity, _ in sequence:
        day += timedelta(abs(days))
        book, _ = advance(book, findings_of(levels, severity), day, 3)
        for state in book.states.values():
            assert state.told == (state.since if state.state == "firing" else None)


@given(steps)
@settings(max_examples=examples(100), deadline=None)
def test_a_silence_that_is_over_changes_nothing(sequence: Any) -> None:
    """As if it had never been."""
    book, day = Book(), FIRST
    for days, levels, severity, said in sequence:
        day += timedelta(days)
        over = {
            key: one.model_copy(update={"until": day, "since": None})
            for key, one in quieted(book, day, said).items()
        }
        given_findings = findings_of(levels, severity)
        with_them = advance(book, given_findings, day, 3, over)
        assert with_them == advance(book, given_findings, day, 3)
        book = with_them[0]


def test_a_story_that_is_not_sound_is_seen() -> None:
    """The check of these tests can fail."""
    for told in (
        ["fired", "fired"],
        ["resolved"],
        ["reminded"],
        ["escalated"],
        ["fired", "resolved", "reminded"],
    ):
        with pytest.raises(AssertionError):
            story([("a", said) for said in told], "a")
    assert story(
        [("a", said) for said in ("fired", "reminded", "escalated", "resolved", "fired")], "a"
    )
