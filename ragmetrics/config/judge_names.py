"""Names of judges that carry a file: `recorded:FILE`."""

from __future__ import annotations

from pathlib import Path


def file_and_judge(place: str) -> tuple[Path, str]:
    """What `PATH` or `PATH#JUDGE` names; the judge is empty where it names none."""
    path = Path(place)
    if path.exists() or "#" not in place:
        return path, ""
    name, _, judge = place.partition("#")
    return Path(name), judge
