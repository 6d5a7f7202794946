"""Layers of the user's own, from Python files that the user names.

Running such a file is an act of the user: no path to one is ever taken from a model or its
folder. A file is run as a module of its own; what it registers lies over the engine's
layers until the file is loaded again or unloaded. Graphs that are open keep the layers they
were built with.
"""

from __future__ import annotations

import sys
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from engine.atomic import spoken
from engine.errors import EngineError, LayerFileError
from engine.layers.places import USER_PACKAGE
from engine.layers.registry import drop_file, registered_files, registering

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

__all__ = ["LayerFile", "layer_files", "load_layers", "unload_layers"]


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A user's file of layers that is loaded.

    Attributes
    ----------
    path : Path
        Absolute, links followed.
    types : tuple of str
        The operator types that it registers, in order.
    """

    path: Path
    types: tuple[str, ...]


def load_layers(path: str | Path) -> LayerFile:
    """Run a Python file that registers layers.

    A file that was loaded before is run anew and replaces what it registered then. When
    anything goes wrong, everything is as it was before.

    Parameters
    ----------
    path : path
        Of a file that decorates functions or `Layer` classes with `register`.

    Returns
    -------
    LayerFile

    Raises
    ------
    LayerFileError
        With path, line and reason: the file cannot be read, is not Python, raises an
        exception, registers a type that is taken, or registers none.
    """
    given = Path(path)
    file = given.expanduser().resolve()
    code = _compiled(given, file)
    module = ModuleType(_module_name(file))
    module.__file__ = str(file)
    earlier = sys.modules.get(module.__name__)
    # Data classes and annotations look their module up.
    sys.modules[module.__name__] = module
    try:
        with registering(file) as table:
            _run(code, module, given)
            _require_types(table, given)
    except BaseException:
        _restore(module.__name__, earlier)
        raise
    return LayerFile(file, tuple(table))


def unload_layers(path: str | Path | None = None) -> None:
    """Forget what a user's file registered, or what all of them did.

    Parameters
    ----------
    path : path, optional
        All files when not given; one that is not loaded is passed over.
    """
    files = (
        [Path(path).expanduser().resolve()] if path is not None else list(registered_files())
    )
    for file in files:
        drop_file(file)
        sys.modules.pop(_module_name(file), None)


def layer_files() -> tuple[LayerFile, ...]:
    """The user's files that are loaded, in the order they were first loaded."""
    return tuple(LayerFile(file, types) for file, types in registered_files().items())


def _module_name(file: Path) -> str:
    """Name for the file's module, its own although files may share their name."""
    return f"{USER_PACKAGE}.{file.stem}_{zlib.crc32(str(file).encode()):08x}"


def _compiled(given: Path, file: Path) -> CodeType:
    try:
        return compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except OSError as exc:
        raise LayerFileError(given, f"it cannot be read: {spoken(exc)}") from exc
    except SyntaxError as exc:
        raise LayerFileError(
            given, f"{type(exc).__name__}: {exc.msg}", exc.lineno or None
        ) from exc
    except (ValueError, RecursionError, MemoryError) as exc:
        raise LayerFileError(given, f"it is not Python: {exc}") from exc


def _run(code: CodeType, module: ModuleType, given: Path) -> None:
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user asked for it
    except (Exception, SystemExit) as exc:
        raise LayerFileError(given, _reason(exc), _line(exc, code)) from exc


def _require_types(table: Mapping[str, object], given: Path) -> None:
    if not table:
        raise LayerFileError(
            given,
            'it registers no operator type: put @register("my.Operator") over a function or '
            "a Layer class",
        )


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, EngineError):
        return text
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def _line(error: BaseException, code: CodeType) -> int | None:
    """Deepest line of the file that led to an exception."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == code.co_filename
    ]
    return lines[-1] if lines else None


def _restore(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module
