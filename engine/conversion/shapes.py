"""Sizes of the inputs of a conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.conversion.source_inputs import SourceInput
from engine.errors import FeedError
from engine.shapes import (
    INPUT_DTYPES,
    parse_shapes,
    require_closed,
    settle_shapes,
    split_dtype,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["format_shapes", "settle_inputs"]


def settle_inputs(
    inputs: Sequence[SourceInput], texts: Sequence[str]
) -> tuple[SourceInput, ...]:
    """Apply the user's sizes to the inputs of a file.

    Parameters
    ----------
    inputs : sequence of SourceInput
        As the file describes them; may be empty.
    texts : sequence of str
        As for `engine.shapes.parse_shapes`: ``1,3,224,224`` or ``ids=1,128i64``. pnnx's dtype
        at the end counts if the file has none; float32 by default.

    Returns
    -------
    tuple of SourceInput
        All sizes are numbers. Empty without `texts`.

    Raises
    ------
    FeedError
        If a text is invalid, or sizes contradict the file.
    OpenShapeError
        If some size stays open.
    """
    if not texts:
        return ()
    known = tuple(inputs)
    if not known:  # the code of the module was not understood
        known = tuple(SourceInput(f"in{index}") for index in range(len(texts)))
    dtypes = {given.name: given.dtype for given in known}
    plain: list[str] = []
    unnamed = 0
    for text in texts:
        name, equals, value = text.rpartition("=")
        size, dtype = split_dtype(value)
        if not equals:
            if unnamed == len(known):
                names = ", ".join(given.name for given in known)
                raise FeedError(f"shape {text!r} has no input: the inputs are {names}")
            name = known[unnamed].name
            unnamed += 1
        dtypes[name.strip()] = dtypes.get(name.strip()) or dtype
        plain.append(f"{name}={size}")
    closed = require_closed(known, settle_shapes(known, parse_shapes(plain, known)))
    return tuple(SourceInput(n, closed[n], dtypes[n] or INPUT_DTYPES[0]) for n in closed)


def format_shapes(inputs: Sequence[SourceInput]) -> str:
    """Format sizes for pnnx: ``[1,3,224,224]f32,[1,16]i64``."""
    return ",".join(
        f"[{','.join(map(str, given.shape or ()))}]{given.dtype}" for given in inputs
    )
