"""Exports: scores row by row in the user's format, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ragmetrics.cli.export import COLUMNS, check_name, export
from ragmetrics.errors import InputError

RECORDS: list[dict[str, Any]] = [
    {
        "id": "a",
        "metric": "context_recall",
        "value": -0.5,
        "status": "scored",
        "reason": None,
        "details": {"attributed": [1, 0], "über": "ß"},
        "tags": {"channel": "web"},
    },
    {
        "id": "b",
        "metric": "context_recall",
        "value": None,
        "status": "not_applicable",
        "reason": "no reference answer",
        "details": {},
        "tags": {},
    },
]


def cells(path: Path) -> list[dict[str, str]]:
    """A CSV file as a spreadsheet reads it."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_jsonl_has_the_records_as_they_are(tmp_path: Path) -> None:
    """One object per line, texts in their own script."""
    path = tmp_path / "scores.jsonl"
    export(RECORDS, path)
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == RECORDS
    assert "über" in path.read_text("utf-8")


def test_parquet_has_typed_columns(tmp_path: Path) -> None:
    """Values are numbers, tags a map, details JSON."""
    path = tmp_path / "scores.parquet"
    export(RECORDS, path)
    table = pq.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    assert table["value"].to_pylist() == [-0.5, None]
    assert table["tags"].to_pylist() == [[("channel", "web")], []]
    assert json.loads(table["details"][0].as_py()) == RECORDS[0]["details"]


def test_csv_has_one_line_per_record(tmp_path: Path) -> None:
    """Missing values are empty, details and tags are JSON, negative numbers stay numbers."""
    path = tmp_path / "scores.csv"
    export(RECORDS, path)
    first, second = cells(path)
    assert tuple(first) == COLUMNS
    assert (first["value"], second["value"]) == ("-0.5", "")
    assert json.loads(first["details"]) == RECORDS[0]["details"]
    assert json.loads(first["tags"]) == {"channel": "web"}


@pytest.mark.parametrize("begin", [*"=+-@＝＋－＠", "\t", "\r", "\n"])
def test_csv_cells_are_never_formulas(tmp_path: Path, begin: str) -> None:
    """A logged id that a spreadsheet would run is shown as text."""
    path = tmp_path / "scores.csv"
    evil = f'{begin}HYPERLINK("http://evil", "a")'
    export([{**RECORDS[0], "id": evil, "reason": evil}], path)
    (line,) = cells(path)
    assert line["id"] == line["reason"] == f"'{evil}"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_formula_waits_behind_a_separator(tmp_path: Path, delimiter: str) -> None:
    """Where a comma is part of numbers a spreadsheet ends cells at semicolons, whatever the quotes
    say; pasted text it ends at tabs.
    """
    path = tmp_path / "scores.csv"
    evil = "safe;=1+1;-1\t@SUM(1)\n+cmd\n;＝1"
    export([{**RECORDS[0], "id": evil, "reason": evil}], path)
    with path.open(encoding="utf-8", newline="") as file:
        found = [cell for line in csv.reader(file, delimiter=delimiter) for cell in line]
    assert [one for one in found if re.match(r"[=+\-@＝\t\r\n]", one) and one != "-0.5"] == []


def test_what_no_spreadsheet_runs_stays_as_it_was_logged(tmp_path: Path) -> None:
    """Signs within a text, and after a space."""
    path = tmp_path / "scores.csv"
    plain = "a=b; c-d, e+f @ 3 = 3\nnext"
    export([{**RECORDS[0], "reason": plain}], path)
    assert cells(path)[0]["reason"] == plain


@pytest.mark.parametrize("name", ["scores.parquet", "scores.jsonl", "scores.csv"])
def test_nothing_scored_is_an_empty_file(tmp_path: Path, name: str) -> None:
    """Not a missing one."""
    export([], tmp_path / name)
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["scores.xlsx", "scores", "scores.csv.gz"])
def test_a_strange_ending_is_told(tmp_path: Path, name: str) -> None:
    """With the endings that there are."""
    with pytest.raises(InputError, match=r"should end in \.parquet, \.jsonl or \.csv"):
        check_name(tmp_path / name)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """Before anything is scored."""
    with pytest.raises(InputError, match=r"there is no folder .*nosuch"):
        check_name(tmp_path / "nosuch" / "scores.csv")


def test_a_file_that_is_read_is_not_written_over(tmp_path: Path) -> None:
    """Named itself, or found in a folder or by a glob; another file there may be."""
    log = tmp_path / "logs" / "a.jsonl"
    log.parent.mkdir()
    log.write_text("{}")
    (tmp_path / "link.jsonl").symlink_to(log)
    for place in (str(log), str(log.parent), f"{tmp_path}/*/*.jsonl"):
        for path in (log, tmp_path / "link.jsonl"):
            with pytest.raises(InputError, match="is one of the inputs"):
                check_name(path, [place])
        check_name(log.with_name("scores.jsonl"), [place])


def test_scores_do_not_take_the_place_of_the_recording(tmp_path: Path) -> None:
    """The replies would be lost."""
    with pytest.raises(InputError, match="is the recording too"):
        check_name(tmp_path / "a.jsonl", record=tmp_path / "x" / ".." / "a.jsonl")


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    """Before anything is scored."""
    (tmp_path / "scores.csv").mkdir()
    with pytest.raises(InputError, match=r"scores\.csv: is a folder"):
        check_name(tmp_path / "scores.csv")
