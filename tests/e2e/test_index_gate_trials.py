"""Eight damaged and eight healthy builds of 150 golden questions, gated from log to verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ragmetrics.comparison import run_gate
from ragmetrics.config import make_settings
from ragmetrics.records import IndexBuild
from tests.fakes.builds import make_builds

TRIALS = 8
VERDICTS = {"damaged": "hold", "healthy": "promote"}


def test_every_trial_is_decided_rightly(tmp_path: Path) -> None:
    """15% of the rows with the contexts of other questions: held. As good, with other passages
    beside the right one: promoted. A gate that errs in one of five is passed once in 35 times.
    """
    verdicts = {build: Counter[str]() for build in VERDICTS}
    for seed in range(TRIALS):
        folder = tmp_path / str(seed)
        make_builds(folder / "builds", seed)
        settings = make_settings(
            {
                "store": str(folder / "store"),
                "metrics": ["context_relevance", "context_recall"],
                "gate": {"logs": f"{folder}/builds/{{build}}/"},
            }
        )
        for build, count in verdicts.items():
            asked = IndexBuild(dataset=settings.dataset, build=build, serving="serving")
            count[run_gate(settings, asked).verdict] += 1
    print({build: dict(count) for build, count in verdicts.items()})
    assert verdicts == {build: {verdict: TRIALS} for build, verdict in VERDICTS.items()}
