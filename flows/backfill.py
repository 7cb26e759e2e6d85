"""The backfill flow: scores past nights as the nightly would have, the oldest first.

python -m flows.backfill --settings ragmetrics.yaml --first 2026-10-01 --last 2026-10-31
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported
    from flows import temporary_server

    temporary_server.start()

import datetime as dt
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from pydantic import Field

from flows.command_line import exit_code, parser_of
from flows.progress import Label, ProgressArtifact
from flows.run_state import bound_starts, first_start
from flows.runners import check_runner, sharing_ray
from flows.scoring import ScoredParts, score_all
from flows.temporary_server import without_heartbeat
from ragmetrics.cli import out
from ragmetrics.config import Settings, load_settings
from ragmetrics.delivery import Delivery, page_link
from ragmetrics.errors import RagmetricsError
from ragmetrics.pipeline import Backfill, BackfillShort, Night, PastNight, check_range, fill
from ragmetrics.records import Manifest
from ragmetrics.scoring import Staged, list_parts
from ragmetrics.storage import RunRef, open_store
from tasks.backfill import publish_past, show_past
from tasks.nightly import alert, stage
from tasks.run_page import artifact_key


def _run_name() -> str:
    asked = flow_run.parameters
    return f"backfill {asked.get('first') or 'the first'} to {asked.get('last') or 'yesterday'}"


@flow(name="backfill", flow_run_name=_run_name)
def backfill(
    settings: str,
    first: dt.date | None = None,
    last: dt.date | None = None,
    at_once: Annotated[int, Field(ge=1)] = 2,
    alerts: bool = False,
    again: bool = False,
) -> Backfill:
    """Score and publish the nights of a range of dates, the oldest first.

    Parameters: the path of a settings file; the first night (default: with `split_nights`, the
    first day of the log) and the last (default: yesterday in its `time_zone`); how many nights are
    scored at once; whether alerts are sent, as for tonight; and whether published nights are
    published again. Returns the outcome of each night. A run may be repeated: the same parameters
    continue with what is not in the store yet.
    Raises BackfillShort at the end, with all other nights published, if a night failed.
    """
    bound_starts("run the backfill again with the same parameters: it goes on where it was")
    chosen = load_settings(settings)
    days = check_range(chosen, first, last)
    Night(chosen).check()
    check_runner(chosen)
    progress = _Progress(chosen.dataset)
    with sharing_ray(chosen):  # or the night that ends first would close it
        done = fill(
            chosen,
            days,
            _Tasks(chosen, first_start()),
            at_once,
            alerts=alerts,
            again=again,
            tell=progress.tell,
        )
    done.check()
    link = page_link(chosen, open_store(chosen), "index.html")
    get_run_logger().info("%s; dashboard: %s", "; ".join(str(done).splitlines()), link)
    return done


@dataclass(frozen=True)
class _Tasks:
    """The steps of a night as tasks of this flow."""

    settings: Settings
    begun: dt.datetime
    scored: dict[RunRef, ScoredParts] = field(default_factory=dict)

    def stage(self, day: dt.date) -> Staged:
        return stage(self.settings, day, self.begun)

    def score(self, staged: Staged) -> Sequence[RagmetricsError]:
        label = Label(self.settings.dataset, str(staged.ref.date), "backfill")
        until = dt.datetime.now(dt.UTC) + self.settings.deadline  # a deadline per night
        wanted = list_parts(self.settings, staged)
        scored = score_all(self.settings, staged.ref, wanted, label, until=until)
        self.scored[staged.ref] = scored
        return scored.errors

    def publish(self, staged: Staged, problems: Sequence[str], *, silent: bool) -> Manifest:
        scored = self.scored.pop(staged.ref, None)
        ended = scored.ended if scored else []
        return publish_past(self.settings, staged, problems, silent=silent, wait_for=ended)

    def alert(self, manifest: Manifest) -> Delivery:
        return alert(self.settings, manifest)

    def show(self, manifest: Manifest, *, overview: bool) -> None:
        show_past(self.settings, manifest, overview=overview)


class _Progress:
    """Reports the nights that ended, in the log and as an artifact; it fails no backfill."""

    def __init__(self, dataset: str) -> None:
        self._artifact = ProgressArtifact(f"ragmetrics-{artifact_key(dataset)}-backfill")

    def tell(self, night: PastNight, done: int, of: int) -> None:
        """Report the end of a night."""
        log = get_run_logger()
        level = logging.WARNING if night.outcome in ("failed", "not begun") else logging.INFO
        reason = f": {night.reason}" if night.reason else ""
        log.log(level, "%s: %s%s", night.date, night.outcome, reason)
        try:
            self._artifact.show(100 * done / of, f"{done} of {of} nights")
        except Exception as error:  # of the client, the network, the server: none stops a backfill
            log.warning("progress is not shown: %s", error)


def main() -> int:
    """Backfill from the command line: 0 fine, 1 nights are left to do, 2 input error."""
    parser, day = parser_of("backfill", __doc__), dt.date.fromisoformat
    parser.add_argument("--first", type=day, metavar="DATE")
    parser.add_argument(
        "--last", type=day, metavar="DATE", help="default: yesterday in `time_zone`"
    )
    parser.add_argument("--at-once", type=int, default=2, help="nights; default: %(default)s")
    parser.add_argument("--alerts", action="store_true", help="send alerts, as for tonight")
    parser.add_argument("--again", action="store_true", help="republish published nights")
    args = parser.parse_args()

    def run() -> int:
        settings = load_settings(args.settings)
        # Before Prefect's server starts, which takes seconds.
        check_range(settings, args.first, args.last, args.at_once)
        Night(settings).check()
        check_runner(settings)
        with without_heartbeat():
            done = backfill(
                args.settings, args.first, args.last, args.at_once, args.alerts, args.again
            )
        out.print(str(done))
        return 0

    return exit_code(run, BackfillShort)


if __name__ == "__main__":
    sys.exit(main())
