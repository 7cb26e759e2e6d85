"""ragas 0.4 over a log, for the engine's benchmarks: runs under the Python of ragas's environment.

    python peer_ragas.py default|tuned|best http://127.0.0.1:PORT/v1 log.jsonl

`default`: `evaluate` as it comes (16 workers). `tuned`: 64 workers, no progress bar. `best`: the
metrics of `ragas.metrics.collections` on one AsyncOpenAI with its aiohttp transport, 64 at a time.
It knows nothing of ragmetrics, and prints JSON: seconds of scoring (imports apart) and, by metric,
the rows that got a score.
"""

# mypy: disable-error-code="import-not-found, import-untyped, unused-ignore"
from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")  # deprecations in ragas's own imports

_IN_FLIGHT = 64
_FIELDS = ("user_input", "retrieved_contexts", "response", "reference")

Row = Mapping[str, Any]
Scores = dict[str, list[float]]


def evaluated(rows: Sequence[Row], base_url: str, *, tuned: bool) -> tuple[float, Scores]:
    """`ragas.evaluate` with the metrics of `ragas.metrics`."""
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from ragas import EvaluationDataset, RunConfig, evaluate
    from ragas.embeddings import LangchainEmbeddingsWrapper
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics._answer_relevance import ResponseRelevancy
    from ragas.metrics._context_recall import LLMContextRecall
    from ragas.metrics._nv_metrics import ContextRelevance

    endpoint: dict[str, Any] = {"base_url": base_url, "api_key": "none"}
    vectors = OpenAIEmbeddings(model="embedder", check_embedding_ctx_length=False, **endpoint)
    start = time.perf_counter()
    result = evaluate(
        EvaluationDataset.from_list([dict(row) for row in rows]),
        metrics=[ContextRelevance(), LLMContextRecall(), ResponseRelevancy()],
        llm=LangchainLLMWrapper(ChatOpenAI(model="judge", **endpoint)),
        embeddings=LangchainEmbeddingsWrapper(vectors),
        run_config=RunConfig(max_workers=_IN_FLIGHT) if tuned else RunConfig(),
        show_progress=not tuned,
        raise_exceptions=False,
    )
    seconds = time.perf_counter() - start
    return seconds, {name: list(result[name]) for name in result.scores[0]}


async def collected(rows: Sequence[Row], base_url: str) -> tuple[float, Scores]:
    """The metrics of `ragas.metrics.collections`."""
    from openai import AsyncOpenAI, DefaultAioHttpClient
    from ragas.embeddings import OpenAIEmbeddings
    from ragas.llms import llm_factory
    from ragas.metrics.collections import AnswerRelevancy, ContextRecall, ContextRelevance

    client = AsyncOpenAI(base_url=base_url, api_key="none", http_client=DefaultAioHttpClient())
    llm = llm_factory("judge", client=client)
    relevance, recall = ContextRelevance(llm=llm), ContextRecall(llm=llm)
    relevancy = AnswerRelevancy(llm=llm, embeddings=OpenAIEmbeddings(client, model="embedder"))
    wanted = (
        (relevance, ("user_input", "retrieved_contexts")),
        (recall, ("user_input", "retrieved_contexts", "reference")),
        (relevancy, ("user_input", "response")),
    )
    free = asyncio.Semaphore(_IN_FLIGHT)

    async def score(metric: Any, row: Row, fields: tuple[str, ...]) -> float:
        async with free:
            try:
                return float((await metric.ascore(**{name: row[name] for name in fields})).value)
            except Exception:  # a row that ragas loses
                return math.nan

    start = time.perf_counter()
    found = await asyncio.gather(
        *(score(metric, row, fields) for row in rows for metric, fields in wanted)
    )
    seconds = time.perf_counter() - start
    return seconds, {metric.name: found[at :: len(wanted)] for at, (metric, _) in enumerate(wanted)}


def main() -> None:
    """Score the log as asked."""
    way, base_url, log = sys.argv[1:]
    logging.disable(logging.ERROR)
    with Path(log).open(encoding="utf-8") as file:
        rows = [{name: row[name] for name in _FIELDS} for row in map(json.loads, file)]
    if way == "best":
        seconds, scores = asyncio.run(collected(rows, base_url))
    else:
        seconds, scores = evaluated(rows, base_url, tuned=way == "tuned")
    told = {
        "version": version("ragas"),
        "seconds": seconds,
        "scored": {n: sum(not math.isnan(v) for v in values) for n, values in scores.items()},
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
