"""Gates with a golden set: what both builds must be asked, and whose references are held to."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import run_gate
from ragmetrics.config import Settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Gate, IndexBuild
from tests.fakes.build_logs import gate_settings, golden, write_build
from tests.fakes.clients import Bucket
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = golden()
BARE = [{name: row[name] for name in row if name != "reference"} for row in ROWS]
KEPT = ("id", "user_input", "reference")
BROKEN = "{broken json"


def settings_in(folder: Path, rows: list[Any], **change: Any) -> Settings:
    """Settings whose golden set is these rows; a `str` is a line as it stands."""
    lines = [row if isinstance(row, str) else {name: row[name] for name in KEPT} for row in rows]
    return gate_settings(folder, golden=str(write_jsonl(folder / "golden.jsonl", lines)), **change)


def gate(settings: Settings, **asked: Any) -> Gate:
    """The verdict on b2, against b1."""
    return run_gate(settings, IndexBuild(dataset="towers", build="b2", serving="b1", **asked))


def nights(settings: Settings, folder: Path, *served: list[dict[str, Any]]) -> None:
    """Nights on which b1 served these rows."""
    for number, rows in enumerate(served):
        day: date = NIGHT + timedelta(number)
        write_jsonl(
            folder / "logs" / f"{day}.jsonl", [{**row, "index_build": "b1"} for row in rows]
        )
        run_night(settings, day)


# Rows that could not be read


def test_a_serving_log_half_of_which_is_broken_is_no_pass(tmp_path: Path) -> None:
    """The questions that could not be read there may be those that the new build lost."""
    write_build(tmp_path, "b1", [*BARE[:75], *[BROKEN] * 75])
    write_build(
        tmp_path, "b2", [*BARE[:75], *({**row, "retrieved_contexts": []} for row in BARE[75:])]
    )
    found = gate(settings_in(tmp_path, ROWS))
    assert found.verdict == "inconclusive"
    assert "75 of 150 rows of build b1 could not be read" in found.reasons


def test_a_new_log_half_of_which_is_broken_is_no_pass(tmp_path: Path) -> None:
    """Though each question has another row that is well: nobody knows what the others say."""
    write_build(tmp_path, "b1", ROWS)
    write_build(tmp_path, "b2", [*ROWS, *({**row, "retrieved_contexts": 5} for row in ROWS)])
    found = gate(gate_settings(tmp_path))
    assert (found.verdict, found.missing, found.quarantined) == ("inconclusive", 0, 150)
    assert "150 of 300 rows of build b2 could not be read" in found.reasons


# What must be asked


def test_a_golden_question_that_the_new_log_lacks_is_missing(tmp_path: Path) -> None:
    """Though the serving build is known by nights alone, whose questions need not be asked."""
    settings = settings_in(tmp_path, ROWS)
    nights(settings, tmp_path, [*BARE, *_others(20)])
    write_build(tmp_path, "b2", BARE[:60])
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert (found.missing, found.missing_why) == (90, {"absent": 90})
    assert "90 of 150 questions of build b1 cannot be compared" in found.reasons[0]


def test_what_else_the_nights_were_asked_need_not_be(tmp_path: Path) -> None:
    """The golden questions are all there; those of users are nobody's to repeat."""
    settings = settings_in(tmp_path, ROWS)
    nights(settings, tmp_path, [*BARE, *_others(20)])
    write_build(tmp_path, "b2", BARE)
    found = gate(settings)
    assert (found.verdict, found.missing, found.metrics[0].questions) == ("promote", 0, 150)


@pytest.mark.parametrize("by_nights", [False, True])
def test_golden_questions_that_the_serving_build_lacks_are_told(
    tmp_path: Path, by_nights: bool
) -> None:
    """With their number: the verdict rests on the others."""
    settings = settings_in(tmp_path, ROWS)
    if by_nights:
        nights(settings, tmp_path, BARE[:60])
    else:
        write_build(tmp_path, "b1", BARE[:60])
    write_build(tmp_path, "b2", BARE)
    found = gate(settings)
    assert (found.verdict, found.metrics[0].questions) == ("promote", 60)
    assert (
        "90 of 150 golden questions have no row of build b1 and are not compared" in found.reasons
    )


# Whose references


def test_a_log_does_not_bring_its_own_references(tmp_path: Path) -> None:
    """A build whose passages are of no use would have all of what it calls the answer."""
    said = "Museums are closed on Mondays."
    write_build(tmp_path, "b1", ROWS)
    write_build(
        tmp_path, "b2", [{**row, "retrieved_contexts": [said], "reference": said} for row in ROWS]
    )
    rules = [{"metric": "context_recall"}]
    place = f"{tmp_path}/builds/{{build}}.jsonl"
    found = gate(settings_in(tmp_path, ROWS, gate={"logs": place, "rules": rules}))
    assert found.verdict == "hold"
    assert found.metrics[0].after == pytest.approx(0, abs=0.4)


# Golden sets that cannot be relied on


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "golden.jsonl: no question can be read in it"),
        ([BROKEN], "no question can be read in it"),
        ("others", "golden.jsonl: build b2 has no row of any question in it"),
    ],
)
def test_a_golden_set_that_joins_nothing_is_no_pass(tmp_path: Path, rows: Any, reason: str) -> None:
    """Else recall would be left out, and the build promoted by what is left."""
    for build in ("b1", "b2"):
        write_build(tmp_path, build, BARE)
    found = gate(settings_in(tmp_path, _others(40) if rows == "others" else rows))
    assert found.verdict == "inconclusive"
    assert any("golden set" in one and reason in one for one in found.reasons)


def test_nights_that_were_never_asked_a_golden_question_are_no_pass(tmp_path: Path) -> None:
    """What they share with the new log is then judged without references."""
    settings = settings_in(tmp_path, ROWS)
    nights(settings, tmp_path, _others(60, reference=None))
    write_build(tmp_path, "b2", [*BARE, *_others(60, reference=None)])
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert any("build b1 has no row of any question in it" in reason for reason in found.reasons)


def test_broken_rows_of_the_golden_set_are_its_own(tmp_path: Path) -> None:
    """They are not counted with those of the builds, and the golden set is named."""
    for build in ("b1", "b2"):
        write_build(tmp_path, build, ROWS)
    found = gate(settings_in(tmp_path, [*ROWS, *[BROKEN] * 6]))
    assert (found.verdict, found.quarantined, found.source.quarantined) == ("inconclusive", 0, 0)
    assert found.reasons == [
        "6 of 156 rows of the golden set could not be read",
        "the retrieval is unchanged: all 150 rows have the same passages",
    ]


def test_a_few_broken_rows_of_the_golden_set_stop_nobody(tmp_path: Path) -> None:
    """As few as may be missing."""
    for build in ("b1", "b2"):
        write_build(tmp_path, build, ROWS)
    assert gate(settings_in(tmp_path, [*ROWS, BROKEN])).verdict == "promote"


def test_a_golden_set_that_is_cut_short_is_no_pass(tmp_path: Path) -> None:
    """Nobody knows how many questions it had; the builds are not blamed."""
    for build in ("b1", "b2"):
        write_build(tmp_path, build, ROWS)
    settings = settings_in(tmp_path, ROWS)
    packed = write_jsonl(tmp_path / "golden.jsonl.gz", ROWS)
    packed.write_bytes(packed.read_bytes()[:-40])
    found = gate(settings.model_copy(update={"golden": str(packed)}))
    assert found.verdict == "inconclusive"
    assert found.reasons[0].startswith("golden set golden.jsonl.gz is read in part")
    assert not any("build b2" in reason for reason in found.reasons)


# One log for both


@pytest.mark.parametrize("place", ["builds/b1", "builds/b1/log.jsonl", "builds/b1/*.jsonl"])
def test_a_build_is_not_held_against_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """However their place is spelled, from wherever."""
    write_jsonl(tmp_path / "builds" / "b1" / "log.jsonl", ROWS)
    monkeypatch.chdir(tmp_path)
    settings = gate_settings(tmp_path, gate={"logs": f"{tmp_path}/builds/{{build}}/"})
    found = gate(settings, logs=place)
    assert found.verdict == "inconclusive"
    assert found.reasons == [f"{place} is the log of both sides: each needs its own"]


@pytest.mark.parametrize(
    "place", ["{uri}/builds/b1", "{uri}/builds/b1/*", "s3a://{name}/builds/b1/"]
)
def test_nor_against_its_own_objects(tmp_path: Path, s3: Bucket, place: str) -> None:
    """The same in a bucket, which has two schemes."""
    body = write_build(tmp_path, "b1", ROWS).read_bytes()
    s3.client.put_object(
        Bucket=s3.name, Key="builds/b1/log.jsonl", Body=body.replace(b'"b1"', b'""')
    )
    settings = gate_settings(tmp_path, gate={"logs": f"{s3.uri}/builds/{{build}}/"})
    found = gate(settings, logs=place.format(uri=s3.uri, name=s3.name))
    assert found.verdict == "inconclusive"
    assert "is the log of both sides" in found.reasons[0]


def _others(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Rows of users' questions, which no golden set knows."""
    return [
        {**row, "id": f"user-{row['id']}", "user_input": f"Please: {row['user_input']}"}
        for row in make_rows(count, **fields)
    ]
