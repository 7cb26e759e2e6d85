"""What `ragmetrics alerts list` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ragmetrics.alerts import Alert, AlertStore
from ragmetrics.cli.table import print_grid
from ragmetrics.text import clean

_LONGEST = 300
_STYLES = {"firing": "red", "pending": "yellow"}


def print_alerts(console: Console, book: AlertStore, shown: Sequence[Alert], known: int) -> None:
    """A line per alert, then what else there is to know: how many are ok, what is undelivered."""
    if shown:
        headers = ("id", "state", "since", "last told", "alert")
        styles = [_STYLES.get(one.state.state) if not one.silence else None for one in shown]
        print_grid(console, headers, [_line(one) for one in shown], names=(0, 1, 4), styles=styles)
    if book.night is None:
        console.print("No night was told of yet.")
    else:
        rest = f"{len(shown):,} of {known:,} alerts shown" if shown else f"{known:,} alerts are ok"
        console.print(f"After the night of {book.night}: {rest}.")
    if book.outbox:
        nights = ", ".join(dict.fromkeys(str(one.night) for one in book.outbox))
        console.print(
            f"Not delivered yet: the messages of {nights}; the next run sends them.",
            style="yellow",
            soft_wrap=True,
        )


def _line(one: Alert) -> list[str]:
    warns = one.state.state == "firing" and one.finding.severity == "warning"
    state = f"{one.state.state}\n(warning)" if warns else one.state.state
    said = [one.key, one.message, *([str(one.silence)] if one.silence else [])]
    told = "\n".join(clean(line, _LONGEST) for line in said)
    mean = "" if one.last_mean is None else f"\n{one.last_mean:.3f}"
    last = f"{one.state.last_sent or '–'}{mean}"
    return [one.id, state, str(one.state.since or "–"), last, told]
