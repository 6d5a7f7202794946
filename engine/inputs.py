"""Turn what a user names as an input into the array that the model takes.

Nothing that a file says is believed before it is checked: NumPy files are read without
pickle, and the size that a header claims is compared with the file's before memory is taken.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Protocol

import numpy as np

from engine.atomic import spoken
from engine.errors import FeedError, spell_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.values import Array

__all__ = [
    "IMAGE_SUFFIXES",
    "ImageOptions",
    "InputSource",
    "load_input",
    "load_inputs",
    "parse_number",
    "parse_source",
    "read_image",
    "read_labels",
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
MAX_INPUT_BYTES: Final = 8 << 30

Kind = Literal["image", "npy", "npz", "random", "constant", "array"]


class _InputOperand(Protocol):
    """What is read of an operand here."""

    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: np.dtype[Any] | None


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How a picture becomes a tensor: ``(pixel * scale - mean) / std``.

    Attributes
    ----------
    size : (int, int) or None
        Rows and columns; None takes the model's.
    fit : {"resize", "crop"}
        Stretch to the size, or scale the shorter side to it and cut the centre out.
        Bilinear both.
    order : {"RGB", "BGR"}
        Order of the channels of a colour input.
    scale : float
        Applied to pixels of 0 to 255.
    mean, std : tuple of float
        One value, or one per channel; in units after `scale`.
    """

    size: tuple[int, int] | None = None
    fit: Literal["resize", "crop"] = "resize"
    order: Literal["RGB", "BGR"] = "RGB"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


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
        Of random values: uniform in [0, 1) for floats, 0 to 255 for integers.
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
        """The source as it is written on the command line."""
        if self.kind == "constant":
            return {0.0: "zeros", 1.0: "ones"}.get(self.value, f"constant:{self.value:g}")
        if self.kind == "random":
            return f"random:{self.seed}"
        if self.path is not None:
            return f"{self.path}:{self.member}" if self.member else str(self.path)
        return "array"


def parse_number(text: str) -> float:
    """Read a finite number or a fraction such as ``1/255``.

    Raises
    ------
    ValueError
        With one sentence.
    """
    top, slash, bottom = text.partition("/")
    try:
        number = float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is no number; write e.g. 0.5 or 1/255") from None
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
            return InputSource("random", seed=_parse_seed(rest) if rest else 0)
        if text in {"ones", "zeros"}:
            return InputSource("constant", value=float(text == "ones"))
        if word == "constant":
            return InputSource("constant", value=parse_number(rest))
    except ValueError as exc:
        raise FeedError(f"input {text!r}: {exc}") from None
    return _file_source(text)


def _parse_seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ValueError("a seed is a whole number of at most 20 digits, such as 0")
    return int(text)


def _file_source(text: str) -> InputSource:
    path, member = Path(text), ""
    if not path.exists() and ".npz:" in text:
        stem, _, member = text.rpartition(":")
        path = Path(stem)
    suffix = path.suffix.lower()
    kinds: dict[str, Kind] = {
        ".npy": "npy",
        ".npz": "npz",
        **dict.fromkeys(IMAGE_SUFFIXES, "image"),
    }
    if suffix not in kinds:
        raise FeedError(
            f"input {text!r} is no image, .npy or .npz file, nor random[:SEED], ones, zeros "
            "or constant:VALUE"
        )
    if not path.is_file():
        raise FeedError(f"input {text!r}: there is no such file")
    return InputSource(kinds[suffix], path=path, member=member)


def load_inputs(
    sources: Sequence[InputSource],
    operands: Sequence[_InputOperand],
    options: ImageOptions | None = None,
) -> dict[str, Array]:
    """Load the values of all inputs of a model.

    Parameters
    ----------
    sources : sequence of InputSource
        One per input, in order; or a single ``.npz`` with an array per input, named by
        operand or in input order; or a single random or constant one for all.
    operands : sequence of operands
        The model's inputs.
    options : ImageOptions, optional
        For pictures.

    Returns
    -------
    dict of str to ndarray
        By operand name.

    Raises
    ------
    FeedError
        If the numbers do not match, or a source cannot be loaded.
    """
    if len(sources) == 1 and len(operands) > 1:
        only = sources[0]
        if only.kind == "npz" and not only.member:
            return _load_archive(only, operands)
        if only.kind in {"random", "constant"}:
            sources = [replace(only, seed=only.seed + i) for i in range(len(operands))]
    if len(sources) != len(operands):
        names = ", ".join(operand.name for operand in operands) or "none"
        given = "1 input was" if len(sources) == 1 else f"{len(sources)} inputs were"
        raise FeedError(f"{given} given, the model takes {len(operands)} ({names})")
    pairs = zip(sources, operands, strict=True)
    return {operand.name: load_input(source, operand, options) for source, operand in pairs}


def load_input(
    source: InputSource, operand: _InputOperand, options: ImageOptions | None = None
) -> Array:
    """Load the value of one input.

    Returns
    -------
    ndarray
        Of the operand's rank; a source array is returned as it is, not copied.

    Raises
    ------
    FeedError
        If the file cannot be read or does not fit.
    """
    if source.kind == "array":
        return np.asarray(source.array)
    if source.kind == "image":
        return _image_tensor(source, operand, options or ImageOptions())
    if source.kind == "npy":
        return _load_npy(_path_of(source))
    if source.kind == "npz":
        return _load_archive(source, [operand])[operand.name]
    return _generated(source, operand)


def _path_of(source: InputSource) -> Path:
    if source.path is None:
        raise FeedError(f"an input of kind {source.kind} needs a file")
    return source.path


# Numbers made up


def _generated(source: InputSource, operand: _InputOperand) -> Array:
    shape = _known_shape(operand)
    dtype = operand.dtype if operand.dtype is not None else np.dtype(np.float32)
    if math.prod(shape) * dtype.itemsize > MAX_INPUT_BYTES:
        raise FeedError(f"input {operand.name} of {spell_shape(shape)} is larger than 8 GiB")
    if source.kind == "constant":
        return np.full(shape, _fitting(source.value, dtype, operand.name), dtype=dtype)
    rng = np.random.default_rng(source.seed)
    if dtype.kind == "f":
        values: Array = rng.random(shape, dtype=np.float32)
        return values.astype(dtype)
    if dtype.kind == "c":
        parts: Array = rng.random((2, *shape), dtype=np.float32)
        return np.asarray(parts[0] + 1j * parts[1], dtype=dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    top = 128 if dtype == np.int8 else 256
    return rng.integers(0, top, shape).astype(dtype)


def _fitting(value: float, dtype: np.dtype[Any], name: str) -> Array:
    """A number as a dtype that can hold it; floats may be rounded, but not to infinity."""
    with np.errstate(all="ignore"):
        number = np.asarray(value).astype(dtype)
        fits = np.isfinite(number) if dtype.kind in "fc" else number == value
    if not fits:
        raise FeedError(f"input {name} takes {dtype}, which cannot hold {value:g}")
    return number


def _known_shape(operand: _InputOperand) -> tuple[int, ...]:
    if operand.shape is None:
        raise FeedError(
            f"the model does not say the shape of input {operand.name}; give a .npy"
        )
    known: list[int] = []
    for place, dim in enumerate(operand.shape):
        if not isinstance(dim, int):
            shown = "?" if dim is None else dim
            raise FeedError(
                f"dimension {place} of input {operand.name} is left open ({shown}); give a "
                ".npy of the size you want"
            )
        known.append(dim)
    return tuple(known)


# NumPy's files


def _load_npy(path: Path) -> Array:
    try:
        with path.open("rb") as file:
            return _read_array(file, path.stat().st_size, str(path))
    except OSError as exc:
        raise FeedError(f"{path} cannot be read: {spoken(exc)}") from exc


def _read_array(file: BinaryIO, available: int, where: str) -> Array:
    """Read one ``.npy`` whose bytes are at most `available`."""
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise FeedError(f"{where} is of .npy version {version}, which is not supported")
        shape, fortran, dtype = read_header(file)
    except (ValueError, SyntaxError, TokenError, RecursionError, MemoryError) as exc:
        raise FeedError(f"{where} is no .npy array: its header cannot be read") from exc
    if dtype.hasobject or dtype.kind not in "?biufc":
        raise FeedError(f"{where} holds {dtype}, not numbers")
    wanted = math.prod(shape) * dtype.itemsize
    if wanted > available or wanted > MAX_INPUT_BYTES:
        raise FeedError(
            f"{where} claims {spell_shape(shape)} {dtype}, {wanted} bytes, but has {available}"
        )
    data = file.read(wanted)
    if len(data) != wanted:
        raise FeedError(f"{where} is cut short: {len(data)} of {wanted} bytes")
    array = np.frombuffer(data, dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")


def _load_archive(source: InputSource, operands: Sequence[_InputOperand]) -> dict[str, Array]:
    path = _path_of(source)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            chosen = _choose_members(path, source.member, tuple(members), operands)
            loaded = {}
            for operand, name in chosen.items():
                with archive.open(members[name]) as file:
                    size = members[name].file_size
                    loaded[operand] = _read_array(file, size, f"{name} in {path}")  # type: ignore[arg-type]
            return loaded
    except OSError as exc:
        raise FeedError(f"{path} cannot be read as .npz: {spoken(exc)}") from exc
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        reason = str(exc) or "it is cut short"
        raise FeedError(f"{path} cannot be read as .npz: {reason}") from exc


def _choose_members(
    path: Path, member: str, names: tuple[str, ...], operands: Sequence[_InputOperand]
) -> Mapping[str, str]:
    """Array name of each operand."""
    if member:
        if member not in names:
            raise FeedError(f"{path} has no array {member!r}; it has {', '.join(names)}")
        return {operands[0].name: member}
    if all(operand.name in names for operand in operands):
        return {operand.name: operand.name for operand in operands}
    if len(names) != len(operands):
        raise FeedError(
            f"{path} has {len(names)} arrays ({', '.join(names[:8])}), the model takes "
            f"{len(operands)}; name one as {path.name}:NAME"
        )
    return {o.name: name for o, name in zip(operands, names, strict=True)}


# Pictures


def read_image(path: Path) -> Array:
    """Read a picture.

    Returns
    -------
    ndarray of uint8 of shape (H, W, 3) or (H, W)
        RGB, or grey where the file is; turned upright as its EXIF says.

    Raises
    ------
    FeedError
        If it is no picture, or an unreasonably large one.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():  # what is wrong with the file we say ourselves
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                limit = Image.MAX_IMAGE_PIXELS or 1 << 28
                _require_reasonable(path, image.width, image.height, limit)
                upright = ImageOps.exif_transpose(image)
                grey = upright.mode in {"1", "L", "LA", "I", "I;16", "F"}
                return np.asarray(upright.convert("L" if grey else "RGB"))
    except FeedError:
        raise
    except UnidentifiedImageError as exc:
        raise FeedError(f"{path} cannot be read as a picture: its format is not known") from exc
    except Exception as exc:
        # A damaged file makes decoders raise whatever they stumble over.
        reason = spoken(exc) if isinstance(exc, OSError) else str(exc) or type(exc).__name__
        raise FeedError(f"{path} cannot be read as a picture: {reason}") from exc


def _require_reasonable(path: Path, width: int, height: int, limit: int) -> None:
    if width * height > limit:
        raise FeedError(f"{path} has {width}×{height} pixels, too many to read")


def _image_tensor(source: InputSource, operand: _InputOperand, options: ImageOptions) -> Array:
    """Picture as (1, C, H, W) or (C, H, W), as the operand has it; repeated over N."""
    shape = operand.shape
    if shape is not None and len(shape) not in {3, 4}:
        raise FeedError(
            f"input {operand.name} of {spell_shape(shape)} is no picture; give a .npy instead"
        )
    pixels = read_image(_path_of(source))
    channels, rows, columns = _picture_dims(shape, pixels, options)
    picture = _fitted(_with_channels(pixels, channels), rows, columns, options.fit)
    planes = np.moveaxis(picture, 2, 0)
    if channels == 3 and options.order == "BGR":
        planes = planes[::-1]
    dtype = operand.dtype if operand.dtype is not None else np.dtype(np.float32)
    if dtype.kind == "f":
        planes = _normalised(planes, options, operand.name)
    tensor = np.ascontiguousarray(planes, dtype=dtype)
    if shape is not None and len(shape) == 3:
        return tensor
    batch = shape[0] if shape is not None and isinstance(shape[0], int) else 1
    return np.repeat(tensor[np.newaxis], batch, axis=0)


def _picture_dims(
    shape: tuple[int | str | None, ...] | None, pixels: Array, options: ImageOptions
) -> tuple[int, int, int]:
    """Channels, rows and columns: the model's, or where open the picture's."""
    own = (1 if pixels.ndim == 2 else 3, pixels.shape[0], pixels.shape[1])
    wanted = shape[-3:] if shape is not None else (None, None, None)
    channels, rows, columns = (
        dim if isinstance(dim, int) else mine for dim, mine in zip(wanted, own, strict=True)
    )
    if options.size is not None:
        rows, columns = options.size
    if channels not in {1, 3}:
        raise FeedError(f"the model takes {channels} channels; a picture has 1 or 3")
    if not (0 < rows <= 65536 and 0 < columns <= 65536):
        raise FeedError(f"a picture cannot be made {rows}×{columns} pixels")
    return channels, rows, columns


def _with_channels(pixels: Array, channels: int) -> Array:
    from PIL import Image

    image = Image.fromarray(pixels).convert("L" if channels == 1 else "RGB")
    array = np.asarray(image)
    return array[:, :, np.newaxis] if channels == 1 else array


def _fitted(picture: Array, rows: int, columns: int, fit: str) -> Array:
    """Resize to (rows, columns), bilinear; `crop` keeps the picture's proportions."""
    from PIL import Image

    if picture.shape[:2] == (rows, columns):
        return picture
    image = Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture)
    if fit == "crop":
        zoom = max(rows / picture.shape[0], columns / picture.shape[1])
        width = max(columns, round(picture.shape[1] * zoom))
        height = max(rows, round(picture.shape[0] * zoom))
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - columns) // 2, (height - rows) // 2
        image = image.crop((left, top, left + columns, top + rows))
    else:
        image = image.resize((columns, rows), Image.Resampling.BILINEAR)
    array = np.asarray(image)
    return array if array.ndim == 3 else array[:, :, np.newaxis]


def _normalised(planes: Array, options: ImageOptions, name: str) -> Array:
    channels = planes.shape[0]
    columns = []
    for word, values in (("mean", options.mean), ("std", options.std)):
        if len(values) not in {1, channels}:
            raise FeedError(
                f"input {name} has {channels} channels, and {word} has {len(values)} values"
            )
        columns.append(np.asarray(values, dtype=np.float32).reshape(-1, 1, 1))
    mean, std = columns
    if not np.all(std):
        raise FeedError("a std of 0 would divide by zero")
    return (planes.astype(np.float32) * np.float32(options.scale) - mean) / std


# Labels


def read_labels(path: Path) -> tuple[str, ...]:
    """Read class names, one a line.

    Raises
    ------
    FeedError
        If the file cannot be read as text.
    """
    try:
        if path.stat().st_size > 16 << 20:
            raise FeedError(f"{path} is too large to be a list of labels")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as exc:
        raise FeedError(f"labels cannot be read from {path}: {spoken(exc)}") from exc
    except UnicodeDecodeError as exc:
        raise FeedError(f"labels cannot be read from {path}: it is not UTF-8 text") from exc
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(line.strip() for line in lines)
