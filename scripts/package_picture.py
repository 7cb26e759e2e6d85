"""Draws docs/images/packages.svg, the packages by floor, from the imports; a test compares the two.

python -m scripts.package_picture

Its colours suit a light and a dark page.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

from scripts.package_map import BESIDE, PRODUCT, ROOT, floors, imports

PAGE = ROOT / "docs" / "images" / "packages.svg"

_WIDTH, _LEFT, _HEIGHT, _GAP = 860, 34, 70, 8
_LETTERS = 6.1
"""Width of a letter of the small text."""
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">
<title>The packages by floor: each imports only from floors below it</title>
"""


def page() -> str:
    """The picture: the highest floor at the top."""
    floor = floors(list(imports()))
    highest = max(floor.values())
    parts = [_HEAD.format(width=_WIDTH, height=highest * (_HEIGHT + _GAP))]
    for number in range(highest, 0, -1):
        names = sorted(name for name, own in floor.items() if own == number)
        parts += _row(number, names, (highest - number) * (_HEIGHT + _GAP))
    return "".join([*parts, "</svg>\n"])


def _row(number: int, names: list[str], top: int) -> Iterator[str]:
    middle = top + _HEIGHT // 2 + 5
    yield f'<text x="12" y="{middle}" font-size="14" fill="#7a8793">{number}</text>\n'
    width = (_WIDTH - _LEFT - _GAP * (len(names) - 1)) / len(names)
    for place, name in enumerate(names):
        yield from _box(name, _LEFT + place * (width + _GAP), top, width)


def _box(name: str, left: float, top: int, width: float) -> Iterator[str]:
    yield (
        f'<rect x="{left:g}" y="{top}" width="{width:g}" height="{_HEIGHT}" rx="6" '
        'fill="#0b5cad"/>\n'
    )
    yield (
        f'<text x="{left + 10:g}" y="{top + 19}" font-size="14" font-weight="bold" fill="#fff">'
        f"{name}</text>\n"
    )
    lines = textwrap.wrap(_purpose(name), int((width - 20) / _LETTERS))
    for place, line in enumerate(lines):
        yield (
            f'<text x="{left + 10:g}" y="{top + 35 + 13 * place}" font-size="11" fill="#dcebfa">'
            f"{escape(line)}</text>\n"
        )


def _purpose(name: str) -> str:
    """The first sentence of the package's docstring, without its subject."""
    folder = Path(name) if name in BESIDE else Path(PRODUCT) / name
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text("utf-8"))) or ""
    first = re.split(r"[.;:](?:\s|$)", re.sub(r"^[\w -]+: ", "", text.replace("`", "")))[0]
    return " ".join(first.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
