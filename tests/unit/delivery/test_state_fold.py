"""Alert states as a fold over nights: from snapshots, from manifests, upon an older version."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import load_alerts, notify_channels, outbox
from ragmetrics.delivery.outbox import Batches
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.delivery.state_fold import FOLDED_NIGHTS, STATE_FILE, folded_from, states_after
from ragmetrics.records import AlertState, Finding, Manifest, Silence
from ragmetrics.rules import silence
from ragmetrics.storage import Files, Runs
from tests.fakes.alert_book import Book, advance
from tests.fakes.nights import FIRST, finding, night
from tests.fakes.published import published
from tests.fakes.slack import SlackServer
from tests.fakes.store_reading import RELEASES, unpacked

SETTINGS = make_settings({})
LEVELS = ["ok", "ok", "ok", "suspect", "breach", "no_data", None]
NONE = Batches({}, [], [])


def bare(states: dict[str, AlertState]) -> dict[str, AlertState]:
    """The states that matter later, without their findings."""
    known = {key: one for key, one in states.items() if one.is_known}
    return {key: one.model_copy(update={"finding": None}) for key, one in known.items()}


def findings(draw: random.Random) -> list[Finding]:
    """Some findings of three alerts."""
    levels = {key: draw.choice(LEVELS) for key in "abc"}
    severity = draw.choice(["critical", "warning"])
    return [
        finding(key=key, level=level, severity=severity) for key, level in levels.items() if level
    ]


def test_a_year_folded_from_snapshots_is_a_year_of_single_steps() -> None:
    """Also with silences: each night begins from the snapshot of two weeks before."""
    draw, book, steps = random.Random(1), Book(), AlertStates()
    quiet: dict[str, Silence] = {}
    for number in range(365):
        day, found = FIRST + timedelta(number), findings(draw)
        if draw.random() < 0.1:
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(number)
            until = day + timedelta(draw.randint(1, 5))
            quiet = {"a": Silence(key="a", at=at, until=until)}
        book, told = advance(book, found, day, 5, quiet)
        steps, expected = advance_states(steps, found, day, 5, quiet, run="run-0")
        assert [one.transition for one in told] == [one.transition for one in expected]
        assert bare(book.states) == bare(steps.states)


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.name)
def test_the_manifests_of_a_store_say_what_an_earlier_version_stored(
    release: Path, tmp_path: Path
) -> None:
    """Whether an alert fires, since when, and what people know of it: but for a silence."""
    unpacked(tmp_path, release / "store.zip")
    places = sorted(tmp_path.rglob(STATE_FILE))
    assert places
    for place in places:
        files = Files(str(place.parent.parent))
        stored = AlertStates.model_validate_json(place.read_bytes())
        place.unlink()
        folded = states_after(files, Runs(files).outlines(), NONE, 7)
        assert folded.night == stored.night
        for key, state in stored.states.items():
            found = folded.states[key]
            assert (found.state, found.since, found.nights) == (
                state.state,
                state.since,
                state.nights,
            )
            assert (found.told, found.last_sent) == (state.told, state.last_sent)


def tell(files: Files, number: int, level: str = "breach") -> Manifest:
    """A night, published and told."""
    manifest = published(files, night(number, findings=[finding(level=level)]))
    notify_channels(SETTINGS, files, manifest)
    return manifest


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"version": 9, "states": []}', None])
def test_a_state_of_an_earlier_version_counts_once(
    files: Files, slack_server: SlackServer, content: bytes | None
) -> None:
    """It is not told again what it says as told. From the first night on it is of no account:
    damaged, of another version, or gone.
    """
    state = {"state": "firing", "since": str(FIRST), "told": str(FIRST), "last_sent": str(FIRST)}
    old = night(0, findings=[finding(level="breach")])
    known = AlertState.model_validate({**state, "last_night": FIRST, "finding": old.findings[0]})
    states = AlertStates(night=FIRST, states={known.finding.key: known} if known.finding else {})
    files.write(f"runs/dt={FIRST}/run=old.json", old.model_dump_json().encode())
    files.write(STATE_FILE, states.model_dump_json().encode())
    tell(files, 1)
    assert slack_server.delivered == []
    files.write(STATE_FILE, content) if content else files.remove(STATE_FILE)
    tell(files, 2)
    assert slack_server.delivered == []
    tell(files, 3, "ok")
    assert ["Resolved" in one["text"] for one in slack_server.delivered] == [True]


def test_older_manifests_may_be_pruned(files: Files, slack_server: SlackServer) -> None:
    """An incident that lasts is told once, though the manifest of its first night is gone."""
    chosen = make_settings({"alerts": {"remind_days": 300}})
    for number in range(FOLDED_NIGHTS + 4):
        manifest = published(files, night(number, findings=[finding(level="breach")]), 300)
        notify_channels(chosen, files, manifest)
    for info in files.below("runs")[:3]:
        files.remove(info.path)
    for info in files.below(outbox.DELIVERED):
        files.remove(info.path)
    (state,) = load_alerts(files, 300).states.values()
    assert (state.state, state.since, state.told) == ("firing", FIRST, FIRST)
    number = FOLDED_NIGHTS + 4
    manifest = published(files, night(number, findings=[finding(level="breach")]), 300)
    notify_channels(chosen, files, manifest)
    assert len(slack_server.delivered) == 1


def test_what_is_read_of_messages_does_not_grow_with_the_nights(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of nights that all have a message, those are read that are folded."""
    read: list[str] = []
    really = Files.find

    def noted(self: Files, path: str) -> Any:
        read.extend([path] if path.startswith("alerts/") else [])
        return really(self, path)

    monkeypatch.setattr(Files, "find", noted)
    counts = []
    for number in range(2 * FOLDED_NIGHTS + 2):
        read.clear()
        tell(files, number, "breach" if number % 2 else "ok")
        counts.append(len(read))
    assert len(slack_server.delivered) > FOLDED_NIGHTS
    assert max(counts[FOLDED_NIGHTS + 2 :]) <= max(counts[: FOLDED_NIGHTS + 2])


def test_a_snapshot_from_before_a_late_night_is_not_used(
    files: Files, slack_server: SlackServer
) -> None:
    """The newer night was published first. When it is the first of the folded nights, its snapshot
    lacks what people were told about the late one, and their acknowledgement.
    """
    tell(files, 0, "ok")
    tell(files, 2, "suspect")
    late = {"late": True, "finished_at": night(2).finished_at + timedelta(hours=5)}
    breach = [finding(level="breach", for_nights=2)]
    notify_channels(SETTINGS, files, published(files, night(1, findings=breach, **late)))
    (state,) = load_alerts(files).states.values()
    acknowledged = Silence(
        key=breach[0].key, at=night(2).finished_at, since=state.since, severity="critical"
    )
    silence(files, acknowledged)
    for number in range(3, FOLDED_NIGHTS + 6):
        tell(files, number, "suspect")
        (state,) = load_alerts(files).states.values()
        assert (state.since, state.told) == (night(1).date, night(1).date)
    assert [one["text"].partition(":")[0] for one in slack_server.delivered] == [
        "Late night of 2026-11-11"
    ]


def test_nights_before_a_repeated_one_are_folded_until_a_newer_snapshot() -> None:
    """All of the newest nights were published before the repetition."""
    nights = [night(number, alerts={}) for number in range(3 * FOLDED_NIGHTS)]
    repeated = len(nights) - FOLDED_NIGHTS - 1
    newest = nights[-1].finished_at
    nights[repeated] = night(repeated, alerts={}, finished_at=newest + timedelta(hours=1))
    assert folded_from(nights) == nights[repeated].date
    nights.append(night(len(nights), alerts={}, finished_at=newest + timedelta(hours=2)))
    assert folded_from(nights) == nights[-1].date


def test_a_repetition_of_a_very_old_night_moves_no_state() -> None:
    """The snapshots of the newest nights stay valid."""
    nights = [night(number, alerts={}) for number in range(3 * FOLDED_NIGHTS)]
    nights[0] = night(0, alerts={}, finished_at=nights[-1].finished_at + timedelta(hours=1))
    assert folded_from(nights) == nights[-FOLDED_NIGHTS].date
