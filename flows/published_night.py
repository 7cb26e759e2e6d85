"""A night that is published already and is run by hand again.

It scores nothing, so it needs no retries and no states of tasks: it runs without Prefect, whose
import and temporary server take most of the time. All other steps are those of the flow: late files
are looked for, messages that wait are sent, and pages are written. Prefect is not imported here.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Callable

from flows.command_line import exit_code, parser_of
from ragmetrics.cli import is_firing, out, print_night
from ragmetrics.config import Settings, load_settings, night_before
from ragmetrics.errors import RagmetricsError
from ragmetrics.pipeline import CoverageShort, Night, NightResult, run_night


def read_arguments() -> argparse.Namespace:
    """The arguments of `python -m flows.nightly`."""
    about = "The nightly flow: from the night's logs to scores, a dashboard and an alert."
    parser = parser_of("nightly", about)
    parser.add_argument(
        "--date", type=dt.date.fromisoformat, help="default: yesterday in `time_zone`"
    )
    return parser.parse_args()


def repeat() -> None:
    """Repeat the night of the arguments and end the process, if the night is published. Else, and
    for wrong settings, do nothing: the flow says what is wrong.
    """
    args = read_arguments()
    try:
        settings = load_settings(args.settings)
        day = args.date or night_before(dt.datetime.now(dt.UTC), settings.time_zone)
        published = Night(settings).is_published(day)
    except RagmetricsError:
        return
    if published:
        sys.stderr.write(f"night {day} is published: it is repeated without Prefect\n")
        sys.exit(end_of(lambda: (settings, run_night(settings, day))))


def end_of(run: Callable[[], tuple[Settings, NightResult]]) -> int:
    """Run a night, print its result or its error, and return the exit code."""

    def printed() -> int:
        settings, result = run()
        print_night(out, settings, result)
        return int(is_firing(result))

    return exit_code(printed, CoverageShort)
