"""Options and result of a conversion; imports little, because most code only passes them on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.atomic import written_beside

if TYPE_CHECKING:
    from pathlib import Path

    from engine.file_versions import FileVersion

__all__ = [
    "BIN",
    "LOG",
    "MOST_JOINED",
    "NCNN_BIN",
    "NCNN_PARAM",
    "PARAM",
    "SIMPLIFIED",
    "STEM",
    "Conversion",
    "ConversionOptions",
]

# The exporter gets our own file names, because it splits arguments at "=" and ",".
STEM: Final = "model"
PARAM, BIN = f"{STEM}.pnnx.param", f"{STEM}.pnnx.bin"
NCNN_PARAM, NCNN_BIN = f"{STEM}.ncnn.param", f"{STEM}.ncnn.bin"
SIMPLIFIED: Final = f"{STEM}.pnnxsim.onnx"
"""The ONNX model that pnnx simplified."""
LOG: Final = f"{STEM}.pnnx.log"


MOST_JOINED: Final = 2
"""What pnnx does unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """Input sizes for a conversion, where the file lacks them.

    Attributes
    ----------
    shapes : tuple of str
        As for ``--shape``, followed by pnnx's dtype unless it is float32: ``1,3,224,224`` or
        ``ids=1,128i64``. Empty leaves them to the exporter.
    shapes2 : tuple of str
        Second sizes: dimensions that differ from the first become dynamic.
    asks : bool
        Whether to raise `OpenSourceError` for sizes that the file leaves open, so that the user
        is asked, instead of leaving them to the exporter.
    optlevel : int
        How much pnnx joins operators: 2 as far as it can, 1 less.
    """

    shapes: tuple[str, ...] = ()
    shapes2: tuple[str, ...] = ()
    asks: bool = False
    optlevel: int = MOST_JOINED


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted file and its conversion.

    Attributes
    ----------
    source : Path
        The TorchScript or ONNX file.
    versions : tuple of FileVersion
        Of the source, and of the files with its weights.
    options : ConversionOptions
    folder : Path
        In the user's cache.
    has_ncnn : bool
        Whether there is an ncnn pair too.
    notes : tuple of str
        Remarks, one sentence each.
    log : tuple of str
        The exporter's output.
    was_made_before : bool
        Whether it was found in the cache, so that the exporter did not run.
    """

    source: Path
    versions: tuple[FileVersion, ...]
    options: ConversionOptions
    folder: Path
    has_ncnn: bool
    notes: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    was_made_before: bool = False

    @property
    def param(self) -> Path:
        """The ``.param`` of the PNNX pair."""
        return self.folder / PARAM

    @property
    def bin(self) -> Path:
        """The ``.bin`` of the PNNX pair."""
        return self.folder / BIN

    @property
    def ncnn_param(self) -> Path | None:
        """The ``.param`` of the ncnn pair; None if there is none."""
        return self.folder / NCNN_PARAM if self.has_ncnn else None

    @property
    def ncnn_bin(self) -> Path | None:
        """The ``.bin`` of the ncnn pair; None if there is none."""
        return self.folder / NCNN_BIN if self.has_ncnn else None

    def copy_to(self, folder: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Copy the pairs and the log into a folder, named after the source.

        Parameters
        ----------
        folder : Path
            Created if it is missing.
        overwrite : bool, optional
            Whether to replace files of the same names.

        Returns
        -------
        tuple of Path
            The copies; the first is the ``.param``.

        Raises
        ------
        FileExistsError
            If a file exists and may not be replaced; then nothing is written.
        OSError
            If they cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        made = (PARAM, BIN, *((NCNN_PARAM, NCNN_BIN) if self.has_ncnn else ()), LOG)
        targets = {
            name: folder / f"{self.source.stem}{name.removeprefix(STEM)}" for name in made
        }
        present = [target for target in targets.values() if target.exists()]
        if present and not overwrite:
            raise FileExistsError(f"{present[0]} already exists")
        for name, target in targets.items():
            with written_beside(target, replace=overwrite) as partial:
                shutil.copyfile(self.folder / name, partial)
        return tuple(targets.values())
