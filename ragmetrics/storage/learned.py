"""Learned judges in a store: `learned/FINGERPRINT/0001.json`, one file per version.

The fingerprint is that of the judge whose verdicts they predict. No version is changed later: a
run that uses one finds it again.
"""

from __future__ import annotations

import re

from ragmetrics.records import LearnedModel
from ragmetrics.storage.files import FileInfo, Files
from ragmetrics.storage.json_records import find_record, require_record, save_record

_FOLDER, _PROBLEM = "learned", "not a learned judge"
_NAME = re.compile(r"learned/\w+/(\d{4,})\.json")


def learned_path(model: LearnedModel) -> str:
    """The path of a learned judge."""
    return f"{_FOLDER}/{model.judge_fingerprint}/{model.version:04d}.json"


def save_learned(files: Files, model: LearnedModel) -> None:
    """Write a learned judge. Raises StoreError."""
    save_record(files, learned_path(model), model)


def newest_learned(files: Files, judge_fingerprint: str) -> LearnedModel | None:
    """The newest learned judge for a judge; None without one that can be read."""
    found = _versions(files, f"{_FOLDER}/{judge_fingerprint}")
    return find_record(files, found[-1], LearnedModel, _PROBLEM) if found else None


def all_learned(files: Files) -> list[LearnedModel]:
    """The newest learned judge of each judge of the store, by the judge's name."""
    by_judge: dict[str, str] = {}
    for path in _versions(files, f"{_FOLDER}/*"):
        by_judge[path.rpartition("/")[0]] = path
    paths = by_judge.values()
    found = [find_record(files, path, LearnedModel, _PROBLEM) for path in paths]
    known = [one for one in found if one]
    return sorted(known, key=lambda one: (one.judge, one.judge_fingerprint))


def learned_files(files: Files) -> list[FileInfo]:
    """The files of all learned judges."""
    return files.glob(f"{_FOLDER}/*/*.json")


def load_learned(files: Files, path: str) -> LearnedModel | None:
    """The learned judge at a path; None for a missing file. Raises StoreError for a damaged one."""
    return require_record(files, path, LearnedModel)


def copy_learned(source: Files, target: Files) -> None:
    """Copy the newest learned judges to another store, as for a run in a temporary one."""
    for model in all_learned(source):
        save_learned(target, model)


def _versions(files: Files, folder: str) -> list[str]:
    """Paths of versions, oldest first."""
    named = (_NAME.fullmatch(path.path) for path in files.glob(f"{folder}/*.json"))
    return [one[0] for one in sorted((one for one in named if one), key=lambda one: int(one[1]))]
