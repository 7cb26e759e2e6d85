"""No regular expression over what another party says has a repetition without a bound.

One such pattern took 58 seconds for an error of 240 kB, and more than a night for one of 16 MB.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

from tests.fakes.processes import ROOT

READERS = ["http", "pull_request", "retriever", "write_back", "judges/responses.py"]
"""What reads answers of servers: packages and modules of the product."""


def modules() -> Iterator[Path]:
    """Their files."""
    for name in READERS:
        place = ROOT / "ragmetrics" / name
        yield from [place] if place.suffix else sorted(place.rglob("*.py"))


def patterns(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each pattern that is written there; a value in it counts as one letter."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")):
            continue
        if ast.unparse(node.func) == "re.escape":
            continue
        first = node.args[0]
        parts = first.values if isinstance(first, ast.JoinedStr) else [first]
        texts = [str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts]
        yield node.lineno, "".join(texts)


def unbounded(tree: object) -> bool:
    """Whether a parsed pattern has a repetition without an upper bound, at any depth."""
    if isinstance(tree, _parser.SubPattern):
        return any(unbounded(item) for item in tree)
    if isinstance(tree, tuple | list):
        repeats = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
        if len(tree) == 2 and tree[0] in repeats and tree[1][1] == _constants.MAXREPEAT:
            return True
        return any(unbounded(item) for item in tree)
    return False


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pattern_has_bounds(path: Path) -> None:
    """Each repetition says how often at most."""
    found = [(line, text) for line, text in patterns(path) if unbounded(_parser.parse(text))]
    assert not found


def test_the_pattern_that_hung_a_night_is_seen() -> None:
    """The check knows one."""
    assert unbounded(_parser.parse("Spans with IDs (.+?) do not exist"))
    assert unbounded(_parser.parse("(?:a{1,3})*"))
    assert not unbounded(_parser.parse("a{1,3}(?:b|c)?"))
