"""What the code can say to a user, read from its text."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What stands in a message for a value.
GAP = "…"
#: Programs of their own, whose errors are for those who work on them.
_OTHERS = ("bench", "experiments")
#: Errors that are not of the project's own classes, but are worded for users.
_BORROWED = ("PermissionError",)
_ERRORS = ("ShedError", "EngineError", "CliError", "NoJournal", "DataError")


@dataclass(frozen=True)
class Message:
    """A message with gaps, and where it comes from."""

    text: str
    where: str

    @property
    def beginning(self) -> str:
        """Its first words: enough to find it."""
        return re.split(r"(?<=\w)\. ", self.text)[0][:25]


@functools.cache
def sources() -> list[tuple[Path, ast.Module]]:
    """All modules that users meet."""
    paths = [path for top in ("sql", "planner", "sparkshed") for path in sorted((ROOT / top).rglob("*.py"))]
    return [(path, ast.parse(path.read_text())) for path in paths if not set(_OTHERS) & set(path.parts)]


@functools.cache
def error_classes() -> set[str]:
    """The classes that errors for users are of."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = set(_ERRORS)
    while more := {name for name, own in bases.items() if own & found} - found:
        found |= more
    return found


@functools.cache
def messages() -> list[Message]:
    """What errors and warnings say."""
    errors, found = error_classes() | set(_BORROWED), []
    for path, tree in sources():
        module = _Module(tree)
        said = [text for text in module.said(errors) if len(re.findall(r"[a-z]", text)) >= 8]
        # Errors that Spark has, too, begin with their class in brackets.
        said += module.bracketed() if "engine" in path.parts else ()
        found += [Message(text, str(path.relative_to(ROOT))) for text in said]
    return found


class _Module:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._returns = {
            node.name: [own.value for own in ast.walk(node) if isinstance(own, ast.Return) and own.value]
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
        self._constants = _assigned(tree.body)

    def said(self, errors: set[str]) -> Iterator[str]:
        for outer in ast.walk(self._tree):
            own = isinstance(outer, ast.ClassDef) and outer.name in errors
            for scope in outer.body if own else [outer]:
                if isinstance(scope, ast.FunctionDef):
                    yield from self._said_in(scope, errors, own=own)

    def _said_in(self, scope: ast.FunctionDef, errors: set[str], *, own: bool) -> Iterator[str]:
        assigned = _assigned(ast.walk(scope))
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and node.args and _speaks(node.func, errors, own=own):
                known = [pair for pair in assigned if pair[0] < node.lineno]
                yield from self._texts(node.args[0], known)

    def _texts(self, node: ast.expr, known: list[tuple[int, str, ast.expr]]) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"%s|\{\}", GAP, node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.BinOp):
            yield from (text + GAP for text in self._texts(node.left, known))
        elif isinstance(node, ast.IfExp):
            yield from self._texts(node.body, known)
            yield from self._texts(node.orelse, known)
        elif isinstance(node, ast.Name):
            values = [value for _, name, value in [*self._constants, *known] if name == node.id]
            yield from self._texts(values[-1], known) if values else ()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for value in self._returns.get(node.func.id, ()):
                yield from self._texts(value, known)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        ):
            yield from self._texts(node.func.value, known)

    def bracketed(self) -> Iterator[str]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                yield from (text for text in self._texts(node, []) if re.match(r"\[[A-Z_.]{5,}\] ", text))


def _speaks(called: ast.expr, errors: set[str], *, own: bool) -> bool:
    if isinstance(called, ast.Name):
        return called.id in errors or called.id == "warn_user"
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return called.value.id == "_log" and called.attr in ("warning", "exception")
    # A class of errors may word its message itself.
    return own and isinstance(called, ast.Attribute) and called.attr == "__init__"


def _assigned(nodes: Iterable[ast.AST]) -> list[tuple[int, str, ast.expr]]:
    found = [
        (node.lineno, node.targets[0].id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    return sorted(found, key=lambda own: own[0])
