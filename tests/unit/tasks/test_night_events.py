"""tasks/night_events.py: what the events of a night say, how large they are, which are the same."""

from __future__ import annotations

import json
from typing import Any

from ragmetrics.records import Finding, Manifest
from tasks.night_events import PUBLISHED, REGRESSED, RESOLVED, night_events
from tests.fakes.nights import finding, night

PAGE = "https://rag.example.com/2026-11-19/index.html"
LARGEST = 100_000
"""Bytes of a payload; a server takes 1.5 MB, with everything else that an event has."""


def events(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """The events of a night by name."""
    return {event["event"]: event for event in night_events(manifest, PAGE)}


def alert(number: int = 0, transition: str | None = None, **change: Any) -> Finding:
    """A firing alert, of which something may be news."""
    state = "ok" if transition == "resolved" else "firing"
    key = f"towers/{number}"
    return finding(level="breach", key=key, state=state, transition=transition, **change)


def test_a_quiet_night_is_only_published() -> None:
    """An alert that goes on is told with it, and is no event of its own."""
    found = events(night(findings=[alert()]))
    assert list(found) == [PUBLISHED]
    [told] = found[PUBLISHED]["payload"]["alerts"]
    assert (told["metric"], told["transition"]) == ("context_recall", None)
    assert found[PUBLISHED]["payload"]["page"] == PAGE


def test_what_begins_and_what_ends_are_two_events() -> None:
    """Each with its own alerts; one that got worse counts as begun."""
    found = events(
        night(findings=[alert(0, "fired"), alert(1, "escalated"), alert(2, "resolved"), alert(3)])
    )
    counts = {name: len(event["payload"]["alerts"]) for name, event in found.items()}
    assert counts == {PUBLISHED: 3, REGRESSED: 2, RESOLVED: 1}


def test_another_run_of_the_night_with_the_same_news_has_the_same_event() -> None:
    """Late data publish the night anew; the regression is not told twice, a further one is."""
    fired = alert(0, "fired")
    first, again = events(night(findings=[fired])), events(night(findings=[fired]))
    late = events(night(findings=[fired], run="late"))
    more = events(night(findings=[fired, alert(1, "fired")], run="late"))
    assert {name: event["id"] for name, event in first.items()} == {
        name: event["id"] for name, event in again.items()
    }
    assert late[PUBLISHED]["id"] != first[PUBLISHED]["id"]
    assert late[REGRESSED]["id"] == first[REGRESSED]["id"]
    assert more[REGRESSED]["id"] != first[REGRESSED]["id"]


def test_a_payload_stays_small_and_plain_whatever_a_night_has() -> None:
    """A thousand alerts with long and hostile texts: some of them, and how many are left out."""
    hostile = "\x1b[31m\u202e <!channel> {{ 7 * 7 }} " * 1_000
    many = [alert(number, "fired", message=hostile, rule=hostile) for number in range(1_000)]
    payload = events(night(findings=many))[REGRESSED]["payload"]
    text = json.dumps(payload, ensure_ascii=False)
    assert len(text.encode()) < LARGEST
    assert payload["alerts_omitted"] == 1_000 - len(payload["alerts"])
    assert "\x1b" not in text
    assert "\u202e" not in text
