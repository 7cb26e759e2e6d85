"""The command line's first step, and who else has installed a package called `ragmetrics`.

Other projects of the index install that package too. pip lets the last one win, file by file: then
`ragmetrics/__init__.py` is theirs, or is missing after they were removed. This module has a name
that nobody else uses and imports nothing of ours, so it can say so.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

DISTRIBUTION = "retrieval-nightly"
_PACKAGE = "ragmetrics"
_FIRST = f"{_PACKAGE}/__init__.py"


def main() -> None:
    """Run the command line, and end with its exit code."""
    try:
        with explained_imports():
            from ragmetrics.cli import main as run
    except ImportError as error:
        sys.exit(f"{_PACKAGE}: {error}")
    run()


@contextmanager
def explained_imports() -> Iterator[None]:
    """Within this context, an ImportError begins with the reason, where it is another project."""
    try:
        yield
    except ImportError as error:
        if said := replaced():
            raise ImportError(f"{said}\n{error}", name=error.name, path=error.path) from error
        raise


def replaced() -> str:
    """Who has replaced files of ours, and what to do; empty if nobody has."""
    others = sorted(_others())
    if not (others or _is_changed()):
        return ""
    who = " and ".join(others) or "another project that has been removed since"
    first = f"pip uninstall {' '.join(others)}, then " if others else ""
    return (
        f"the package {_PACKAGE} of {DISTRIBUTION} was overwritten by {who}, which installs one of "
        f"the same name: {first}pip install --force-reinstall --no-deps {DISTRIBUTION}"
    )


def _others() -> set[str]:
    """Other distributions with a package of our name."""
    names = {other.name for other in distributions() if _has_package(other)}
    return {name for name in names if name.lower().replace("_", "-") != DISTRIBUTION}


def _has_package(other: Distribution) -> bool:
    """As `packages_distributions`, which takes a second: it parses all names of files."""
    texts = (other.read_text(name) or "" for name in ("top_level.txt", "RECORD"))
    return any(re.search(rf"^{_PACKAGE}(/|$)", text, re.M) for text in texts)


def _is_changed() -> bool:
    """Whether our first file is not the one that was installed; an editable install has none."""
    try:
        files = distribution(DISTRIBUTION).files or ()
    except PackageNotFoundError:
        return False
    for file in files:
        if file.as_posix() == _FIRST and file.hash:
            return _digest(Path(str(file.locate())), file.hash.mode) != file.hash.value
    return False


def _digest(path: Path, mode: str) -> str:
    """The digest of a file as a RECORD has it; empty if it cannot be read."""
    try:
        digest = hashlib.new(mode, path.read_bytes()).digest()
    except OSError:
        return ""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
