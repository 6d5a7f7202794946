"""Sums of products: matrices and convolutions."""

from __future__ import annotations

import copy
import string
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.grouped_matmul import grouped_mm
from engine.layers.linear_algebra import kron
from engine.layers.ncnn import activations as ncnn_activations
from engine.layers.ncnn.convolution import NcnnConvolution, NcnnDeconvolution
from engine.layers.ncnn.products import InnerProduct
from engine.provenance.back.windows import add_at, mesh, occupied, tap_reads, within
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.convolution import CONVOLUTIONS, read_convolution
from engine.provenance.rules.grouped import read_grouped
from engine.provenance.rules.kronecker import read_kronecker
from engine.provenance.rules.products import PRODUCTS, read_product
from engine.provenance.slopes import accumulate, find_slopes, steps_of, unbroadcast, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient
    from engine.values import Array


def _before_activation(call: Call, gradient: Gradient) -> Gradient:
    """Return the gradient by the sums to which a layer of ncnn applies an activation."""
    layer = call.layer
    if not isinstance(layer, (NcnnConvolution, NcnnDeconvolution, InnerProduct)):
        return gradient
    if not layer.activation[0]:
        return gradient
    plain: Any = copy.copy(layer)
    plain.activation = 0, ()
    sums = np.asarray(plain.forward(*[each.value for each in call.arrays]), np.float64)
    middle = ncnn_activations.activate(sums, *layer.activation)

    def quotients(step: float) -> tuple[Array, Array]:
        above, below = (
            (ncnn_activations.activate(sums + own, *layer.activation) - middle) / own
            for own in steps_of(sums, step)
        )
        return above, below

    return gradient * find_slopes(quotients)


@passes_back(*PRODUCTS)
def _product(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Contract with all other factors."""
    found, gradient = read_product(call), _before_activation(call, gradient)
    result: dict[str, Gradient] = {}
    for place, member in enumerate(found.members):
        if not isinstance(member.array, Operand):
            continue
        others = [each for number, each in enumerate(found.members) if number != place]
        arrays = [gradient * found.alpha, *(wide(each.array) for each in others)]
        labels = [found.result, *(each.labels for each in others)]
        known = "".join(labels)
        own = "".join(dict.fromkeys(member.labels))  # of a diagonal, one
        kept = "".join([label for label in own if label in known])
        back = np.einsum(",".join(labels) + "->" + kept, *arrays, optimize=True)
        full = back.reshape(
            [back.shape[kept.index(each)] if each in kept else 1 for each in own]
        )
        result_of = np.zeros(member.array.shape)
        diagonal = np.einsum(f"{member.labels}->{own}", result_of)  # a view
        shape = np.broadcast_shapes(full.shape, diagonal.shape)
        diagonal[...] = unbroadcast(np.broadcast_to(full, shape), diagonal.shape)
        accumulate(result, member.array.name, result_of)
    offset = found.offset
    if offset is not None and isinstance(offset.array, Operand):
        if not found.result.endswith(offset.labels):
            raise NoBreakdownError("a column that is added is not followed")
        back = unbroadcast(gradient * found.beta, offset.array.shape)
        accumulate(result, offset.array.name, back)
    return result


@passes_back(*CONVOLUTIONS)
def _convolved(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Spread the gradient over the window by the kernel, one tap after the other."""
    found, gradient = read_convolution(call), _before_activation(call, gradient)
    given, rank, groups = found.input, found.rank, found.groups
    if not rank:  # an image of ncnn of one pixel
        shape = (groups, found.per_group, found.taken)
        back = np.einsum(
            "go,goc->gc", gradient.reshape(shape[:2]), wide(found.weight).reshape(shape)
        )
        return {given.name: back.reshape(given.shape)}
    samples = given.shape[0] if given.ndim > rank + 1 else 1
    result = np.zeros((samples, groups, found.taken, *given.shape[-rank:]))
    flowing = gradient.reshape((samples, groups, found.per_group, *call.shape[-rank:]))
    kernel = wide(found.weight)
    taps = kernel.shape[2:]
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    if not found.inputs_first:
        kernel = kernel.swapaxes(1, 2)  # shape (groups, inputs, outputs, taps)
    area = occupied(flowing, rank)
    part = flowing[within(area)]
    by_weight = np.zeros(kernel.shape) if isinstance(found.weight, Operand) else None
    values = None if by_weight is None else wide(given).reshape(result.shape)
    for tap in np.ndindex(*taps):
        sources, targets = tap_reads(found.reads, area, tap)
        taken = part[mesh(sources)]
        flat = taken.reshape(*taken.shape[:3], -1)
        if by_weight is not None and values is not None:
            read = values[mesh(targets)].reshape(*result.shape[:3], -1)
            by_weight[within(tap)] = np.einsum("ngop,ngcp->gco", flat, read)
        weights = kernel[within(tap)]
        spread = weights * flat if weights.shape[1:] == (1, 1) else weights @ flat
        add_at(result, targets, spread.reshape(*spread.shape[:3], *taken.shape[3:]))
    back = {given.name: result.reshape(given.shape)}
    if by_weight is not None and isinstance(found.weight, Operand):
        if not found.inputs_first:
            by_weight = by_weight.swapaxes(1, 2)
        accumulate(back, found.weight.name, by_weight.reshape(found.weight.shape))
    if isinstance(found.bias, Operand):
        channels = flowing.reshape(samples, groups * found.per_group, -1).sum(axis=(0, 2))
        accumulate(back, found.bias.name, channels.reshape(found.bias.shape))
    return back


@passes_back(grouped_mm)
def _grouped(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the other matrix of each group."""
    given = read_grouped(call)
    left, right = wide(given.left), wide(given.right)
    by_left, by_right = np.zeros(left.shape), np.zeros(right.shape)
    for at_left, at_right, at_result in given.blocks():
        part = gradient[at_result]
        by_left[at_left] += part @ right[at_right].swapaxes(-1, -2)
        by_right[at_right] += left[at_left].swapaxes(-1, -2) @ part
    back: dict[str, Gradient] = {}
    for array, own in ((given.left, by_left), (given.right, by_right)):
        if isinstance(array, Operand):
            accumulate(back, array.name, own)
    return back


@passes_back(kron)
def _kronecker(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Contract with the other tensor, over its copies."""
    found = read_kronecker(call)
    sides = [size for pair in zip(found.outer, found.inner, strict=True) for size in pair]
    blocks = gradient.reshape(sides)
    letters = string.ascii_letters[: 2 * len(found.outer)]
    labels, sizes = (letters[0::2], letters[1::2]), (found.outer, found.inner)
    back: dict[str, Gradient] = {}
    for place, array in enumerate(found.arrays):
        if isinstance(array, Operand):
            other = wide(found.arrays[1 - place]).reshape(sizes[1 - place])
            equation = f"{letters},{labels[1 - place]}->{labels[place]}"
            part = np.einsum(equation, blocks, other).reshape(array.shape)
            accumulate(back, array.name, part)
    return back
