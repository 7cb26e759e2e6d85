"""`ragmetrics whatif`: which variant of the retriever would mend the questions that fell."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.console import Console

from ragmetrics.cli.options import (
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    date_option,
    err,
    out,
    print_json,
    settings_here,
)
from ragmetrics.cli.progress import progress_reporter
from ragmetrics.cli.table import print_grid
from ragmetrics.errors import InputError
from ragmetrics.messages import with_display_names
from ragmetrics.metrics import display_name
from ragmetrics.text import clean, load_yaml

if TYPE_CHECKING:
    from ragmetrics.records import VariantChange, VariantResult, WhatIf

_QUESTIONS = 200


def whatif(
    night: Annotated[date, date_option("--night", "The night.")],
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="A variant of `retriever: variants:`, may be repeated; default: all of them.",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the retriever, such as k=10; several make one variant together.",
        ),
    ] = None,
    questions: Annotated[
        int,
        typer.Option(
            "--questions",
            metavar="N",
            min=1,
            help="Ask at most so many questions that fell, and as many others.",
        ),
    ] = _QUESTIONS,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask variants of the retriever the questions that fell."""
    from ragmetrics.pipeline import whatif as run

    chosen = settings_here(settings, store)
    parameters = dict(_parameter(change) for change in changes or ())
    with progress_reporter(err, "asking", quiet=as_json) as progress:
        result = run(
            night,
            settings=chosen,
            variants=variant,
            parameters=parameters,
            questions=questions,
            progress=progress,
        )
    if as_json:
        print_json(result.as_json())
    else:
        print_whatif(out, result)


def _parameter(text: str) -> tuple[str, Any]:
    """`k=10` as a name and a value, which is read as YAML."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InputError(f"--set {clean(text, 100)}: should be NAME=VALUE, such as k=10")
    try:
        return name.strip(), load_yaml(value)
    except yaml.YAMLError as error:
        raise InputError(f"--set {clean(text, 100)}: {clean(str(error), 200)}") from None


def print_whatif(console: Console, result: WhatIf) -> None:
    """Print the verdict, a line per variant, and the changes of metrics."""
    from ragmetrics.records import whatif_sentence

    metrics = {change.metric for variant in result.variants for change in variant.kept}
    sentence = clean(with_display_names(whatif_sentence(result), metrics), 600)
    style = "bold green" if result.best else "bold yellow"
    console.print(f"{sentence[0].upper()}{sentence[1:]}", style=style)
    console.print(
        f"Night {result.night}, index build {clean(result.build, 100)}: {result.fallen:,} "
        "questions lost a passage that they need"
    )
    headers = ("variant", "fixed", "share [95%]", "others broken", "contexts")
    print_grid(console, headers, [_line(variant) for variant in result.variants])
    for title, name in (("Questions that fell", "fell"), ("Others", "kept")):
        _print_changes(console, title, [(one.name, getattr(one, name)) for one in result.variants])
    for variant in result.variants:
        if variant.failed:
            text = f"{variant.failed:,} questions without an answer: {variant.reason}"
            console.print(clean(f"{variant.name}: {text}", 300), style="yellow")
    for problem in result.problems:
        console.print(f"Problem: {clean(problem, 300)}", style="red")
    console.print(
        f"Requests: {result.requests:,} to the retriever, {result.usage.requests:,} to judges "
        f"({result.usage.answered_from_store:,} answered from the store)"
    )


def _line(one: VariantResult) -> tuple[str, ...]:
    share = "–"
    if one.share is not None:
        share = f"{one.share:.0%} [{one.low or 0:.0%}, {one.high or 0:.0%}]"
    contexts = "–" if one.contexts is None else f"{one.contexts:.1f}"
    mended, broken = f"{one.mended:,} of {one.asked:,}", f"{one.broken:,} of {one.others:,}"
    return clean(one.name, 60), mended, share, broken, contexts


def _print_changes(
    console: Console, title: str, variants: list[tuple[str, list[VariantChange]]]
) -> None:
    """Print the change of each metric of each variant from the retriever as it is now."""
    lines = [
        (
            clean(name, 60),
            display_name(change.metric),
            f"{change.difference:+.3f} [{change.low or 0:+.3f}, {change.high or 0:+.3f}]",
            f"{change.questions:,}",
        )
        for name, changes in variants
        for change in changes
        if change.difference is not None
    ]
    if lines:
        headers = (title, "metric", "change [95%]", "questions")
        print_grid(console, headers, lines, names=(0, 1))
