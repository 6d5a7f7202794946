"""Sizes of the inputs as their fields show and change them; no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.errors import FeedError
from engine.shapes import InputShapes, bind_symbols, likely_size, settle_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperand
    from engine.shapes import ExportedShape

__all__ = [
    "Dimension",
    "answer",
    "change",
    "dimensions",
    "forget",
    "is_requested",
    "of_open_dimensions",
    "question",
]

Shape = tuple[int, ...]
_MOST_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of an input.

    Attributes
    ----------
    exported : int, str or None
        In the file: a size, a symbol, or None for ``?``.
    size : int
        Current size, or a proposal while it is open.
    is_open : bool
        Whether the user must choose the size.
    is_repeated : bool
        Whether it is a symbol that has its field at an earlier dimension.
    """

    exported: int | str | None
    size: int
    is_open: bool
    is_repeated: bool


def dimensions(
    operands: Sequence[RuntimeOperand], asked: InputShapes, fed: Mapping[str, Shape]
) -> dict[str, tuple[Dimension, ...] | None]:
    """Return the dimensions of all inputs.

    Parameters
    ----------
    operands : sequence of RuntimeOperand
        The model's inputs.
    asked : InputShapes
    fed : mapping of str to tuple of int
        Shapes of the current inputs, by operand name.

    Returns
    -------
    dict of str to tuple of Dimension, or None
        By operand name. None for an input of unknown rank.
    """
    settled = _settled(operands, asked)
    symbols: dict[str, int] = {}
    return {
        operand.name: _row(operand, settled.get(operand.name), fed.get(operand.name), symbols)
        for operand in operands
    }


def _row(
    operand: RuntimeOperand,
    shape: ExportedShape | None,
    fed: Shape | None,
    symbols: dict[str, int],
) -> tuple[Dimension, ...] | None:
    """Return the dimensions of one input; `symbols` have their fields at earlier inputs."""
    shape = shape if shape is not None else fed
    if shape is None:
        return None
    row = []
    for place, dim in enumerate(shape):
        exported = operand.shape[place] if operand.shape is not None else None
        known = dim if isinstance(dim, int) else None
        if fed is not None and known in (None, exported):  # an array has its own size
            known = fed[place]
        size = known if known is not None else likely_size(place, len(shape))
        repeated = False
        if isinstance(exported, str):
            repeated = exported in symbols
            size = symbols.setdefault(exported, size)
        row.append(Dimension(exported, size, is_open=known is None, is_repeated=repeated))
    return tuple(row)


def _settled(
    operands: Sequence[RuntimeOperand], asked: InputShapes
) -> dict[str, ExportedShape | None]:
    try:
        return settle_shapes(operands, asked)
    except FeedError:  # reported where it is fed
        return {operand.name: operand.shape for operand in operands}


def change(
    operands: Sequence[RuntimeOperand],
    asked: InputShapes,
    name: str,
    sizes: tuple[int | None, ...],
) -> InputShapes:
    """Return the requested sizes after the user has set the sizes of one input.

    Symbols are requested by name, so that the other inputs follow. Exported sizes are not
    requested.

    Parameters
    ----------
    operands : sequence of RuntimeOperand
    asked : InputShapes
        Before.
    name : str
        The input.
    sizes : tuple of (int or None)
        None leaves a dimension to the model, or to another request.
    """
    given = {**asked.shapes, name: sizes}
    own = next(operand for operand in operands if operand.name == name)
    symbols = dict(asked.symbols)
    for operand in operands:
        if operand is not own:
            symbols.update(bind_symbols([operand], asked.shapes))
    symbols.update(bind_symbols([own], {name: sizes}))
    shapes = {}
    for operand in operands:
        wanted = given.get(operand.name)
        if wanted is None or (operand.shape and len(operand.shape) != len(wanted)):
            continue
        if operand.shape is not None:
            wanted = tuple(
                None if isinstance(dim, str) or dim == size else size
                for dim, size in zip(operand.shape, wanted, strict=True)
            )
        if any(size is not None for size in wanted):
            shapes[operand.name] = wanted
    return InputShapes(shapes, symbols)


def answer(
    operands: Sequence[RuntimeOperand],
    asked: InputShapes,
    sizes: Mapping[str, tuple[int | None, ...]],
) -> InputShapes:
    """Return the requested sizes after the user has set the sizes of several inputs."""
    for name, shape in sizes.items():
        asked = change(operands, asked, name, shape)
    return asked


def forget(operands: Sequence[RuntimeOperand], asked: InputShapes, name: str) -> InputShapes:
    """Return the requested sizes without those of one input."""
    own = next(operand for operand in operands if operand.name == name)
    shapes = {key: shape for key, shape in asked.shapes.items() if key != name}
    symbols = {key: size for key, size in asked.symbols.items() if key not in (own.shape or ())}
    return InputShapes(shapes, symbols)


def is_requested(operand: RuntimeOperand, asked: InputShapes) -> bool:
    """Return whether `forget` would change anything."""
    return operand.name in asked.shapes or any(
        dim in asked.symbols for dim in operand.shape or () if isinstance(dim, str)
    )


def of_open_dimensions(operands: Sequence[RuntimeOperand], asked: InputShapes) -> InputShapes:
    """Return the requested sizes of open dimensions only."""
    shapes = {}
    for operand in operands:
        wanted = asked.shapes.get(operand.name)
        if wanted is None or (operand.shape and len(operand.shape) != len(wanted)):
            continue
        exported = operand.shape or (None,) * len(wanted)
        pairs = zip(wanted, exported, strict=True)
        shape = tuple(None if isinstance(dim, int) else size for size, dim in pairs)
        if any(size is not None for size in shape):
            shapes[operand.name] = shape
    return InputShapes(shapes, asked.symbols)


def question(
    operands: Sequence[RuntimeOperand],
    dims: Mapping[str, tuple[Dimension, ...] | None],
    wanted: Sequence[str],
) -> str:
    """Return the question for the open dimensions of some inputs; ``""`` for none.

    Parameters
    ----------
    operands : sequence of RuntimeOperand
        All inputs.
    dims : mapping
        From `dimensions`.
    wanted : sequence of str
        The inputs with generated values, which need sizes.
    """
    asked: list[str] = []
    for operand in operands:
        if operand.name in wanted:
            asked += _open_words(operand.name, dims.get(operand.name))
    if not asked:
        return ""
    if len(asked) == 1:
        return f"What is the size of {asked[0]}?"
    if len(asked) > _MOST_WORDS:
        return f"What are the sizes of the {len(asked)} open dimensions?"
    return f"What are the sizes of {', '.join(asked[:-1])} and {asked[-1]}?"


def _open_words(name: str, row: tuple[Dimension, ...] | None) -> list[str]:
    if row is None:
        return [f"input {name}"]
    return [
        dim.exported if isinstance(dim.exported, str) else f"dimension {place} of input {name}"
        for place, dim in enumerate(row)
        if dim.is_open and not dim.is_repeated
    ]
