"""Convolutions, poolings and other operators on images, signals and volumes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.products import mixes_heads
from engine.axes.registry import rule
from engine.axes.rules.attention import claim_split_heads
from engine.axes.rules.elementwise import keep
from engine.axes.weights import weight_layout

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims
    from engine.axes.layout import Size

__all__ = ["convolve", "resample"]

_SHUFFLES: Final = ("pixelshuffle", "pixelunshuffle")
_SPATIAL: Final = re.compile(r"([123])d(?![a-z])", re.IGNORECASE)


def _spatial(call: Call) -> int:
    """Return the number of spatial dimensions in the operator type."""
    found = _SPATIAL.search(call.operator.type)
    return int(found[1]) if found else 0


@rule("conv1d", "conv2d", "conv3d", "convtranspose1d", "convtranspose2d", "convtranspose3d",
      "deformconv2d")  # fmt: skip
def convolution(call: Call) -> Results:
    """Replace channels, and resample positions."""
    dims, spatial = call.first, _spatial(call)
    if dims and mixes_heads(call.operator) and call.factors.kind(dims[1][0]) is Kind.HEAD:
        return [_mix_heads(call, dims)]
    if not call.claim_image(dims, spatial) or dims is None:
        return []
    is_film = spatial == 3 and call.factors.sizes[dims[-4][0]] == 3 and len(dims[-4]) == 1
    kernel = call.integers("kernel_size") or ()
    # Three channels are colours, which a volume does not have; and only films are convolved
    # along one dimension alone.
    if is_film or (len(kernel) == 3 and kernel[0] > 1 and set(kernel[1:]) == {1}):
        call.factors.claim(dims[-3], Kind.TIME, Rank.DECLARED)
    _claim_weight(call, spatial)
    found = convolve(call, dims, spatial)
    call.claim_image(found, spatial)  # rows that were flattened have one meaning from here
    return [found]


def _mix_heads(call: Call, dims: Dims) -> Dims | None:
    """Return scores of other heads for the same queries and keys, as of talking heads."""
    made = call.factors.derive(dims[1], call.factors.extent(dims[1]))
    return call.fit((dims[0], made, *dims[2:]))


def _claim_weight(call: Call, spatial: int) -> None:
    """Name the dimensions of a weight that is computed, as StyleGAN scales it by style."""
    weight = call.input("weight", 1)
    if weight is None or len(weight) != spatial + 2:
        return
    shape = tuple([call.factors.size(dim) or 0 for dim in weight])
    layout = weight_layout(call.operator.type, "weight", shape)
    if layout is not None:
        call.claim(weight, layout.kinds, Rank.EXPECTED)


def convolve(call: Call, dims: Dims, spatial: int) -> Dims | None:
    """Return the dimensions of a convolution's result."""
    shape = call.shape
    if shape is None or len(shape) != len(dims):
        return None
    made = (call.factors.make(shape[-spatial - 1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.DECLARED if spatial > 1 else Rank.EXPECTED)
    return resample(call, (*dims[: -spatial - 1], made, *dims[-spatial:]), shape)


def resample(call: Call, dims: Dims, shape: tuple[Size, ...]) -> Dims | None:
    """Return dimensions with the sizes of a shape; equal sizes keep their positions."""
    if len(dims) != len(shape):
        return None
    return tuple([_resize(call, dim, size) for dim, size in zip(dims, shape, strict=True)])


def _resize(call: Call, dim: Dim, size: Size) -> Dim:
    return dim if call.factors.extent(dim) == size else call.factors.resample(dim, size)


@rule(*[f"{kind}{n}d" for n in (1, 2, 3) for kind in (
    "maxpool", "avgpool", "adaptiveavgpool", "adaptivemaxpool", "lppool", "maxunpool",
    "fractionalmaxpool",
)])  # fmt: skip
def pool(call: Call) -> Results:
    """Resample positions.

    One channel that is pooled along its rows alone may be a sequence, as of Funnel.
    """
    dims, kernel = call.first, call.integers("kernel_size") or ()
    is_tall = len(kernel) == 2 and kernel[0] > kernel[1] == 1
    if is_tall and dims is not None and len(dims) == 4 and call.factors.extent(dims[1]) == 1:
        call.claim(dims[2:], (Kind.TOKEN, Kind.FEATURE), Rank.EXPECTED)
        return _resampled(call, dims)
    if not call.claim_image(dims, _spatial(call), mixes=False) or dims is None:
        return []
    return _resampled(call, dims)


@rule(*[f"{kind}{n}d" for n in (1, 2, 3) for kind in (
    "zeropad", "reflectionpad", "replicationpad", "constantpad",
)])  # fmt: skip
def pad(call: Call) -> Results:
    """Resample positions; without a batch the operand need be no image.

    The time mix of RWKV shifts its tokens by a padding of two dimensions.
    """
    dims, spatial = call.first, _spatial(call)
    if dims is None:
        return []
    if len(dims) == spatial + 2:
        call.claim_image(dims, spatial)
    return _resampled(call, dims)


def _resampled(call: Call, dims: Dims) -> Results:
    return [resample(call, dims, shape) if shape else None for shape in call.shapes]


@rule("upsample", "interpolate", "upsamplenearest", "upsamplebilinear", "pixelshuffle",
      "pixelunshuffle", "localresponsenorm", "upsamplingbilinear2d",
      "upsamplingnearest2d")  # fmt: skip
def resize(call: Call) -> Results:
    """Resample images; channels may become positions."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or not 3 <= len(dims) <= 5:
        return []
    mixes = call.operator.type.lower().replace("_", "").endswith(_SHUFFLES)
    if not call.claim_image(dims, len(dims) - 2, mixes=mixes):
        return []
    return [resample(call, dims, shape)]


@rule("gridsample")
def sample(call: Call) -> Results:
    """Sample an image at the places of a grid, which need be no image."""
    dims, grid, shape = call.first, call.input("grid", 1), call.shape
    if dims is None or not call.claim_image(dims, len(dims) - 2):
        return []
    claim_split_heads(call.factors, dims[:1])
    if grid is None or shape is None or len(grid) != len(dims):
        return []
    call.factors.unify(dims[0], grid[0])
    call.factors.claim(grid[-1], Kind.COORDINATE, Rank.STATED)
    return [call.fit((*dims[:2], *grid[1:-1]))]


@rule("batchnorm1d", "batchnorm2d", "batchnorm3d", "instancenorm1d", "instancenorm2d",
      "instancenorm3d", "groupnorm", "batchnorm", "instancenorm")  # fmt: skip
def normalize(call: Call) -> Results:
    """Normalise each channel, or groups of them."""
    dims = call.first
    if dims is not None:
        if 3 < len(dims) <= 5:
            call.claim_image(dims, len(dims) - 2)
        elif len(dims) > 1:
            call.claim(dims[:2], (Kind.BATCH, Kind.FEATURE), Rank.EXPECTED)
    return keep(call)


@rule("channelshuffle")
def shuffle(call: Call) -> Results:
    """Reorder channels."""
    dims = call.first
    if dims is None or not call.claim_image(dims, len(dims) - 2):
        return []
    channels = call.factors.derive(dims[1], call.factors.extent(dims[1]))
    return [call.fit((dims[0], channels, *dims[2:]))]
