"""What a dump contains, and as what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["FORMATS", "FORMAT_OF_SUFFIX", "DumpOptions", "Format"]

Format = Literal["folder", "npz", "safetensors", "png"]
FORMATS: Final[tuple[Format, ...]] = ("folder", "npz", "safetensors", "png")
# Suffixes of dumps that are one file.
FORMAT_OF_SUFFIX: Final[dict[str, Format]] = {".npz": "npz", ".safetensors": "safetensors"}


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What a dump contains, and as what.

    Attributes
    ----------
    format : {"folder", "npz", "safetensors", "png"}
        ``png`` is a folder of pictures as the tensor view shows them.
    operators : tuple of str or None
        Names, types or execution indexes, with ``*`` and ``?``; None for all.
    inputs : bool
        The model's inputs, independent of `operators`.
    outputs : bool
        The outputs of the operators.
    weights : bool
        The weights of the operators.
    statistics_only : bool
        A folder with manifest and summary, without arrays.
    overwrite : bool
        Replace an earlier dump at the destination.
    sha256 : bool
        Whether to hash every array and the ``.bin``, not only the inputs and the ``.param``.
        That takes longer than the rest.
    """

    format: Format = "folder"
    operators: tuple[str, ...] | None = None
    inputs: bool = True
    outputs: bool = True
    weights: bool = False
    statistics_only: bool = False
    overwrite: bool = False
    sha256: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether the dump is a folder and not one file."""
        return self.format in {"folder", "png"}
