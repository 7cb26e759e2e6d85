"""Kinds of judges: what one file of `judges/kinds/` declares, which kind a name means, and whose
providers cache equal beginnings of prompts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ragmetrics.errors import JudgeRefused
from ragmetrics.plugins import Kind, UnknownPlugin, UnusablePlugin

if TYPE_CHECKING:
    from ragmetrics.config.judge import JudgeSettings
    from ragmetrics.config.settings import Settings


def _anything_goes(judge: JudgeSettings, settings: Settings) -> None:
    """No other setting conflicts with the judge."""


def _no_files(request: object) -> Mapping[str, str]:
    return {}


def _always(prompt: object) -> bool:
    return True


def _never(argument: str) -> bool:
    return False


@dataclass(frozen=True)
class JudgeKind:
    """A kind of judge: its settings, how one is made, and what it can do.

    Nothing else asks for the name of a judge: code asks what its kind can do.
    """

    name: str
    make: Callable[[Any, Any], Any]
    """The judge of some settings and of `JudgeParts` (see `judges.base`). Raises JudgeRefused if it
    lacks its key or its extra."""
    settings: type[Any]
    """`JudgeSettings`, or a subclass with keys of its own."""
    stored: str = ""
    """Its name in settings and results, where that is not `name`."""
    former: str = ""
    """Another name, which settings and stores of earlier versions have."""
    argument: str = ""
    """What may follow a colon in the name of a judge, such as the MODEL of `local:MODEL`."""
    argument_only: bool = False
    """Whether the name is valid only with an argument."""
    is_place: Callable[[str], bool] = _never
    """Whether an argument is a path, relative to the folder of the settings file."""
    remote: bool = False
    """Whether it is called over a network and paid for."""
    live: bool = False
    """Whether a remote one answers each request at once, and not by a batch."""
    reads_prompts: bool = False
    """Whether it is a language model at an endpoint: it follows instructions, and can write."""
    writes: bool = False
    """Whether its replies are texts. Others have no completion to be paid for."""
    lexical: bool = False
    """Whether it answers by the baselines of prompts: its replies depend on word frequencies."""
    free: bool = False
    """Whether it is so quick that it scores all rows of a sampled night too."""
    fitted: bool = False
    """Whether its model is fitted to other verdicts, and kept in the store."""
    answers: Callable[[Any], bool] = _always
    """Whether it can answer a `Prompt`: others are refused before a night."""
    forecast: Callable[[Any], Callable[[Any], Awaitable[Any]]] | None = None
    """For a judge of which several requests share one that is sent: for its settings, a function
    that gives the `Reply` to an `Ask` without sending it, with the tokens alone."""
    decides: bool = False
    """Whether it answers the questions of prompts with probabilities, those of a row together."""
    at_once: str = ""
    """For a judge by batches, the kind that asks the same endpoint at once; else empty."""
    embedder: str = ""
    """The embedder that is used with it unless `embeddings` names one."""
    seconds_per_kb: float = 0.004
    """Compute time for a kB of text on one core of 2024."""
    check: Callable[[Any, Any], None] = _anything_goes
    """Raises SettingsError where other settings conflict with the judge."""
    probe: Callable[..., Awaitable[str]] | None = None
    """Asks the endpoint of a remote one whether it answers, for `doctor`; with `ask=True` for a
    small reply. None: with `ask=True` the judge is asked for the grade of one context."""
    ends: Callable[[Any], Coroutine[Any, Any, date | None]] | None = None
    """The day on which its model is shut down, as the endpoint of a remote one says; None: none is
    announced. Raises JudgeError where the endpoint does not say it."""
    problem: str = ""
    """Why the judge of another package cannot be loaded; then no judge can be made."""
    sample: Mapping[str, Any] | None = None
    """Settings for the conformance test, with `{url}` for an address and `{folder}` for a folder
    with `sample_files`, which is the store."""
    sample_files: Callable[[Any], Mapping[str, str]] = _no_files
    """The files that the sample needs to answer a request, by their path."""

    @property
    def answers_all(self) -> bool:
        """Whether it can answer every prompt; only a bundled one is known to."""
        return self.answers is _always and self.name in JUDGES.bundled_names

    @property
    def docs(self) -> str:
        """What it is: the docstring of its module."""
        return sys.modules[self.make.__module__].__doc__ or ""

    @property
    def key(self) -> str:
        """Its name in settings and results."""
        return self.stored or self.name


def _refusal(kind: JudgeKind) -> str:
    """Why a judge of another package cannot be used: it would not be found by its stored name."""
    return "only a bundled judge may have stored or former" if kind.stored or kind.former else ""


JUDGES: Kind[JudgeKind] = Kind(
    "ragmetrics.judges", "ragmetrics.judges.kinds", JudgeKind, "judge", _refusal
)


def judge_kind(name: str) -> JudgeKind:
    """The kind of a judge by its name, such as `local:MODEL`. Raises UnknownPlugin.

    A kind of another package that cannot be loaded has the common settings, and making its judge
    raises JudgeRefused.
    """
    head = name.partition(":")[0]
    for kind in JUDGES.bundled.values():
        if head and head in (kind.key, kind.name, kind.former):
            return kind
    try:
        return JUDGES.find(head)
    except UnusablePlugin as error:
        return _unusable(head, str(error))


def _unusable(name: str, problem: str) -> JudgeKind:
    from ragmetrics.config.judge import JudgeSettings

    def refuse(judge: Any, parts: Any) -> Any:
        raise JudgeRefused(problem)

    return JudgeKind(name, refuse, JudgeSettings, problem=problem)


def known_judge(name: str) -> str:
    """The name of a judge as results have it. Raises ValueError for an unknown one."""
    _, colon, argument = name.partition(":")
    try:
        kind = judge_kind(name)
    except UnknownPlugin:
        raise ValueError(f"should be {_choices()}") from None
    if (colon and not kind.argument) or (kind.argument_only and not argument):
        raise ValueError(f"should be {_choices()}")
    return f"{kind.key}{colon}{argument}"


def is_lexical(name: str) -> bool:
    """Whether the judge of a stored name answers by the overlap of words, and is no model."""
    try:
        return judge_kind(name).lexical
    except UnknownPlugin:
        return False


def _choices() -> str:
    """`learned, lexical, local, ..., local:MODEL or recorded:PATH`."""
    kinds = list(JUDGES.bundled.values())
    names = [one.key for one in kinds if not one.argument_only] + JUDGES.foreign_names
    *first, last = [*sorted(names), *(f"{one.key}:{one.argument}" for one in kinds if one.argument)]
    return f"{', '.join(first)} or {last}"


PromptLayout = Literal["auto", "task_first", "row_first"]
_HOSTS = ("openai.com", "openai.azure.com")
_GPT = re.compile(r"\bgpt-(\d)(?:\.?(\d+))?")  # Azure's names have no dot: gpt-41
_FIRST_WITH_BREAKPOINTS = (5, 6)
_FIRST_THAT_REASONS = (5, 0)
_O_SERIES = re.compile(r"(?:^|[/:])o[1-9](?:-|$)")


def caches_from_1024_tokens(base_url: str | None) -> bool:
    """True if the provider at an address caches equal beginnings so. None: OpenAI's own API."""
    host = urlsplit(base_url).hostname or "" if base_url else _HOSTS[0]
    return any(host == one or host.endswith(f".{one}") for one in _HOSTS)


def needs_breakpoints(model: str) -> bool:
    """True for OpenAI's models from GPT-5.6: their cache finds an equal beginning only where a
    request marks its end, and ours mark none.
    """
    return _gpt_version(model) >= _FIRST_WITH_BREAKPOINTS


def reasons(model: str) -> bool:
    """True for OpenAI's models that reason: GPT-5 and later, and the o series."""
    later = _gpt_version(model) >= _FIRST_THAT_REASONS
    return later or _O_SERIES.search(model.casefold()) is not None


def _gpt_version(model: str) -> tuple[int, int]:
    match = _GPT.search(model.casefold())
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def file_and_judge(place: str) -> tuple[Path, str]:
    """Split `PATH` or `PATH#JUDGE` into path and judge; the judge is empty for `PATH`."""
    path = Path(place)
    if path.exists() or "#" not in place:
        return path, ""
    name, _, judge = place.partition("#")
    return Path(name), judge
