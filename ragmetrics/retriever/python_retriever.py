"""A retriever that is a Python function: `function(user_input, build, **parameters)`.

It is called in threads, or on the event loop if it is asynchronous.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.http import RetryableError, environment_redactor
from ragmetrics.retriever.questions import NoAnswer, Question
from ragmetrics.retriever.templates import values_of
from ragmetrics.text import shorten

_Outcome = tuple[Any, BaseException | None]


class PythonRetriever:
    """A retriever that calls a Python function."""

    def __init__(self, settings: RetrieverSettings, build: str) -> None:
        self._entrypoint = settings.entrypoint or ""
        self._build = build
        self._parameters = settings.parameters
        self._function = load_function(self._entrypoint, settings.parameters)
        self._in_loop = _is_async(self._function)
        self._threads = Threads(self._entrypoint, settings.concurrency)

    async def ask(
        self, question: Question, parameters: Mapping[str, JsonValue] | None = None
    ) -> Any:
        """The result of the function; `parameters` replace those of the settings.

        Raises RetryableError, NoAnswer or RetrieverRefused.

        OSErrors (also ConnectionError and TimeoutError) and errors with a true `transient` are
        temporary. PermissionError means that no question will be answered.
        """
        named = {**self._parameters, **(parameters or {})}
        values = values_of(question, self._build, named)
        call = partial(
            self._function,
            question.user_input,
            self._build,
            **{name: values[name] for name in named},
        )
        result = await self._in_thread(call) if not self._in_loop else None
        try:
            if self._in_loop:
                return await call()
            return await result if inspect.isawaitable(result) else result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self._outcome(error) from error  # the function raised it, nobody cancelled
        except Exception as error:
            raise self._outcome(error) from error

    async def close(self) -> None:
        """Do nothing: the function manages its own resources."""

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        result, error = await self._threads.run(call)
        if error is not None:
            raise self._outcome(error) from error
        return result

    def _outcome(self, error: BaseException) -> Exception:
        kind = type(error).__name__
        text = f"{self._entrypoint} raised {kind}: {said_by(error)}".removesuffix(": ")
        if isinstance(error, PermissionError):
            return RetrieverRefused(text)
        if isinstance(error, OSError):
            return RetryableError("timeout" if isinstance(error, TimeoutError) else "dropped", text)
        if getattr(error, "transient", False):
            return RetryableError(kind, text)
        return NoAnswer(kind, text)


class Threads:
    """Calls a function in threads of its own, which end with the process if they hang."""

    def __init__(self, entrypoint: str, most_hung: int) -> None:
        self._entrypoint, self._most_hung = entrypoint, most_hung
        self._hung = 0
        """Number of threads that still run after a time-out; they cannot be stopped."""

    async def run(self, call: Callable[[], Any]) -> _Outcome:
        """The result of a call, or what it raised: also SystemExit, which must not end the loop.

        Raises RetrieverRefused if too many calls hang.
        """
        if self._hung >= self._most_hung:
            raise RetrieverRefused(
                f"{self._entrypoint} hangs: {self._hung} calls are over `timeout_seconds` and "
                "cannot be stopped; give it a time-out of its own"
            )
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_Outcome] = loop.create_future()

        def work() -> None:
            try:
                outcome: _Outcome = call(), None
            except BaseException as error:
                outcome = None, error
            loop.call_soon_threadsafe(deliver, outcome)

        def deliver(outcome: _Outcome) -> None:
            if waiter.done():
                self._hung -= 1
            else:
                waiter.set_result(outcome)

        threading.Thread(target=work, name="ragmetrics-replay", daemon=True).start()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._hung += waiter.cancelled()  # else the thread ended at the same moment
            raise


def said_by(error: BaseException) -> str:
    """The text of an error of the user's code, without keys of the environment that it may repeat:
    it is printed, stored with the night and sent to Slack.
    """
    return shorten(environment_redactor(os.environ).text(str(error)[:5_000]))


def load_function(
    entrypoint: str, parameters: Collection[str], first: str = "user_input"
) -> Callable[..., Any]:
    """The function of `package.module:function`, also from the working directory.

    Raises InputError that says what is wrong with it.
    """
    module_name, _, name = entrypoint.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last: it hides nothing that is installed
    try:
        function: Any = importlib.import_module(module_name)
        for part in name.split("."):
            function = getattr(function, part)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(
                f"retriever: entrypoint: there is no module {error.name}, neither installed nor "
                f"in {here}"
            ) from None
        raise InputError(f"retriever: entrypoint: {module_name}: {said_by(error)}") from error
    except AttributeError as error:
        raise InputError(f"retriever: entrypoint: {module_name}: {said_by(error)}") from error
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
        raise InputError(
            f"retriever: entrypoint: importing {module_name} raised {kind}: {said_by(error)}"
        ) from error
    _check(entrypoint, function, first, parameters)
    return function  # type: ignore[no-any-return]


def _check(entrypoint: str, function: Any, first: str, parameters: Collection[str]) -> None:
    if not callable(function):
        raise InputError(f"retriever: entrypoint: {entrypoint} is not a function")
    try:
        inspect.signature(function).bind(first, "build", **dict.fromkeys(parameters))
    except TypeError as error:
        called = ", ".join([first, "build", *parameters])
        raise InputError(
            f"retriever: entrypoint: {entrypoint} is called as function({called}), which "
            f"it does not take: {error}"
        ) from None
    except ValueError:
        return  # some functions written in C have no signature that can be read


def _is_async(function: Callable[..., Any]) -> bool:
    call: Callable[..., Awaitable[Any]] = getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
