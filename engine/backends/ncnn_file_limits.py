"""Checks of a layer before ncnn gets it.

ncnn trusts its files: a wrong count, size or axis makes it read or write beyond its memory. So
ncnn gets a layer only if its operands, parameters and weights fit each other. Where NumPy has
the layer, NumPy's checks decide: from the shapes if the layer takes long, else by computing it.
The parameters of other layers are bounded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import numpy as np

from engine.backends.lowering import LoweringError
from engine.backends.native_sizes import require_elements, require_spread, require_windows
from engine.errors import EngineError
from engine.layers.layer import LibraryLayer
from engine.layers.ncnn.only_ncnn import OnlyNcnn
from engine.ncnn.reader import ncnn_name
from engine.ncnn.types import (
    TYPES,
    UNSET,
    is_quantized,
    require_ints,
    takes_bytes,
    weight_specs,
)
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers.ncnn.table import Sliding
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["ShapeChecked", "require_computable"]

_MOST_DIMS: Final = 4
_LARGEST_NUMBER: Final = 1 << 15
_LARGEST_COUNT: Final = 1 << 26
_LARGEST_SIDE: Final = 1 << 24
# Parameters that are compared with the sizes of weights.
_COUNTS: Final = frozenset(
    {
        "weight_data_size", "bias_data_size", "scale_data_size", "scale_in_data_size",
        "scale_out_data_size", "per_channel_pad_data_size", "input_dim",
    }
)  # fmt: skip
# Parameters that determine the size of a result, or by which ncnn divides.
_SENTINELS: Final = frozenset({UNSET, UNSET - 1, 2**31 - 1, -(2**31)})


@runtime_checkable
class ShapeChecked(Protocol):
    """A layer in NumPy that checks its operands without computing."""

    def require_shapes(self, *shapes: tuple[int, ...]) -> Sliding | None:
        """Check the shapes of the operands; return the windows, if the layer has any.

        Raises
        ------
        EngineError
            If they do not fit.
        """
        ...


def require_computable(operator: RuntimeOperator, inputs: Sequence[Value]) -> None:
    """Check that ncnn can compute a layer without a memory fault.

    Parameters
    ----------
    operator : RuntimeOperator
        Of a type that ncnn has.
    inputs : sequence of Value

    Raises
    ------
    LoweringError
        If ncnn cannot compute it, or must not.
    """
    kind = ncnn_name(operator.type)
    layer = TYPES[kind]
    for what, count, (least, most) in (
        ("inputs", len(operator.inputs), layer.inputs),
        ("outputs", len(operator.outputs), layer.outputs),
    ):
        if not least <= count <= most:
            raise LoweringError(f"it has {count} {what}, which ncnn does not expect")
    try:
        require_ints(kind, operator.params)
        specs = weight_specs(kind, operator.params)
    except ValueError as exc:
        raise LoweringError(str(exc)) from None
    quantized = is_quantized(operator.params)
    for spec in specs:
        weight = operator.attributes.get(spec.name)
        if weight is None or not weight.is_stored or weight.shape != spec.shape:
            raise LoweringError(f"its weight {spec.name} is missing")
        if weight.stored_dtype == "i8" and not quantized:
            raise LoweringError(f"its weight {spec.name} is int8 without a scale")
    for value in inputs:
        _require_operand(value, bytes_allowed=takes_bytes(kind, operator.params))
    _require_fit(operator, inputs)


def _require_operand(value: Value, *, bytes_allowed: bool) -> None:
    if not isinstance(value, np.ndarray) or not 1 <= value.ndim <= _MOST_DIMS:
        raise LoweringError("an operand that ncnn has no blob for")
    if not value.size or max(value.shape) > _LARGEST_SIDE or value.dtype.kind not in "fiu":
        raise LoweringError(
            "an operand that is empty, too large, or of a dtype that ncnn does not have"
        )
    if value.dtype == np.int8 and not bytes_allowed:
        raise LoweringError("an operand of bytes, from which ncnn would read float32")
    require_elements(value.shape)


def _require_fit(operator: RuntimeOperator, inputs: Sequence[Value]) -> None:
    layer = operator.checked_layer
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    try:
        if layer is None or isinstance(layer, LibraryLayer):
            _require_bounded(operator)
            if isinstance(layer, OnlyNcnn):
                layer.require_operands(*arrays)
        elif isinstance(layer, ShapeChecked):
            _require_few(layer.require_shapes(*(array.shape for array in arrays)))
        else:
            operator.forward(materialise_all(inputs))
    except EngineError as exc:
        raise LoweringError(str(exc)) from exc


def _require_few(sliding: Sliding | None) -> None:
    """Check the windows of a layer."""
    if sliding is None:
        return
    windows, shape, outputs, gathered, output_padding = sliding
    if output_padding is None:
        require_windows(windows, (1, *shape), outputs, gathered=gathered)
    else:
        require_spread(windows, (1, *shape), outputs, output_padding)


def _require_bounded(operator: RuntimeOperator) -> None:
    """Check the parameters of a layer that only ncnn has against upper bounds."""
    for name, value in operator.params.items():
        largest = _LARGEST_COUNT if name in _COUNTS else _LARGEST_NUMBER
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, (int, float)) and not (
                (math.isfinite(number) and abs(number) <= largest) or number in _SENTINELS
            ):
                raise LoweringError(f"parameter {name}={number} is beyond the limits")
