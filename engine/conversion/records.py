"""What is asked of a conversion, and what it gave; light, for whoever only passes it on."""

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
    "NCNN_BIN",
    "NCNN_PARAM",
    "PARAM",
    "STEM",
    "Conversion",
    "ConversionOptions",
]

# The exporter gets names of ours: it takes arguments apart at "=" and ",".
STEM: Final = "model"
PARAM, BIN = f"{STEM}.pnnx.param", f"{STEM}.pnnx.bin"
NCNN_PARAM, NCNN_BIN = f"{STEM}.ncnn.param", f"{STEM}.ncnn.bin"
LOG: Final = f"{STEM}.pnnx.log"


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """Sizes of the inputs for a conversion, where the file does not say them.

    Attributes
    ----------
    shapes : tuple of str
        As ``--shape`` takes them, with a dtype of pnnx behind each that is not float32:
        ``1,3,224,224`` or ``ids=1,128i64``. Empty leaves it to the exporter.
    shapes2 : tuple of str
        Second sizes: dimensions that differ from the first are open in the result.
    asks : bool
        Whether to ask for sizes that the file leaves open, by an `OpenSourceError`, instead of
        leaving them to the exporter.
    """

    shapes: tuple[str, ...] = ()
    shapes2: tuple[str, ...] = ()
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """A file that was converted, and what was made of it.

    Attributes
    ----------
    source : Path
        The TorchScript or ONNX file.
    versions : tuple of FileVersion
        Of it, and of the files with its weights.
    options : ConversionOptions
    folder : Path
        In the user's cache.
    has_ncnn : bool
        Whether ncnn's own pair was made too.
    notes : tuple of str
        What is worth knowing of it, a sentence each.
    log : tuple of str
        What the exporter printed.
    """

    source: Path
    versions: tuple[FileVersion, ...]
    options: ConversionOptions
    folder: Path
    has_ncnn: bool
    notes: tuple[str, ...] = ()
    log: tuple[str, ...] = ()

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
        """The ``.param`` of ncnn's pair; None where there is none."""
        return self.folder / NCNN_PARAM if self.has_ncnn else None

    @property
    def ncnn_bin(self) -> Path | None:
        """The ``.bin`` of ncnn's pair; None where there is none."""
        return self.folder / NCNN_BIN if self.has_ncnn else None

    def copy_to(self, folder: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Copy the pairs and the log into a folder, named by the source.

        Parameters
        ----------
        folder : Path
            Made if it is not there.
        overwrite : bool, optional
            Whether files of these names are replaced.

        Returns
        -------
        tuple of Path
            The copies; the first is the ``.param``.

        Raises
        ------
        FileExistsError
            If one is there and may not be replaced; nothing is written then.
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
            raise FileExistsError(f"{present[0]} exists already")
        for name, target in targets.items():
            with written_beside(target, replace=overwrite) as partial:
                shutil.copyfile(self.folder / name, partial)
        return tuple(targets.values())
