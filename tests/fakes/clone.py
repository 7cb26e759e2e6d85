"""A fresh clone of the working tree, with what is not yet committed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.fakes.processes import ROOT


def fresh_clone(folder: Path) -> Path:
    """Copy what a commit of the working tree would hold, and nothing that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # one that was deleted is still listed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
