"""The view of a what-if: one line per variant of the retriever."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.messages import with_display_names
from ragmetrics.records import VariantChange, VariantResult, WhatIf, whatif_sentence

_MOST_CHANGES = 6
"""Metrics whose changes a line shows."""


@dataclass(frozen=True)
class WhatIfLines:
    """What the section shows."""

    found: WhatIf
    sentence: str
    variants: list[VariantResult]

    def changes(self, changes: list[VariantChange]) -> list[VariantChange]:
        """The changes that are known, those of the first metrics."""
        return [change for change in changes if change.difference is not None][:_MOST_CHANGES]


def whatif_lines(found: WhatIf | None) -> WhatIfLines | None:
    """The view; None where nobody asked."""
    if found is None:
        return None
    metrics = {change.metric for variant in found.variants for change in variant.kept}
    sentence = with_display_names(whatif_sentence(found), metrics)
    return WhatIfLines(found, sentence, found.variants)
