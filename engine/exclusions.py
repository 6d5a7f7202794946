"""The exclusion cache: libraries that must not compute certain operators of a model.

A library that crashed in an operator would crash there again. A small JSON file in the user's
cache folder lists such libraries with their versions; a newer version is tried again. If the
file is damaged or cannot be written, the process may crash once more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from engine.atomic import write_file
from engine.backends import installed_version, libraries
from engine.backends.fusion import SubgraphName
from engine.cache import cache_folder
from engine.errors import EngineError
from engine.file_lock import locked
from engine.file_versions import read_regular
from engine.runtime import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from engine.activity import Activity
    from engine.pnnx import Graph
    from engine.runtime import RuntimeGraph

__all__ = [
    "ExclusionCache",
    "exclude_in_reference",
    "exclude_library",
    "model_key",
    "operators_at_work",
]

_SCHEMA: Final = 1
_MOST_MODELS: Final = 256
_PATIENCE: Final = 2.0  # seconds
_LARGEST_FILE: Final = 4 << 20  # bytes; a file that is larger was not written here

# By model, operator and library: the library's version.
_Table: TypeAlias = dict[str, dict[str, dict[str, str]]]


def model_key(file: Graph) -> str | None:
    """Return a key of a model by its content.

    Parameters
    ----------
    file : engine.pnnx.Graph
        ``RuntimeGraph.file``.

    Returns
    -------
    str or None
        SHA-256 of the ``.param`` and of the directory of the ``.bin``, which has the CRC-32 of
        every weight. None if the ``.param`` was changed or removed.
    """
    if file.param_version is None:
        return None
    try:
        text = file.param_version.path.read_bytes()
    except OSError:
        return None
    if not file.param_version.is_current():
        return None
    digest = hashlib.sha256(hashlib.sha256(text).digest())
    if file.archive is not None:
        digest.update(hashlib.sha256(file.archive.directory).digest())
    return digest.hexdigest()


def operators_at_work(graph: RuntimeGraph, activity: Activity) -> list[str]:
    """Return the operators that a kernel was computing.

    Parameters
    ----------
    graph : RuntimeGraph
    activity : Activity
        From the note of a crashed process.

    Returns
    -------
    list of str
        All operators of a subgraph, because any of them may be the cause; else one.
    """
    subgraph = SubgraphName.read(activity.kernel)
    if subgraph is None:
        return [activity.operator]
    return [operator.name for operator in graph.operators[subgraph.first : subgraph.last + 1]]


def exclude_library(graph: RuntimeGraph, activity: Activity) -> list[str]:
    """Exclude the library of a crashed kernel from the operators that it was computing.

    Parameters
    ----------
    graph : RuntimeGraph
    activity : Activity
        From the note of a crashed process.

    Returns
    -------
    list of str
        Names of these operators; empty if the graph has none of that name.
    """
    if all(operator.name != activity.operator for operator in graph.operators):
        return []
    operators, model = operators_at_work(graph, activity), model_key(graph.file)
    if model is not None:
        ExclusionCache().remember(model, operators, activity.library)
    return operators


def exclude_in_reference(path: str | Path, activity: Activity) -> list[str]:
    """Exclude a library as `exclude_library` does, from a reference that is a model.

    Returns
    -------
    list of str
        Names of operators; empty if the kernel was not of this reference.
    """
    try:
        return exclude_library(load(path), activity)
    except EngineError:  # whoever opens it again is told what is wrong
        return []


class ExclusionCache:
    """The file of exclusions; each call reads it, because other processes write it, too.

    Parameters
    ----------
    path : Path, optional
        File; one in `cache_folder` without.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else cache_folder() / "exclusions.json"

    @property
    def is_empty(self) -> bool:
        """Whether there are no exclusions; then no model needs a key."""
        return not self.path.exists()

    def load(self, model: str | None) -> dict[str, frozenset[str]]:
        """Return the libraries that must not compute a model's operators.

        Only for the installed version of each library.

        Parameters
        ----------
        model : str or None
            From `model_key`.

        Returns
        -------
        dict of str to frozenset of str
            By the operator's name; as `engine.Session` takes it.
        """
        operators = self._read().get(model, {}) if model is not None else {}
        installed = {name: installed_version(name) for name in libraries()} if operators else {}
        found: dict[str, frozenset[str]] = {}
        for operator, excluded in operators.items():
            same = (name for name, when in excluded.items() if installed.get(name) == when)
            if current := frozenset(same):
                found[operator] = current
        return found

    def load_for(self, graph: RuntimeGraph) -> dict[str, frozenset[str]]:
        """Return the libraries that must not compute a graph's operators, as `load` does."""
        return {} if self.is_empty else self.load(model_key(graph.file))

    def remember(self, model: str, operators: Iterable[str], library: str) -> None:
        """Exclude a library from some operators from now on.

        Parameters
        ----------
        model : str
            From `model_key`.
        operators : iterable of str
            Names; see `operators_at_work`.
        library : str
        """
        with self._turn():
            table = self._read()
            excluded = table.pop(model, {})  # what was changed last stands last
            for operator in operators:
                excluded.setdefault(operator, {})[library] = installed_version(library)
            table[model] = excluded
            self._write(table)

    def forget(self, model: str, operator: str | None = None) -> None:
        """Let libraries compute an operator of a model again, or all of its operators."""
        if self.is_empty:
            return
        with self._turn():
            table = self._read()
            operators = table.pop(model, None)
            if operators is None:
                return
            if operator is not None:
                operators.pop(operator, None)
                if operators:
                    table[model] = operators
            self._write(table)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for other processes that change the file, but not for ever."""
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_suffix(".lock"), _PATIENCE):
            yield

    def _read(self) -> _Table:
        try:
            content = json.loads(read_regular(self.path, _LARGEST_FILE))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
            return {}
        return {
            model: {
                operator: {name: str(when) for name, when in _mapping(libraries).items()}
                for operator, libraries in _mapping(operators).items()
            }
            for model, operators in _mapping(content.get("models")).items()
        }

    def _write(self, table: _Table) -> None:
        newest = dict(list(table.items())[-_MOST_MODELS:])
        with contextlib.suppress(OSError):
            text = json.dumps({"schema": _SCHEMA, "models": newest}, indent=1)
            write_file(self.path, text.encode(), durable=False)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
