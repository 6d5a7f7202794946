"""The inputs of a data set: which there are, and how one of them becomes arrays.

Neither the client nor a worker holds a list of all inputs. Names of files lie in a listing in
the sweep's folder, one a line, with an index of where each line begins. A task is given a range
of numbers and looks its names up.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import heapq
import json
import math
import os
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self, TextIO

import numpy as np

from engine.atomic import format_os_error, written_beside
from engine.datasets.extra import require_extra
from engine.errors import EngineError, FeedError, SweepError
from engine.file_versions import open_steady
from engine.inputs import IMAGE_SUFFIXES, ImageOptions, InputSource, load_inputs, parse_source
from engine.memory_bound import current_room, format_refusal
from engine.numpy_files import describe_npy
from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.runtime import RuntimeOperand
    from engine.shapes import InputShapes
    from engine.values import Array

__all__ = ["LISTED", "InputReader", "InputSet", "find_inputs"]

_LISTING: Final = "inputs.txt"  # of files, one JSON text a line
_INDEX: Final = "inputs.npy"
LISTED: Final = (_LISTING, _INDEX)
"""Files in the folder of a sweep that name its inputs."""
_SUFFIXES: Final = frozenset({*IMAGE_SUFFIXES, ".npy", ".npz"})
_LIST_SUFFIX: Final = ".txt"
_COMMENT: Final = "#"
_SORTED_AT_ONCE: Final = 1 << 16  # names
_BLOCK: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16  # characters


@dataclass(frozen=True, slots=True)
class InputSet:
    """Describes the inputs of a data set.

    Attributes
    ----------
    kind : {"files", "npy", "zarr"}
        Files that are listed in the sweep's folder, or an array whose first axis are the
        inputs.
    path : str
        Folder of the listing, or the array.
    source : str
        As the user gave it.
    count : int
        Number of inputs.
    """

    kind: Literal["files", "npy", "zarr"]
    path: str
    source: str
    count: int


def find_inputs(source: str | Path, output: Path, limit: int | None = None) -> InputSet:
    """Find the inputs that a user names; list files in the folder of a sweep.

    Parameters
    ----------
    source : str or path
        A folder, whose pictures, ``.npy`` and ``.npz`` count, also those in folders below; a
        pattern of files; a ``.txt`` with a file a line, relative to its own folder, and
        comments after ``#``; or an ``.npy`` or ``.zarr`` whose first axis are the inputs.
    output : path
        Folder of the sweep.
    limit : int, optional
        Most inputs.

    Raises
    ------
    SweepError
        If there are none, or they cannot be listed.
    """
    text = os.fspath(source)
    path = Path(text)
    try:
        if path.suffix.lower() in {".npy", ".zarr"} and path.exists():
            return _array_set(path, text, limit)
        names = _listed_names(path, text)
        if path.is_file() or limit is None:
            names = islice(names, limit)
        with written_beside(output / _LISTING) as listing:
            count = _write_listing(names, listing, limit)
    except OSError as exc:
        where = exc.filename if exc.filename is not None else text
        raise SweepError(f"inputs {where}: {format_os_error(exc)}") from exc
    except ValueError as exc:  # NUL in a path
        raise SweepError(f"inputs {text!r}: {exc}") from exc
    if not count:
        raise SweepError(f"inputs {text!r}: there is no image, .npy or .npz")
    _write_index(output)
    return InputSet("files", str(output.absolute()), text, count)


# Listing


def _listed_names(path: Path, text: str) -> Iterator[str]:
    if path.is_dir():
        return _in_order(_below(path))
    if path.is_file():
        if path.suffix.lower() != _LIST_SUFFIX:
            raise SweepError(
                f"inputs {text!r} is neither a folder, a pattern of files, a .txt with a file "
                "a line, nor an .npy or .zarr of inputs"
            )
        return _lines_of(path)
    if glob.has_magic(text):
        return _in_order(
            os.path.abspath(name)  # noqa: PTH100 - of many files
            for name in glob.iglob(text, recursive=True)  # noqa: PTH207 - likewise
            if _is_input(name)
        )
    raise SweepError(f"inputs {text!r}: there is no such file or folder")


def _below(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, and below links to folders that lead to no ring."""
    top = os.path.abspath(folder)  # noqa: PTH100
    above: dict[str, tuple[str, ...]] = {top: ()}  # true paths of the folders around one
    for place, folders, files in os.walk(top, followlinks=True):
        around = (*above.pop(place), os.path.realpath(place))
        inner = {
            name: os.path.join(place, name)  # noqa: PTH118
            for name in folders
            if not name.startswith(".")
        }
        folders[:] = [
            name for name, path in inner.items() if os.path.realpath(path) not in around
        ]
        above |= {inner[name]: around for name in folders}
        for name in files:
            if not name.startswith(".") and _is_input(name):
                yield os.path.join(place, name)  # noqa: PTH118


def _is_input(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in _SUFFIXES  # noqa: PTH122


def _lines_of(path: Path) -> Iterator[str]:
    folder = path.absolute().parent
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        while line := file.readline(_LONGEST_LINE):
            name = line.rstrip("\r\n")
            if name.strip() and not name.startswith(_COMMENT):
                yield str(folder / name)


def _in_order(names: Iterable[str]) -> Iterator[str]:
    """Sort names, a part at a time in memory."""
    rest = iter(names)
    with contextlib.ExitStack() as stack:
        runs: list[TextIO] = []
        while part := sorted(islice(rest, _SORTED_AT_ONCE)):
            run = stack.enter_context(tempfile.TemporaryFile("w+", encoding="ascii"))
            run.writelines(f"{json.dumps(name)}\n" for name in part)
            run.seek(0)
            runs.append(run)
        yield from heapq.merge(*(map(json.loads, run) for run in runs))


def _write_listing(names: Iterator[str], path: Path, limit: int | None) -> int:
    count = 0
    with path.open("w", encoding="ascii") as file:
        for name in islice(names, limit):
            file.write(f"{json.dumps(name)}\n")
            count += 1
    return count


def _write_index(output: Path) -> None:
    """Write where each line of the listing begins."""
    with (output / _LISTING).open("rb") as file, written_beside(output / _INDEX) as partial:
        lines = sum(block.count(b"\n") for block in _blocks(file))
        begins = np.lib.format.open_memmap(partial, "w+", np.int64, (lines,))
        file.seek(0)
        place = 0
        for number, line in enumerate(file):
            begins[number] = place
            place += len(line)
        begins.flush()


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _array_set(path: Path, text: str, limit: int | None) -> InputSet:
    kind: Literal["npy", "zarr"] = "npy" if path.suffix.lower() == ".npy" else "zarr"
    array = _open_npy(path) if kind == "npy" else _open_zarr(path)
    count = int(array.shape[0])  # an array of Zarr has no length
    if limit is not None:
        count = min(limit, count)
    if not count:
        raise SweepError(f"inputs {text!r}: its first axis, the inputs, has no entries")
    return InputSet(kind, str(path.absolute()), text, count)


def _open_npy(path: Path) -> np.memmap[Any, np.dtype[Any]]:
    try:
        describe_npy(path)  # its words for a damaged header are better than NumPy's
        array: np.memmap[Any, np.dtype[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FeedError as exc:
        raise SweepError(str(exc)) from exc
    except OSError as exc:
        raise SweepError(f"{path} cannot be read: {format_os_error(exc)}") from exc
    except ValueError as exc:  # it was replaced just now
        raise SweepError(f"{path} cannot be read as .npy: {exc}") from exc
    _require_numbers(path, array)
    return array


def _open_zarr(path: Path) -> Any:  # noqa: ANN401 - zarr has no types of its own here
    require_extra()
    import zarr

    try:
        array = zarr.open_array(str(path), mode="r")
    except Exception as exc:  # likewise
        raise SweepError(f"{path} cannot be read as a Zarr array: {exc}") from exc
    _require_numbers(path, array)
    # A chunk is decoded whole, whatever is read of it.
    nbytes = math.prod(array.chunks) * array.dtype.itemsize
    if nbytes > current_room().left:
        raise SweepError(format_refusal(f"a chunk of {path}", nbytes, current_room()))
    return array


def _require_numbers(path: Path, array: Any) -> None:  # noqa: ANN401 - NumPy's or Zarr's
    if array.ndim < 1 or array.dtype.kind not in "?biufc":
        what = f"{format_shape(array.shape)} {array.dtype}"
        raise SweepError(f"{path} is {what}; inputs are numbers along its first axis")


# Reading


class _Entries:
    """The entries of an ``.npy``, read one by one.

    The pages of a mapped file would count as memory of the process, for which Dask ends a
    worker.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        array = _open_npy(path)
        self._shape, self._dtype = array.shape[1:], array.dtype
        self._count = math.prod(self._shape)
        # In the order of Fortran an entry is all over the file.
        self._mapped = None if array.flags.c_contiguous else array
        self._begin = array.offset
        self._path = path
        self._file: BinaryIO | None = None

    def __getitem__(self, index: int) -> Array:
        if self._mapped is not None:
            return np.asarray(self._mapped[index])
        if self._file is None:
            self._file = self._path.open("rb")
        self._file.seek(self._begin + index * self._count * self._dtype.itemsize)
        return np.fromfile(self._file, self._dtype, self._count).reshape(self._shape)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class InputReader:
    """Reads the inputs of a set, one by one.

    Parameters
    ----------
    inputs : InputSet

    Raises
    ------
    SweepError
        If the listing or the array cannot be opened.
    """

    def __init__(self, inputs: InputSet) -> None:
        self.inputs = inputs
        self._array: Any = None
        self._listing: BinaryIO | None = None
        self._begins: Array | None = None
        path = Path(inputs.path)
        try:
            if inputs.kind == "files":
                self._begins = np.load(path / _INDEX, mmap_mode="r", allow_pickle=False)
                self._listing = (path / _LISTING).open("rb")
            else:
                self._array = _Entries(path) if inputs.kind == "npy" else _open_zarr(path)
        except OSError as exc:
            raise SweepError(f"{path} cannot be read: {format_os_error(exc)}") from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        if self._listing is not None:
            self._listing.close()
        if isinstance(self._array, _Entries):
            self._array.close()

    def name(self, index: int) -> str:
        """Return the path of an input, or its place in the array.

        Raises
        ------
        IndexError
            If there is no such input.
        """
        if not 0 <= index < self.inputs.count:
            raise IndexError(index)
        if self._listing is None or self._begins is None:
            return f"{self.inputs.path}[{index}]"
        self._listing.seek(int(self._begins[index]))
        return str(json.loads(self._listing.readline()))

    def load(
        self,
        index: int,
        operands: Sequence[RuntimeOperand],
        options: ImageOptions | None = None,
        shapes: InputShapes | None = None,
    ) -> dict[str, Array]:
        """Load an input of the model, by operand name.

        Raises
        ------
        FeedError
            If it cannot be read, or does not fit.
        """
        if self._array is None:
            return load_inputs([self._source(index)], operands, options, shapes)
        return load_inputs([self._item(index, operands)], operands, options, shapes)

    def entry(self, index: int) -> Path | Array:
        """Return the path of an input, or its entry of the array.

        Raises
        ------
        IndexError
            If there is no such input.
        FeedError
            If it cannot be read.
        """
        name = self.name(index)
        if self._array is None:
            return Path(name)
        try:
            return np.asarray(self._array[index])
        except EngineError:
            raise
        except Exception as exc:  # of a damaged chunk, or a file that has become shorter
            raise FeedError(f"{name} cannot be read: {exc}") from exc

    def digest(self, index: int) -> bytes:
        """Return the SHA-256 of an input's content; of nothing if it cannot be read."""
        digest = hashlib.sha256()
        try:
            if self._array is not None:
                digest.update(np.ascontiguousarray(self._array[index]).data.cast("B"))
            else:
                with open_steady(Path(self.name(index))) as file:
                    for block in _blocks(file):
                        digest.update(block)
        except Exception:  # noqa: BLE001 - of a damaged file; `load` says why
            return hashlib.sha256().digest()
        return digest.digest()

    def _source(self, index: int) -> InputSource:
        name = self.name(index)
        if not _is_input(name):
            raise FeedError(f"{name} is not an image, .npy or .npz")
        return parse_source(name)

    def _item(self, index: int, operands: Sequence[RuntimeOperand]) -> InputSource:
        if len(operands) != 1:
            raise FeedError(
                f"{self.inputs.path} is one array, the model takes {len(operands)} inputs: use "
                "an .npz for each input"
            )
        item = self.entry(index)
        assert isinstance(item, np.ndarray)  # noqa: S101 - there is no listing
        shape = operands[0].shape
        if shape is not None and item.ndim == len(shape) - 1:
            item = item[np.newaxis]
        return InputSource("array", array=item)
