"""ragas's own numbers, for scripts.parity: runs under the Python of ragas's environment.

    python parity_ragas.py http://127.0.0.1:PORT < rows.json

It knows nothing of ragmetrics. It scores the rows by each metric of the ragas that is installed
(0.1 or 0.4) against the judge at that address and prints JSON: per metric the scores (null for
NaN) and the distinct messages that the judge was sent, by how often.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
import urllib.request
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

warnings.filterwarnings("ignore")  # deprecations in ragas's own imports

import ragas  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402
from ragas.embeddings import LangchainEmbeddingsWrapper  # noqa: E402
from ragas.llms import LangchainLLMWrapper  # noqa: E402

logging.disable(logging.WARNING)  # a line for each retry

Row = Mapping[str, Any]
Metric = Callable[[Row], Awaitable[float]]


def of_0_1(llm: Any) -> dict[str, Metric]:
    """The metrics of 0.1, which wrap what they return in nothing."""
    from ragas.metrics import context_recall, context_relevancy

    def scorer(metric: Any) -> Metric:
        metric.llm = llm

        async def score(row: Row) -> float:
            return float(
                await metric.ascore(
                    {
                        "question": row["user_input"],
                        "contexts": row["retrieved_contexts"],
                        "answer": row["response"],
                        "ground_truth": row["reference"],
                    }
                )
            )

        return score

    return {
        "ragas_context_relevancy": scorer(context_relevancy),
        "ragas_context_recall": scorer(context_recall),
    }


def of_0_4(llm: Any, embeddings: Any) -> dict[str, Metric]:
    """The metrics of `ragas.metrics` in 0.4."""
    from ragas.dataset_schema import SingleTurnSample
    from ragas.metrics._answer_relevance import ResponseRelevancy
    from ragas.metrics._nv_metrics import ContextRelevance

    def scorer(metric: Any) -> Metric:
        async def score(row: Row) -> float:
            fields = ("user_input", "retrieved_contexts", "response", "reference")
            sample = SingleTurnSample(**{name: row[name] for name in fields})
            return float(await metric.single_turn_ascore(sample))

        return score

    return {
        "ragas_response_relevancy": scorer(ResponseRelevancy(llm=llm, embeddings=embeddings)),
        "ragas_context_relevance": scorer(ContextRelevance(llm=llm)),
    }


def control(url: str, body: Any = None) -> Any:
    """Ask the judge's own endpoints."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data)) as response:
        return json.load(response)


async def run(server: str, rows: list[Row]) -> dict[str, Any]:
    """Score all rows, one after the other, so that repeated prompts keep their order."""
    endpoint: dict[str, Any] = {"base_url": f"{server}/v1", "api_key": "none"}
    llm = LangchainLLMWrapper(ChatOpenAI(model="judge", **endpoint))
    vectors = OpenAIEmbeddings(model="embedder", check_embedding_ctx_length=False, **endpoint)
    embeddings = LangchainEmbeddingsWrapper(vectors)
    old = ragas.__version__.startswith("0.1.")
    found: dict[str, Any] = {}
    for name, metric in (of_0_1(llm) if old else of_0_4(llm, embeddings)).items():
        control(f"{server}/reset", {})
        scores = [await metric(row) for row in rows]
        found[name] = {
            "scores": [None if math.isnan(score) else score for score in scores],
            "messages": control(f"{server}/stats")["by_messages"],
        }
    return {"version": ragas.__version__, "metrics": found}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], json.load(sys.stdin)))))
