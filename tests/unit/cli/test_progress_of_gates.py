"""What is seen of a gate at work: a bar on a terminal, a line now and then in a pipeline's log."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ragmetrics.cli import gate as cli_gate, progress as cli_progress
from ragmetrics.cli.progress import progress_reporter
from ragmetrics.comparison import run_gate, run_replay
from ragmetrics.records import IndexBuild
from tests.fakes.build_logs import METRICS, golden, write_build
from tests.fakes.command import Run
from tests.fakes.replays import replaying
from tests.fakes.retriever import SearchServer


def test_questions_are_counted_and_then_parts(tmp_path: Path, search_server: SearchServer) -> None:
    """Each golden question as it is answered, then each part of both builds as it is judged."""
    settings = replaying(tmp_path, search_server).model_copy(
        update={"store": str(tmp_path / "store")}
    )
    run_replay(settings, "b1")
    told: list[tuple[str, int, int]] = []
    asked = IndexBuild(dataset=settings.dataset, build="b2", serving="b1")
    run_gate(settings, asked, lambda *one: told.append(one))
    questions, parts = told[:13], told[13:]
    assert questions == [("asking", number, 12) for number in range(13)]
    assert parts[0] == ("judging", 0, len(parts) - 1)
    assert [done for _, done, _ in parts] == list(range(len(parts)))
    assert {name for names, _, _ in parts[1:] for name in names.split(", ")} == set(METRICS)


@pytest.mark.parametrize(("flags", "shown"), [([], True), (["--json"], False)])
def test_a_terminal_has_a_bar(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], shown: bool
) -> None:
    """On stderr; with --json there is none."""
    for build in ("b1", "b2"):
        write_build(tmp_path, build, golden(40))
    path = tmp_path / "ragmetrics.yaml"
    values = {"metrics": METRICS, "gate": {"logs": "builds/{build}.jsonl"}, "store": "store"}
    path.write_text(yaml.safe_dump(values))
    screen = io.StringIO()
    monkeypatch.setattr(cli_gate, "err", Console(file=screen, force_terminal=True, width=100))
    ended = run("gate", "--build", "b2", "--against", "b1", "--settings", path, *flags)
    assert ("staging" in screen.getvalue(), "4/4" in screen.getvalue()) == (shown, shown)
    assert "4/4" not in ended.out


def test_the_log_of_a_pipeline_shows_that_it_is_at_work(
    run: Run, tmp_path: Path, search_server: SearchServer
) -> None:
    """On stderr: when the replay begins and when it is done, then the same of the judging. What a
    script reads from stdout is the verdict alone.
    """
    settings = replaying(tmp_path, search_server)
    path = tmp_path / "ragmetrics.yaml"
    values = {"golden": settings.golden, "gate": {"logs": "builds/{build}"}, "store": "store"}
    path.write_text(yaml.safe_dump({**values, "retriever": search_server.settings}))
    assert run("replay", "--build", "b1", "--settings", path).code == 0
    ended = run("gate", "--build", "b2", "--against", "b1", "--settings", path, "--json")
    asking, asked, judging, *_, judged = ended.err.splitlines()
    assert asking == "asking: 0 of 12"
    assert asked.startswith("asking: 12 of 12 after ")
    assert judging.startswith("judging: 0 of ")
    assert " after " in judged
    assert json.loads(ended.out)["build"] == "b2"


@pytest.mark.parametrize(
    ("every", "lines"), [(3_600.0, [0, 5, 0, 3]), (0.0, [*range(6), *range(4)])]
)
def test_a_step_has_its_first_line_its_last_and_one_a_minute(
    monkeypatch: pytest.MonkeyPatch, every: float, lines: list[int]
) -> None:
    """However many parts it has; the next step begins anew."""
    monkeypatch.setattr(cli_progress, "EVERY", every)
    log = io.StringIO()
    with progress_reporter(Console(file=log), "staging") as progress:
        for total in (5, 3):
            for done in range(total + 1):
                progress("asking", done, total)
    told = log.getvalue().splitlines()
    assert [int(line.split()[1]) for line in told] == lines


def test_help_says_what_of_the_settings_is_not_used(run: Run) -> None:
    """A gate by hand runs here, whatever cluster the flows have."""
    assert "runner:" in run("gate", "--help").out
