"""The prune flow: removes from a store what nobody needs any more, as `ragmetrics prune --yes`.

python -m flows.prune --settings ragmetrics.yaml --keep 400d --keep-rows 90d
"""

from __future__ import annotations

import sys

from prefect import flow, get_run_logger

from flows.command_line import exit_code, parser_of
from ragmetrics.cli import out
from ragmetrics.config import load_settings
from ragmetrics.pipeline import Removed, find_prunable, prune as remove
from ragmetrics.storage import open_store


@flow(name="prune")
def prune(settings: str = "ragmetrics.yaml", keep: str = "400d", keep_rows: str = "90d") -> Removed:
    """Remove old nights, logged rows, replaced runs and replies from the store.

    Parameters: the path of a settings file; how long nights and replies are kept (at least `60d`),
    and how long logged rows (at least `14d`). What rules, gates, labels, the golden set, learned
    judges or runs in progress need stays. Logs in the store name every file that was removed. A run
    may be repeated.
    Raises InputError or StoreError, with nothing removed, where it is unknown what is needed.
    """
    log, chosen = get_run_logger(), load_settings(settings)
    plan = find_prunable(chosen, keep, keep_rows)
    for run, why in plan.needed.items():
        log.info("kept: run %s: %s", run, why)
    done = remove(open_store(chosen), plan)
    for kind in plan.kinds:
        log.info("%s: %d files, %.1f MB", kind.kind, len(kind.files), kind.size / 1e6)
    log.info("%d files removed, %d changed meanwhile; %s", done.files, done.left, done.logs)
    return done


def main() -> int:
    """Prune from the command line: 0 fine, 2 input error."""
    parser = parser_of("prune", __doc__)
    parser.add_argument("--keep", default="400d", help="nights and replies; default: %(default)s")
    parser.add_argument("--keep-rows", default="90d", help="logged rows; default: %(default)s")
    args = parser.parse_args()

    def run() -> int:
        load_settings(args.settings)  # before Prefect's server starts, which takes seconds
        done = prune(args.settings, args.keep, args.keep_rows)
        out.print(f"{done.files:,} files removed")
        return 0

    return exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
