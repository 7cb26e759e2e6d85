"""The metrics and judges that the settings choose, their fingerprints and their prices."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from ragmetrics.config import Aggregate, EmbeddingSettings, JudgeSettings, MetricChoice, Settings
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.judges import Judge, can_answer, make_embedder, make_judges, names_of
from ragmetrics.metrics import Metric, PromptOverrides, metric_families, metrics, prompts_of, select
from ragmetrics.records import EMBEDDINGS, JudgeInfo, Prompt, Usage, fingerprint
from ragmetrics.storage import AskedWays, open_store


def chosen_metrics(settings: Settings) -> list[Metric]:
    """The metrics that the settings choose, with the settings' prompt overrides, in the form for
    decision models where all judges are such.

    Raises InputError for an unknown metric and SettingsError for an invalid prompt.
    """
    chosen = select(settings.metrics)
    if settings.decides:
        chosen = [metric.by_decisions() for metric in chosen]
    if settings.prompts is None:
        return chosen
    overrides = PromptOverrides.load(settings.prompts, prompts_of(metrics().values()))
    return [replace(metric, overrides=overrides) for metric in chosen]


def scoring_only(settings: Settings, wanted: Set[str]) -> Settings:
    """The settings with only these metrics, in the settings' order and with their parameters."""
    metrics = tuple(kept for metric in settings.metrics if (kept := _of(metric, wanted)))
    return settings.model_copy(update={"metrics": metrics})


def _of(choice: MetricChoice, wanted: Set[str]) -> MetricChoice | None:
    if isinstance(choice, str):
        return choice if choice in wanted else None
    return {name: parameters for name, parameters in choice.items() if name in wanted} or None


def score_families(settings: Settings) -> list[list[str]]:
    """The names of the chosen metrics, grouped by family."""
    return [
        [metric.name for metric in family]
        for family in metric_families(chosen_metrics(settings), together=settings.asks_by_row)
    ]


def metric_fingerprints(settings: Settings, *, stored: bool = False) -> dict[str, str]:
    """The fingerprint of each chosen metric. Scores are comparable when fingerprints are equal."""
    return fingerprints_by(settings, *judge_info(settings, stored=stored))


def fingerprints_by(settings: Settings, info: JudgeInfo, embedder: str) -> dict[str, str]:
    """The fingerprint of each chosen metric by the judges of a run and the embedder's."""
    return {
        metric.name: metric.fingerprint(info.of(metric.name).fingerprint, embedder)
        for metric in chosen_metrics(settings)
    }


def judge_info(settings: Settings, *, stored: bool = False) -> tuple[JudgeInfo, str]:
    """The judges of a run, and the fingerprint of the embedder. No request is sent; how an endpoint
    was asked last is read from the store.

    Raises InputError for a metric that no judge can answer, and JudgeRefused for a judge without
    its key, unless `stored`: a fingerprint needs none.
    """
    judges = make_judges(settings, stored=stored)
    embedder = make_embedder(settings, stored=stored)
    final = judges[-len(settings.final_judges) :]
    _check_answerable(settings, [(one.name, partial(_answers, one)) for one in final])
    repeats, judge_names = [one.repeats for one in settings.panel], names_of(judges)
    names = [
        name if times == 1 else f"{name} ({times} times)"
        for name, times in zip(judge_names, repeats, strict=True)
    ]
    several, ways = len(judges) > 1, AskedWays(open_store(settings))
    compared = [
        ways.compared(judge.fingerprint) if chosen.remote else judge.fingerprint
        for judge, chosen in zip(judges, settings.panel, strict=True)
    ]
    pairs = zip(settings.panel, compared, strict=True)
    prints = [chosen.scored_fingerprint(judge) for chosen, judge in pairs]
    if settings.joined == "also":
        alone = [
            panel_fingerprint([one], [n], "mean") for one, n in zip(prints, repeats, strict=True)
        ]
        return _with_also(settings, judges, names, alone), embedder.fingerprint
    info = JudgeInfo(
        name=f"{settings.aggregate} of {', '.join(names)}" if several else names[0],
        fingerprint=panel_fingerprint(prints, repeats, settings.aggregate),
        note=_notes(judge_names, judges) if several else judges[0].note,
        panel=judge_names if several else [],
    )
    return info, embedder.fingerprint


def _with_also(
    settings: Settings, judges: Sequence[Judge], names: Sequence[str], prints: Sequence[str]
) -> JudgeInfo:
    """The first judge with the one under `also`, which scores the metrics that it cannot."""
    left = [one.name for one in chosen_metrics(settings) if not can_answer(judges[0], one.prompts)]
    also = JudgeInfo(name=names[1], fingerprint=prints[1], note=judges[1].note, metrics=left)
    return JudgeInfo(name=names[0], fingerprint=prints[0], note=judges[0].note, also=also)


def _answers(judge: Judge, prompt: Prompt[Any]) -> bool:
    return can_answer(judge, [prompt])


def _check_answerable(
    settings: Settings, judges: Sequence[tuple[str, Callable[[Prompt[Any]], bool]]]
) -> None:
    """Raise InputError for a metric whose prompts none of the judges can answer: each has its name,
    and a function that says whether it can answer a prompt.
    """
    able = {
        metric.name: any(all(map(answers, metric.prompts)) for _, answers in judges)
        for metric in chosen_metrics(settings)
    }
    if left := [name for name, can in able.items() if not can]:
        can = ", ".join(name for name in able if able[name]) or "context_relevance"
        raise InputError(
            f"metrics: the judge {judges[0][0]} cannot score {', '.join(left)}; it can score "
            f"{can}. Choose these metrics, or add another judge: under `also` of this one if it "
            "is to score the others alone, else under `judges`"
        )


def panel_fingerprint(judges: Sequence[str], repeats: Sequence[int], aggregate: Aggregate) -> str:
    """The fingerprint of a panel by those of its judges: that of a single judge without repeats,
    otherwise a digest of all judges, their repeats and the aggregate.
    """
    if len(judges) == 1 and repeats[0] == 1:
        return judges[0]
    asked = list(zip(judges, repeats, strict=True))
    return fingerprint("panel", aggregate if len(judges) > 1 else "", asked)


def _notes(names: Sequence[str], judges: Sequence[Judge]) -> str:
    named = zip(names, judges, strict=True)
    return "; ".join(f"{name}: {judge.note}" for name, judge in named if judge.note)


def add_price(settings: JudgeSettings | EmbeddingSettings, usage: Usage) -> Usage:
    """The usage with its cost in US dollars, if the settings have a price."""
    prices = settings.prices
    usd = prices.usd(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    if usd is None:
        return usage
    unknown = usage.unknown_prompt_tokens, usage.unknown_completion_tokens
    saved, lost = prices.usd_saved(usage.cached_tokens), prices.usd(*unknown)
    changes = {"usd": usd, "usd_saved": saved, "unknown_usd": lost if any(unknown) else None}
    return usage.model_copy(update=changes)


def unpaid(settings: Settings, judges: Sequence[str]) -> set[str]:
    """Of the judges of a panel, those that use no network; embeddings have a name of their own."""
    free = {name for name, one in zip(judges, settings.panel, strict=False) if not one.remote}
    return free if settings.embedder.remote else free | {EMBEDDINGS}


def check_judging(settings: Settings) -> str:
    """Which metrics the judge under `also` scores, and which one that is replaced cannot, in words;
    empty without either.

    Raises InputError for a metric that no judge can score, by the kinds of the judges, and
    SettingsError when a budget in US dollars lacks a price, also one of a replaced judge.
    """
    kinds = [(one.name, one.answers) for one in settings.final_judges]
    _check_answerable(settings, kinds)
    if settings.budget.max_usd is not None:
        _check_prices(settings)
        if settings.replaced:
            _check_prices(settings.replaced)
    return "; ".join(filter(None, [_scored_by_also(settings, kinds), _unbridged(settings)]))


def _scored_by_also(
    settings: Settings, kinds: Sequence[tuple[str, Callable[[Prompt[Any]], bool]]]
) -> str:
    if settings.joined != "also":
        return ""
    (first, answers), (second, _) = kinds
    chosen = chosen_metrics(settings)
    left = [metric.name for metric in chosen if not all(map(answers, metric.prompts))]
    if not left:
        return f"the judge {second} under `also` is not asked: {first} scores all metrics"
    return f"the judge {second} under `also` scores what {first} cannot: {', '.join(left)}"


def _unbridged(settings: Settings) -> str:
    """Why no night will have an offset to a judge that is replaced; empty where nothing is known.
    It costs no night, so it is no error.
    """
    old = settings.replaced
    try:
        if old:
            _check_answerable(old, [(one.name, one.answers) for one in old.final_judges])
    except InputError as error:
        return f"no offset to the judge under `replaces` will be known: {error}"
    return ""


def _check_prices(settings: Settings) -> None:
    """Raise SettingsError when a judge or the embedder has no price."""
    for judge in settings.panel:
        if judge.remote and judge.usd(0, 0) is None:
            missing = [
                f"usd_per_million_{kind}_tokens"
                for kind in ("prompt", "completion")
                if getattr(judge, f"usd_per_million_{kind}_tokens") is None
                and (judge.reads_prompts or kind == "prompt")
            ]
            raise SettingsError(
                f"budget: max_usd: the price of {judge.name}:{judge.model} is not known; set "
                f"{' and '.join(missing)} of the judge"
            )
    embeds = settings.embedder.remote and any(one.embeds for one in chosen_metrics(settings))
    if embeds and settings.embedder.usd_per_million_tokens is None:
        raise SettingsError(
            "budget: max_usd: the price of embeddings is not known; set embeddings: "
            "usd_per_million_tokens"
        )
