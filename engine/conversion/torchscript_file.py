"""Reads the inputs of a TorchScript file without unpickling it.

``torch.jit.save`` writes a ZIP with ``code/`` (the source of the module), ``data.pkl`` (its
weights) and, if the module was traced, ``traced_inputs.pkl``. ``torch.save`` also writes a ZIP,
but without code, which cannot be converted.
"""

from __future__ import annotations

import lzma
import pickletools
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.conversion.source_inputs import SourceInput
from engine.errors import ConversionError
from engine.foreign_files import HOW_TO_TRACE, explain_foreign

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ZIP", "TorchScriptFile", "read_torchscript"]

ZIP: Final = b"PK\x03\x04"
"""What a ZIP with files in it begins with."""

_LONGEST_CODE: Final = 4 << 20  # most bytes read of a module's source
_LONGEST_HEAD: Final = 1 << 16  # and of the pickle, to find its first class
# Code that normalises by statistics of a batch although it has others, or drops; without ones
# of its own (None), a BatchNorm takes those of the batch in any mode.
_TRAINING: Final = re.compile(
    r"torch\.batch_norm\((?:[^,()\n]+, ){3}(?!None\b)[^,()\n]+, [^,()\n]+, True, "
    r"|torch\.(?:alpha_|feature_|feature_alpha_)?dropout_?\([^()\n]+, True\)"
)
_BRANCHING: Final = re.compile(r"^ +(?:if|while|for) .*:$", re.MULTILINE)
_TENSORS: Final = ("Tensor", "Optional[Tensor]")
_DAMAGE: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError,
    ValueError, struct.error,
)  # fmt: skip


class TorchScriptFile(NamedTuple):
    """The description of a TorchScript file.

    Attributes
    ----------
    inputs : tuple of SourceInput
        Empty if the code was not understood.
    is_traced : bool
        Whether it holds the inputs of the trace, whose sizes pnnx reads.
    trains : bool
        Whether it was traced in training mode.
    branches : bool
        Whether it was scripted and has branches or loops.
    """

    inputs: tuple[SourceInput, ...]
    is_traced: bool
    trains: bool = False
    branches: bool = False


def read_torchscript(path: Path) -> TorchScriptFile:
    """Read the inputs of a TorchScript file.

    Raises
    ------
    ConversionError
        If it is incomplete, or not TorchScript.
    OSError
        If it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_archive(path, archive)
    except _DAMAGE as exc:
        raise ConversionError(
            path, "it is incomplete or damaged; copy or export it again"
        ) from exc


def _read_archive(path: Path, archive: zipfile.ZipFile) -> TorchScriptFile:
    names = archive.namelist()
    roots = [name.removesuffix("constants.pkl") for name in names if _is_constants(name)]
    if not roots or not any(name.startswith(f"{roots[0]}code/") for name in names):
        known = explain_foreign(path, ZIP)
        raise ConversionError(
            path, known or f"it is a ZIP, but not TorchScript; write one with {HOW_TO_TRACE}"
        )
    root = roots[0]
    present = frozenset(names)
    inputs = _find_inputs(archive, root, present)
    is_traced = f"{root}traced_inputs.pkl" in present
    pattern = _TRAINING if is_traced else _BRANCHING
    has_pattern = _has_code(archive, root, names, pattern)
    return TorchScriptFile(
        inputs, is_traced, trains=is_traced and has_pattern,
        branches=not is_traced and has_pattern,
    )  # fmt: skip


def _has_code(
    archive: zipfile.ZipFile, root: str, names: Sequence[str], pattern: re.Pattern[str]
) -> bool:
    left = _LONGEST_CODE
    for name in names:
        if not (name.startswith(f"{root}code/") and name.endswith(".py")) or left <= 0:
            continue
        code = _head(archive, name, left)
        left -= len(code)
        if pattern.search(code.decode("utf-8", "replace")):
            return True
    return False


def _is_constants(name: str) -> bool:
    return name.count("/") == 1 and name.endswith("/constants.pkl")


def _find_inputs(
    archive: zipfile.ZipFile, root: str, names: frozenset[str]
) -> tuple[SourceInput, ...]:
    """Find the arguments of the module's ``forward`` in its source text."""
    data = f"{root}data.pkl"
    if data not in names:
        return ()
    module, _, name = _first_class(_head(archive, data, _LONGEST_HEAD)).rpartition(" ")
    code = f"{root}code/{module.replace('.', '/')}.py"
    if code not in names:
        return ()
    text = _head(archive, code, _LONGEST_CODE).decode("utf-8", "replace")
    start = text.find(f"class {name}(")
    found = re.compile(r"\bdef forward\(([^()]*)\)").search(text, start) if start >= 0 else None
    if found is None:
        return ()
    arguments = [_split_argument(part) for part in _split(found[1])[1:]]
    return tuple(SourceInput(name) for name, kind in arguments if kind in _TENSORS)


def _head(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as file:
        return file.read(most)


def _first_class(head: bytes) -> str:
    """Return the first class that a pickle names, ``module name``, without executing it."""
    try:
        for opcode, argument, _ in pickletools.genops(head):
            if opcode.name == "GLOBAL":
                return str(argument)
    except ValueError:  # it was cut, or is not a pickle
        pass
    return ""


def _split(text: str) -> list[str]:
    """Split arguments at commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _split_argument(text: str) -> tuple[str, str]:
    name, _, kind = text.partition(":")
    return name.strip(), kind.partition("=")[0].strip()
