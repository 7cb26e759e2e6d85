"""pysbd's rules in fewer and faster passes over a text; the sentences are pysbd's own.

pysbd applies about a hundred patterns one after another to the text, its lines and its sentences.
Most of them cannot apply: a rule about brackets needs a bracket. Here a pattern runs only where the
text has the characters that it needs, a pattern about a full stop begins with the full stop, and
rules that cannot affect each other share a pass. Where a pattern is exponential or quadratic in
hostile text, an equivalent replaces it.

Each class is put between pysbd's class for a language and pysbd's base class. So the methods that a
language overrides stay its own.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import Any

for _category in (SyntaxWarning, DeprecationWarning):  # pysbd's old escapes break -W error
    warnings.filterwarnings("ignore", category=_category, module=r".*\bpysbd\b")

from pysbd.abbreviation_replacer import AbbreviationReplacer  # noqa: E402
from pysbd.between_punctuation import BetweenPunctuation  # noqa: E402
from pysbd.lang.common import Common  # noqa: E402
from pysbd.languages import LANGUAGE_CODES  # noqa: E402
from pysbd.processor import Processor  # noqa: E402
from pysbd.utils import Rule  # noqa: E402

from pysbd_fast.abbreviations import Abbreviations  # noqa: E402
from pysbd_fast.marks import STOP  # noqa: E402
from pysbd_fast.processor import FastProcessor  # noqa: E402
from pysbd_fast.quotes import Quotes  # noqa: E402

__all__ = ["LANGUAGES", "language", "split"]

LANGUAGES = frozenset(LANGUAGE_CODES)
"""The codes of the languages that pysbd knows."""

_BY_NUMBER = re.compile(
    r"\.(?:(?=\d)|(?<=\d\.)(?=\S)"
    r"|(?:(?<=\r\d\.)|(?<=^\d\.)|(?<=^\d\d\.))(?=\s\S|\)))"
)
_ENDS = "。．.！!?？ȸȹ☉☈☇☄"
_TO_NEXT_END = (rf"\S.*?[{_ENDS}]", rf"\S[^\n{_ENDS}]*+[{_ENDS}]")
"""The slowest part of pysbd's pattern for sentences, and its equivalent."""


@cache
def language(code: str) -> Any:
    """pysbd's rules for a language, in fewer passes."""
    rules = LANGUAGE_CODES[code]
    boundaries = rules.SENTENCE_BOUNDARY_REGEX.replace(*_TO_NEXT_END)
    changed: dict[str, Any] = {
        "Processor": _between(rules, "Processor", Processor, FastProcessor),
        "BetweenPunctuation": _between(rules, "BetweenPunctuation", BetweenPunctuation, Quotes),
        "AbbreviationReplacer": _between(
            rules, "AbbreviationReplacer", AbbreviationReplacer, Abbreviations
        ),
        "boundaries": re.compile(boundaries),
    }
    numbers = Common.Numbers.All
    if rules.Numbers.All[: len(numbers)] == numbers:
        own = rules.Numbers.All[len(numbers) :]
        changed["Numbers"] = type("Numbers", (), {"All": [Rule(_BY_NUMBER, STOP), *own]})
    return type(rules.__name__, (rules,), changed)


def split(text: str, code: str) -> list[str]:
    """The sentences of a text as pysbd finds them, not stripped."""
    rules = language(code)
    return list(rules.Processor(text, rules).process())  # of an empty text, pysbd's Slovak is text


def _between(rules: Any, name: str, base: type, ours: type) -> type:
    own = getattr(rules, name, base)
    return ours if own is base else type(name, (own, ours), {})
