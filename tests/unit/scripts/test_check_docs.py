"""The checks of the docs' language, on texts with a mistake of each kind."""

from __future__ import annotations

import pytest

pytest.importorskip("proselint", reason="needs the extra docs")
pytest.importorskip("spellchecker", reason="needs the extra docs")

from hypothesis import given, strategies as st

from scripts import check_docs
from tests.fakes.processes import ROOT

PAGE = ROOT / "docs" / "page.md"
KNOWN = check_docs.known_words()
RULES = check_docs.rules()


def found(markdown: str) -> list[str]:
    """The problems of a page, without its name."""
    problems = check_docs.check(PAGE, markdown, KNOWN, RULES)
    return [str(problem).partition(":")[2] for problem in problems]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A nihgt is scored.", "not in the dictionary"),
        ("The color of a bar.", "British spelling is colour"),
        ("The drop is carried by one section.", "write: attributed to"),
        ("Read it in order to decide.", "write: to"),
        ("It is very unique.", "uncomparables|not comparable"),
        (f"{'one night and ' * 12}the end.", "words in one sentence"),
    ],
    ids=["unknown", "American", "metaphor", "long-winded", "proselint", "long"],
)
def test_each_kind_of_mistake_is_found(text: str, message: str) -> None:
    """On its line, wherever it stands in the page."""
    [line, *_] = [one for one in found(f"# Title\n\nFine.\n\n{text}\n") if _has(one, message)]
    assert line.startswith("5:")


def _has(line: str, message: str) -> bool:
    return any(one in line for one in message.split("|"))


@pytest.mark.parametrize(
    "text",
    [
        "A night is scored in colour.",
        "Set `color_nihgt` in the file.",
        "```yaml\ncolor: nihgt\n```",
        "See [the page](how-to/nihgt.md).",
        "The night's rows, by DuckDB's and Prefect's names.",
        "A range of rows: 2026-11-19.",
    ],
    ids=["plain", "code", "block", "address", "genitive", "date"],
)
def test_plain_text_code_and_addresses_are_fine(text: str) -> None:
    """Only prose is read."""
    assert found(text + "\n") == []


def test_a_long_sentence_is_no_error() -> None:
    """It is worth a look, and may be right."""
    [problem] = check_docs.check(PAGE, f"{'one night and ' * 12}the end.", KNOWN, RULES)
    assert not problem.is_error


def test_cells_and_items_are_read() -> None:
    """Tables hold most of the reference."""
    assert [one[:2] for one in found("| a | b |\n|---|---|\n| x | nihgt |\n\n- nihgt\n")] == [
        "3:",
        "5:",
    ]


def test_the_list_of_words_is_sorted_and_needed() -> None:
    """One spelling each: words that the dictionary has are not in the list."""
    words = check_docs.WORDS.read_text(encoding="utf-8").split()
    assert words == sorted(set(words), key=lambda word: (word.lower(), word))
    assert check_docs.unknown(set(words), frozenset()) == set(words)


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Prose has lines of the page, counted from 1."""
    lines = text.count("\n") + text.count("\r") + 1
    assert all(1 <= line <= lines for line, _ in check_docs.prose(text))
