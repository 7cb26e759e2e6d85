"""Spelling and prose of the docs: `make docs-check`.

python -m scripts.check_docs [--accept]

Every page is checked, written by hand or made from docstrings. Code and HTML are left out.

- Each word is in the dictionary of pyspellchecker or in `docs/words.txt`. `--accept` adds the
  unknown words to that list: read the difference before you commit it.
- Spelling is British. The pairs come from codespell's list, read backwards.
- Words of `docs/prose.toml` are not used. Decisions are history and exempt.
- Proselint finds clichés, doubled meanings and hollow words.
- A sentence of more than 35 words is reported, but is no error.

Exit code 1 if something is wrong.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from proselint.checks import __register__ as proselint_checks
from proselint.registry import CheckRegistry
from proselint.tools import LintFile
from spellchecker import SpellChecker

from ragmetrics import sentences

ROOT = Path(__file__).resolve().parents[1]
WORDS = ROOT / "docs" / "words.txt"
RULES = ROOT / "docs" / "prose.toml"
LONGEST = 35
"""Words of a sentence that is not reported."""
BOTH = frozenset(
    [
        "artifact",
        "artifacts",
        "biased",  # as of a judge: the statistical term has one s
        "check",
        "checks",
        "draft",
        "license",
        "meter",
        "meters",
        "practice",
        "program",
        "programs",
    ]
)
"""American spellings that are British words too, of something else, or Prefect's."""

_PROSELINT = (
    "cliches",
    "hedging",
    "industrial_language",
    "malapropisms",
    "misc",
    "mixed_metaphors",
    "mondegreens",
    "needless_variants",
    "nonwords",
    "oxymorons",
    "redundancy",
    "social_awareness",
    "uncomparables",
    "weasel_words",
)
_WORD = re.compile(r"(?<![\w./@-])[A-Za-z][a-z]+(?:'[a-z]+)?(?![\w/@]|\.\w|-\d)")
_HIDDEN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Problem:
    """Something in a page that should be changed."""

    page: Path
    line: int
    text: str
    is_error: bool = True

    def __str__(self) -> str:
        kind = "" if self.is_error else "note: "
        return f"{self.page.relative_to(ROOT)}:{self.line}: {kind}{self.text}"


def pages() -> list[Path]:
    """All pages that readers get."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def prose(markdown: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, headings, items and cells of a page, each with its line, from 1.

    Code within a line becomes one character that is no word.
    """
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "inline" and token.map:
            text = "".join(_plain(child) for child in token.children or ())
            yield token.map[0] + 1, text


def _plain(token: Token) -> str:
    if token.type == "text":
        return token.content
    if token.type == "image":
        return "".join(_plain(child) for child in token.children or ())
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return _HIDDEN if token.type == "code_inline" else ""


def check(
    page: Path, markdown: str, known: frozenset[str], rules: Mapping[str, str]
) -> Iterator[Problem]:
    """The problems of one page."""
    for line, text in prose(markdown):
        words = {one.removesuffix("'s") for one in _WORD.findall(text)}
        for word in sorted(words):
            if british := american().get(word.lower()):
                yield Problem(page, line, f"{word}: British spelling is {british}")
        for word in sorted(unknown(words, known)):
            yield Problem(page, line, f"{word}: not in the dictionary; see docs/words.txt")
        for pattern, better in rules.items():
            for match in re.finditer(rf"\b(?:{pattern})(?!\w)", text, re.IGNORECASE):
                yield Problem(page, line, f"{match[0]}: write: {better}")
        yield from _long(page, line, text)
    if rules:
        yield from _proselint(page, markdown)


def _proselint(page: Path, markdown: str) -> Iterator[Problem]:
    lines = [""] * (markdown.count("\n") + 1)
    for line, text in prose(markdown):
        lines[line - 1] = f"{lines[line - 1]} {text}"
    _register()
    content = "\n".join(lines) + "\n"
    config = {"max_errors": 100, "checks": dict.fromkeys(_PROSELINT, True)}
    for mistake in LintFile(page.name, content).lint(config):
        yield Problem(page, mistake.pos[0], mistake.check_result.message)


@cache
def _register() -> None:
    CheckRegistry().register_many(proselint_checks)


def _long(page: Path, line: int, text: str) -> Iterator[Problem]:
    for sentence in sentences(text, "en"):
        count = len(sentence.split())
        if count > LONGEST:
            start = " ".join(sentence.split()[:6]).replace(_HIDDEN, "`...`")
            yield Problem(page, line, f"{count} words in one sentence: {start} ...", is_error=False)


def unknown(words: set[str], known: frozenset[str]) -> set[str]:
    """Words that neither dictionary nor our list has. Capitals do not matter."""
    british = set(american().values())
    rest = {word for word in words if word.lower() not in known and word.lower() not in british}
    missing = _dictionary().unknown(rest)
    return {one for one in rest if one.lower() in missing}


@cache
def _dictionary() -> SpellChecker:
    return SpellChecker(language="en", distance=1)


@cache
def american() -> dict[str, str]:
    """American spellings with the British one, such as `color`: `colour`."""
    text = (files("codespell_lib") / "data" / "dictionary_en-GB_to_en-US.txt").read_text("utf-8")
    pairs = (line.partition("->") for line in text.splitlines())
    return {us.split(",")[0]: uk for uk, _, us in pairs if us.split(",")[0] not in BOTH}


def known_words() -> frozenset[str]:
    """Our own list, in small letters."""
    return frozenset(WORDS.read_text(encoding="utf-8").lower().split())


def rules() -> dict[str, str]:
    """Words to avoid, as patterns, with what to write."""
    groups = tomllib.loads(RULES.read_text(encoding="utf-8"))
    return {pattern: better for group in groups.values() for pattern, better in group.items()}


def problems() -> list[Problem]:
    """The problems of all pages."""
    known, avoided = known_words(), rules()
    return [
        problem
        for page in pages()
        for problem in check(
            page,
            page.read_text(encoding="utf-8"),
            known,
            {} if page.parent.name == "decisions" else avoided,
        )
    ]


def accept() -> None:
    """Add the unknown words of all pages to our list."""
    texts = (text for page in pages() for _, text in prose(page.read_text(encoding="utf-8")))
    words = {one.removesuffix("'s") for text in texts for one in _WORD.findall(text)}
    own = {*WORDS.read_text(encoding="utf-8").split(), *unknown(words, known_words())}
    first = {one.lower(): one for one in sorted(own)}
    WORDS.write_text("\n".join(sorted(first.values(), key=str.lower)) + "\n", encoding="utf-8")


def main() -> int:
    """Print all problems; return the exit code."""
    if "--accept" in sys.argv[1:]:
        accept()
    found = problems()
    for problem in found:
        print(problem)
    errors = sum(one.is_error for one in found)
    print(f"{len(pages())} pages: {errors} errors, {len(found) - errors} long sentences")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
