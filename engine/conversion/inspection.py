"""Inspects a file to convert: its kind and its inputs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from engine.atomic import format_os_error
from engine.conversion.onnx_file import read_onnx
from engine.conversion.onnx_weights import FilePart, write_parts
from engine.conversion.torchscript_file import ZIP, read_torchscript
from engine.errors import ConversionError
from engine.foreign_files import PICKLED, explain_foreign
from engine.paths import exists, is_file

if TYPE_CHECKING:
    from pathlib import Path

    from engine.conversion.onnx_file import OnnxFile
    from engine.conversion.source_inputs import SourceInput

__all__ = ["SourceFile", "inspect"]

_PICKLE: Final = b"\x80"
_HEAD: Final = 256  # bytes that tell what a file is


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that pnnx may convert.

    Attributes
    ----------
    path : Path
    kind : {"torchscript", "onnx"}
    inputs : tuple of SourceInput
        Those that are known.
    has_shapes : bool
        Whether the file says the sizes of all its inputs.
    is_traced : bool
        Whether it is traced TorchScript.
    parts : tuple of bytes or FilePart
        The file with the weights beside it in itself; empty if there are none beside it.
    trains : bool
        Whether it is TorchScript that was traced in training mode.
    branches : bool
        Whether it is scripted TorchScript with branches or loops.
    output_count : int, optional
        Known of ONNX.
    """

    path: Path
    kind: Literal["torchscript", "onnx"]
    inputs: tuple[SourceInput, ...]
    has_shapes: bool
    is_traced: bool = False
    parts: tuple[bytes | FilePart, ...] = ()
    trains: bool = False
    branches: bool = False
    output_count: int | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself, and those beside it that hold its weights."""
        places = (part.path for part in self.parts if isinstance(part, FilePart))
        return tuple(dict.fromkeys((self.path, *places)))

    def copy_to(self, target: Path) -> None:
        """Write one file with all weights.

        Raises
        ------
        OSError
            If it cannot be read or written.
        """
        if self.parts:
            write_parts(self.parts, target)
        else:
            shutil.copyfile(self.path, target)


def inspect(path: Path) -> SourceFile:
    """Inspect a file without unpickling or executing anything in it.

    Raises
    ------
    ConversionError
        If it cannot be read, is incomplete, or nothing in it can be converted.
    """
    if not is_file(path):
        what = "it is not a file" if exists(path) else "there is no such file"
        raise ConversionError(path, f"{what}; check the name")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head.startswith(ZIP):
            script = read_torchscript(path)
            return SourceFile(
                path, "torchscript", script.inputs, script.is_traced, script.is_traced,
                trains=script.trains, branches=script.branches,
            )  # fmt: skip
        if known := PICKLED if head.startswith(_PICKLE) else explain_foreign(path, head):
            raise ConversionError(path, known)
        onnx = _read_onnx(path)
    except OSError as exc:
        raise ConversionError(path, f"it cannot be read: {format_os_error(exc)}") from exc
    has_shapes = not any(given.is_open for given in onnx.inputs)
    return SourceFile(
        path, "onnx", onnx.inputs, has_shapes,
        parts=onnx.parts, output_count=onnx.output_count,
    )  # fmt: skip


def _read_onnx(path: Path) -> OnnxFile:
    """Read an ONNX file, also under another suffix."""
    try:
        return read_onnx(path)
    except ConversionError:
        if path.suffix.lower() == ".onnx":
            raise
        raise ConversionError(
            path, "it is not TorchScript, or it is incomplete; copy or export it again"
        ) from None
