"""Settings of a judge, by its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from ragmetrics.config.base import SettingsModel, as_mapping, number_of_nights
from ragmetrics.config.endpoints import BaseUrl, Prices, listed_prices, url_of_environment
from ragmetrics.config.judge_kinds import (
    JUDGES,
    JudgeKind,
    PromptLayout,
    caches_from_1024_tokens,
    judge_kind,
    known_judge,
    needs_breakpoints,
    reasons,
)
from ragmetrics.errors import SettingsError
from ragmetrics.plugins import UnknownPlugin
from ragmetrics.records import Prompt, explain_validation_error, fingerprint

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
OtherJudge = Annotated[
    "SerializeAsAny[JudgeSettings] | None",
    BeforeValidator(lambda value: JudgeSettings.by_kind(value)),
]
"""A judge with the settings of its kind, beside the one that names it."""


class JudgeSettings(SettingsModel):
    """A judge: `judge: lexical`, or a mapping with more settings."""

    efforts: ClassVar[tuple[str, ...]] = get_args(Effort)
    """The values of `reasoning_effort`, least first."""

    name: str = "lexical"
    """Name of a judge: a bundled one, with what follows its colon, or one of another package."""
    model: str = "gpt-6-luna"
    """The model, by the name that the endpoint uses."""
    base_url: BaseUrl = None
    """Address of an OpenAI-compatible API, such as vLLM, Ollama or LiteLLM. None: OpenAI's."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable with the key. With `base_url` it may be unset."""
    temperature: float = Field(0.1, ge=0, le=2)
    """Sampling temperature of the model."""
    reasoning_effort: Effort | None = None
    """How much a model reasons before it answers. None: as little as it can, where its name or its
    endpoint says that it reasons. Where it lacks the value, the nearest one that it has is sent."""
    max_tokens: int = Field(1_000, ge=16)
    """Longest reply, in tokens. A request has fewer where its verdict needs fewer; a reply that
    these cut is asked for again, with all. A model that reasons gets room for that besides."""
    concurrency: int = Field(128, ge=1, le=1_000)
    """Most requests in flight in one process. The number adapts to the endpoint, up to this. It
    begins at 16 for known providers, and at 2 for other servers, which may answer one at a time."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Limit of one process. None: the endpoint's own limit."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """Limit of one process. None: the endpoint's own limit."""
    timeout_seconds: float = Field(60, gt=0)
    """Timeout of one attempt, from when the server can have begun with it. Once the endpoint's
    times are known, it is ten times its slow answers if that is less."""
    deadline_seconds: float = Field(600, gt=0)
    """Timeout of a request with all its attempts. After 1.5 times as long without one usable reply,
    the judge gets no more requests."""
    retries: int = Field(6, ge=0, le=20)
    """Attempts after the first for a transient error of the endpoint. A 429 does not count as an
    error: the request is sent again until the deadline. If the endpoint never answered, the run
    ends after a hundred failed requests, or ten that it rejects in the same words."""
    reasks: int = Field(4, ge=0, le=10)
    """Number of times that a request is sent again after an unreadable reply, with what was wrong.
    After a refusal it is sent again once. Of a prompt without any verdict no request is
    repeated after three that had no readable reply, and after twenty more ever more of them are
    not sent, until there is a verdict."""
    max_reply_bytes: int = Field(10_000_000, ge=10_000, le=1_000_000_000)
    """Largest unpacked answer of the endpoint to one request, also to a request for several
    vectors. A larger answer is not read to its end."""
    hedge: bool = True
    """Send a request a second time if it takes twice as long as nine in ten of its kind, and use
    the answer that comes first. At most one in twenty is repeated, and none under a budget of
    tokens or money. `off`: never."""
    ttl_days: int | None = Field(None, ge=1)
    """Cached replies that are older are requested again. None: replies never expire."""
    poll_seconds: float = Field(60, gt=0)
    """`openai-batch` only: seconds between two polls of a batch."""
    wait_seconds: float | None = Field(None, gt=0)
    """`openai-batch` only: longest time that a run waits for its batches. After it the run ends,
    and a later run fetches the batches. None: no limit, but 60 s in a nightly of a deployment."""
    repeats: int = Field(1, ge=1, le=100)
    """Number of times that each row is judged. Its value is the mean; the spread is stored."""
    calibration: str | None = Field(None, pattern="^fit-[0-9a-f]{12}$")
    """What `ragmetrics calibrate --fit` fitted to this judge, by its name: its scores are then
    expectations by calibrated probabilities. Only for judges that give strengths."""
    prompt_layout: PromptLayout = "auto"
    """`row_first`: requests that hold all contexts of a row begin with question and contexts, so
    that providers cache this part. `task_first`: they begin with the instructions. `auto`:
    `row_first` at OpenAI, at Azure OpenAI or with a price of cached tokens, for models before
    GPT-5.6; else `task_first`. Judges that read no prompts ignore it."""
    usd_per_million_prompt_tokens: float | None = Field(None, ge=0)
    """Price of prompt tokens, to show and limit the cost. None: that of OpenAI's list at OpenAI, if
    no price of completion tokens is set; else unknown."""
    usd_per_million_cached_tokens: float | None = Field(None, ge=0)
    """Price of prompt tokens from the endpoint's cache. None: the price of other prompt tokens."""
    usd_per_million_completion_tokens: float | None = Field(None, ge=0)
    """Price of completion tokens. None: as that of prompt tokens."""

    also: OtherJudge = None
    """A second judge, with all its settings, for a judge that cannot score every metric, such as
    `decision`: it scores the metrics that the first one cannot, and no others."""
    replaces: OtherJudge = None
    """The judge of the nights before, with all its settings. Both score a sample of the first
    nights, and trend and rules go on over the change by the offset between both. Without an `also`
    of its own it has that of today."""
    bridge: Annotated[int, BeforeValidator(number_of_nights)] = Field(7, ge=1, le=60)
    """With `replaces`: how many nights have rows of both judges, as `7 nights`."""
    bridge_rows: int = Field(500, ge=20, le=10_000)
    """With `replaces`: the most rows of a night that the old judge is asked about. Beyond `budget`
    it is not asked."""

    @model_validator(mode="after")
    def _also_is_asked(self) -> JudgeSettings:
        if self.also is None:
            return self
        if self.kind.answers_all:
            raise ValueError(f"also: has no effect: the judge {self.name} scores every metric")
        if self.also.also or self.also.replaces:
            raise ValueError("also: has no `also` and no `replaces` in it")
        return self

    @property
    def old(self) -> JudgeSettings | None:
        """The judge of `replaces`, with the one under `also` of today if it needs one and has none
        itself: asked at once, as nothing waits for an old judge.
        """
        old, also = self.replaces, self.also
        if old is None or also is None or old.also or old.kind.answers_all:
            return old
        also = also.model_copy(update={"name": also.kind.at_once or also.name})
        return old.model_copy(update={"also": also})

    @property
    def kind(self) -> JudgeKind:
        """What it can do."""
        return judge_kind(self.name)

    @property
    def argument(self) -> str:
        """What follows the colon of its name, such as the model of `local:MODEL`."""
        return self.name.partition(":")[2]

    def scored_fingerprint(self, judge: str) -> str:
        """The fingerprint of a judge and its `calibration`, on which scores depend; `judge` is that
        of the judge alone, on which its cached replies depend.
        """
        return fingerprint("calibrated", judge, self.calibration) if self.calibration else judge

    @property
    def remote(self) -> bool:
        """True for a judge that is called over a network and paid for."""
        return self.kind.remote

    @property
    def decides(self) -> bool:
        """True for a judge that answers the questions of prompts with probabilities."""
        return self.kind.decides

    def answers(self, prompt: Prompt[Any]) -> bool:
        """Whether it can answer a prompt."""
        return self.kind.answers(prompt)

    @property
    def reads_prompts(self) -> bool:
        """True for a language model: it follows instructions, and can write."""
        return self.kind.reads_prompts

    @property
    def reasons(self) -> bool:
        """True for a model that reasons, by its name."""
        return reasons(self.model)

    @property
    def planned_effort(self) -> Effort | None:
        """The effort of the first request: that of the settings, else the least one if the model
        reasons. None: no effort is sent.
        """
        return self.reasoning_effort or ("none" if self.reasons else None)

    @property
    def live(self) -> bool:
        """True for a remote judge that answers each request at once: not for a batch."""
        return self.kind.live

    @property
    def waits(self) -> bool:
        """True for a remote judge whose answers come together, hours later."""
        return self.remote and not self.live

    @property
    def teacher(self) -> JudgeSettings | None:
        """The judge whose verdicts can be learned: itself if it is paid for."""
        return self if self.remote else None

    @classmethod
    def taken_from(cls, other: JudgeSettings) -> Mapping[str, Any]:
        """What a judge of this kind takes from the settings of another one that it replaces."""
        return {}

    @classmethod
    def plugin_keys(cls) -> dict[str, str]:
        """The keys that single kinds of judges add, with the names of the kinds."""
        return {
            field.alias or key: kind.key
            for kind in JUDGES.bundled.values()
            for key, field in kind.settings.model_fields.items()
            if key not in JudgeSettings.model_fields
        }

    @property
    def begins_with_row(self) -> bool:
        """True for a judge whose requests begin with question and contexts.

        With `auto`, a recording itself says how its requests begin. Raises SettingsError if
        OPENAI_BASE_URL is needed and not a URL.
        """
        if self.prompt_layout == "auto":
            return self._is_served_by_a_cache
        return self.kind.writes and self.prompt_layout == "row_first"

    @property
    def _is_served_by_a_cache(self) -> bool:
        """True if the endpoint caches equal beginnings of 1,024 tokens. Batches are cached less,
        but have the layout of live requests: both share their replies and their trend.
        """
        if not self.reads_prompts or needs_breakpoints(self.model):
            return False
        priced = self.usd_per_million_cached_tokens is not None
        return priced or self.is_at_openai

    @property
    def is_at_openai(self) -> bool:
        """True if the endpoint is OpenAI's, or Azure's of the same models."""
        return caches_from_1024_tokens(self.base_url or url_of_environment())

    @property
    def lexical(self) -> bool:
        """True for a judge that answers by the baselines of prompts: it cannot write, and its
        replies depend on word frequencies in all rows."""
        return self.kind.lexical

    @property
    def writes(self) -> bool:
        """True for a judge whose replies are tokens that are paid for."""
        return self.kind.writes

    @property
    def prices(self) -> Prices:
        """The prices of the settings; without one of prompts or completions, those of the list. A
        kind that writes no texts has completions only at a price that is set, or listed for them.
        """
        known = Prices(
            self.usd_per_million_prompt_tokens,
            self.usd_per_million_cached_tokens,
            self.usd_per_million_completion_tokens,
        )
        if self.remote and known.prompt is None and known.completion is None:
            listed = listed_prices(self.model, self.base_url, batch=self.waits)
            known = known.or_else(listed if self.writes else listed._replace(completion=None))
        no_texts = self.remote and not self.kind.writes
        return known.or_else(Prices(completion=0.0)) if no_texts else known

    def usd(
        self, prompt_tokens: float, completion_tokens: float, cached: float = 0
    ) -> float | None:
        """Cost of tokens. `cached` prompt tokens have their own price. None: no price is known."""
        return self.prices.usd(prompt_tokens, completion_tokens, cached)

    def usd_saved(self, cached: int) -> float | None:
        """How much less cached tokens cost than other prompt tokens. None: nothing was cached, or a
        price is missing.
        """
        return self.prices.usd_saved(cached)

    @staticmethod
    def by_kind(value: object) -> object:
        """The settings of a judge by its kind, from a name or a mapping with all keys on one level.

        Raises ValidationError for a mistake, ValueError for a key of another kind of judge.
        """
        value = as_mapping(value)
        if not isinstance(value, Mapping):
            return value
        name = value.get("name", JudgeSettings.model_fields["name"].default)
        try:
            kind = judge_kind(name) if isinstance(name, str) else None
        except UnknownPlugin:
            kind = None
        model = kind.settings if kind else JudgeSettings
        keys = {one.alias or key for key, one in model.model_fields.items()} | {*model.model_fields}
        others = JudgeSettings.plugin_keys().items() if value.keys() - keys else ()
        for key, owner in others:
            if key not in keys and value.get(key) is not None:
                raise ValueError(f"{key}: has an effect on the judge {owner} only")
        unused = {key for key, _ in others if key not in keys}
        if kind and kind.problem:  # the keys of its own are not known
            unused |= value.keys() - keys
        return model.model_validate(
            {key: _from_json(key, value[key], model) for key in value if key not in unused}
        )

    _known = field_validator("name")(known_judge)


def _from_json(key: str, value: object, model: type[JudgeSettings]) -> object:
    """The value of a key; JSON in an environment variable for one of the kind that is no text."""
    fields = {one.alias or name: one for name, one in model.model_fields.items()}
    if key in JudgeSettings.model_fields or not (isinstance(value, str) and key in fields):
        return value
    annotation = fields[key].annotation
    if value[:1] not in ("[", "{") or str in (annotation, *get_args(annotation)):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


JudgeChoice = Annotated[SerializeAsAny[JudgeSettings], BeforeValidator(JudgeSettings.by_kind)]
"""A judge with the settings of its kind."""


def make_judge_section(values: Mapping[str, Any]) -> JudgeSettings:
    """Validate a judge that was named on the command line or in Python."""
    try:
        return TypeAdapter[JudgeSettings](JudgeChoice).validate_python(values)
    except ValidationError as error:
        raise SettingsError(f"judge: {explain_validation_error(error)}") from None
