"""What layouts of prompts would send and find in a provider's cache: counted, not sent.

These are the layouts that were not built; `python -m benchmarks engine --only caches` measures them
beside the two that there are. A token is four characters. The requests of a row are sent one after
the other, which is the best case for the cache. Equal requests are sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ragmetrics.judges.row_first import REST, ROW_FIRST, number_sentences
from ragmetrics.metrics import select
from ragmetrics.records import Ask, LogRow, dump_json, read_row
from ragmetrics.scoring.metric_run import MetricRun
from tests.fakes.prompt_cache import CHARS_PER_TOKEN, PromptCache

Messages: TypeAlias = Sequence[Mapping[str, str]]
Layout: TypeAlias = Callable[[LogRow, Ask], Messages]
_HANDBOOK = "Rules of the house for judges. " * 133  # 1,030 tokens, the same in every request


@dataclass
class Counted:
    """Tokens of a night in one layout."""

    prompt: float = 0.0
    cached: float = 0.0
    _cache: PromptCache = field(default_factory=PromptCache)
    _sent: set[Any] = field(default_factory=set)

    def send(self, messages: Messages) -> None:
        """Count a request, unless an equal one was sent."""
        key = tuple(one["content"] for one in messages)
        if key in self._sent:
            return
        self._sent.add(key)
        self.prompt += sum(map(len, key)) / CHARS_PER_TOKEN
        self.cached += self._cache.cached_tokens(messages, "provider")
        self._cache.add(messages, "provider")


def every_request_row_first(row: LogRow, ask: Ask) -> Messages:
    """The row before every task that asks about its contexts, also about a single one."""
    if not {"context", "contexts"} & ask.data.keys():
        return ask.prompt.messages(ask.data)
    shown = {"question": row.user_input, "contexts": number_sentences(row)}
    rest = {
        key: row.retrieved_contexts.index(value) + 1 if key == "context" else value
        for key, value in ask.data.items()
        if key not in ("question", "contexts")
    }
    user = f"{dump_json(shown)}\n\n{ask.prompt.system}\n\n{REST} {dump_json(rest)}"
    return [{"role": "system", "content": ROW_FIRST}, {"role": "user", "content": user}]


def long_instructions(row: LogRow, ask: Ask) -> Messages:
    """Instructions of 1,030 tokens before every request, so that a provider caches them."""
    system, *others = ask.prompt.messages(ask.data)
    return [{**system, "content": f"{_HANDBOOK}{system['content']}"}, *others]


NOT_BUILT: Mapping[str, Layout] = {
    "every request row first": every_request_row_first,
    "1,030 tokens of instructions": long_instructions,
}


def count(layout: Layout, rows: Iterable[Mapping[str, Any]], metrics: Sequence[str]) -> Counted:
    """The tokens of a night, by the first requests of each metric."""
    counted = Counted()
    for number, one in enumerate(rows):
        row = read_row(dict(one), str(number))
        for metric in select(metrics):
            run = MetricRun(metric, row)
            run.step(None)
            for ask in run.requests:
                if isinstance(ask, Ask):
                    counted.send(layout(row, ask))
    return counted
