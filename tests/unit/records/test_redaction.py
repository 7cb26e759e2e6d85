"""What was logged is found in the sentences that quote it, and a hash stands in its place."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from ragmetrics.records import (
    BrokenFile,
    Source,
    hashed,
    hashed_place,
    hashed_quote,
    redact_quotes,
    redactions,
)
from ragmetrics.records.redaction import KEY
from ragmetrics.text import clean

SECRET = "How do I get a refund for order 7?"
HASH = r"\[[0-9a-f]{16}\]"


def test_what_stands_behind_a_colon_is_hidden() -> None:
    """Before it stands whose words they are; hidden once, it stays what it is."""
    hidden = hashed_quote(f"the judge answered 400: {SECRET}")
    assert re.fullmatch(f"the judge answered 400: {HASH}", hidden)
    assert hashed_quote(hidden) == hidden
    assert hashed(SECRET.upper()) == hashed(SECRET)


def test_keys_of_a_row_are_hidden_and_our_fields_are_not() -> None:
    """In tags, labels and gold a row has keys of its own, with colons too."""
    own = "tags.my: secret key: should be a valid string"
    assert re.fullmatch(rf"tags\.{HASH}: should be a valid string", hashed_place(own))
    nested = hashed_place("labels: gold.secret: should be a number")
    assert re.fullmatch(rf"labels: gold\.{HASH}: should be a number", nested)
    for ours in (
        "retrieved_contexts.2: should be a string",
        "user_input: no question",
        "not UTF-8",
    ):
        assert hashed_place(ours) == ours


def test_a_finding_that_quotes_a_broken_file_is_hidden() -> None:
    """By the source that it was made of; without anything to hide a text stays as it is."""
    broken = BrokenFile(file="a.csv", line=3, reason=f"cannot be read: {SECRET}")
    source = Source(logs="logs/", files=1, rows=0, broken=[broken])
    told = redact_quotes(f"1 file: a.csv: {broken.reason}", redactions(source, ()))
    assert re.fullmatch(f"1 file: a.csv: cannot be read: {HASH}", told)
    assert redact_quotes(f" {SECRET}\n", {}) == f" {SECRET}\n"


@given(st.text(min_size=1, max_size=200), st.integers(60, 500))
def test_a_quote_is_found_however_it_was_cleaned_and_cut(said: str, limit: int) -> None:
    """Sentences are cleaned and cut before they are kept: what is left of the quote goes."""
    problem = f"the judge answered 400, the request was: zanthoril {said}"
    sentence = clean(f"recall, 3 of 100 rows: {problem}", limit)
    assert "zanthoril" not in redact_quotes(sentence, redactions(None, [problem]))


def test_a_hash_hangs_on_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the environment: the same one gives the same hashes, another others."""
    monkeypatch.setenv(KEY, "one")
    one = hashed("+49 170 1234567")
    monkeypatch.setenv(KEY, "two")
    two = hashed("+49 170 1234567")
    monkeypatch.setenv(KEY, "one" * 100)
    long = hashed("+49 170 1234567")
    monkeypatch.setenv(KEY, "one")
    assert hashed("+49 170 1234567") == one
    assert len({one, two, long}) == 3


@pytest.mark.process
def test_without_a_secret_nobody_can_try_out_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a process a text has one hash; another process, as a guesser's is, has others."""
    monkeypatch.delenv(KEY, raising=False)
    code = f"from ragmetrics.records.redaction import KEY, hashed; print(hashed({SECRET!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(HASH, other.stdout.strip())
    assert other.stdout.strip() != hashed(SECRET)


def test_a_hash_of_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of earlier versions may hold hashes without a key: they are not hashed again."""
    monkeypatch.setenv(KEY, "one")
    assert hashed("[3f9a1c2e]") == "[3f9a1c2e]"
