"""Fractional max pooling: windows at random positions, for any output size.

B. Graham, "Fractional Max-Pooling", 2014. Along each axis the windows lie ``(size -
kernel) / (outputs - 1)`` apart on average; one random number per plane and axis shifts them,
and each place is rounded down.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.random import Generator

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.arguments import require_steps
from engine.layers.layer import Floats, Ints, OperatorCall, Outputs
from engine.layers.random_numbers import uniform
from engine.layers.registry import register
from engine.layers.windows import (
    new_output,
    per_axis,
    require_image,
    spatial_rank,
    working_dtype,
)
from engine.values import Array

__all__ = ["fractional_max_pool"]


@register(
    "nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d",
    "F.fractional_max_pool2d", "F.fractional_max_pool3d",
)  # fmt: skip
def drawn_fractional_max_pool(
    input: Array,
    call: OperatorCall,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: bool = False,
    random_samples: Array | None = None,
    *,
    rng: Generator,
) -> Outputs:
    """Largest value of windows at random positions: ``torch.nn.FractionalMaxPool2d``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    kernel_size : int or tuple of int
    output_size : int or tuple of int, optional
        Number of windows along each axis, H'...
    output_ratio : float or tuple of float, optional
        H' / H, instead of `output_size`.
    return_indices : bool
        Whether to return the indices as a second output.
    random_samples : ndarray of shape (N, C, number of axes), optional
        In [0, 1); drawn at random by default.

    Returns
    -------
    Outputs
        ndarray of shape (N, C, H'...) or (C, H'...), and the indices if requested, as in
        ``aten::fractional_max_pool2d``.
    """
    rank = spatial_rank(call)
    require_image(input, rank)
    if output_size is None:
        if output_ratio is None:
            raise ParameterError("output_size", "output_size and output_ratio are missing")
        ratios = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,) * rank
        sizes = zip(input.shape[-rank:], ratios, strict=True)
        output_size = tuple(int(size * ratio) for size, ratio in sizes)
    if random_samples is None:
        lead = (1,) * (rank + 2 - input.ndim) + input.shape[:-rank]
        random_samples = uniform(rng, (*lead, rank), working_dtype(input.dtype))
    results = fractional_max_pool(input, kernel_size, output_size, random_samples, call)
    return results if return_indices or call.output_count > 1 else Outputs(results[:1])


@register("aten::fractional_max_pool2d", "aten::fractional_max_pool3d")
def fractional_max_pool(
    input: Array,
    kernel_size: Ints,
    output_size: Ints,
    random_samples: Array,
    call: OperatorCall,
) -> Outputs:
    """Largest value of windows at given random positions: ``torch.fractional_max_pool2d``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    kernel_size, output_size : int or tuple of int
    random_samples : ndarray of shape (N, C, number of axes)
        In [0, 1): one shift per plane and axis. The order is columns, rows for images, and
        depth, rows, columns for volumes.

    Returns
    -------
    Outputs
        ndarray of shape (N, C, H'...) or (C, H'...), and an int64 ndarray of that shape with
        indices into the flattened (H...).
    """
    rank = spatial_rank(call)
    require_image(input, rank)
    kernel = per_axis("kernel_size", kernel_size, rank, least=1)
    sizes = per_axis("output_size", output_size, rank, least=1)
    lead, image = input.shape[:-rank], input.shape[-rank:]
    planes = math.prod(lead)
    if random_samples.size != planes * rank:
        raise LayerError(
            f"random_samples of shape {describe_shapes([random_samples.shape])} are not {rank} "
            f"numbers for each of {planes} planes",
            InferStatus.kInferArraySizeMismatch,
        )
    for size, k, count in zip(image, kernel, sizes, strict=True):
        if count + k - 1 > size:
            raise LayerError(f"{count} windows of {k} are too many for an axis of {size}")
    samples = random_samples.reshape(planes, rank)
    if rank == 2:  # PyTorch keeps (columns, rows) for images, and (depth, rows, columns)
        samples = samples[:, ::-1]
    starts = [
        _compute_starts(samples[:, axis], image[axis], sizes[axis], kernel[axis])
        for axis in range(rank)
    ]
    shape = (planes, *sizes)
    flat = input.reshape(planes, math.prod(image))
    best = new_output(shape, input.dtype, -np.inf)
    places = np.zeros(shape, np.int64)
    require_steps(math.prod(kernel), "positions of a window")
    for tap in itertools.product(*map(range, kernel)):
        place = np.zeros((planes, *(1,) * rank), np.int64)
        for axis, (start, offset) in enumerate(zip(starts, tap, strict=True)):
            along = [planes, *(1,) * rank]
            along[axis + 1] = sizes[axis]
            place = place * image[axis] + (start + offset).reshape(along)
        values = np.take_along_axis(flat, place.reshape(planes, -1), 1).reshape(shape)
        larger = (values > best) | np.isnan(values) | (tap == (0,) * rank)
        np.copyto(best, values, where=larger)
        np.copyto(places, place, where=larger)
    return Outputs(array.reshape(*lead, *sizes) for array in (best, places))


def _compute_starts(samples: Array, size: int, count: int, kernel: int) -> Array:
    """Compute the start of each window of an axis.

    Parameters
    ----------
    samples : ndarray of shape (planes,)
    size, count, kernel : int
        Size of the axis, number of windows and size of a window.

    Returns
    -------
    int64 ndarray of shape (planes, count)
        The first starts at 0, the last ends at the end of the axis.
    """
    result = np.full((len(samples), count), size - kernel, np.int64)
    if count > 1:
        number = samples.dtype.type
        apart = number(size - kernel) / number(count - 1)
        steps = np.arange(count - 1, dtype=samples.dtype)
        shift = samples[:, np.newaxis]
        result[:, :-1] = ((steps + shift) * apart).astype(np.int64)
        result[:, :-1] -= (shift * apart).astype(np.int64)
    return result
