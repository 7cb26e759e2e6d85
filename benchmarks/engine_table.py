"""Figures with their targets, as a table that reads well in a terminal and in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured number."""

    what: str
    value: float
    form: str = "{:.2f}"
    most: float | None = None
    least: float | None = None
    """The target, if there is one: at most, or at least."""
    before: float | None = None
    """The same of an earlier version, on the same machine."""

    @property
    def met(self) -> bool | None:
        """Whether it reaches its target; None where there is none."""
        if self.most is not None:
            return self.value <= self.most
        return None if self.least is None else self.value >= self.least

    def cells(self) -> tuple[str, ...]:
        """What, measured, target, met, before."""
        bound = self.least if self.most is None else self.most
        sign = "≥" if self.most is None else "≤"
        target = "" if bound is None else f"{sign} {self.form.format(bound)}"
        before = "" if self.before is None else self.form.format(self.before)
        return self.what, self.form.format(self.value), target, _WORDS[self.met], before


_WORDS = {True: "yes", False: "**no**", None: ""}
_HEAD = ("", "measured", "target", "met", "before")


def table(title: str, figures: Sequence[Figure]) -> str:
    """A Markdown table under its title."""
    shown = len(_HEAD) if any(figure.before is not None for figure in figures) else len(_HEAD) - 1
    lines = [one[:shown] for one in (_HEAD, *(figure.cells() for figure in figures))]
    widths = [max(len(line[place]) for line in lines) for place in range(shown)]

    def drawn(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        right = (cell.rjust(width) for cell, width in others)
        return f"| {' | '.join([first[0].ljust(first[1]), *right])} |"

    first, *others = widths
    rule = f"|{'-' * (first + 2)}|{'|'.join('-' * (width + 1) + ':' for width in others)}|"
    head, *body = (drawn(line) for line in lines)
    return "\n".join([f"### {title}", "", head, rule, *body, ""])
