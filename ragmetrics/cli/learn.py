"""`ragmetrics learn`: fits the learned judge to the verdicts in the store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from ragmetrics.cli.options import JsonFlag, SettingsFlag, StoreFlag, out, print_json, settings_here
from ragmetrics.cli.table import figures_table, with_interval
from ragmetrics.text import clean, number, plural

if TYPE_CHECKING:
    from rich.table import Table

    from ragmetrics.records import Figure, LastNight, LearnedModel, LearnedPrompt


def learn(
    settings: SettingsFlag = None, store: StoreFlag = None, as_json: JsonFlag = False
) -> None:
    """Fit the learned judge to the verdicts in the store.

    It prints how good the judge is. The judge predicts the verdicts of the settings' first judge
    over a network. No request is sent. Exit code 1 if there are too few verdicts of every prompt.
    """
    from ragmetrics.people import learn as fit
    from ragmetrics.storage import open_store

    chosen = settings_here(settings, store)
    model = fit(chosen, open_store(chosen))
    if as_json:
        print_json({"model": model.model_dump(mode="json") if model else None})
    elif model is None:
        out.print("Nothing to do: the newest version has seen all verdicts in the store.")
    else:
        _print(model)
    if model is not None and not model.prompts:
        raise typer.Exit(1)


def _print(model: LearnedModel) -> None:
    judge = clean(model.judge, 100)
    if model.prompts:
        out.print(
            f"Version {model.version}: {model.verdicts:,} verdicts of {judge}, "
            f"from {plural(len(model.nights), 'night')}."
        )
        out.print(_table(model.prompts), soft_wrap=False)
    for name, why in model.refused.items():
        out.print(f"No model of {clean(name, 60)}: {why}")


def _table(prompts: Sequence[LearnedPrompt]) -> Table:
    """A column per prompt, as `ragmetrics calibrate` has one per metric: it fits 80 columns."""
    table = figures_table("prompt", *(clean(prompt.name, 60) for prompt in prompts))
    table.add_row("verdicts", *(f"{prompt.verdicts:,}" for prompt in prompts))
    fits, figure = [prompt.quality for prompt in prompts], partial(with_interval, between="\n")
    table.add_row("AUC", *(figure(fit.auc) for fit in fits))
    table.add_row("AUC of the lexical judge", *(figure(fit.embedded_auc) for fit in fits))
    table.add_row("difference", *(figure(fit.auc_gain) for fit in fits))
    table.add_row("AUC within row", *(figure(fit.auc_within) for fit in fits))
    table.add_row("Brier", *(number(fit.brier) for fit in fits))
    table.add_row("correlation of row scores", *(figure(fit.row_correlation) for fit in fits))
    table.add_row("rows of a plain sample", *(_share(fit.row_correlation) for fit in fits))
    table.add_row("rows, lexical judge", *(_share(fit.embedded_row_correlation) for fit in fits))
    table.add_row("mean, last night", *(_last_night(prompt.last_night) for prompt in prompts))
    table.add_row("used", *("yes" if prompt.used else f"no: {prompt.why}" for prompt in prompts))
    return table


def _share(correlation: Figure) -> str:
    """The rows that a sample needs beside this judge, as a share of those of a plain one."""
    r = correlation.value
    return "-" if r is None else f"{1 - r**2:.0%}"


def _last_night(night: LastNight | None) -> str:
    if night is None:
        return "-"
    return f"{number(night.mean)}\njudge {number(night.judge_mean)}"
