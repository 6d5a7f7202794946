"""Layers and readings of outputs of the user, from Python files that the user names.

Only the user can cause such a file to run: its path never comes from a model or its folder. A
file runs as a module of its own. Its registrations override the engine's layers until the file
is loaded again or unloaded. Open graphs keep the layers that they were built with.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from engine.atomic import format_os_error
from engine.errors import EngineError, LayerFileError
from engine.file_versions import read_regular
from engine.layers.places import USER_PACKAGE
from engine.layers.registry import drop_file, registered_files, registering
from engine.meanings.registry import drop_readings, registering_readings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from engine.layers.registry import Registration

__all__ = ["LayerFile", "layer_files", "layer_files_of", "load_layers", "unload_layers"]

_LONGEST: Final = 64 << 20  # bytes of a file


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A loaded layer file.

    Attributes
    ----------
    path : Path
        Absolute, links followed.
    types : tuple of str
        The operator types that it registers, in order.
    readings : tuple of str
        Names of the readings of outputs that it registers.
    sha256 : str
        Of the file's contents when it ran.
    """

    path: Path
    types: tuple[str, ...]
    sha256: str
    readings: tuple[str, ...] = ()


_loaded: dict[Path, LayerFile] = {}  # in the order of first loading


def load_layers(path: str | Path) -> LayerFile:
    """Run a Python file that registers layers.

    A file that was loaded before runs again, and its registrations are replaced. If anything
    fails, nothing changes.

    Parameters
    ----------
    path : path
        Of a file that decorates functions or `Layer` classes with `register`, or `Reading`
        classes with `engine.meanings.register_reading`.

    Returns
    -------
    LayerFile

    Raises
    ------
    LayerFileError
        With path, line and reason: the file cannot be read, is not Python, raises an
        exception, registers an existing type, or registers none.
    """
    given = Path(path)
    file = given.expanduser().resolve()
    text = _read_bytes(given, file)
    code = _compile_file(given, file, text)
    sha256 = hashlib.sha256(text).hexdigest()
    module = ModuleType(_make_module_name(file))
    module.__file__ = str(file)
    earlier = sys.modules.get(module.__name__)
    # Dataclasses and annotations look up their module.
    sys.modules[module.__name__] = module
    try:
        with registering(file, sha256) as table, registering_readings(file) as readings:
            _run(code, module, given)
            _require_any(table, readings, given)
    except BaseException:
        _restore(module.__name__, earlier)
        raise
    _loaded[file] = LayerFile(file, tuple(table), sha256, tuple(readings))
    return _loaded[file]


def unload_layers(path: str | Path | None = None) -> None:
    """Remove the registrations of a layer file, or of all of them.

    Parameters
    ----------
    path : path, optional
        By default all files. A file that is not loaded is ignored.
    """
    files = (
        [Path(path).expanduser().resolve()] if path is not None else list(registered_files())
    )
    for file in files:
        drop_file(file)
        drop_readings(file)
        _loaded.pop(file, None)
        sys.modules.pop(_make_module_name(file), None)


def layer_files() -> tuple[LayerFile, ...]:
    """Return the loaded layer files, in the order of first loading."""
    return tuple(_loaded.values())


def layer_files_of(table: Mapping[str, Registration]) -> tuple[LayerFile, ...]:
    """Return the layer files of a table, with the types that come from each.

    Parameters
    ----------
    table : mapping of str to Registration
        From `layer_table`. Files may have been reloaded or unloaded since.
    """
    types: dict[tuple[Path, str], list[str]] = {}
    for name, entry in table.items():
        if entry.file is not None:
            types.setdefault((entry.file, entry.sha256), []).append(name)
    return tuple(LayerFile(file, tuple(own), sha256) for (file, sha256), own in types.items())


def _make_module_name(file: Path) -> str:
    """Return a unique name for the file's module."""
    return f"{USER_PACKAGE}.{file.stem}_{zlib.crc32(str(file).encode()):08x}"


def _read_bytes(given: Path, file: Path) -> bytes:
    try:
        return read_regular(file, _LONGEST)
    except OSError as exc:
        raise LayerFileError(given, f"it cannot be read: {format_os_error(exc)}") from exc


def _compile_file(given: Path, file: Path, text: bytes) -> CodeType:
    try:
        return compile(text, str(file), "exec", dont_inherit=True)
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
        raise LayerFileError(given, _describe_error(exc), _find_line(exc, code)) from exc


def _require_any(
    table: Mapping[str, object], readings: Mapping[str, object], given: Path
) -> None:
    if not table and not readings:
        raise LayerFileError(
            given,
            'it registers no operator type: put @register("my.Operator") over a function or '
            "a Layer class",
        )


def _describe_error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, EngineError):
        return text
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def _find_line(error: BaseException, code: CodeType) -> int | None:
    """Return the deepest line of the file in an exception's traceback."""
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
