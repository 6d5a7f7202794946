"""Writes ncnn's settings that keep operators in float32.

Sources: ncnn's docs/developer-guide/layer-feat-mask.md for the bits, and
docs/how-to-use-and-FAQ/quantized-int8-inference.md for the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.precision.formats import Format
    from engine.runtime import OperatorLabel

__all__ = ["ncnn_lines"]

_NO_FP16: Final = (1 << 0) | (1 << 1)  # no fp16 arithmetic, no fp16 storage
_NO_BF16: Final = 1 << 2  # no bf16 storage
_MASKS: Final = {"float16": _NO_FP16, "bfloat16": _NO_BF16}
# Types that ncnn2table quantises, by PNNX's and ncnn's names.
_IN_TABLE: Final = frozenset(
    {
        "nn.Conv2d",
        "nn.Linear",
        "ncnn.Convolution",
        "ncnn.ConvolutionDepthWise",
        "ncnn.InnerProduct",
    }
)


def ncnn_lines(
    kept: Iterable[OperatorLabel],
    format: Format,  # noqa: A002 - the field's word
) -> tuple[str, ...]:
    """Return the settings that make ncnn keep operators in float32.

    Parameters
    ----------
    kept : iterable of OperatorLabel
    format : Format

    Returns
    -------
    tuple of str
        For float16 and bfloat16 the name of each operator and the feature mask to add to the
        line of its layer, e.g. ``conv_0 31=3``. For int8 the commented beginning of the layer's
        line in ncnn2table's table, e.g. ``#conv_0_param_0``; no line for a type that ncnn does
        not quantise. Names are this model's; pnnx renames layers in an ncnn pair.
    """
    if format.is_scaled:
        return tuple(f"#{each.name}_param_0" for each in kept if each.type in _IN_TABLE)
    return tuple(f"{each.name} 31={_MASKS[format.name]}" for each in kept)
