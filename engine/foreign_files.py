"""Recognises files of other programs, and says what they are and what to do instead."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HOW_TO_TRACE", "PICKLED", "explain_foreign"]

HOW_TO_TRACE: Final = "torch.jit.trace(model.eval(), example_input).save('model.pt')"
PICKLED: Final = (
    "it holds a state_dict or a pickled module, not TorchScript; trace the model in PyTorch, "
    f"{HOW_TO_TRACE}, and open that file"
)
_WEIGHTS: Final = (
    "it is {0}, which has weights but no graph; trace the model in PyTorch, "
    f"{HOW_TO_TRACE}, and open that file"
)
_EXPORTED: Final = (
    "it was written by torch.export, which pnnx cannot read; trace the model in PyTorch, "
    f"{HOW_TO_TRACE}, and open that file"
)
_TO_ONNX: Final = "it is {0}; export the model to ONNX, and open the .onnx"
# What files begin with, from a position on, and what they are.
_HEADS: Final = (
    (0, b"GGUF", _WEIGHTS.format("GGUF")),
    (0, b"\x89HDF\r\n", _TO_ONNX.format("HDF5, as Keras writes it")),
    (4, b"TFL3", _TO_ONNX.format("a model of TensorFlow Lite")),
    (4, b"ORTM", "it is ONNX Runtime's own format; open the .onnx that it was made of"),
    (
        0,
        b"version https://git-lfs",
        "it is a pointer of Git LFS in place of the file; fetch the file with: git lfs pull",
    ),
    (0, b"\x1f\x8b", "it is compressed by gzip; unpack it first"),
    (0, b"\x80\x02", PICKLED),
)
_PAGES: Final = (b"<!doctype html", b"<html")
_LONGEST_HEADER: Final = 100 << 20  # bytes, as safetensors itself allows


def explain_foreign(path: Path, head: bytes) -> str:
    """Say what a file is that this program cannot open, and what to do.

    Parameters
    ----------
    path : Path
    head : bytes
        Its first bytes.

    Returns
    -------
    str
        One sentence; ``""`` if the file is not recognised.
    """
    for start, sign, sentence in _HEADS:
        if head.startswith(sign, start):
            return sentence
    if head.lstrip().lower().startswith(_PAGES):
        return "it is a web page in place of the file; download the file again"
    if head[8:9] == b"{" and 0 < int.from_bytes(head[:8], "little") <= _LONGEST_HEADER:
        return _WEIGHTS.format("safetensors")
    return _explain_archive(path) if head.startswith(b"PK\x03\x04") else ""


def _explain_archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return ""
    inner = {name.partition("/")[2] for name in names}
    if {
        "archive_format",
        "models/model.json",
    } <= inner or "serialized_exported_program.json" in names:
        return _EXPORTED
    if "constants.pkl" in inner and any(name.startswith("code/") for name in inner):
        return "it is TorchScript under another suffix; rename it to .pt, and open that"
    return PICKLED if "data.pkl" in inner else ""
