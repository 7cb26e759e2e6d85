"""The live judge: any OpenAI-compatible endpoint through the openai SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.base import Reply, fingerprint
from ragmetrics.protocol import Ask

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic import SecretStr

    from ragmetrics.judge_settings import JudgeSettings

# What servers offer for structured output, best first; the first refusal of one turns to the next.
_FORMATS = ("json_schema", "json_object", "text")


def make_client(
    settings: JudgeSettings, base_url: str | None, key: SecretStr | None
) -> AsyncOpenAI:
    """A client of the endpoint; JudgeRefused where it cannot be made, as without a key."""
    from openai import AsyncOpenAI

    if key is None and base_url is None:
        raise JudgeRefused(
            f"the judge openai needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    return AsyncOpenAI(
        # Servers at home need no key, but the SDK does.
        api_key=key.get_secret_value() if key else "none",
        base_url=base_url,
        timeout=settings.timeout_seconds,
        max_retries=settings.retries,
    )


class LiveJudge:
    """Asks one endpoint, one call per request; transient errors are retried by the SDK."""

    note = ""
    keeps = True

    def __init__(self, client: AsyncOpenAI, settings: JudgeSettings) -> None:
        self.name = f"openai:{settings.model}"
        self.concurrency = settings.concurrency
        self.fingerprint = fingerprint(
            "openai",
            settings.model,
            str(client.base_url),
            settings.temperature,
            settings.max_tokens,
        )
        self._client = client
        self._settings = settings
        self._format = 0
        self._reached = False

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Put the prompt first and the data in the user turn; return the reply's text."""
        from openai import BadRequestError

        while True:
            form = self._format
            try:
                with told(self._settings.model, reached=self._reached):
                    response = await self._client.chat.completions.create(
                        **self._parameters(request, _FORMATS[form])
                    )
                    reply = _read(response)
                break
            except JudgeError as error:
                # Another request may have turned to the next form meanwhile.
                refused = isinstance(error.__cause__, BadRequestError)
                if not refused or "response_format" not in str(error) or form + 1 == len(_FORMATS):
                    raise
                self._format = max(self._format, form + 1)
        self._reached = True
        return reply

    def _parameters(self, request: Ask, form: str) -> dict[str, Any]:
        prompt = request.prompt
        formats: dict[str, dict[str, Any]] = {
            "json_schema": {
                "type": "json_schema",
                "json_schema": {"name": prompt.name, "schema": prompt.schema, "strict": True},
            },
            "json_object": {"type": "json_object"},
        }
        wanted = form in formats and not prompt.verbatim
        structured = {"response_format": formats[form]} if wanted else {}
        return {
            "model": self._settings.model,
            "temperature": self._settings.temperature,
            "max_tokens": self._settings.max_tokens,
            "messages": prompt.messages(request.data),
            **structured,
        }

    def evidence(self, request: Ask) -> None:
        """Nothing: its verdict is all it says."""

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()


def _read(response: Any) -> Reply:
    if not hasattr(response, "choices"):  # the SDK passes on what is not JSON as a text
        raise ValueError(str(response)[:100])
    usage = response.usage
    choices = response.choices or []
    return Reply(
        text=(choices[0].message.content or "") if choices else "",
        prompt_tokens=usage.prompt_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
    )


@contextmanager
def told(model: str, *, reached: bool = True) -> Iterator[None]:
    """Turn the SDK's errors into ours: refused where no request can succeed, else transient.

    An address where no request has `reached` a server yet is refused like a wrong one.
    """
    import openai

    try:
        yield
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise JudgeRefused(f"the judge refused the key: {_short(error)}") from error
    except openai.NotFoundError as error:
        raise JudgeRefused(f"the judge has no model {model!r} there: {_short(error)}") from error
    except openai.APITimeoutError as error:
        raise JudgeError(f"the judge did not answer in time: {error}", transient=True) from error
    except openai.APIConnectionError as error:
        address = error.request.url if error.request else "the judge"
        kind = JudgeError if reached else JudgeRefused
        raise kind(f"no connection to {address}: {error.__cause__ or error}") from error
    except openai.APIStatusError as error:
        transient = error.status_code in (408, 409, 429) or error.status_code >= 500
        raise JudgeError(
            f"the judge answered {error.status_code}: {_short(error)}", transient=transient
        ) from error
    except (openai.OpenAIError, ValueError) as error:
        # A login page or a proxy says 200 too; before any good answer, the address is wrong.
        kind = JudgeError if reached else JudgeRefused
        raise kind(
            f"the judge's answer is not that of an OpenAI-compatible server, is base_url right? "
            f"({_short(error)})"
        ) from error


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]} ..."
