"""Every kind of message in every format, beside tests/fixtures/messages, which people have read.

python -m tests.fakes.every_message     write them anew: review the diff
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.dashboard.summaries import night_blocks
from ragmetrics.delivery import sample_messages
from ragmetrics.delivery.dashboard_failure import compose_dashboard_failure
from ragmetrics.messages import FORMATS, Block, Header, comparison_report, gate_report
from ragmetrics.records import (
    ComparedSide,
    Comparison,
    JudgeInfo,
    MetricChange,
    MovedQuestion,
    Segment,
)
from tests.fakes.gated import gate
from tests.fakes.nights import night, ten_nights

FOLDER = Path(__file__).parents[1] / "fixtures" / "messages"
_PAGE = "https://dash.example/rag"


def every_message() -> Mapping[str, Sequence[Block]]:
    """The blocks of every kind of message by its title."""
    *earlier, last = ten_nights()
    state = find_night_status(last)
    failure = compose_dashboard_failure(night(), "disk full: <dashboard> & 'pages'", _PAGE)
    return {
        **{title: message.blocks for title, message in sample_messages()},
        "Dashboard could not be written": failure.blocks,
        "Night on a run page and in mail": [
            Header(state.sentence),
            *night_blocks(last, earlier, state, {"dashboard": _PAGE}),
        ],
        "Gate on a run page and in a pull request": gate_report(gate(), "builds", _PAGE),
        "Comparison in a pull request": _compared(),
    }


def _compared() -> list[Block]:
    judge = JudgeInfo(name="lexical", fingerprint="f", note="a baseline")
    a, b = (
        ComparedSide(name=f"{name}.jsonl", dataset="docs", judge=judge, rows=50) for name in "ab"
    )
    low, high = -0.3, -0.1
    numbers = {"mean_a": 0.8, "mean_b": 0.6, "difference": -0.2, "questions": 50, "low": low}
    worse = MetricChange(metric="context_recall", high=high, p_adjusted=0.0004, **numbers)
    billing = worse.model_copy(update={"segment": Segment(tag="section", value="billing")})
    refused = MetricChange(metric="mrr", reason="scored by two judges")
    moved = MovedQuestion(
        metric="context_recall", user_input="Who <b>pays</b>?", id="q", value_a=0.9, value_b=0.1
    )
    found = Comparison(
        a=a, b=b, metrics=[worse, refused], moved=[moved], problems=["part 1 failed"]
    )
    conclusions = {"context_recall": "failed", "mrr": "inconclusive"}
    said = "context_recall got worse by 0.200, more than 0.05"
    return comparison_report(found, "❌ Retrieval failed", said, conclusions, [billing], _PAGE)


def shown(name: str) -> str:
    """Every message in one format."""
    rendered = {title: FORMATS.find(name).render(one) for title, one in every_message().items()}
    texts = {
        title: message
        if isinstance(message, str)
        else json.dumps(message, indent=1, ensure_ascii=False)
        for title, message in rendered.items()
    }
    return "".join(f"===== {title} =====\n\n{text}\n\n" for title, text in texts.items())


if __name__ == "__main__":
    for name in FORMATS.bundled_names:
        (FOLDER / f"{name}.txt").write_text(shown(name), encoding="utf-8")
