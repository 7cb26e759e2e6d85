"""Models that reason, as OpenAI's current ones do: what they refuse, and what reasoning costs.

Which model a request names decides how strict the fake judge is. `Behaviour.efforts` makes every
model reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fakes.verdicts import Json

ALL = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
EFFORTS = {
    "gpt-6-luna": ("none", "low", "medium", "high", "xhigh", "max"),
    "gpt-6.1-sol": ("low", "medium", "high", "xhigh", "max"),
    "gpt-5-mini": ("minimal", "low", "medium", "high"),
}
"""The efforts that these models take. No effort in a request is `medium`."""
TOKENS = dict(zip(ALL, (0, 64, 256, 1_024, 4_096, 16_384, 65_536), strict=True))
"""Tokens of reasoning before each reply, by effort."""
CHAT_MODELS = ("gpt-4.1-mini", "gpt-4o-mini")
Refuse = Callable[..., Exception]


def check(body: Json, efforts: Sequence[str], refuse: Refuse) -> None:
    """Raise what a model answers to parameters that it does not take."""
    sent = body.get("reasoning_effort")
    if not efforts:
        if sent and body["model"] in CHAT_MODELS:
            raise refuse(400, "Unrecognized request argument supplied: reasoning_effort")
        return
    if "max_tokens" in body:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead."
        )
        raise refuse(400, message, param="max_tokens", code="unsupported_parameter")
    if sent and sent not in efforts:
        quoted = [f"'{effort}'" for effort in efforts]
        message = (
            f"Unsupported value: 'reasoning_effort' does not support '{sent}' with this model. "
            f"Supported values are: {', '.join(quoted[:-1])}, and {quoted[-1]}."
        )
        raise refuse(400, message, param="reasoning_effort", code="unsupported_value")
    if sent != "none" and body.get("temperature", 1) != 1:
        message = (
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this "
            "model. Only the default (1) value is supported."
        )
        raise refuse(400, message, param="temperature", code="unsupported_value")


def limited(body: Json, text: str, more: int = 0) -> tuple[str, int, bool]:
    """What is left of a reply by the limit of the request, the tokens of reasoning before it, and
    whether the limit cut it off. `more` is reasoning besides that of the effort.
    """
    reasoning = TOKENS[body.get("reasoning_effort") or "medium"] + more
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 128_000
    if reasoning >= limit:
        return "", limit, True
    room = 4 * (limit - reasoning)
    return text[:room], reasoning, len(text) > room
