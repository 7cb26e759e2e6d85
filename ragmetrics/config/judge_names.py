"""Parses names of judges that contain a file: `recorded:FILE`."""

from __future__ import annotations

from pathlib import Path


def file_and_judge(place: str) -> tuple[Path, str]:
    """Split `PATH` or `PATH#JUDGE` into path and judge; the judge is empty for `PATH`."""
    path = Path(place)
    if path.exists() or "#" not in place:
        return path, ""
    name, _, judge = place.partition("#")
    return Path(name), judge
