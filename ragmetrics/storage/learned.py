"""Learned judges in a store: `learned/FINGERPRINT/0001.json`, one file per version.

The fingerprint is that of the judge whose verdicts they predict. No version is changed later: a
run that uses one finds it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragmetrics.records import LearnedModel
from ragmetrics.storage.file_systems import FileInfo
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import find_record, require_record, save_record

_FOLDER, _PROBLEM = "learned", "not a learned judge"
_NAME = re.compile(r"learned/\w+/(\d{4,})\.json")


@dataclass(frozen=True)
class LearnedJudges:
    """The learned judges of a store."""

    store: Files

    @staticmethod
    def path(model: LearnedModel) -> str:
        """The path of a learned judge."""
        return f"{_FOLDER}/{model.judge_fingerprint}/{model.version:04d}.json"

    def save(self, model: LearnedModel) -> None:
        """Write a learned judge. Raises StoreError."""
        save_record(self.store, self.path(model), model)

    def newest(self, judge_fingerprint: str) -> LearnedModel | None:
        """The newest learned judge for a judge; None without one that can be read."""
        paths = self._versions(f"{_FOLDER}/{judge_fingerprint}")
        return self._find(paths[-1]) if paths else None

    def all(self) -> list[LearnedModel]:
        """The newest learned judge of each judge of the store, by the judge's name."""
        by_judge = {path.rpartition("/")[0]: path for path in self._versions(f"{_FOLDER}/*")}
        known = [model for path in by_judge.values() if (model := self._find(path))]
        return sorted(known, key=lambda model: (model.judge, model.judge_fingerprint))

    def files(self) -> list[FileInfo]:
        """The files of all learned judges."""
        return self.store.glob(f"{_FOLDER}/*/*.json")

    def load(self, path: str) -> LearnedModel | None:
        """The learned judge at a path; None for a missing file. Raises StoreError for a damaged
        one.
        """
        return require_record(self.store, path, LearnedModel)

    def copy_to(self, target: Files) -> None:
        """Copy the newest learned judges to another store, as for a run in a temporary one."""
        for model in self.all():
            LearnedJudges(target).save(model)

    def _find(self, path: str) -> LearnedModel | None:
        return find_record(self.store, path, LearnedModel, _PROBLEM)

    def _versions(self, folder: str) -> list[str]:
        """Paths of versions, oldest first."""
        named = (_NAME.fullmatch(info.path) for info in self.store.glob(f"{folder}/*.json"))
        return [match[0] for match in sorted(filter(None, named), key=lambda match: int(match[1]))]
