"""Reading YAML that people write, or others for them: every mistake is a YAMLError with its line.

PyYAML raises what Python does for a date that is none, a number too long or a list nested too
deeply, and says no line. References may also name each other, so that a few lines stand for more
than memory holds.
"""

from __future__ import annotations

from typing import Any

import yaml

_DEEPEST = 50
_MOST_NODES = 100_000
"""Values of a document, each reference counted as all that it stands for."""


def load_yaml(text: str) -> Any:
    """The document of a text. Raises YAMLError, `line 2, column 4: ...`, and nothing else."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader
    except yaml.MarkedYAMLError as error:
        mark, said = error.problem_mark or error.context_mark, error.problem or error.context
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise yaml.YAMLError(f"{place}{said}") from error


class _Loader(yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._sizes: dict[int, int] = {}
        """Of the nodes that are finished: how many values each stands for."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, unless it is nested too deeply or stands for too much."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark, refers = event.start_mark, isinstance(event, yaml.AliasEvent)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if refers and id(node) not in self._sizes:  # to a list or mapping that it is in itself
            raise yaml.composer.ComposerError(None, None, "a reference stands for itself", mark)
        if node is not None and not refers:
            self._sizes[id(node)] = self._size(node, mark)
        return node

    def _size(self, node: yaml.Node, mark: yaml.Mark) -> int:
        inside = node.value if isinstance(node, yaml.CollectionNode) else ()
        flat = [part for one in inside for part in (one if isinstance(one, tuple) else (one,))]
        size = 1 + sum(self._sizes[id(part)] for part in flat)
        if size > _MOST_NODES:
            raise yaml.composer.ComposerError(None, None, "it stands for too many values", mark)
        return size

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; whatever is wrong with it is told with its line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            said = str(error) if isinstance(error, ValueError) else "cannot be read as such"
            value = f"{node.value!r:.50}: {said:.100}"
            raise yaml.constructor.ConstructorError(None, None, value, node.start_mark) from error


__all__ = ["load_yaml"]
