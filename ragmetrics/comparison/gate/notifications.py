"""Telling people: what a gate needs them for once, and a build without verdict once per event.

Every channel is told by itself: `heard` is written to the store after each confirmed, so a repeat
tells those that are left. At least once, nothing lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from ragmetrics.alerts import (
    CHANNEL_TIMEOUT,
    SLACK,
    Message,
    Unconfirmed,
    channels,
    compose_failed_gate,
    compose_gate,
    page_link,
    with_timeout,
)
from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.model import FailedGate, Gate, Severity, hashed_quote
from ragmetrics.storage import (
    build_path,
    find_failed_gate,
    load_gate,
    open_store,
    save_failed_gate,
    save_gate,
)
from ragmetrics.text import clean

_LONGEST = 2_000


def builds_link(settings: Settings, build: str) -> str:
    """Where people find a build on the dashboard."""
    return page_link(settings, open_store(settings), build_path(build))


def is_news(gate: Gate) -> bool:
    """Whether people have to hear of a gate: the build is held, or could not be compared at all."""
    return gate.verdict == "hold" or (gate.verdict == "inconclusive" and not gate.scored_metrics)


def gate_message(settings: Settings, gate: Gate, run_url: str | None = None) -> Message:
    """The message of a gate that is news, as the settings say."""
    page = builds_link(settings, gate.build)
    return compose_gate(gate, page=page, redact=settings.redacts_messages, run_url=run_url)


def tell_gate(settings: Settings, gate: Gate, run_url: str | None = None) -> Gate:
    """Tell every channel of a gate that is news, unless it was told; return the gate as it is now.

    Without a webhook or bot in the environment nothing is sent to Slack. Raises Unconfirmed where
    a channel did not confirm, after the others were told: a repeat tells it.
    """
    files = open_store(settings)
    known = load_gate(files, gate.build)
    if known and _untold(known) == _untold(gate):
        gate = known  # with what an attempt before this one has told
    if gate.told or not is_news(gate):
        return gate
    message = gate_message(settings, gate, run_url)

    def note(heard: Sequence[str], told: bool) -> None:
        nonlocal gate
        gate = gate.model_copy(update={"heard": [*heard], "told": told})
        stored = load_gate(files, gate.build)
        if stored and _untold(stored) == _untold(gate):  # else a newer verdict, which is not told
            save_gate(files, gate)

    severity: Severity = "critical" if gate.verdict == "hold" else "warning"
    _tell(settings, message, severity, gate.heard, note)
    return gate


def tell_failed_gate(
    settings: Settings,
    reason: str,
    carried: str,
    event_id: str | None = None,
    run_url: str | None = None,
) -> FailedGate:
    """Keep that a build got no verdict, and tell every channel unless this event's failing was.

    `carried` is what the event said, as text. Raises Unconfirmed as `tell_gate` does. A store that
    cannot be reached keeps nobody from being told.
    """
    files = open_store(settings)
    now = FailedGate(
        dataset=settings.dataset,
        reason=clean(reason, _LONGEST),
        carried=clean(carried, _LONGEST),
        event_id=clean(event_id, 100) if event_id else None,
        at=datetime.now(UTC),
        redact=settings.redact,
    )
    before = find_failed_gate(files, now)
    if before and before.told:
        return before
    if before:
        now = now.model_copy(update={"heard": before.heard})
    save_failed_gate(files, now)
    hide = settings.redacts_messages
    told, shown = (hashed_quote(now.reason), "") if hide else (now.reason, now.carried)
    message = compose_failed_gate(now.dataset, told, shown, now.event_id, run_url)

    def note(heard: Sequence[str], told: bool) -> None:
        nonlocal now
        now = now.model_copy(update={"heard": [*heard], "told": told})
        save_failed_gate(files, now)

    _tell(settings, message, "critical", now.heard, note)
    return now


def _tell(
    settings: Settings,
    message: Message,
    severity: Severity,
    heard: Sequence[str],
    note: Callable[[Sequence[str], bool], None],
) -> None:
    """Tell the channels that have not heard; `note` is given those that have after each of them,
    and whether that is all. Raises Unconfirmed, or StoreError where it could not be noted, after
    all were told.
    """
    left = [
        one
        for one in channels(settings.alerts, open_store(settings))
        if one.name not in heard
        and one.accepts(severity)
        and not (one.missing_variable and one.name == SLACK)
    ]
    errors: list[Unconfirmed] = []
    unnoted: list[StoreError] = []
    for number, channel in enumerate(left, 1):
        try:
            if channel.missing_variable:
                raise Unconfirmed(f"{channel.missing_variable} is not set")
            with_timeout(CHANNEL_TIMEOUT, partial(channel.send, message))
        except Unconfirmed as error:
            errors.append(error)
        else:
            heard = [*heard, channel.name]
            try:
                note(heard, number == len(left) and not errors)
            except StoreError as error:  # keeps nobody else from being told
                unnoted.append(error)
    if errors:
        reasons = "; ".join(map(str, errors))
        raise Unconfirmed(reasons, transient=any(one.transient for one in errors))
    if unnoted:
        raise unnoted[-1]


def _untold(gate: Gate) -> Gate:
    return gate.model_copy(update={"told": False, "heard": []})
