"""`ragmetrics alerts`: lists, acknowledges and snoozes alerts, and previews messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ragmetrics.cli.options import (
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    date_option,
    err,
    group,
    out,
    print_json,
    settings_file,
    settings_here,
)
from ragmetrics.cli.table import print_grid
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.records import Silence
from ragmetrics.storage import Files
from ragmetrics.text import clean

if TYPE_CHECKING:
    from ragmetrics.delivery import Alert, AlertList

app = group("List, acknowledge and snooze alerts, and preview messages.")

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="An alert's id or key, or the beginning of either.")
]
ByFlag = Annotated[
    str,
    typer.Option(
        "--by", envvar=["USER", "USERNAME"], help="Your name, shown to others; default: $USER."
    ),
]
NoteFlag = Annotated[str, typer.Option("--note", help="A note, shown to others.")]
_LONGEST_DAYS = 366


@app.command("list")
def list_alerts(
    everything: Annotated[
        bool, typer.Option("--all", help="List all alerts, also those that are ok.")
    ] = False,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List the alerts that are not ok: since when, last notification, and who silenced them."""
    from ragmetrics.delivery import list_alerts, undelivered

    files = _store(settings_here(settings), store)
    book, lost = list_alerts(files, _remind_days(settings)), undelivered(files)
    shown = book.alerts if everything else book.open
    if as_json:
        record = {
            "store": files.uri(),
            "night": book.night.isoformat() if book.night else None,
            "undelivered": len(lost.nights),
            "given_up": lost.given_up,
            "alerts": [alert.as_json() for alert in shown],
        }
        print_json(record)
    else:
        print_alerts(out, book, shown, lost.nights)
        if lost.given_up:
            count = f"{lost.given_up} undelivered, in {lost.place}"
            _say(out, f"Given up after {lost.days} nights: {count}.")


@app.command()
def ack(
    key: KeyArgument,
    by: ByFlag = "",
    note: NoteFlag = "",
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Acknowledge a firing alert: no reminders until it resolves, escalates or gets more severe."""
    files, book, alert = _find(settings, store, key)
    if alert.state.state != "firing":
        raise InputError(
            f"{alert.key} is {alert.state.state}: only a firing alert can be acknowledged; "
            f"to get no messages of it: ragmetrics alerts snooze {alert.id} --days 7"
        )
    entry = Silence(
        key=alert.key,
        at=datetime.now(UTC),
        by=clean(by, 80),
        note=clean(note, 300),
        since=alert.state.since,
        severity=alert.finding.severity,
    )
    _store_silence(files, book, entry, alert)


@app.command()
def snooze(
    key: KeyArgument,
    days: Annotated[
        int | None,
        typer.Option(
            "--days", min=1, max=_LONGEST_DAYS, help="How many nights, counted from the next one."
        ),
    ] = None,
    until: Annotated[
        date | None, date_option("--until", "The first night with notifications again.")
    ] = None,
    by: ByFlag = "",
    note: NoteFlag = "",
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Mute an alert for some nights, unless it escalates. Its state is sent afterwards."""
    files, book, alert = _find(settings, store, key)
    entry = Silence(
        key=alert.key,
        at=datetime.now(UTC),
        by=clean(by, 80),
        note=clean(note, 300),
        until=_end_of_snooze(book.night, days, until),
    )
    _store_silence(files, book, entry, alert)


@app.command()
def unsilence(key: KeyArgument, settings: SettingsFlag = None, store: StoreFlag = None) -> None:
    """Remove an acknowledgement or a snooze."""
    from ragmetrics.rules import unsilence

    files, _, alert = _find(settings, store, key)
    if alert.silence is None:
        raise InputError(f"{alert.key} is neither acknowledged nor snoozed")
    unsilence(files, alert.key)
    from ragmetrics.messages import in_display_names

    _say(out, f"notifications again: {in_display_names(alert.message, alert.finding)}")
    _show(files)


@app.command()
def preview(
    night: Annotated[date | None, date_option("--date", "The night; default: the newest.")] = None,
    build: Annotated[
        str | None, typer.Option("--build", help="The message of an index build's gate.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Show one message of every kind, from made-up nights.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Also write an HTML page that looks like Slack."
        ),
    ] = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a message as Slack would, without sending it."""
    from ragmetrics.pipeline import Previews

    if sum((night is not None, build is not None, sample)) > 1:
        raise InputError("--date, --build and --sample: one of them at a time")
    chosen = settings_here(settings)
    if sample:
        shown = Previews.of_samples(chosen.redacts_messages)
    else:
        chosen = chosen.model_copy(update={"store": store or chosen.store})
        files = _store(chosen, None)
        if build:
            shown = Previews.of_build(chosen, files, build)
        else:
            shown = Previews.of_night(chosen, files, night)
    if html:
        shown.write_page(html)
    if as_json:
        print_json(shown.as_json())
        return
    shown.print(out)
    if html:
        _say(out, f"Page: {html}")


def _store(settings: Settings, store: str | None) -> Files:
    """The store. Raises InputError if there is none; a list without alerts would mislead."""
    files = Files(store or settings.store, settings.storage_options)
    if not files.exists(""):
        raise InputError(f"{files.uri()}: there is no such store; --store or --settings names it")
    return files


def _remind_days(path: Path | None) -> int | None:
    """`remind_days` of the settings; None without a settings file: that of the newest night."""
    return settings_here(path).alerts.remind_days if settings_file(path) else None


def _find(settings: Path | None, store: str | None, key: str) -> tuple[Files, AlertList, Alert]:
    """The alert that a key names, with its store and the states of all alerts."""
    from ragmetrics.delivery import list_alerts

    files = _store(settings_here(settings), store)
    book = list_alerts(files, _remind_days(settings))
    return files, book, book.find(key)


def _end_of_snooze(newest: date | None, days: int | None, until: date | None) -> date:
    """The first night after a snooze. Nights that should have run by now count as past."""
    if (days is None) == (until is None):
        raise InputError("set either --days N or --until DATE")
    today = datetime.now(UTC).date()
    following = max(newest + timedelta(days=1), today) if newest else today
    if until is None:
        return following + timedelta(days=days or 0)
    if newest and until <= newest:
        raise InputError(f"--until {until}: the night of {newest} is past; use a later date")
    if until > following + timedelta(days=_LONGEST_DAYS):
        raise InputError(
            f"--until {until} is more than a year away: remove the rule from `alerts: rules:` "
            "of the settings instead"
        )
    return until


def _store_silence(files: Files, book: AlertList, one: Silence, alert: Alert) -> None:
    from ragmetrics.rules import remove_expired_silences, silence

    remove_expired_silences(files, book.states, book.night)
    silence(files, one)
    _say(out, f"{one}: {alert.message}")
    _show(files)


def _show(files: Files) -> None:
    """Rewrite the dashboard. If that fails, the silence is stored all the same."""
    from ragmetrics.dashboard import refresh_dashboard

    try:
        refresh_dashboard(files)
    except StoreError as error:
        _say(err, f"the dashboard is not up to date: {error}")


def _say(console: Console, text: str) -> None:
    console.print(clean(text, 2_000))


_LONGEST = 300


_STYLES = {"firing": "red", "pending": "yellow"}


def print_alerts(
    console: Console,
    book: AlertList,
    shown: Sequence[Alert],
    waiting: Sequence[date] = (),
) -> None:
    """Print a line per alert, the number of alerts that are ok, and undelivered messages: `waiting`
    has their nights.
    """
    known = len(book.alerts)
    if shown:
        headers = ("id", "state", "since", "notified", "alert")
        styles = [_STYLES.get(one.state.state) if not one.silence else None for one in shown]
        print_grid(console, headers, [_line(one) for one in shown], names=(0, 1, 4), styles=styles)
    if book.night is None:
        console.print("No night has been published with alerts yet.")
    else:
        rest = f"{len(shown):,} of {known:,} alerts shown" if shown else f"{known:,} alerts are ok"
        console.print(f"After the night of {book.night}: {rest}.")
    if waiting:
        nights = ", ".join(dict.fromkeys(map(str, waiting)))
        console.print(
            f"Not delivered yet: the messages of {nights}; the next run sends them.",
            style="yellow",
        )


def _line(one: Alert) -> list[str]:
    warns = one.state.state == "firing" and one.finding.severity == "warning"
    state = f"{one.state.state}\n(warning)" if warns else one.state.state
    from ragmetrics.messages import with_display_names

    metrics = [one.finding.metric] if one.finding.metric else []
    message = with_display_names(one.message or one.finding.rule, metrics)
    parts = [message, *([str(one.silence)] if one.silence else [])]
    text = "\n".join(clean(line, _LONGEST) for line in parts)
    mean = "" if one.last_mean is None else f"\n{one.last_mean:.3f}"
    last = f"{one.state.last_sent or '–'}{mean}"
    return [one.id, state, str(one.state.since or "–"), last, text]
