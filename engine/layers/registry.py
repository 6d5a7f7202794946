"""The registry: the table from operator type to code.

Each operator's file registers its types with a decorator. Registering a type twice is an error
at import. Register either a function with PyTorch's argument names, or a `Layer` class whose
``__init__`` has parameters and attributes by name and whose ``forward`` has the operands (see
`engine.layers.binding`). Code that draws random numbers has an argument annotated
``numpy.random.Generator``.

A layer file of the user (`engine.layers.user_layers`) overrides the engine's own layers. Its
registrations apply as a whole or not at all, until the file is unloaded.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import RegistrationError, UnsupportedOperatorError
from engine.layers.binding import Orders, bind
from engine.layers.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from engine.layers.layer import OperatorCall
    from engine.values import Value

__all__ = [
    "Registration",
    "build_layer",
    "drop_file",
    "layer_table",
    "register",
    "registered_files",
    "registered_types",
    "registering",
    "registration",
]

Target = TypeVar("Target", bound="Callable[..., Any]")
Table = dict[str, "Registration"]


@dataclass(frozen=True, slots=True)
class Registration:
    """Registration of an operator type.

    Attributes
    ----------
    type : str
    target : callable
        A function, or a `Layer` class.
    file : Path or None
        The user's file that registers it; None for the engine's own.
    replaces : bool
        Whether it may replace another registration.
    random_unless : mapping of str to Value
        See `register`.
    orders : tuple of tuple of str
        Argument names of unnamed operands; see `register`.
    unused : tuple of str
        Arguments of a file without effect; see `register`.
    sha256 : str
        Of `file` when it was run; ``""`` for the engine's own.
    """

    type: str
    target: Callable[..., Any]
    file: Path | None = None
    replaces: bool = False
    random_unless: Mapping[str, Value] = field(default_factory=dict)
    orders: Orders = ()
    unused: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def place(self) -> str:
        """Location of the code for errors: ``engine.layers.fold.fold``, ``Gate in my.py``."""
        name = getattr(self.target, "__qualname__", repr(self.target))
        return (
            f"{name} in {self.file.name}" if self.file else f"{self.target.__module__}.{name}"
        )


class _Registry:
    """The engine's own registrations, overridden by those of the user's files.

    Attributes
    ----------
    current : dict of str to Registration
        The effective registrations of imported modules. Replaced as a whole when a file is
        loaded or unloaded, so that other threads see all of a file or nothing.
    """

    def __init__(self) -> None:
        self.current: Table = {}
        self._is_complete = False
        self._lock = RLock()
        self._own: Table = {}
        self._files: dict[Path, Table] = {}

    def complete(self) -> Table:
        """Import every module of the package once; return the effective registrations."""
        if not self._is_complete:
            with self._lock:  # reentrant: imported modules register while it is held
                if not self._is_complete:
                    package = importlib.import_module(__package__)
                    for module in pkgutil.iter_modules(package.__path__):
                        importlib.import_module(f"{__package__}.{module.name}")
                    self._is_complete = True
        return self.current

    def add(self, entry: Registration) -> None:
        """Add a registration of the engine."""
        if not entry.replaces:
            _refuse(entry, self.current.get(entry.type))
        self._own[entry.type] = entry
        if all(entry.type not in table for table in self._files.values()):
            self.current[entry.type] = entry

    def check(self, entry: Registration) -> None:
        """Refuse types that are already registered, unless the file replaces them explicitly.

        Files have the order in which they were first loaded; loading again does not change it.
        """
        files = list(self._files)
        place = files.index(entry.file) if entry.file in self._files else len(files)
        if not entry.replaces:
            for below in (self._own, *(self._files[file] for file in files[:place])):
                _refuse(entry, below.get(entry.type))
        for file in files[place + 1 :]:
            above = self._files[file].get(entry.type)
            if above is not None and not above.replaces:
                _refuse(entry, above)

    def put_file(self, file: Path, table: Table) -> None:
        """Replace a file's registrations."""
        self._files[file] = table
        self._merge()

    def drop_file(self, file: Path) -> None:
        """Remove a file's registrations."""
        self._files.pop(file, None)
        self._merge()

    def files(self) -> dict[Path, Table]:
        """Return the registrations of each file, in order."""
        return dict(self._files)

    def _merge(self) -> None:
        merged = dict(self._own)
        for table in self._files.values():
            merged.update(table)
        self.current = merged


def _refuse(entry: Registration, taken: Registration | None) -> None:
    if taken is not None:
        raise RegistrationError(
            f"{entry.type!r} is already registered by {taken.place}; "
            "register(…, replace=True) replaces it"
        )


_registry = _Registry()

# The running file and its SHA-256, with its registrations so far.
_recording: ContextVar[tuple[Path, str, Table] | None] = ContextVar("recording", default=None)


def register(
    *types: str,
    replace: bool = False,
    random_unless: Mapping[str, Value] | None = None,
    operands: str | tuple[str, ...] = (),
    unused: str = "",
) -> Callable[[Target], Target]:
    """Register a function or a `Layer` class for operator types.

    Parameters
    ----------
    *types : str
        Operator types as the file writes them, e.g. ``"nn.ReLU", "F.relu"``.
    replace : bool
        Whether to replace an existing registration.
    random_unless : mapping of str to Value, optional
        For code with a generator: values of arguments, each of which alone prevents drawing,
        such as ``{"training": False, "p": 0}``.
    operands : str or tuple of str, optional
        Argument names of unnamed operands in order, separated by spaces: ``"input weight bias
        eps _"``, with ``_`` for an operand without effect. The default is the order of the
        code's arguments. Pass several lists for overloads of raw ``aten::`` operators; the
        shortest list that is long enough applies.
    unused : str, optional
        Arguments without effect that the code does not have, separated by spaces (``"device
        layout"``). Their values in a file are checked and dropped
        (`engine.layers.binding.NO_EFFECT` lists the allowed values; other names allow any).
        Unnamed operands after the code's own arguments are bound to them.

    Raises
    ------
    RegistrationError
        If a type is already registered and `replace` is false, if there is no type, or if the
        target is neither a function nor a `Layer` that can be built.
    """
    lists = (operands,) if isinstance(operands, str) else operands
    orders = tuple(sorted((tuple(names.split()) for names in lists), key=len))
    given: tuple[object, ...] = types  # @register without a call passes the function itself
    if not all(isinstance(name, str) and name for name in given or ("",)):
        raise RegistrationError('state the operator types: @register("my.Operator")')

    def decorate(target: Target) -> Target:
        _check_target(target)
        recording = _recording.get()
        file, sha256, table = recording or (None, "", {})
        for operator_type in types:
            entry = Registration(
                operator_type,
                target,
                file=file,
                replaces=replace,
                random_unless=random_unless or {},
                orders=orders,
                unused=tuple(unused.split()),
                sha256=sha256,
            )
            if recording is None:
                _registry.add(entry)
                continue
            if not replace:
                _refuse(entry, table.get(operator_type))
            _registry.check(entry)
            table[operator_type] = entry
        return target

    return decorate


def _check_target(target: object) -> None:
    if not callable(target):
        raise RegistrationError(f"{target!r} is neither a function nor a Layer class")
    if not isinstance(target, type):
        return
    if not issubclass(target, Layer):
        raise RegistrationError(
            f"{target.__qualname__} is not a Layer: write class {target.__qualname__}(Layer)"
        )
    if inspect.isabstract(target):
        raise RegistrationError(f"{target.__qualname__} has no method forward(self, input, …)")


@contextmanager
def registering(file: Path, sha256: str) -> Iterator[Table]:
    """Collect the registrations of a file in a block; apply all or none at the end.

    Parameters
    ----------
    file : Path
        Resolved path. Its earlier registrations are replaced.
    sha256 : str
        Of the file's contents.

    Yields
    ------
    dict of str to Registration
        The registrations of the block so far.
    """
    _registry.complete()  # the file's registrations are checked against it
    table: Table = {}
    token = _recording.set((file, sha256, table))
    try:
        yield table
    finally:
        _recording.reset(token)
    _registry.put_file(file, table)


def drop_file(file: Path) -> None:
    """Remove a file's registrations; replaced ones become effective again."""
    _registry.drop_file(file)


def registered_files() -> dict[Path, Table]:
    """Return the user's files with their registrations, in the order of first loading."""
    return _registry.files()


def registration(operator_type: str) -> Registration | None:
    """Return the registration of an operator type, or None."""
    return _registry.complete().get(operator_type)


def registered_types() -> tuple[str, ...]:
    """Return all operator types that have a layer, sorted."""
    return tuple(sorted(_registry.complete()))


def layer_table() -> Mapping[str, Registration]:
    """Return the current registrations by type; later loading does not change the result."""
    return _registry.complete()


def build_layer(call: OperatorCall, table: Mapping[str, Registration] | None = None) -> Layer:
    """Build the layer of an operator.

    Parameters
    ----------
    call : OperatorCall
    table : mapping of str to Registration, optional
        From `layer_table`; by default the current registrations.

    Raises
    ------
    UnsupportedOperatorError
        If its type is not registered.
    ParameterError
        If a parameter or attribute is missing, invalid or unknown.
    """
    table = table or _registry.complete()
    entry = table.get(call.type)
    if entry is None:
        raise UnsupportedOperatorError(call.name, call.type, table)
    return bind(entry.target, call, entry.random_unless, entry.orders, entry.unused)
