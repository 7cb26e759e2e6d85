"""A rule-based sentence splitter for texts that pysbd cannot split, in linear time.

Like pysbd it ends a sentence at every line break. It knows the full stops of many scripts, and does
not split decimals, initials, list numbers and a few dozen common abbreviations.
"""

from __future__ import annotations

import re

_NEED_SPACE = ".!?…．"
_NEED_NO_SPACE = "。！？｡؟۔।॥։።፧။።"
_STOP = re.compile(rf"([{_NEED_SPACE}{_NEED_NO_SPACE}]+)[\"'”’»›)\]}}）】〉》」』]*")
_NEXT_WORD = re.compile(r"""[\s"'“‘„«‹(\[{¿¡]*(.?)""")
_LONGEST_WORD = 12  # how far to look back for an abbreviation

_ABBREVIATIONS = frozenset(  # those before a capital; before a small letter none is needed
    "dr mr mrs ms sr prof st mt gen col lt sgt capt rev hon gov sen rep messrs vs cf viz "  # noqa: SIM905
    "exmo doç sn ing dipl bzw ca vgl hr fr frau bl sog mag mme mlle mgr sra srta dra dña av "
    "dott sig гр им ул стр рис см bl.a t.ex dvs mgl".split()
)
_BEFORE_NUMBERS = frozenset(
    "no nr nos fig p pp vol art sec ch eq abb ref č čl ст гл".split()  # noqa: SIM905
)


def plain_sentences(text: str) -> list[str]:
    """The sentences of a text in order, stripped and not empty, without loss of characters."""
    lines = text.replace("\r", "\n").split("\n")
    return [sentence for line in lines for raw in _cut(line) if (sentence := raw.strip())]


def _cut(line: str) -> list[str]:
    """The sentences of a line; a part without a letter or digit joins the one before it."""
    ends = [match.end() for match in _STOP.finditer(line) if _ends(line, match)]
    bounds: list[tuple[int, int]] = []
    begin = 0
    for end in (*ends, len(line)):
        bare = not any(map(str.isalnum, line[begin:end]))
        bounds.append((bounds.pop()[0] if bare and bounds else begin, end))
        begin = end
    return [line[first:last] for first, last in bounds]


def _ends(line: str, match: re.Match[str]) -> bool:
    """Whether this full stop ends its sentence."""
    stop = match[1]
    if any(mark in _NEED_NO_SPACE for mark in stop):
        return True
    if match.end() < len(line) and not line[match.end()].isspace():
        return False  # 3.5, example.org
    following = _NEXT_WORD.match(line, match.end())
    first = following[1] if following else ""
    return not first.islower() and not (stop == "." and _abbreviates(line, match.start(), first))


def _abbreviates(line: str, stop: int, first: str) -> bool:
    """Whether the full stop belongs to the word before it; `first` begins the next word."""
    before = line[max(0, stop - _LONGEST_WORD) : stop].strip()
    if stop <= _LONGEST_WORD and before.isdigit() and len(before) < 4:
        return True  # the number of a list item
    word = before.split()[-1].lstrip("\"'“‘„«‹([{") if before else ""
    initials = word.split(".")
    if all(len(part) == 1 and part.isalpha() for part in initials):
        return len(initials) > 1 or word.isupper()  # J.R.R. Tolkien, e.g., L. A. Mayer
    folded = word.casefold()
    return folded in _ABBREVIATIONS or (first.isdigit() and folded in _BEFORE_NUMBERS)
