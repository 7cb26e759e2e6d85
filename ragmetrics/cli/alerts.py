"""`ragmetrics alerts`: which alerts there are, who keeps them quiet, and how a message looks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ragmetrics.cli.options import JsonFlag, date_of, err, out, print_json, settings_here
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.model import Silence
from ragmetrics.storage import Files
from ragmetrics.text import clean

if TYPE_CHECKING:
    from ragmetrics.alerts import Alert, AlertStore

app = typer.Typer(
    help="List, acknowledge and snooze alerts, and preview messages.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="An alert's id or key, or the beginning of either.")
]
SettingsFlag = Annotated[
    Path | None,
    typer.Option("--settings", help="Default: ragmetrics.yaml, where there is one."),
]
StoreFlag = Annotated[
    str | None, typer.Option("--store", help="The store: a folder or s3://; default: settings.")
]
ByFlag = Annotated[
    str, typer.Option("--by", envvar=["USER", "USERNAME"], help="Who says so, for the others.")
]
NoteFlag = Annotated[str, typer.Option("--note", help="Why, for the others.")]
_LONGEST_DAYS = 366


@app.command("list")
def list_alerts(
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that are ok and that nobody silenced.")
    ] = False,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List the alerts that are not ok: since when, when last told, and who keeps them quiet."""
    from ragmetrics.alerts import (
        GIVEN_UP,
        LONGEST_DAYS,
        all_alerts,
        given_up,
        load_alerts,
        open_alerts,
        silences,
    )
    from ragmetrics.cli.output.alerts import print_alerts

    files = _store(settings_here(settings), store)
    book = load_alerts(files)
    alerts = all_alerts(book, silences(files))
    shown = alerts if everything else open_alerts(alerts)
    abandoned = given_up(files)
    if as_json:
        told = {
            "store": files.uri(),
            "night": book.night.isoformat() if book.night else None,
            "undelivered": len(book.outbox),
            "given_up": abandoned,
            "alerts": [one.as_json() for one in shown],
        }
        print_json(told)
    else:
        print_alerts(out, book, shown, len(alerts))
        if abandoned:
            days, where = LONGEST_DAYS, files.uri(GIVEN_UP)
            _say(out, f"Given up after {days} nights: {abandoned} undelivered, in {where}.")


@app.command()
def ack(
    key: KeyArgument,
    by: ByFlag = "",
    note: NoteFlag = "",
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Acknowledge a firing alert: no reminders until it resolves, escalates or is more severe."""
    files, book, alert = _meant(settings, store, key)
    if alert.state.state != "firing":
        raise InputError(
            f"{alert.key} is {alert.state.state}: only a firing alert can be acknowledged; "
            f"to hear nothing of it: ragmetrics alerts snooze {alert.id} --days 7"
        )
    one = Silence(
        key=alert.key,
        at=datetime.now(UTC),
        by=clean(by, 80),
        note=clean(note, 300),
        since=alert.state.since,
        severity=alert.finding.severity,
    )
    _keep(files, book, one, alert)


@app.command()
def snooze(
    key: KeyArgument,
    days: Annotated[
        int | None,
        typer.Option("--days", min=1, max=_LONGEST_DAYS, help="So many nights, from the next on."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="The first night that is told of again."),
    ] = None,
    by: ByFlag = "",
    note: NoteFlag = "",
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Hear nothing of an alert for some nights, unless it escalates; then what has become of it."""
    files, book, alert = _meant(settings, store, key)
    one = Silence(
        key=alert.key,
        at=datetime.now(UTC),
        by=clean(by, 80),
        note=clean(note, 300),
        until=_first_told(book.night, days, date_of(until) if until else None),
    )
    _keep(files, book, one, alert)


@app.command()
def unsilence(key: KeyArgument, settings: SettingsFlag = None, store: StoreFlag = None) -> None:
    """Take an acknowledgement or a snooze back."""
    from ragmetrics.alerts import unsilence

    files, _, alert = _meant(settings, store, key)
    if alert.silence is None:
        raise InputError(f"{alert.key} is neither acknowledged nor snoozed")
    unsilence(files, alert.key)
    _say(out, f"told of again: {alert.message}")
    _show(files)


@app.command()
def preview(
    night: Annotated[
        str | None,
        typer.Option("--date", metavar="DATE", help="A night; default: the newest."),
    ] = None,
    build: Annotated[
        str | None, typer.Option("--build", help="The message of an index build's gate.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="One message of every kind, of made-up nights.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also as Slack would show it.")
    ] = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a message as Slack would, without sending it."""
    from ragmetrics.pipeline import of_build, of_night, of_samples, print_previews, write_page

    if sum((night is not None, build is not None, sample)) > 1:
        raise InputError("--date, --build and --sample: one of them at a time")
    chosen = settings_here(settings)
    if sample:
        shown = of_samples(chosen.redacts_messages)
    else:
        chosen = chosen.model_copy(update={"store": store or chosen.store})
        files = _store(chosen, None)
        day = date_of(night) if night else None
        shown = [of_build(chosen, files, build)] if build else of_night(chosen, files, day)
    if html:
        write_page(html, shown)
    if as_json:
        print_json({"messages": [one.as_json() for one in shown]})
        return
    print_previews(out, shown)
    if html:
        _say(out, f"Page: {html}")


def _store(settings: Settings, store: str | None) -> Files:
    """The store; InputError where there is none, rather than a list without alerts."""
    files = Files(store or settings.store, settings.storage_options)
    if not files.exists(""):
        raise InputError(f"{files.uri()}: there is no such store; --store or --settings names it")
    return files


def _meant(settings: Path | None, store: str | None, key: str) -> tuple[Files, AlertStore, Alert]:
    """The alert that a word means, in its store and its book."""
    from ragmetrics.alerts import all_alerts, find_alert, load_alerts, silences

    files = _store(settings_here(settings), store)
    book = load_alerts(files)
    return files, book, find_alert(all_alerts(book, silences(files)), key)


def _first_told(newest: date | None, days: int | None, until: date | None) -> date:
    """The first night after a snooze; nights that should have been run by now count as past."""
    if (days is None) == (until is None):
        raise InputError("say for how long: --days N or --until DATE, one of them")
    today = datetime.now(UTC).date()
    following = max(newest + timedelta(days=1), today) if newest else today
    if until is None:
        return following + timedelta(days=days or 0)
    if newest and until <= newest:
        raise InputError(f"--until {until}: the night of {newest} is past; name a later one")
    if until > following + timedelta(days=_LONGEST_DAYS):
        raise InputError(
            f"--until {until} is more than a year away: a rule that nobody wants to hear of is "
            "better taken out of alerts: rules:"
        )
    return until


def _keep(files: Files, book: AlertStore, one: Silence, alert: Alert) -> None:
    from ragmetrics.alerts import remove_expired_silences, silence

    remove_expired_silences(files, book)
    silence(files, one)
    _say(out, f"{one}: {alert.message}")
    _show(files)


def _show(files: Files) -> None:
    """Write the dashboard anew; what was said stands where that fails."""
    from ragmetrics.report import refresh_dashboard

    try:
        refresh_dashboard(files)
    except StoreError as error:
        _say(err, f"the dashboard does not show it yet: {error}")


def _say(console: Console, text: str) -> None:
    console.print(clean(text, 2_000), markup=False, soft_wrap=True)
