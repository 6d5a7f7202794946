"""Imports pyqtgraph and the chart of vectors in steps, on the GUI thread.

Classes of Qt are defined on this thread only, and pyqtgraph both defines some and touches
every class of Qt, which PySide6 makes when it is first touched. Before Python 3.12 PySide6
keeps what it knows of a class in a table without a lock. It looks an object's class up there
whenever Qt asks for its meta-object, without holding the interpreter. A class that another
thread adds at that moment may move the table, and the lookup ends the process.
"""

from __future__ import annotations

import ast
import importlib
import sys
from importlib.util import find_spec, module_from_spec
from time import perf_counter
from typing import TYPE_CHECKING, Final

from kuiper_studio.plain_imports import plain_imports
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PySide6.QtCore import QObject

__all__ = ["import_chart", "import_chart_in_turns"]

_PACKAGE: Final = "pyqtgraph"
_CHART: Final = "kuiper_studio.tensor_view.vector_chart"
_MIRRORED: Final = ("PySide6.QtCore", "PySide6.QtGui", "PySide6.QtWidgets")
_TURN: Final = 0.004  # seconds


def import_chart_in_turns(owner: QObject, then: Callable[[], None]) -> None:
    """Import the chart in turns of the event loop, which take a few milliseconds each.

    Parameters
    ----------
    owner : QObject
        Nothing goes on once it is gone.
    then : callable
        Called when all is imported.
    """
    if _import_until(perf_counter() + _TURN):
        then()
    else:
        take_turn(owner, lambda: import_chart_in_turns(owner, then))


def import_chart() -> None:
    """Import what is left to import of the chart."""
    _import_until(None)


def _import_until(end: float | None) -> bool:
    """Take steps until a time, or all of them; whether all are taken."""
    with plain_imports():
        for _ in _steps:
            if end is not None and perf_counter() > end:
                return False
    return True


def _take_steps() -> Iterator[None]:
    """Import the chart; each step is one that an iterator takes."""
    importlib.import_module("numpy.ma")  # `np.unique` would, when the first vector is drawn
    yield
    if _PACKAGE not in sys.modules:
        for name in _MIRRORED:
            module = importlib.import_module(name)
            for attribute in dir(module):
                getattr(module, attribute)
                yield
        yield from _run_package()
    importlib.import_module(_CHART)


def _run_package() -> Iterator[None]:
    """Import pyqtgraph, a statement of its main module at a time.

    Where there is no source of it, the chart imports it in one step.
    """
    spec = find_spec(_PACKAGE)
    source = getattr(spec and spec.loader, "get_source", lambda _name: None)(_PACKAGE)
    if spec is None or source is None:
        return
    module = sys.modules[_PACKAGE] = module_from_spec(spec)
    try:
        for statement in ast.parse(source).body:
            code = ast.Module([statement], [])
            compiled = compile(code, spec.origin or _PACKAGE, "exec", dont_inherit=True)
            exec(compiled, vars(module))  # noqa: S102 - as its import would
            yield
    except Exception:
        del sys.modules[_PACKAGE]
        raise


_steps: Final = _take_steps()
