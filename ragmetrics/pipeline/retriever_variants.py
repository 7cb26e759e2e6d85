"""What would mend a night: its fallen questions asked again, through variants of the retriever.

    fallen questions, and as many others -> as now, and each variant -> scores -> paired changes

The retriever is the user's own. Rows are scored with the settings' metrics and judge; replies come
from the store where it has them. A question that fell is mended where all passages that it needs
are returned.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from ragmetrics.comparison import save_whatif
from ragmetrics.config import RetrieverSettings, Settings
from ragmetrics.dashboard import refresh_dashboard
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.logs import inputs_of
from ragmetrics.passages import NeedingQuestion, needing_questions_of
from ragmetrics.pipeline.evaluation import Progress, score_inputs, settings_of, temporary
from ragmetrics.pipeline.lost_passages import main_build, run_of_night, usual_nights
from ragmetrics.pipeline.variant_results import ASKED, VariantAnswers, measure_variants
from ragmetrics.records import AS_NOW, LogRow, Manifest, WhatIf, dump_json
from ragmetrics.retriever import Ask, ask_retriever, question_of
from ragmetrics.scoring import MetricScores, corpus_of, load_scores, summarise_run
from ragmetrics.storage import Files, RunRef, Runs, open_store, row_record

QUESTIONS = 200
"""Most fallen questions that are asked, and most others."""
Variants: TypeAlias = Mapping[str, Mapping[str, JsonValue]]


def whatif(
    night: date,
    *,
    settings: Settings | str | Path | None = None,
    store: str | None = None,
    variants: Sequence[str] | None = None,
    parameters: Mapping[str, JsonValue] | None = None,
    questions: int = QUESTIONS,
    progress: Progress | None = None,
) -> WhatIf:
    """Ask the questions that fell on a night again: which variant of the retriever fixes them?

    `variants` are names of `retriever: variants:`, all by default. `parameters` make one more
    variant. At most so many `questions` that fell are asked, and as many that did not. The result
    is stored, and the night's page shows it.
    Raises InputError where there is no such night, no retriever, no variant or no fallen question;
    RetrieverRefused where the retriever answers nothing; and what `evaluate` raises.
    """
    chosen = settings_of(settings, None, None, None, None, None)
    chosen = chosen.model_copy(update={"store": store}) if store else chosen
    if chosen.retriever is None:
        raise InputError("there is no retriever to ask: set `retriever:` in the settings")
    named = _variants(chosen.retriever, variants, parameters or {})
    files = open_store(chosen)
    manifest = Runs(files).current(night)
    if manifest is None:
        raise InputError(f"there is no night of {night} in the store {files.uri()}")
    build = main_build(manifest)
    if build is None:
        raise InputError(f"no row of the night of {night} names an index_build to ask")
    fallen, others, total = _needing(files, manifest, questions)
    if not fallen:
        raise InputError(
            f"no question of the night of {night} lost a passage that it needs and had before"
        )
    answers, requests = _ask(chosen, build, named, [*fallen, *others], progress)
    _refuse_silence(answers)
    scores, scored = _score(chosen, files, manifest, answers, progress)
    whatif = WhatIf(
        dataset=manifest.dataset,
        night=night,
        run=manifest.run,
        build=build,
        fallen=total,
        variants=measure_variants(answers, fallen, others, scores),
        judge=scored.judge,
        usage=scored.usage,
        requests=requests,
        at=datetime.now(UTC),
        problems=scored.problems,
    )
    save_whatif(files, whatif)
    refresh_dashboard(files, nights=[night])
    return whatif


def _variants(
    retriever: RetrieverSettings, names: Sequence[str] | None, parameters: Mapping[str, JsonValue]
) -> dict[str, Mapping[str, JsonValue]]:
    """`as now`, the named variants, and that of some parameters."""
    known = ", ".join(retriever.variants) or "none"
    for name in names or ():
        if name not in retriever.variants:
            raise InputError(f"variant {name}: not in `retriever: variants:`, which has: {known}")
    for name in parameters:
        if name not in retriever.parameters:
            has = ", ".join(retriever.parameters) or "none"
            raise InputError(f"parameter {name}: not in `retriever: parameters:`, which has: {has}")
        _check_json(name, parameters[name])
    wanted = list(retriever.variants) if names is None else names
    if parameters and names is None:
        wanted = []
    variants: dict[str, Mapping[str, JsonValue]] = {AS_NOW: {}}
    variants |= {name: retriever.variants[name] for name in wanted}
    if parameters:
        variants[", ".join(f"{name}={_text(value)}" for name, value in parameters.items())] = dict(
            parameters
        )
    if len(variants) == 1:
        raise InputError(
            "there is no variant: name some under `retriever: variants:`, or set a parameter, as "
            "in --set k=10"
        )
    return variants


def _check_json(name: str, value: object) -> None:
    """Raise InputError for a value that no request can hold. YAML reads a bare date as one."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(
            f"parameter {name}: {value} is no value of JSON; as a text, it needs quotes: "
            f"'{name}=\"{value}\"'"
        ) from None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else dump_json(value)


def _needing(
    files: Files, manifest: Manifest, most: int
) -> tuple[list[NeedingQuestion], list[NeedingQuestion], int]:
    usual = usual_nights(Runs(files).outlines(before=manifest.date))
    runs = [run_of_night(files, one) for one in usual]
    return needing_questions_of(run_of_night(files, manifest), runs, most)


def _ask(
    settings: Settings,
    build: str,
    variants: Variants,
    asked: Sequence[NeedingQuestion],
    progress: Progress | None,
) -> tuple[list[VariantAnswers], int]:
    """The answers of each variant to all questions, as rows with the references of the night."""
    answers, requests = [], 0
    for number, (name, parameters) in enumerate(variants.items()):
        if progress:
            progress(f"asking {name}", number, len(variants))
        asks = [Ask(question_of(one.row, settings.language), parameters) for one in asked]
        answered = ask_retriever(settings, build, asks, seconds=settings.deadline.total_seconds())
        requests += answered.requests
        rows = [
            answer if isinstance(answer, str) else _row(question.row, answer)
            for question, answer in zip(asked, answered.rows, strict=True)
        ]
        answers.append(VariantAnswers(name, dict(parameters), rows))
    return answers, requests


def _refuse_silence(answers: Sequence[VariantAnswers]) -> None:
    """Raise RetrieverRefused where no variant has an answer: there is nothing to score."""
    reasons = Counter(row for answer in answers for row in answer.rows if isinstance(row, str))
    asked = sum(len(answer.rows) for answer in answers)
    if asked and reasons.total() == asked:
        reason, count = reasons.most_common(1)[0]
        raise RetrieverRefused(
            f"the retriever gave no usable answer to any of {asked:,} requests; most often "
            f"({count:,}): {reason}"
        )


def _row(asked: LogRow, answer: LogRow) -> LogRow:
    """The night's row with what the retriever returns now. An old response does not fit it."""
    return replace(
        asked,
        retrieved_contexts=answer.retrieved_contexts,
        retrieved_context_ids=answer.retrieved_context_ids,
        retrieved_context_scores=answer.retrieved_context_scores,
        hop_queries=None,
        hop_sizes=None,
        response=answer.response,
    )


def _score(
    settings: Settings,
    files: Files,
    manifest: Manifest,
    answers: Sequence[VariantAnswers],
    progress: Progress | None,
) -> tuple[list[MetricScores], Manifest]:
    """The scores of all answers, each with its variant and question as a tag; their manifest."""
    rows = [
        {**row_record(row), "tags": {ASKED: f"{variant}/{number}"}}
        for variant, variant_answers in enumerate(answers)
        for number, row in enumerate(variant_answers.rows)
        if isinstance(row, LogRow)
    ]
    plain = settings.model_copy(
        update={"sample": None, "golden": None, "preset": None, "columns": {}, "shards": None}
    )
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder:
        run = temporary(plain, folder)
        ref = RunRef.of(manifest)
        corpus = corpus_of(files, ref) if settings.reads_corpus else None
        inputs = inputs_of(run, rows, Path(folder), None)
        staged = score_inputs(run, inputs, files, progress=progress, weighed_by=corpus)
        store = open_store(run)
        scored, _ = summarise_run(run, store, staged, datetime.now(UTC))
        tables = [
            load_scores(
                store, staged.ref, metric.metric, [ASKED], higher_is_better=metric.higher_is_better
            )
            for metric in scored.metrics
        ]
        return tables, scored
