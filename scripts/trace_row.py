"""Print the modules that one row enters between its log file and the alert.

    python -m scripts.trace_row

The night has one row, a live judge over HTTP and a Slack webhook, both on this machine. It is
staged, scored, published and alerted on in this process. A module is entered when one of its
functions is called, in any thread; an import alone does not count. Exit code 1 above a limit of
`[tool.limits]` in pyproject.toml.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import ragmetrics
from ragmetrics import Settings, make_settings
from ragmetrics.delivery import notify_channels
from ragmetrics.pipeline import Night
from ragmetrics.records import Manifest
from ragmetrics.scoring import list_parts, score_parts
from ragmetrics.storage import open_store
from scripts.limits import limits
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import running
from tests.fakes.slack import SlackServer

FOLDER = Path(ragmetrics.__file__).parent
KEY, WEBHOOK = "OPENAI_API_KEY", "SLACK_WEBHOOK_URL"


class Trace:
    """The modules of ours whose functions are called, in the order of their first call."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        """Path of a module -> the function that was called first."""
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; the interpreter calls this for each."""
        path, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and path.startswith(str(FOLDER)) and name != "<module>":
            with self._lock:
                self.first.setdefault(path, name)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Trace this thread, and those that start within the block."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # as its documentation says

    @property
    def modules(self) -> dict[str, str]:
        """Module, without `ragmetrics.` -> its first function."""
        return {_module(Path(path)): name for path, name in self.first.items()}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(FOLDER).with_suffix("").parts)


def import_all() -> None:
    """Import every module of the product, so that imports during the walk run no code of it."""
    for package in pkgutil.walk_packages([str(FOLDER)], "ragmetrics."):
        if not package.name.endswith("__main__"):
            importlib.import_module(package.name)
    for name in dir(ragmetrics):
        getattr(ragmetrics, name)


def one_row_night(folder: Path, judge: str) -> Settings:
    """Settings of a night of one bad row, on which an alert fires."""
    [row] = make_rows(1, good=0, reference=None)
    [golden] = make_rows(1)
    return make_settings(
        {
            "dataset": "help-centre",
            "logs": str(write_jsonl(folder / "log.jsonl", [row])),
            "golden": str(write_jsonl(folder / "golden.jsonl", [golden])),
            "store": str(folder / "store"),
            "judge": {"name": "openai", "model": "judge", "base_url": judge},
            "alerts": {
                "checks": {"canaries": 0},  # rows of their own
                "rules": [{"metric": "context_recall", "min": 0.9, "min_rows": 1, "for": 1}],
            },
        }
    )


def walk(settings: Settings) -> Manifest:
    """From the log file to the message. The dashboard comes after it, and is not walked."""
    staged = Night(settings).stage(NIGHT)
    problems = score_parts(settings, staged, list_parts(settings, staged))
    manifest = Night(settings).publish(staged, list(map(str, problems)))
    notify_channels(settings, open_store(settings), manifest)
    return manifest


def trace() -> Trace:
    """Walk one row, with servers beside it; raise RuntimeError if it is not scored and told."""
    import_all()
    found, slack = Trace(), SlackServer()
    with (
        tempfile.TemporaryDirectory() as folder,
        running("tests.fakes.judge") as port,
        slack.running(),
    ):
        os.environ |= {KEY: "any", WEBHOOK: slack.url}
        judge = JudgeServer(port)
        settings = one_row_night(Path(folder), judge.base_url)
        with found.on():
            manifest = walk(settings)
        if not judge.stats()["admitted"] or len(slack.delivered) != 1:
            raise RuntimeError(f"no judge or no message: {manifest.model_dump_json(indent=1)}")
    return found


def changes_of_package(modules: Iterable[str]) -> int:
    """How often the walk goes on in another package than before."""
    packages = [module.partition(".")[0] for module in modules]
    return sum(before != after for before, after in pairwise(packages))


def main() -> int:
    """Print the walk; return the exit code."""
    modules = trace().modules
    for number, (module, function) in enumerate(modules.items(), 1):
        print(f"{number:4}  {module:40} {function}")
    packages = Counter(module.partition(".")[0] for module in modules)
    print("by package:", ", ".join(f"{name} {count}" for name, count in packages.most_common()))
    counts = {"row_modules": len(modules), "row_changes": changes_of_package(modules)}
    most = limits()
    for name, count in counts.items():
        print(f"{name}: {count:,} of at most {most[name]:,}")
    return int(any(count > most[name] for name, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
