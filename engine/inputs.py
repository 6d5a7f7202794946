"""Loads input sources of the user as arrays for the model."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from engine.atomic import format_os_error
from engine.errors import FeedError, UnknownNameError
from engine.file_versions import open_steady, read_regular
from engine.image_methods import FITS, RESAMPLINGS
from engine.image_resizing import ImageResizer, with_channels
from engine.memory_bound import current_room, format_refusal
from engine.numpy_files import MOST_DIMENSIONS, read_npy, read_npz
from engine.paths import exists, is_file
from engine.shapes import InputShapes, require_closed, settle_shapes
from engine.text import format_count, format_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from PIL.Image import Image

    from engine.image_methods import Fit, Resampling
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.shapes import ExportedShape
    from engine.values import Array

__all__ = [
    "IMAGE_SUFFIXES",
    "ImageOptions",
    "InputSource",
    "SourceImage",
    "load_input",
    "load_inputs",
    "load_outputs",
    "named_outputs",
    "parse_array_file",
    "parse_number",
    "parse_seed",
    "parse_source",
    "parse_supply",
    "read_image",
    "read_labels",
    "source_images",
    "spread_source",
    "thin_made_up",
    "thin_planes",
]

IMAGE_SUFFIXES: Final = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".webp",
    ".ppm",
)
_LONGEST_LABELS: Final = 16 << 20  # bytes
_PIECE: Final = 1 << 18  # numbers made up at a time for a picture of them
Kind = Literal["image", "npy", "npz", "random", "constant", "array"]


class _Operand(Protocol):
    """The properties of an operand that this module uses."""

    name: str
    shape: ExportedShape | None
    dtype: np.dtype[Any] | None

    @property
    def consumers(self) -> Sequence[RuntimeOperator]:
        """Who takes it."""
        ...


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How an image becomes a tensor: ``(pixel * scale - mean) / std``.

    Attributes
    ----------
    size : (int, int) or None
        Rows and columns; None takes the model's.
    fit : {"resize", "crop", "letterbox"}
        Stretch to the size; or scale the shorter side to it and cut the centre out; or scale
        the longer side to it, in the centre of a border.
    order : {"RGB", "BGR"}
        Order of the channels of a colour input.
    scale : float
        Applied to pixels of 0 to 255.
    mean, std : tuple of float
        One value, or one per channel; in units after `scale`.
    shorter_side : int or None
        For a crop: pixels of the shorter side before the centre is cut out, e.g. 256 for
        224×224; None, or fewer than the size needs, takes the fewest.
    border : int
        Pixels of the border of a letterbox, 0 to 255.
    resampling : str
        Method of resizing; see `engine.image_methods`.
    """

    size: tuple[int, int] | None = None
    fit: Fit = "resize"
    order: Literal["RGB", "BGR"] = "RGB"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    shorter_side: int | None = None
    border: int = 114
    resampling: Resampling = "bilinear"


@dataclass(frozen=True, slots=True)
class InputSource:
    """Where an input comes from.

    Attributes
    ----------
    kind : {"image", "npy", "npz", "random", "constant", "array"}
    path : Path or None
        Of an image, ``.npy`` or ``.npz``.
    member : str
        Array of an ``.npz``; ``""`` for the one that belongs to the input.
    seed : int
        Of random values: uniform in [0, 1) for floats, 0 to 255 for integers, or below the
        number of rows for indexes into an embedding table.
    value : float
        Of a constant.
    array : ndarray or None
        The value itself, for callers that have one.
    """

    kind: Kind
    path: Path | None = None
    member: str = ""
    seed: int = 0
    value: float = 0.0
    array: Array | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The source in the command line's notation."""
        if self.kind == "constant":
            return {0.0: "zeros", 1.0: "ones"}.get(self.value, f"constant:{self.value:g}")
        if self.kind == "random":
            return f"random:{self.seed}"
        if self.path is not None:
            return f"{self.path}:{self.member}" if self.member else str(self.path)
        return "array"


@dataclass(frozen=True, slots=True)
class SourceImage:
    """An image that an input was made from.

    Attributes
    ----------
    path : Path
    options : ImageOptions
        With which it was made.
    """

    path: Path
    options: ImageOptions

    def pixels_of(self, operand: _Operand, array: Array) -> Array | None:
        """Read the image, if it still gives the input.

        Parameters
        ----------
        operand : operand
            The input.
        array : ndarray
            Its value; of shape (N, C, H, W) or (C, H, W) if it is from an image.

        Returns
        -------
        ndarray of uint8, shape (H, W, 3) or (H, W), or None
            None where the file cannot be read, or holds another image now.
        """
        if array.ndim not in {3, 4}:
            return None
        options = replace(self.options, size=(array.shape[-2], array.shape[-1]))
        try:
            pixels = read_image(self.path)
            again = _image_tensor(pixels, operand, array.shape, options)
        except FeedError:
            return None
        return pixels if np.array_equal(again, array) else None


def source_images(
    sources: Sequence[InputSource], operands: Sequence[_Operand], options: ImageOptions
) -> dict[str, SourceImage]:
    """Return the images among the sources of inputs, by operand; see `load_inputs`."""
    return {
        operand.name: SourceImage(source.path, options)
        for source, operand in zip(sources, operands, strict=False)
        if source.kind == "image" and source.path is not None
    }


def parse_number(text: str) -> float:
    """Read a finite number or a fraction such as ``1/255``.

    Raises
    ------
    ValueError
        If it is not; the message is for the user.
    """
    top, slash, bottom = text.partition("/")
    try:
        number = float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number; write e.g. 0.5 or 1/255") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def parse_source(text: str) -> InputSource:
    """Read a source as the command line takes it.

    Parameters
    ----------
    text : str
        An image, ``.npy`` or ``.npz`` (``file.npz:name`` for one of its arrays),
        ``random``, ``random:SEED``, ``ones``, ``zeros`` or ``constant:VALUE``.

    Raises
    ------
    FeedError
        If it is none of these, or the file is not there.
    """
    word, _, rest = text.partition(":")
    try:
        if word == "random":
            return InputSource("random", seed=parse_seed(rest) if rest else 0)
        if text in {"ones", "zeros"}:
            return InputSource("constant", value=float(text == "ones"))
        if word == "constant":
            return InputSource("constant", value=parse_number(rest))
    except ValueError as exc:
        raise FeedError(f"input {text!r}: {exc}") from None
    return _file_source(text)


def parse_seed(text: str) -> int:
    """Parse a seed.

    Raises
    ------
    ValueError
        If it is not a seed; the message is for the user.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ValueError("a seed is a whole number of at most 20 digits, such as 0")
    return int(text)


def _file_source(text: str) -> InputSource:
    source = _numpy_source(text)
    if source is not None:
        return source
    path = Path(text)
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise FeedError(
            f"input {text!r} is not an image, .npy or .npz file, nor random[:SEED], ones, "
            "zeros or constant:VALUE"
        )
    _require_file(path, text)
    return InputSource("image", path=path)


def _numpy_source(text: str) -> InputSource | None:
    """Parse the name of a ``.npy`` or ``.npz``; None for another text."""
    path, member = Path(text), ""
    if not exists(path) and ".npz:" in text:
        stem, _, member = text.rpartition(":")
        path = Path(stem)
    kinds: dict[str, Kind] = {".npy": "npy", ".npz": "npz"}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        return None
    _require_file(path, text)
    return InputSource(kind, path=path, member=member)


def load_inputs(
    sources: Sequence[InputSource],
    operands: Sequence[_Operand],
    options: ImageOptions | None = None,
    shapes: InputShapes | None = None,
    inputs: Sequence[_Operand] | None = None,
) -> dict[str, Array]:
    """Load the values of inputs of a model.

    Parameters
    ----------
    sources : sequence of InputSource
        One per input, in order; or a single ``.npz`` with an array per input, named by
        operand or in input order; or a single random or constant one for all.
    operands : sequence of operands
        The inputs to load.
    options : ImageOptions, optional
        For pictures.
    shapes : InputShapes, optional
        Sizes for generated values and images, if the model leaves them open or runs at another
        size than it was exported at. Sizes of arrays must agree with them.
    inputs : sequence of operands, optional
        All inputs of the model; `operands` by default. Arrays of an ``.npz`` belong to them in
        order, if they are not named by operand.

    Returns
    -------
    dict of str to ndarray
        By operand name; a source array is returned as it is, not copied.

    Raises
    ------
    OpenShapeError
        If a value must be generated but its size is not known.
    FeedError
        If the number of sources is wrong, or a source cannot be loaded or has a wrong size.
    """
    sources = spread_source(sources, len(operands))
    if len(sources) != len(operands):
        names = ", ".join(operand.name for operand in operands) or "none"
        given = format_count(len(sources), "input was", "inputs were")
        raise FeedError(f"{given} given, the model takes {len(operands)} ({names})")
    asked = shapes if shapes is not None else InputShapes()
    by_kind = _group_by_kind(sources, operands)
    loaded = _read_arrays(by_kind["array"], inputs or operands)
    # The arrays decide the sizes of symbols for images and generated values.
    settled = settle_shapes(operands, asked, _shapes_of(loaded))
    for source, operand in by_kind["picture"]:
        shape = settled[operand.name]
        _require_image(operand, shape)
        pixels = read_image(_path_of(source))
        loaded[operand.name] = _image_tensor(pixels, operand, shape, options or ImageOptions())
    settled = settle_shapes(operands, asked, _shapes_of(loaded))
    closed = require_closed([operand for _, operand in by_kind["made up"]], settled)
    for source, operand in by_kind["made up"]:
        loaded[operand.name] = _generated(source, operand, closed[operand.name])
    return {operand.name: loaded[operand.name] for operand in operands}


def spread_source(sources: Sequence[InputSource], count: int) -> tuple[InputSource, ...]:
    """Repeat a single source that can serve all inputs of a model, once for each of them.

    That is an ``.npz``, or random or constant values. Random ones get a seed each.

    Parameters
    ----------
    sources : sequence of InputSource
    count : int
        Number of inputs.

    Returns
    -------
    tuple of InputSource
        The sources as they are, if there is not exactly one that can.
    """
    if len(sources) != 1 or sources[0].kind not in {"npz", "random", "constant"}:
        return tuple(sources)
    only = sources[0]
    return tuple(replace(only, seed=only.seed + place) for place in range(count))


def _group_by_kind(
    sources: Sequence[InputSource], operands: Sequence[_Operand]
) -> dict[str, list[tuple[InputSource, _Operand]]]:
    groups: dict[str, list[tuple[InputSource, _Operand]]] = {
        "array": [],
        "picture": [],
        "made up": [],
    }
    names = {"image": "picture", "random": "made up", "constant": "made up"}
    for source, operand in zip(sources, operands, strict=True):
        groups[names.get(source.kind, "array")].append((source, operand))
    return groups


def _shapes_of(arrays: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def load_input(
    source: InputSource,
    operand: _Operand,
    options: ImageOptions | None = None,
    shapes: InputShapes | None = None,
    inputs: Sequence[_Operand] | None = None,
) -> Array:
    """Load the value of one input; see `load_inputs`."""
    return load_inputs([source], [operand], options, shapes, inputs)[operand.name]


def _read_arrays(
    pairs: Sequence[tuple[InputSource, _Operand]], inputs: Sequence[_Operand]
) -> dict[str, Array]:
    """Arrays by operand name; each file is read once."""
    loaded: dict[str, Array] = {}
    archives: dict[InputSource, list[_Operand]] = {}
    for source, operand in pairs:
        if source.kind == "array":
            loaded[operand.name] = np.asarray(source.array)
        elif source.kind == "npy":
            loaded[operand.name] = read_npy(_path_of(source))
        else:
            archives.setdefault(replace(source, seed=0), []).append(operand)
    for source, operands in archives.items():
        loaded.update(_from_archive(source, operands, inputs))
    return loaded


def _path_of(source: InputSource) -> Path:
    if source.path is None:
        raise FeedError(f"an input of kind {source.kind} needs a file")
    return source.path


# Overrides of operators' outputs


def parse_supply(text: str) -> tuple[str, InputSource]:
    """Parse ``NAME=FILE`` of the command line.

    Parameters
    ----------
    text : str
        Operand or operator, and an ``.npy`` or ``.npz`` (``file.npz:name`` for one of its
        arrays).

    Returns
    -------
    name : str
    source : InputSource

    Raises
    ------
    FeedError
        If the text is not of this form, or the file does not exist.
    """
    name, equals, file = text.partition("=")
    if not (name and equals):
        raise FeedError(f"supply {text!r} must be OPERAND=FILE.npy or OPERATOR=FILE.npz")
    return name, parse_array_file(file)


def parse_array_file(text: str) -> InputSource:
    """Parse the name of an ``.npy``, an ``.npz`` or ``file.npz:name``.

    Raises
    ------
    FeedError
        If it is none of these, or the file is not there.
    """
    source = _numpy_source(text)
    if source is None:
        raise FeedError(f"{text!r} is not a .npy or .npz file")
    return source


def named_outputs(graph: RuntimeGraph, name: str) -> tuple[RuntimeOperand, ...]:
    """Return the operand of a name, or the outputs of the operator of that name.

    Raises
    ------
    UnknownNameError
        If there is neither, with the nearest name as a suggestion.
    """
    if name in graph.operands:
        return (graph.operand(name),)
    names = [operator.name for operator in graph.operators]
    if name in names:
        return graph.operator(name).outputs
    raise UnknownNameError("operand or operator", name, [*names, *graph.operands])


def load_outputs(
    source: InputSource, operands: Sequence[_Operand]
) -> dict[str, Array | tuple[Array, ...]]:
    """Load arrays that override the outputs of an operator.

    Parameters
    ----------
    source : InputSource
        An ``.npy`` for a single operand, or an ``.npz`` with an array per operand, named by
        operand or in order. The arrays of an ``.npz`` for a single operand without a shape
        are its members: it holds a list.
    operands : sequence of operands

    Returns
    -------
    dict of str to ndarray, or tuple of ndarray
        By operand name.

    Raises
    ------
    FeedError
        If the file cannot be read, or has not as many arrays as there are operands.
    """
    names = ", ".join(operand.name for operand in operands)
    if not operands:
        raise FeedError(f"{source.text} cannot be supplied: the operator has no outputs")
    if len(operands) > 1 and (source.kind != "npz" or source.member):
        raise FeedError(
            f"{source.text} is one array, the operator has "
            f"{format_count(len(operands), 'output')} "
            f"({names}): supply an .npz, or one of them"
        )
    if len(operands) == 1 and source.kind == "npz" and not source.member:
        (operand,) = operands
        if operand.shape is None:
            found = read_npz(_path_of(source), lambda members: {m: m for m in members})
            if operand.name not in found and len(found) > 1:
                return {operand.name: tuple(found.values())}
    if source.kind == "npz":
        return dict(_from_archive(source, operands, operands))
    return {operands[0].name: read_npy(_path_of(source))}


# Generated values


def _generated(source: InputSource, operand: _Operand, shape: tuple[int, ...]) -> Array:
    dtype = operand.dtype if operand.dtype is not None else np.dtype(np.float32)
    _require_room(operand.name, shape, dtype)
    if source.kind == "constant":
        return np.full(shape, _convert_number(source.value, dtype, operand.name), dtype=dtype)
    return _drawn(np.random.default_rng(source.seed), operand, dtype, shape)


def _drawn(
    rng: np.random.Generator, operand: _Operand, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Array:
    """The next random numbers for an operand; in pieces they are the same as at once."""
    if dtype.kind == "f":
        values: Array = rng.random(shape, dtype=np.float32)
        return values.astype(dtype)
    if dtype.kind == "c":
        parts: Array = rng.random((2, *shape), dtype=np.float32)
        return np.asarray(parts[0] + 1j * parts[1], dtype=dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    top = min((128 if dtype == np.int8 else 256, *_rows_of_tables(operand)))
    return rng.integers(0, top, shape).astype(dtype)


def thin_made_up(
    source: InputSource, operand: _Operand, shapes: InputShapes, side: int
) -> tuple[tuple[int, ...], np.dtype[Any], Array | None]:
    """What a picture needs of a random or constant input, without making all of it.

    Parameters
    ----------
    source : InputSource
    operand : operand
    shapes : InputShapes
        Sizes to make values of, where the model leaves them open or is to run at others.
    side : int
        Most rows, and most columns.

    Returns
    -------
    shape : tuple of int
    dtype : numpy.dtype
    planes : ndarray of shape (1 or 3, rows, columns), or None
        What `thin_planes` takes of the input; None where that has no planes.

    Raises
    ------
    OpenShapeError
        If the size is not known.
    FeedError
        If the input takes too much memory, or a number does not fit its type.
    """
    shape = require_closed([operand], settle_shapes([operand], shapes))[operand.name]
    dtype = operand.dtype if operand.dtype is not None else np.dtype(np.float32)
    _require_room(operand.name, shape, dtype)
    if source.kind == "constant":
        number = _convert_number(source.value, dtype, operand.name)
        return shape, dtype, thin_planes(np.broadcast_to(number, shape), side)
    if not _has_planes(shape, dtype):
        return shape, dtype, None
    rng = np.random.default_rng(source.seed)
    rows, columns = shape[-2:]
    step = _thinning(rows, columns, side)
    planes = np.empty((_count_planes(shape), -(-rows // step), -(-columns // step)), dtype)
    for plane in planes:
        for row, column, size in _pieces(rows, columns):
            kept = _drawn(rng, operand, dtype, size)[
                -row % step :: step, -column % step :: step
            ]
            top, left = -(-row // step), -(-column // step)
            plane[top : top + kept.shape[0], left : left + kept.shape[1]] = kept
    return shape, dtype, planes


def _pieces(rows: int, columns: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Rows, or parts of long ones, in the order of memory: where they begin, and their size."""
    high, wide = max(1, _PIECE // columns), min(columns, _PIECE)
    for row in range(0, rows, high):
        for column in range(0, columns, wide):
            yield row, column, (min(high, rows - row), min(wide, columns - column))


def thin_planes(array: Array, side: int) -> Array | None:
    """Planes of the first sample, without the rows and columns that a picture can spare.

    Parameters
    ----------
    array : ndarray
    side : int
        Most rows, and most columns.

    Returns
    -------
    ndarray of shape (1 or 3, rows, columns), or None
        The first plane, or all of three channels; None where there are none.
    """
    if not _has_planes(array.shape, array.dtype):
        return None
    rows, columns = array.shape[-2:]
    step = _thinning(rows, columns, side)
    # Thinned out before it is given another shape, which may copy it.
    thinned = array[..., ::step, ::step]
    return thinned.reshape(-1, *thinned.shape[-2:])[: _count_planes(array.shape)]


def _has_planes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    return len(shape) >= 2 and math.prod(shape) > 0 and dtype.kind in "biuf"


def _count_planes(shape: tuple[int, ...]) -> int:
    return 3 if len(shape) >= 3 and shape[-3] == 3 else 1


def _thinning(rows: int, columns: int, side: int) -> int:
    return -(-max(rows, columns) // side)


def _rows_of_tables(operand: _Operand) -> Iterator[int]:
    """Return the smallest number of rows of the tables that an operand indexes."""
    for consumer in operand.consumers:
        rows = consumer.params.get("num_embeddings")
        if isinstance(rows, int) and rows > 0:
            yield rows


def _require_room(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) > MOST_DIMENSIONS:
        raise FeedError(
            f"input {name} has {format_count(len(shape), 'dimension')}; arrays have "
            f"{MOST_DIMENSIONS} at most"
        )
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > current_room().left:
        raise FeedError(
            format_refusal(f"input {name} of {format_shape(shape)}", nbytes, current_room())
        )


def _convert_number(value: float, dtype: np.dtype[Any], name: str) -> Array:
    """Convert a number to a dtype that can hold it; floats may be rounded, not to infinity."""
    with np.errstate(all="ignore"):
        number = np.asarray(value).astype(dtype)
        fits = np.isfinite(number) if dtype.kind in "fc" else number == value
    if not fits:
        raise FeedError(f"input {name} takes {dtype}, which cannot hold {value:g}")
    return number


# NumPy's files


def _from_archive(
    source: InputSource, operands: Sequence[_Operand], inputs: Sequence[_Operand]
) -> dict[str, Array]:
    """Load the array of each operand from an ``.npz``, by operand name."""
    path = _path_of(source)

    def choose(names: tuple[str, ...]) -> Mapping[str, str]:
        return _choose_members(path, source.member, names, operands, inputs)

    return read_npz(path, choose)


def _choose_members(
    path: Path,
    member: str,
    names: tuple[str, ...],
    operands: Sequence[_Operand],
    inputs: Sequence[_Operand],
) -> Mapping[str, str]:
    """Return the array name of each operand."""
    if member:
        if member not in names:
            raise FeedError(f"{path} has no array {member!r}; it has {', '.join(names)}")
        return {operand.name: member for operand in operands}
    if all(operand.name in names for operand in operands):
        return {operand.name: operand.name for operand in operands}
    for each in (inputs, operands):
        if len(each) == len(names):
            in_order = {o.name: name for o, name in zip(each, names, strict=True)}
            return {operand.name: in_order[operand.name] for operand in operands}
    wanted = ", ".join(operand.name for operand in operands)
    raise FeedError(
        f"{path} has {format_count(len(names), 'array')} ({', '.join(names[:8])}) for "
        f"{format_count(len(operands), 'operand')} ({wanted}); name one as {path.name}:NAME"
    )


# Pictures


def read_image(path: Path) -> Array:
    """Read an image.

    Returns
    -------
    ndarray of uint8 of shape (H, W, 3) or (H, W)
        RGB, or grey if the file is; rotated by its EXIF orientation. Grey of 16 bits is rounded
        to 8.

    Raises
    ------
    FeedError
        If it is not an image, or too large, or its pixels are numbers of no known range.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():  # errors in the file are reported below
            warnings.simplefilter("ignore")
            with open_steady(path) as file, Image.open(file) as image:
                limit = Image.MAX_IMAGE_PIXELS or 1 << 28
                _require_reasonable(path, image.width, image.height, limit)
                return _pixels_of(path, ImageOps.exif_transpose(image), image.format)
    except FeedError:
        raise
    except UnidentifiedImageError as exc:
        raise FeedError(f"{path} cannot be read as an image: its format is unknown") from exc
    except Exception as exc:
        # Decoders raise any exception for a damaged file.
        reason = (
            format_os_error(exc) if isinstance(exc, OSError) else str(exc) or type(exc).__name__
        )
        raise FeedError(f"{path} cannot be read as an image: {reason}") from exc


def _require_file(path: Path, text: str) -> None:
    if not is_file(path):
        if exists(path):
            raise FeedError(f"{text}: it is a folder, a pipe or a device")
        raise FeedError(f"{text}: there is no such file")


def _pixels_of(path: Path, image: Image, file_format: str | None) -> Array:
    # Older Pillows open 16 bits of these formats as 32.
    is_deep = image.mode == "I" and file_format in {"PNG", "PPM"}
    if is_deep or image.mode.startswith("I;16"):
        # Pillow would clip all but the darkest.
        return ((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8)
    if image.mode in {"I", "F"}:
        raise FeedError(f"{path} has 32 bits a pixel, of no known range; use a .npy instead")
    grey = image.mode in {"1", "L", "LA"}
    return np.asarray(image.convert("L" if grey else "RGB"))


def _require_reasonable(path: Path, width: int, height: int, limit: int) -> None:
    if width * height > limit:
        raise FeedError(f"{path} has {width}×{height} pixels, which is too large")


def _require_image(operand: _Operand, shape: ExportedShape | None) -> None:
    if shape is not None and len(shape) not in {3, 4}:
        raise FeedError(
            f"input {operand.name} of {format_shape(shape)} is not an image; use a .npy instead"
        )


def _require_known(options: ImageOptions) -> None:
    """Refuse what no field of the window gives, but a script or an edited file may."""
    if not 0 <= options.border <= 255:
        raise FeedError(f"a border of {options.border} is no pixel of 0 to 255")
    for word, name, known in (
        ("fit", options.fit, FITS),
        ("resampling", options.resampling, RESAMPLINGS),
    ):
        if name not in known:
            raise FeedError(f"{word}={name} is not one of {', '.join(known)}")


def _image_tensor(
    pixels: Array,
    operand: _Operand,
    shape: ExportedShape | None,
    options: ImageOptions,
) -> Array:
    """Convert an image to (N, C, H, W) or (C, H, W), repeated over N."""
    _require_known(options)
    channels, rows, columns = _picture_dims(shape, pixels, options)
    dtype = operand.dtype if operand.dtype is not None else np.dtype(np.float32)
    batch = shape[0] if shape is not None and isinstance(shape[0], int) else 1
    batch = 1 if shape is not None and len(shape) == 3 else batch
    _require_room(operand.name, (batch, channels, rows, columns), dtype)
    picture = _fitted(with_channels(pixels, channels), rows, columns, options)
    planes = np.moveaxis(picture, 2, 0)
    if channels == 3 and options.order == "BGR":
        planes = planes[::-1]
    if dtype.kind == "f":
        planes = _normalised(planes, options, operand.name)
    tensor = np.ascontiguousarray(planes, dtype=dtype)
    if shape is not None and len(shape) == 3:
        return tensor
    return np.repeat(tensor[np.newaxis], batch, axis=0)


def _picture_dims(
    shape: tuple[int | str | None, ...] | None, pixels: Array, options: ImageOptions
) -> tuple[int, int, int]:
    """Return channels, rows and columns: the model's, or the image's if they are open."""
    own = (1 if pixels.ndim == 2 else 3, pixels.shape[0], pixels.shape[1])
    wanted = shape[-3:] if shape is not None else (None, None, None)
    channels, rows, columns = (
        dim if isinstance(dim, int) else mine for dim, mine in zip(wanted, own, strict=True)
    )
    if options.size is not None:
        rows, columns = options.size
    if channels not in {1, 3}:
        raise FeedError(f"the model takes {channels} channels; an image has 1 or 3")
    if not (0 < rows <= 65536 and 0 < columns <= 65536):
        raise FeedError(f"an image cannot be resized to {rows}×{columns} pixels")
    return channels, rows, columns


def _fitted(picture: Array, rows: int, columns: int, options: ImageOptions) -> Array:
    """Bring an image of shape (H, W, C) to (rows, columns, C)."""
    if options.fit == "letterbox":
        return _letterboxed(picture, rows, columns, options)
    whole, start = (rows, columns), (0, 0)
    if options.fit == "crop":
        height, width = picture.shape[:2]
        zoom = max(rows / height, columns / width)
        zoom = max(zoom, (options.shorter_side or 0) / min(height, width))
        whole = max(rows, round(height * zoom)), max(columns, round(width * zoom))
        start = (whole[0] - rows) // 2, (whole[1] - columns) // 2
    return _resized(picture, whole, options, start, (rows, columns))


def _letterboxed(picture: Array, rows: int, columns: int, options: ImageOptions) -> Array:
    height, width = picture.shape[:2]
    zoom = min(rows / height, columns / width)
    size = max(1, round(height * zoom)), max(1, round(width * zoom))
    top, left = (rows - size[0]) // 2, (columns - size[1]) // 2
    framed = np.full((rows, columns, picture.shape[2]), options.border, np.uint8)
    framed[top : top + size[0], left : left + size[1]] = _resized(picture, size, options)
    return framed


def _resized(
    picture: Array,
    whole: tuple[int, int],
    options: ImageOptions,
    start: tuple[int, int] = (0, 0),
    size: tuple[int, int] | None = None,
) -> Array:
    if picture.shape[:2] == whole == (size or whole):
        return picture
    return ImageResizer(picture).resize(whole, options.resampling, start, size)


def _normalised(planes: Array, options: ImageOptions, name: str) -> Array:
    channels = planes.shape[0]
    columns = []
    for word, values in (("mean", options.mean), ("std", options.std)):
        if len(values) not in {1, channels}:
            raise FeedError(
                f"input {name} has {format_count(channels, 'channel')}, and {word} has "
                f"{format_count(len(values), 'value')}"
            )
        columns.append(np.asarray(values, dtype=np.float32).reshape(-1, 1, 1))
    mean, std = columns
    if not np.all(std):
        raise FeedError("a std of 0 would divide by zero")
    return (planes.astype(np.float32) * np.float32(options.scale) - mean) / std


# Labels


def read_labels(path: Path) -> tuple[str, ...]:
    """Read class names, one per line, or the tokens of a vocabulary.

    Parameters
    ----------
    path : Path
        Of text, or of a tokenizer's ``.json``.

    Raises
    ------
    FeedError
        If the file cannot be read as text.
    MeaningError
        If it is no vocabulary.
    """
    if path.suffix.lower() == ".json":
        from engine.meanings.vocabulary import read_vocabulary

        return read_vocabulary(str(path))
    try:
        lines = read_regular(path, _LONGEST_LABELS).decode().splitlines()
    except OSError as exc:
        raise FeedError(f"labels cannot be read from {path}: {format_os_error(exc)}") from exc
    except UnicodeDecodeError as exc:
        raise FeedError(f"labels cannot be read from {path}: it is not UTF-8 text") from exc
    except ValueError as exc:  # of NUL in the path
        raise FeedError(f"labels cannot be read from {str(path)!r}: {exc}") from exc
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(line.strip() for line in lines)
