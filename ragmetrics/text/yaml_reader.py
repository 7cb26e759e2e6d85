"""Reads YAML of users or third parties: every mistake is a YAMLError with its line.

PyYAML raises errors of Python, without a line, for an invalid date, a long number or a deep list.
Also, a few lines of nested references may expand to more than memory holds.
"""

from __future__ import annotations

from typing import Any

import yaml

_DEEPEST = 50
_MOST_NODES = 100_000
"""Most values of a document, with references expanded."""


def load_yaml(text: str) -> Any:
    """Parse a document. Raises YAMLError only, as `line 2, column 4: ...`."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise yaml.YAMLError(f"{place}{problem}") from error


class _Loader(yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._sizes: dict[int, int] = {}
        """Number of values of each finished node."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node. Raises if it is nested too deeply or expands to too many values."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark, refers = event.start_mark, isinstance(event, yaml.AliasEvent)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if refers and id(node) not in self._sizes:  # to a list or mapping that contains it
            raise yaml.composer.ComposerError(None, None, "a reference contains itself", mark)
        if node is not None and not refers:
            self._sizes[id(node)] = self._size(node, mark)
        return node

    def _size(self, node: yaml.Node, mark: yaml.Mark) -> int:
        inside = node.value if isinstance(node, yaml.CollectionNode) else ()
        flat = [part for one in inside for part in (one if isinstance(one, tuple) else (one,))]
        size = 1 + sum(self._sizes[id(part)] for part in flat)
        if size > _MOST_NODES:
            raise yaml.composer.ComposerError(None, None, "it expands to too many values", mark)
        return size

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node; errors name its line."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
            problem = str(error) if isinstance(error, ValueError) else "cannot be read as such"
            value = f"{node.value!r:.50}: {problem:.100}"
            raise yaml.constructor.ConstructorError(None, None, value, node.start_mark) from error
