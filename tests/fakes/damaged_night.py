"""A night upon the fixture store, scored once and then published over one damaged file after
another.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ragmetrics.config import Settings, load_settings
from ragmetrics.delivery import Delivery
from ragmetrics.pipeline import Night
from ragmetrics.records import Manifest
from ragmetrics.scoring import list_parts, score_parts
from tests.fakes.damaging import damage
from tests.fakes.store_reading import unpacked
from tests.fakes.store_world import NEXT


@dataclass(frozen=True)
class ScoredNight:
    """The scored night and the store that it is restored from."""

    settings: Settings
    day: date
    whole: Path

    @property
    def store(self) -> Path:
        """The store that is damaged."""
        return Path(self.settings.store)

    def restore(self) -> None:
        """Undo all damage."""
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self.whole, self.store, copy_function=os.link)

    def run_damaged(self, path: str, way: str) -> tuple[Manifest, Delivery]:
        """Damage a file, and run the night: staged and scored again as needed, published, told."""
        self.restore()
        damage(self.store / path, way)
        return run(self.settings, self.day)


def run(settings: Settings, day: date) -> tuple[Manifest, Delivery]:
    """A night without its pages."""
    staged = Night(settings).stage(day)
    problems = score_parts(settings, staged, list_parts(settings, staged))
    manifest = Night(settings).publish(staged, [str(problem) for problem in problems])
    return manifest, Night(settings).alert(manifest)


def scored_night(folder: Path) -> ScoredNight:
    """Unpack the fixture store into a folder, go there, and score the next night."""
    unpacked(folder)
    os.chdir(folder / "plain")
    settings = load_settings(Path("ragmetrics.yaml"))
    settings = settings.model_copy(update={"store": str(folder / "plain" / "store")})
    staged = Night(settings).stage(NEXT)
    score_parts(settings, staged, list_parts(settings, staged))
    whole = shutil.copytree(settings.store, folder / "whole")
    return ScoredNight(settings, NEXT, whole)
