"""Shapes of a model's inputs: open sizes of the file, and sizes of the user.

A dimension of an exported shape is a number, a symbol such as ``%h``, which stands for the
same number wherever it is written, or None, which is open (``?``). A model may run at other
numbers than those it was exported at, as far as its operators allow it; a symbol must mean
one number in all inputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from engine.errors import FeedError, OpenShapeError
from engine.text import format_dtype, format_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

__all__ = [
    "INPUT_DTYPES",
    "LARGEST_SIZE",
    "ExportedShape",
    "InputShapes",
    "bind_symbols",
    "fill_symbols",
    "fits",
    "likely_size",
    "other_sizes",
    "parse_dims",
    "parse_shapes",
    "require_closed",
    "settle_shapes",
    "split_dtype",
]

ExportedShape: TypeAlias = tuple[int | str | None, ...]
T = TypeVar("T")

LARGEST_SIZE: Final = (1 << 31) - 1
INPUT_DTYPES: Final = (
    "f32", "i64", "i32", "f16", "bf16", "f64", "i16", "i8", "u8", "bool", "c64", "c128",
)  # fmt: skip
"""pnnx's names for the dtypes of inputs, the usual ones first."""
# The x of 1x3x8x8 begins no dtype.
_WITH_DTYPE: Final = re.compile(r"(.*[\d?\])])\s*((?!x\d)[a-z]\w*)", re.IGNORECASE | re.ASCII)
_USUAL_SIDE: Final = 224
_USUAL_LENGTH: Final = 16


class _InputOperand(Protocol):
    """The properties of an operand that this module uses."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> ExportedShape | None: ...

    @property
    def dtype(self) -> np.dtype[Any] | str | None: ...


@dataclass(frozen=True, slots=True)
class InputShapes:
    """Input sizes of the user.

    Attributes
    ----------
    shapes : mapping of str to tuple of (int or None)
        By operand name. None leaves a dimension as the model has it.
    symbols : mapping of str to int
        By name with the ``%``.
    """

    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.shapes or self.symbols)

    @property
    def texts(self) -> tuple[str, ...]:
        """The sizes in the notation of `parse_shapes`."""
        shapes = (f"{name}={_listed(shape)}" for name, shape in self.shapes.items())
        return (*shapes, *(f"{name}={size}" for name, size in self.symbols.items()))


def parse_shapes(texts: Sequence[str], operands: Sequence[_InputOperand]) -> InputShapes:
    """Parse sizes of the command line.

    Parameters
    ----------
    texts : sequence of str
        Each is a shape, which belongs to the next input (``1,3,320,320``; a ``?`` leaves a
        dimension as the model has it), a shape of a named input (``in0=1,3,320,320``), or
        the size of a symbol (``h=320`` or ``%h=320``). A shape may end with the dtype, as
        pnnx writes it: ``1,128i64``.
    operands : sequence of operands
        The model's inputs.

    Raises
    ------
    FeedError
        If a text is invalid, names an unknown input or symbol, repeats another one, or ends
        with another dtype than the model's.
    """
    shapes: dict[str, tuple[int | None, ...]] = {}
    symbols: dict[str, int] = {}
    waiting = {operand.name: operand for operand in operands}
    known = {dim for o in operands for dim in o.shape or () if isinstance(dim, str)}
    unnamed = 0
    for text in texts:
        name, equals, value = (part.strip() for part in text.rpartition("="))
        symbol = name if name.startswith("%") else f"%{name}"
        if not equals:
            if unnamed == len(waiting):
                raise FeedError(
                    f"shape {text!r} is one too many: the inputs of the model are "
                    f"{', '.join(waiting) or 'none'}"
                )
            name = operands[unnamed].name
            unnamed += 1
        if name in waiting:
            size, dtype = split_dtype(value)
            _require_dtype(waiting[name], dtype, text)
            _add(shapes, name, _parse_dims(size, text), text)
        elif symbol in known:
            _add(symbols, symbol, _parse_size(value, text), text)
        else:
            has = ", ".join([*waiting, *sorted(known)]) or "nothing to give a shape to"
            raise FeedError(
                f"shape {text!r}: {name} is neither an input nor a symbol of the model, which "
                f"has {has}"
            )
    return InputShapes(shapes, symbols)


def split_dtype(text: str) -> tuple[str, str]:
    """Split a size from the dtype at its end.

    Parameters
    ----------
    text : str
        ``1,128i64``, ``[1,128]i64`` or ``1,128``.

    Returns
    -------
    size : str
    dtype : str
        Of `INPUT_DTYPES`; ``""`` for none.

    Raises
    ------
    FeedError
        If pnnx has no such dtype.
    """
    found = _WITH_DTYPE.fullmatch(text.strip())
    if found is None:
        return text, ""
    if found[2] not in INPUT_DTYPES:
        raise FeedError(
            f"shape {text!r}: {found[2]!r} is no type; write one of {', '.join(INPUT_DTYPES)}"
        )
    return found[1], found[2]


def _require_dtype(operand: _InputOperand, dtype: str, text: str) -> None:
    """Refuse another dtype than that of a converted model.

    The dtype of a file to convert, in pnnx's words, counts more than this one.
    """
    known = "" if isinstance(operand.dtype, str) else format_dtype(operand.dtype)
    computed = "f32" if dtype == "bf16" else dtype  # NumPy has no bfloat16
    if dtype and known and computed != known:
        raise FeedError(f"shape {text!r}: input {operand.name} takes {known}, not {dtype}")


def _add(found: dict[str, T], name: str, value: T, text: str) -> None:
    if name in found:
        raise FeedError(f"shape {text!r}: {name} already has a shape")
    found[name] = value


def parse_dims(text: str) -> tuple[int | None, ...]:
    """Parse a size, such as ``1,3,224,224`` or ``[1,3,?,?]``; ``?`` is None.

    Raises
    ------
    FeedError
        If it is none.
    """
    return _parse_dims(text, text)


def _parse_dims(value: str, text: str) -> tuple[int | None, ...]:
    words = re.split(r"\s*[,x×]\s*", value.strip("()[] "), flags=re.IGNORECASE)
    return tuple(None if word == "?" else _parse_size(word, text) for word in words)


def _parse_size(word: str, text: str) -> int:
    if not (word.isascii() and word.isdecimal() and 0 < int(word[:12]) <= LARGEST_SIZE):
        fault = f"{word!r} is no size" if word else "a size is missing"
        raise FeedError(
            f"shape {text!r}: {fault}; write whole numbers from 1, such as 1,3,224,224"
        )
    return int(word)


def settle_shapes(
    operands: Sequence[_InputOperand],
    asked: InputShapes,
    fed: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, ExportedShape | None]:
    """Determine the shapes of the inputs, as far as they are known.

    Parameters
    ----------
    operands : sequence of operands
        The model's inputs.
    asked : InputShapes
        These override the sizes of the file.
    fed : mapping of str to tuple of int, optional
        Shapes of given arrays, by operand name.

    Returns
    -------
    dict of str to ExportedShape or None
        By operand name. Symbols and None are open sizes.

    Raises
    ------
    FeedError
        If sizes contradict each other, an array or the rank of an input.
    """
    fed = fed or {}
    partly: dict[str, tuple[int | None, ...]] = {}
    for operand in operands:
        wanted, actual = asked.shapes.get(operand.name), fed.get(operand.name)
        if wanted is not None:
            _require_rank(operand, wanted)
            if actual is not None and not fits(actual, wanted):
                raise FeedError(
                    f"input {operand.name} must be {_format_wanted(operand, wanted)}, but its "
                    f"value is {format_shape(actual)}"
                )
            partly[operand.name] = wanted
        if actual is not None:
            partly[operand.name] = actual
    symbols = bind_symbols(operands, partly, asked.symbols)
    return {operand.name: _filled(operand, partly, symbols) for operand in operands}


def _filled(
    operand: _InputOperand,
    partly: Mapping[str, tuple[int | None, ...]],
    symbols: Mapping[str, int],
) -> ExportedShape | None:
    wanted = partly.get(operand.name)
    if operand.shape is None or (wanted is not None and len(wanted) != len(operand.shape)):
        return wanted
    known = fill_symbols(operand.shape, symbols)
    chosen = wanted or known
    pairs = zip(chosen, known, strict=True)
    return tuple(dim if size is None else size for size, dim in pairs)


def _require_rank(operand: _InputOperand, wanted: tuple[int | None, ...]) -> None:
    if operand.shape is not None and len(operand.shape) != len(wanted):
        raise FeedError(
            f"input {operand.name} of {format_shape(operand.shape)} has {len(operand.shape)} "
            f"dimensions, and {format_shape(wanted)} has {len(wanted)}"
        )


def fits(actual: tuple[int, ...], expected: ExportedShape) -> bool:
    """Return whether a shape has the rank and the known dimensions of another."""
    if len(actual) != len(expected):
        return False
    pairs = zip(actual, expected, strict=True)
    return all(size == dim for size, dim in pairs if isinstance(dim, int))


def fill_symbols(shape: ExportedShape, symbols: Mapping[str, int]) -> ExportedShape:
    """Replace known symbols by their sizes."""
    return tuple(symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in shape)


def bind_symbols(
    operands: Sequence[_InputOperand],
    shapes: Mapping[str, tuple[int | None, ...]],
    asked: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Find the sizes of the inputs' symbols.

    Parameters
    ----------
    operands : sequence of operands
    shapes : mapping of str to tuple of (int or None)
        By operand name; may be incomplete.
    asked : mapping of str to int, optional
        Sizes of symbols from the user.

    Raises
    ------
    FeedError
        If a symbol would have two sizes, with both positions.
    """
    found = {symbol: (size, "as asked for") for symbol, size in (asked or {}).items()}
    for operand in operands:
        shape = shapes.get(operand.name)
        if shape is None or operand.shape is None or len(shape) != len(operand.shape):
            continue
        for dim, size in zip(operand.shape, shape, strict=True):
            if not isinstance(dim, str) or size is None:
                continue
            where = f"in input {operand.name} of {format_shape(shape)}"
            known, place = found.setdefault(dim, (size, where))
            if known != size:
                raise FeedError(
                    f"{dim} stands for one size, but is {known} {place} and {size} {where}"
                )
    return {symbol: size for symbol, (size, _) in found.items()}


def require_closed(
    operands: Sequence[_InputOperand], shapes: Mapping[str, ExportedShape | None]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs, all of which must be known.

    Parameters
    ----------
    operands : sequence of operands
        The inputs that need a whole shape.
    shapes : mapping of str to ExportedShape or None
        From `settle_shapes`.

    Raises
    ------
    OpenShapeError
        With every open input and dimension, and likely sizes.
    """
    closed: dict[str, tuple[int, ...]] = {}
    sentences: list[str] = []
    likely: dict[str, str] = {}
    for operand in operands:
        shape = shapes.get(operand.name)
        if shape is None:
            sentences.append(f"the model does not say the shape of input {operand.name}")
            likely[operand.name] = f"{operand.name}=1,3,{_USUAL_SIDE},{_USUAL_SIDE}"
            continue
        sizes = tuple(dim for dim in shape if isinstance(dim, int))
        if len(sizes) == len(shape):
            closed[operand.name] = sizes
            continue
        sentences.append(_open_sentence(operand.name, shape))
        for key, text in _likely_texts(operand.name, shape).items():
            likely.setdefault(key, text)
    if sentences:
        raise OpenShapeError("; ".join(sentences), tuple(likely.values()))
    return closed


def _open_sentence(name: str, shape: ExportedShape) -> str:
    symbols = list(dict.fromkeys(dim for dim in shape if isinstance(dim, str)))
    places = [str(place) for place, dim in enumerate(shape) if dim is None]
    dims = [f"dimension{'s' if len(places) > 1 else ''} {_and(places)}"] if places else []
    return f"input {name} of {format_shape(shape)} leaves {_and([*dims, *symbols])} open"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _likely_texts(name: str, shape: ExportedShape) -> dict[str, str]:
    """Return suggestions for the open dimensions of a shape, by operand or symbol."""
    sizes = {
        dim: likely_size(place, len(shape))
        for place, dim in enumerate(shape)
        if isinstance(dim, str)
    }
    texts = {symbol: f"{symbol.removeprefix('%')}={size}" for symbol, size in sizes.items()}
    if None in shape:
        dims = [
            likely_size(place, len(shape)) if dim is None else "?" if dim in sizes else dim
            for place, dim in enumerate(shape)
        ]
        texts[name] = f"{name}={','.join(map(str, dims))}"
    return texts


def likely_size(axis: int, rank: int) -> int:
    """Propose a size for an open dimension: one sample, an image's side, a short row."""
    if axis == 0:
        return 1
    return _USUAL_SIDE if rank == 4 and axis >= 2 else _USUAL_LENGTH


def other_sizes(
    operands: Sequence[_InputOperand], fed: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[ExportedShape, tuple[int, ...]]]:
    """Return inputs with other sizes than the exported ones.

    Returns
    -------
    dict of str to (ExportedShape, tuple of int)
        Exported and fed shape by operand name. Open dimensions may have any size.
    """
    return {
        o.name: (o.shape, fed[o.name])
        for o in operands
        if o.shape is not None and o.name in fed and not fits(fed[o.name], o.shape)
    }


def _format_wanted(operand: _InputOperand, wanted: tuple[int | None, ...]) -> str:
    """Complete a requested shape with the exported dimensions."""
    exported = operand.shape or (None,) * len(wanted)
    pairs = zip(wanted, exported, strict=True)
    return format_shape(dim if want is None else want for want, dim in pairs)


def _listed(shape: tuple[int | None, ...]) -> str:
    return ",".join("?" if dim is None else str(dim) for dim in shape)
