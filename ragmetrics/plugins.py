"""Plugins: what one file adds, be it a module of this project or an entry point of another package.

A bundled plugin is a module that has an object of its own name. One of another package is loaded
only where it is named, in a thread with a time limit. One that cannot be loaded costs only itself.
"""

from __future__ import annotations

import contextvars
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from threading import Thread
from typing import Any, Generic, TypeVar

from ragmetrics.errors import InputError
from ragmetrics.text import shorten

LOADING_SECONDS = 10.0
"""Longest time that a package may take to load its plugin."""
Made = TypeVar("Made")
Plugin = TypeVar("Plugin")


class UnknownPlugin(InputError):
    """There is no plugin of that name."""


class UnusablePlugin(InputError):
    """A plugin of another package cannot be loaded, or is not what its entry point says."""


class TookTooLong(Exception):
    """Foreign code did not end in its time."""


def in_time(work: Callable[[], Made], seconds: float) -> Made:
    """The result of foreign code, which runs in a thread of its own.

    Raises TookTooLong after so many seconds; the thread goes on, and ends with the process. Any
    error of the code is raised as it is, SystemExit and KeyboardInterrupt as RuntimeError.
    """
    result: Future[Made] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result.set_result(context.run(work))
        except Exception as error:
            result.set_exception(error)
        except BaseException as error:
            result.set_exception(RuntimeError(repr(error)))

    thread = Thread(target=run, name="ragmetrics-plugin", daemon=True)
    thread.start()
    thread.join(seconds)
    if not result.done():
        raise TookTooLong
    return result.result()


@dataclass(eq=False)
class Kind(Generic[Plugin]):
    """One kind of plugin: the modules of a bundled package, and the entry points of a group.

    Every plugin is an object of `type`, and its `name` is that of its module or entry point.
    """

    group: str
    """The entry points' group, such as `ragmetrics.metrics`."""
    package: str
    """The package of the bundled ones. A module whose name begins with `_` is no plugin."""
    type: type[Plugin] | str
    """Its class, or where that is, as `module:Class`: then it is imported with the first plugin."""
    noun: str
    """What people call it, such as `metric`."""
    refusal: Callable[[Plugin], str] = field(default=lambda plugin: "")
    """Why one of another package cannot be used; empty if it can."""
    _loaded: dict[EntryPoint, Plugin | str] = field(default_factory=dict)

    @cached_property
    def bundled_names(self) -> tuple[str, ...]:
        """The names of the bundled ones, in alphabetical order. None is imported."""
        path = import_module(self.package).__path__
        names = (module.name for module in pkgutil.iter_modules(path))
        return tuple(sorted(name for name in names if not name.startswith("_")))

    @cached_property
    def bundled(self) -> Mapping[str, Plugin]:
        """The bundled ones by name, in alphabetical order."""
        return {name: self._import(name) for name in self.bundled_names}

    @property
    def foreign_names(self) -> list[str]:
        """The names of those of other packages, in alphabetical order. None is loaded."""
        return sorted(self._points[0])

    @property
    def names(self) -> list[str]:
        """All names, in alphabetical order. None is loaded."""
        return sorted([*self.bundled_names, *self.foreign_names])

    @property
    def used_names(self) -> list[str]:
        """The names of the bundled ones and of those that this process has loaded, or tried to."""
        return sorted([*self.bundled_names, *(point.name for point in self._loaded)])

    def find(self, name: str) -> Plugin:
        """The plugin of a name; one of another package is loaded.

        Raises UnknownPlugin without one, UnusablePlugin if it cannot be used.
        """
        if name in self.bundled_names:
            return self._import(name)
        point = self._points[0].get(name)
        if point is None:
            raise UnknownPlugin(f"no {self.noun} {name!r}; there are: {', '.join(self.names)}")
        if point not in self._loaded:
            self._loaded[point] = self.load(point)
        if isinstance(plugin := self._loaded[point], str):
            raise UnusablePlugin(plugin)
        return plugin

    def load(self, point: EntryPoint) -> Plugin | str:
        """The plugin of an entry point, or why it cannot be used."""
        try:
            plugin: Any = in_time(point.load, LOADING_SECONDS)
        except TookTooLong:
            return f"{self._named(point)}: loading took over {LOADING_SECONDS:g} s"
        except Exception as error:
            return f"{self._named(point)} cannot be imported: {shorten(repr(error))}"
        if not self._fits(plugin, point.name):
            return f"{self._named(point)} is not a {self.noun} of that name"
        why = self.refusal(plugin)
        return f"{self._named(point)}: {why}" if why else plugin

    def problems(self, named: Iterable[str]) -> list[str]:
        """What is wrong with the entry points, of which only the `named` are loaded."""
        problems = list(self._points[1])
        for name in sorted(set(named) & self._points[0].keys()):
            try:
                self.find(name)
            except UnusablePlugin as error:
                problems.append(str(error))
        return problems

    def forget(self) -> None:
        """Look for entry points again, as a test does that installs a package."""
        self.__dict__.pop("_points", None)
        self._loaded.clear()

    @cached_property
    def _points(self) -> tuple[dict[str, EntryPoint], list[str]]:
        """The entry points by name, and what is wrong with those left out. Nothing is loaded."""
        points = list(entry_points(group=self.group))
        times = Counter(point.name for point in points)
        usable, problems = {}, []
        for point in points:
            if not point.name.isidentifier():  # it becomes a folder, an anchor and a label
                why = f"a {self.noun} is named like a function: letters, digits, _"
            elif point.name in self.bundled_names:
                why = f"there is already a {self.noun} of that name"
            elif times[point.name] > 1:
                why = f"several packages have a {self.noun} of that name"
            else:
                usable[point.name] = point
                continue
            problems.append(f"{self._named(point)}: {why}")
        return usable, problems

    def _named(self, point: EntryPoint) -> str:
        """`metric 'brevity' of house`."""
        package = point.dist.name if point.dist else "an unknown package"
        return f"{self.noun} {point.name!r} of {package}"

    def _import(self, name: str) -> Plugin:
        plugin = getattr(import_module(f"{self.package}.{name}"), name, None)
        if not self._fits(plugin, name):
            raise TypeError(f"{self.package}.{name} has no {self.noun} {name!r}")
        return plugin  # type: ignore[return-value]

    def _fits(self, plugin: Any, name: str) -> bool:
        kind = pkgutil.resolve_name(self.type) if isinstance(self.type, str) else self.type
        return isinstance(plugin, kind) and getattr(plugin, "name", None) == name


def hold(condition: bool, what: str) -> None:
    """Raise AssertionError with what a conformance test asks for unless it holds."""
    if not condition:
        raise AssertionError(f"this does not hold: {what}")
