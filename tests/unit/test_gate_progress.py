"""What a person sees of a gate at work: a bar on a terminal, and nothing of it anywhere else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ragmetrics import cli_gate
from ragmetrics.gates.gate import run_gate
from ragmetrics.gates.records import IndexBuild
from ragmetrics.replay import replay
from tests.fakes.build_logs import METRICS, golden, write_build
from tests.fakes.command import Run
from tests.fakes.replays import replaying
from tests.fakes.retriever import SearchServer


def test_questions_are_counted_and_then_parts(tmp_path: Path, search_server: SearchServer) -> None:
    """Each golden question as it is answered, then each part of both builds as it is judged."""
    settings = replaying(tmp_path, search_server).model_copy(
        update={"store": str(tmp_path / "store")}
    )
    replay(settings, "b1")
    told: list[tuple[str, int, int]] = []
    asked = IndexBuild(dataset=settings.dataset, build="b2", serving="b1")
    run_gate(settings, asked, lambda *one: told.append(one))
    questions, parts = told[:12], told[12:]
    assert questions == [("asking", number, 12) for number in range(1, 13)]
    assert parts[0] == ("judging", 0, len(parts) - 1)
    assert [done for _, done, _ in parts] == list(range(len(parts)))
    assert {name for names, _, _ in parts[1:] for name in names.split(", ")} == set(METRICS)


@pytest.mark.parametrize(("flags", "shown"), [([], True), (["--json"], False)])
def test_a_terminal_has_a_bar(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], shown: bool
) -> None:
    """On stderr; with --json there is none. Where stderr is no terminal nothing is written."""
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
