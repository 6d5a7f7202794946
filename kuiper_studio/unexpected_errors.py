"""Keeps the window up, and says so, where its own code raises what nobody expected.

Qt for Python prints an exception that leaves a slot or an override of a method of Qt, and goes
on. Somebody who started the program from a menu sees nothing of that, so it is logged too.

Before Python 3.12 an exception that C code raised, such as the IndexError of a list, has no
instance until Python code catches it. Qt for Python 6.11 ends the process when such a one
leaves two overrides, one called by the other: a ``paintEvent`` called by ``QWidget.event``,
where the widget has an ``event`` too. An override that raises it again makes one.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import traceback
from pathlib import Path
from types import FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from shiboken6 import Shiboken

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["UnexpectedErrors", "make_overrides_safe"]

_log = logging.getLogger(__name__)
_NEEDS_INSTANCES: Final = sys.version_info < (3, 12)
_HOOK: Final = "__init_subclass__"
_P = ParamSpec("_P")
_R = TypeVar("_R")


class UnexpectedErrors:
    """Logs exceptions that nothing catches, each place in the code once.

    Use it as a context manager around the event loop. Python still prints every exception.
    """

    def __init__(self) -> None:
        self._places: set[tuple[str, str, int]] = set()

    def __enter__(self) -> None:
        self._print = sys.excepthook
        self._print_thread = threading.excepthook
        sys.excepthook = self._on_error
        threading.excepthook = self._on_thread_error

    def __exit__(self, *_error: object) -> None:
        sys.excepthook = self._print
        threading.excepthook = self._print_thread

    def _on_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._print(kind, error, trace)
        if issubclass(kind, Exception):
            self._log_once(kind, error, trace)

    def _on_thread_error(self, arguments: threading.ExceptHookArgs) -> None:
        self._print_thread(arguments)
        if issubclass(arguments.exc_type, Exception):
            self._log_once(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)

    def _log_once(
        self,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        frames = traceback.extract_tb(trace)
        name, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
        place = (kind.__name__, name, line)
        if place in self._places:
            return  # a paint event would fill the log
        self._places.add(place)
        _log.error(
            "Kuiper Studio has a fault: %s (%s at %s, line %d). Files and results are kept, "
            "but something may be missing in the window. Please report it.",
            error,
            kind.__name__,
            Path(name).name,
            line,
        )


def make_overrides_safe() -> None:
    """Have overrides of methods of Qt raise instances only, in classes made before and after.

    Does nothing from Python 3.12 on, and nothing when called again.
    """
    root = Shiboken.Object
    if not _NEEDS_INSTANCES or _HOOK in vars(root):
        return

    def on_subclass(cls: type[Shiboken.Object], /, **keywords: object) -> None:
        super(root, cls).__init_subclass__(**keywords)
        _wrap_overrides(cls)

    known = list(root.__subclasses__())
    while known:
        cls = known.pop()
        known += cls.__subclasses__()
        if not cls.__module__.startswith("PySide6."):  # most, and in C++
            _wrap_overrides(cls)
    setattr(root, _HOOK, classmethod(on_subclass))


def _wrap_overrides(cls: type) -> None:
    """Wrap the Python functions of a class that stand for a method of Qt."""
    of_qt = [_methods_of_qt(base) for base in cls.__mro__[1:]]
    for name, value in list(vars(cls).items()):
        if not isinstance(value, FunctionType) or name.startswith("__"):
            continue
        if any(name in methods for methods in of_qt):
            setattr(cls, name, _raising_instances(value))


@functools.cache
def _methods_of_qt(cls: type) -> frozenset[str]:
    """Return the names of a class's own methods that are Qt's."""
    return frozenset([n for n, v in vars(cls).items() if isinstance(v, MethodDescriptorType)])


def _raising_instances(function: Callable[_P, _R]) -> Callable[_P, _R]:
    @functools.wraps(function)
    def call(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            return function(*arguments, **keywords)
        except Exception:  # noqa: TRY203 - this makes the instance
            raise

    return call
