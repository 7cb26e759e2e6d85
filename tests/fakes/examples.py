"""How many examples of a property are tried where the usual number does not suit it."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> int:
    """That many, but no more than the profile has if it has fewer than the usual hundred.

    `settings(max_examples=...)` alone would win over the profile of `make test-fast`.
    """
    of_profile: int = settings().max_examples
    return number if of_profile >= 100 else min(number, of_profile)
