"""The demo: the nightly flow over ten bundled nights, with no key and no network.

python -m flows.demo --dir demo-store
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

# Prefect reads it when it is imported. The demo is to be read, not its orchestration.
os.environ.setdefault("PREFECT_LOGGING_LEVEL", "ERROR")

if __name__ == "__main__":
    from flows import temporary_server

    temporary_server.start()

from flows.nightly import nightly
from flows.temporary_server import without_heartbeat
from ragmetrics.cli import err, print_demo
from ragmetrics.config import load_settings
from ragmetrics.pipeline import NIGHTS, unpack_demo


def main() -> None:
    """Run the ten nights in order and print what a team would have seen of them."""
    parser = argparse.ArgumentParser(prog="python -m flows.demo", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("demo-store"), help="default: %(default)s")
    folder = parser.parse_args().dir
    path = unpack_demo(folder)
    results = []
    for day in NIGHTS:
        err.print(f"Night of {day} ...")
        with without_heartbeat():
            results.append(nightly(str(path), day))
    print_demo(results, Path(load_settings(path).store))


if __name__ == "__main__":
    main()
