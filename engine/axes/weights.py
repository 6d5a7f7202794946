"""What the dimensions of an operator's weights mean."""

from __future__ import annotations

import re
from typing import Final

from engine.axes.layout import Axis, Kind, Layout

__all__ = ["weight_layout"]

_POSITIONS: Final = (Kind.DEPTH, Kind.ROW, Kind.COLUMN)
_OF_MATRICES: Final = (Kind.OUTPUT, Kind.INPUT)
_OF_LOOKUPS: Final = (Kind.VOCABULARY, Kind.FEATURE)
# Types, without their module and in lower case, and the meanings of two dimensions. Of those of
# convolutions the positions follow.
_FAMILIES: Final[tuple[tuple[re.Pattern[str], tuple[Kind, Kind]], ...]] = tuple(
    (re.compile(pattern), kinds)
    for pattern, kinds in (
        (r"(convtranspose|conv_transpose|deconvolution)", (Kind.CHANNEL, Kind.FILTER)),
        (r"(deform)?conv", (Kind.FILTER, Kind.CHANNEL)),
        (r"embed", _OF_LOOKUPS),
        (r"(linear|innerproduct|gemm|multiheadattention|lstm|gru|rnn)", _OF_MATRICES),
    )
)
_QUERIES_KEYS_VALUES: Final = 3  # one after another in PyTorch's joint projection
_IN_PROJECTION: Final = re.compile(r"(in|[qkv])_(proj_)?weight")
_OUT_PROJECTION: Final = re.compile(r"out_(proj[._])?weight")
_FLAT: Final = re.compile(r"(batchnorm|instancenorm|groupnorm|prelu)")
_NORMALISED: Final = re.compile(r"(layernorm|rmsnorm)")


def weight_layout(
    type_: str, name: str, shape: tuple[int, ...], heads: int = 1
) -> Layout | None:
    """Return what the dimensions of a weight mean.

    Parameters
    ----------
    type_ : str
        Of the operator.
    name : str
        Of the weight.
    shape : tuple of int
    heads : int, optional
        Of an attention.

    Returns
    -------
    Layout or None
        None where the operator's weights are not known.

    Examples
    --------
    >>> weight_layout("nn.Conv2d", "weight", (64, 3, 7, 7)).text()
    'filters × channels × rows × columns'
    >>> weight_layout("nn.MultiheadAttention", "in_proj_weight", (2304, 768), 12).text()
    'parts·heads·features × inputs'
    """
    plain = type_.rpartition(".")[2].lower()
    kinds = _kinds(plain, name, len(shape))
    if kinds is None:
        return None
    axes = [Axis(kind, size) for kind, size in zip(kinds, shape, strict=True)]
    split = _heads(name, shape, heads) if "multiheadattention" in plain else None
    if split is not None:
        axes[split[0]] = split[1]
    return Layout(tuple(axes))


def _heads(name: str, shape: tuple[int, ...], heads: int) -> tuple[int, Axis] | None:
    """Return the dimension of a projection of an attention that joins heads, and its parts."""
    incoming, outgoing = _IN_PROJECTION.fullmatch(name), _OUT_PROJECTION.fullmatch(name)
    if len(shape) != 2 or heads < 2 or not (incoming or outgoing):
        return None
    place = 0 if incoming else 1
    size = shape[place]
    parts = _QUERIES_KEYS_VALUES if name == "in_proj_weight" else 1
    if size % (heads * parts):
        return None
    of_parts = (Axis(Kind.PART, parts),) if parts > 1 else ()
    of_heads = Axis(Kind.HEAD, heads), Axis(Kind.FEATURE, size // heads // parts)
    return place, Axis(Kind.UNKNOWN, size, (*of_parts, *of_heads))


def _kinds(plain: str, name: str, rank: int) -> tuple[Kind, ...] | None:
    for pattern, kinds in _FAMILIES:
        if not pattern.match(plain):
            continue
        has_positions = Kind.FILTER in kinds
        if rank == 1:
            first = Kind.FILTER if has_positions else kinds[0]
            return (first,) if first in {Kind.FILTER, Kind.OUTPUT} else None
        if has_positions and 3 <= rank <= 2 + len(_POSITIONS):
            return (*kinds, *_POSITIONS[len(_POSITIONS) - rank + 2 :])
        return kinds if rank == 2 and not has_positions else None
    if rank == 1 and _FLAT.match(plain):
        return (Kind.CHANNEL,)
    if rank == 1 and _NORMALISED.match(plain) and name in {"weight", "bias"}:
        return (Kind.FEATURE,)
    return None
