"""Alternatives of a weight's memory layout."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.reason import Change, kind_of_weight
from engine.comparison.reasons.sliding import sliding_of
from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["layouts_of", "other_layouts"]

_LEAST: Final = 0.98
_MOST_FACTORS: Final = 32  # ways to split the inputs of a linear layer
_LARGE: Final = 1 << 16
_HEADS: Final = frozenset({2, 3, 4, 8, 12, 16})
_FEW: Final = 4  # channels up to which every order is tried
_GATES: Final = {"LSTM": "ifgo", "GRU": "rzn"}


class Rearranged(LazyArray):
    """A weight in another order, of which mostly a few channels suffice.

    Parameters
    ----------
    make : callable
        Returns all of it.
    take : callable
        Returns what `numpy.take` would give for indices and an axis.
    like : ndarray
        A weight of its shape and dtype.
    """

    __slots__ = ("_take",)

    def __init__(
        self, make: Callable[[], Array], take: Callable[[Array, int], Array], like: Array
    ) -> None:
        super().__init__(None, like.shape, like.dtype, lambda *_: np.array(make(), order="C"))
        self._take = take

    def take(self, indices: Array, axis: int, **_: object) -> Array:
        """Return some channels; `numpy.take` calls this."""
        return self._take(indices, axis)


def _moved(view: Array) -> Rearranged:
    """Return a weight that is a view of the file's."""
    return Rearranged(lambda: view, partial(_some_of, view), view)


def _some_of(view: Array, indices: Array, axis: int) -> Array:
    """Return what `numpy.take` gives, which would copy the whole view first."""
    return np.ascontiguousarray(view[(slice(None),) * axis + (indices,)])


def _ordered(weight: Array, order: Sequence[int] | Array, axis: int) -> Rearranged:
    """Return a weight with the channels of an axis in another order."""
    places = np.asarray(order)

    def take(indices: Array, along: int) -> Array:
        if along % weight.ndim == axis:
            return np.take(weight, places[indices], axis)
        return np.take(np.take(weight, indices, along), places, axis)

    return Rearranged(lambda: np.take(weight, places, axis), take, weight)


def _written(weight: Array, order: Sequence[int]) -> Rearranged:
    """Return the shape of a weight filled with the elements of its transpose."""
    moved, shape = weight.transpose(order), weight.shape
    length = moved.size // shape[0]

    def take(indices: Array, axis: int) -> Array:
        if axis:
            return _some_of(moved.reshape(shape), indices, axis)
        rows = [_run_of(moved, index * length, length) for index in indices.tolist()]
        return np.stack(rows).reshape(-1, *shape[1:])

    return Rearranged(lambda: moved.reshape(shape), take, weight)


def _run_of(view: Array, start: int, length: int) -> Array:
    """Return consecutive elements of a view, of which the least is copied."""
    size = math.prod(view.shape[1:])
    first, last = start // size, (start + length - 1) // size
    if first == last and view.ndim > 1:
        return _run_of(view[first], start - first * size, length)
    begin = start - first * size
    return np.asarray(view[first : last + 1].reshape(-1)[begin : begin + length])


def other_layouts(case: Case) -> Iterator[Alternative]:
    """Return the weights of an operator in other orders."""
    if case.expected_shape is None and not isinstance(case.expected, tuple):
        return
    recurrent = next((word for word in _GATES if word in case.type), "")
    if recurrent:
        yield from _gate_orders(case, recurrent)
        yield from _directions(case)
        yield from _turned_gates(case, len(_GATES[recurrent]))
        return
    if "in_proj_weight" in case.weights:
        yield from _projections(case)
    for name, weight in case.weights.items():
        ordered = weight.ndim and weight.size > 1 and not name.startswith("running_")
        if not ordered or not case.may_differ(name):
            continue
        for words, other in layouts_of(case, name, weight):
            yield _alternative(name, words, other)
    if {"weight", "bias"} <= case.weights.keys():
        weight, bias = case.weights["weight"], case.weights["bias"]
        if weight.shape == bias.shape:
            yield _swapped(case, "weight", "bias")
    if {"running_mean", "running_var"} <= case.weights.keys():
        yield _swapped(case, "running_mean", "running_var")


def layouts_of(case: Case, name: str, weight: Array) -> Iterator[tuple[str, Rearranged]]:
    """Return a weight in other orders, in the same shape, each with its description."""
    windows = sliding_of(case)
    if weight.ndim == 1:
        yield "reversed", _moved(weight[::-1])
        return
    if windows is not None and weight.ndim == windows.rank + 2:
        yield from _flipped(weight)
        yield from _reread(weight, "IO" if windows.family == "transpose" else "OI")
        yield from _channel_orders(weight)
        return
    yield from _reread(weight, "")
    for axis in range(weight.ndim):
        yield f"reversed along axis {axis}", _moved(np.flip(weight, axis))
    if weight.ndim == 2 and name == "weight" and "inear" in case.type:
        yield from _flattened(weight)


def _alternative(name: str, words: str, weight: Rearranged) -> Alternative:
    own = kind_of_weight(name)
    return Alternative(
        own if own == "bias" else "weight_layout",
        f"The {name} of the reference is the file's {words}. Store it that way.",
        (Change(name, weight),),
        weights={name: weight},
        least=_LEAST,
    )


def _swapped(case: Case, one: str, other: str) -> Alternative:
    weights = {one: case.weights[other], other: case.weights[one]}
    return Alternative(
        "weight_layout",
        f"{one} and {other} are swapped in the file. Swap them.",
        tuple(Change(name, value) for name, value in weights.items()),
        weights=weights,
        least=_LEAST,
    )


def _flipped(weight: Array) -> Iterator[tuple[str, Rearranged]]:
    axes = [axis for axis in range(2, weight.ndim) if weight.shape[axis] > 1]
    if len(axes) > 1:
        yield "with kernels rotated by 180 degrees", _moved(np.flip(weight, tuple(axes)))
    for axis in axes:
        yield f"flipped along axis {axis}", _moved(np.flip(weight, axis))
    if len(axes) == 2 and weight.shape[-1] == weight.shape[-2]:
        for turns, degrees in ((1, 90), (3, 270)):
            turned = np.rot90(weight, turns, (2, 3))
            yield f"with kernels rotated by {degrees} degrees", _moved(turned)


def _reread(weight: Array, channels: str) -> Iterator[tuple[str, Rearranged]]:
    """Return the same memory read with the axes in another order, in both directions."""
    names = channels + "DHW"[-(weight.ndim - 2) :] if channels and weight.ndim > 2 else ""
    orders: Iterable[tuple[int, ...]] = itertools.permutations(range(weight.ndim))
    if weight.ndim > 4:  # only channels move, or only axes of the kernel
        rest = tuple(range(2, weight.ndim))
        moved = [(1, 0, *rest), (0, *rest, 1), (1, *rest, 0), (*rest, 1, 0), (*rest, 0, 1)]
        orders = (*moved, *((0, 1, *order) for order in itertools.permutations(rest)))
    for order in orders:
        moves = [axis for axis in order if weight.shape[axis] > 1]
        if moves == sorted(moves):
            continue
        shape = [weight.shape[axis] for axis in order]
        inverse = np.argsort(order)
        words = "".join(names[axis] for axis in order) if names else f"axes {order}"
        yield f"read as {words}", _moved(weight.reshape(shape).transpose(inverse))
        if shape != list(weight.shape) or list(inverse) != list(order):
            yield f"written as {words}", _written(weight, order)


def _channel_orders(weight: Array) -> Iterator[tuple[str, Rearranged]]:
    for axis, word in ((1, "second"), (0, "first")):
        count = weight.shape[axis]
        for order in _orders(count):
            text = f"with the channels of the {word} axis in the order {order[:16]}"
            yield text, _ordered(weight, order, axis)


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    if count < 2:
        return
    if count <= _FEW:
        yield from itertools.islice(itertools.permutations(range(count)), 1, None)
        return
    numbers = np.arange(count)
    yield tuple(numbers[::-1].tolist())
    yield tuple(np.roll(numbers, 1).tolist())
    yield tuple(np.roll(numbers, -1).tolist())
    for parts in _divisors(count)[1:-1][:_MOST_FACTORS]:
        yield tuple(_exchanged(count, parts).tolist())
    half = count // 2
    yield tuple(np.roll(numbers, half).tolist())


def _flattened(weight: Array) -> Iterator[tuple[str, Rearranged]]:
    """Return the inputs of a linear layer as a flattened image with exchanged axes."""
    outputs, inputs = weight.shape
    for parts in _splits(inputs, weight.size):
        words = f"with its {inputs} inputs as {inputs // parts}×{parts} instead of "
        order = _exchanged(inputs, parts)
        yield f"{words}{parts}×{inputs // parts}", _ordered(weight, order, 1)
    for parts in _splits(outputs, weight.size):
        words = f"with its {outputs} outputs in {parts} parts interleaved"
        yield words, _ordered(weight, _exchanged(outputs, parts), 0)


def _exchanged(count: int, parts: int) -> Array:
    """Return the order of an axis of `parts` rows once rows and columns are exchanged."""
    return np.arange(count).reshape(parts, -1).T.reshape(-1)


def _splits(count: int, size: int) -> list[int]:
    """Return splits of an axis; for a large weight only images and usual numbers of heads."""
    splits = _divisors(count)[1:-1]
    if size <= _LARGE:
        return splits[:_MOST_FACTORS]
    squares = {n for n in splits if math.isqrt(n) ** 2 == n and n > 4}
    images = squares | {count // n for n in squares}
    return [n for n in splits if n in images or n in _HEADS][:_MOST_FACTORS]


def _divisors(count: int) -> list[int]:
    return [number for number in range(1, count + 1) if not count % number]


def _gate_orders(case: Case, kind: str) -> Iterator[Alternative]:
    gates = _GATES[kind]
    names = [n for n in case.weights if n.startswith(("weight_ih", "weight_hh", "bias_"))]
    for order in itertools.islice(itertools.permutations(range(len(gates))), 1, None):
        weights = {name: _in_parts(case.weights[name], order, len(gates)) for name in names}
        theirs = "".join(gates[place] for place in order)
        text = f"The gates of the file are in the order {theirs}, not {gates}. Reorder them."
        yield _of_weights(text, weights)
    for one, other in (("weight_ih", "weight_hh"), ("bias_ih", "bias_hh")):
        pairs = {n: n.replace(one, other) for n in names if n.startswith(one)}
        if not set(pairs.values()) <= case.weights.keys():
            continue
        weights = {}
        for name, partner in pairs.items():
            weights |= {name: case.weights[partner], partner: case.weights[name]}
        if weights:
            yield _of_weights(f"{one} and {other} are exchanged in the file.", weights)


def _directions(case: Case) -> Iterator[Alternative]:
    pairs = [n for n in case.weights if f"{n}_reverse" in case.weights]
    if pairs:
        weights = {n: case.weights[f"{n}_reverse"] for n in pairs}
        weights |= {f"{n}_reverse": case.weights[n] for n in pairs}
        yield _of_weights("The two directions are swapped in the file. Swap them.", weights)


def _turned_gates(case: Case, gates: int) -> Iterator[Alternative]:
    """Return the matrices of all layers and directions as other libraries store them."""
    known = [n for n, w in case.weights.items() if w.ndim == 2 and case.may_differ(n)]
    starts = ("weight_hh", "weight_ih", "weight")
    # Each set once: where hashes leave few that may differ, all are those of one part.
    sets = dict.fromkeys(tuple(n for n in known if n.startswith(start)) for start in starts)
    for names in filter(None, sets):
        matrices = {name: case.weights[name] for name in names}
        square = all(len(each) == gates * each.shape[1] for each in matrices.values())
        ways: dict[str, Callable[[Array], Array]] = {
            "transposed": lambda weight: weight.T.reshape(weight.shape),
            "read transposed": lambda weight: weight.reshape(weight.T.shape).T,
        }
        if square:
            ways["with each gate transposed"] = partial(_transpose_parts, count=gates)
        for words, way in ways.items():
            yield _of_weights(
                f"{' and '.join(matrices)} of the reference: the file's {words}. "
                "Store them that way.",
                {name: way(weight) for name, weight in matrices.items()},
            )


def _transpose_parts(weight: Array, count: int) -> Array:
    parts = weight.reshape(count, -1, weight.shape[1])
    return parts.swapaxes(1, 2).reshape(weight.shape)


def _projections(case: Case) -> Iterator[Alternative]:
    names = [n for n in ("in_proj_weight", "in_proj_bias") if n in case.weights]
    for order in itertools.islice(itertools.permutations(range(3)), 1, None):
        weights = {name: _in_parts(case.weights[name], order, 3) for name in names}
        theirs = "".join("qkv"[place] for place in order)
        yield _of_weights(
            f"The projections of the file are in the order {theirs}, not qkv. Reorder them.",
            weights,
        )
    name = "in_proj_weight"
    parts = np.array_split(case.weights[name], 3)
    for place, letter in enumerate("qkv") if case.may_differ(name) else ():
        for words, other in layouts_of(case, name, parts[place]):
            whole = [*parts[:place], other.read(), *parts[place + 1 :]]
            yield _alternative(name, f"with {letter} {words}", _moved(np.concatenate(whole)))


def _in_parts(weight: Array, order: tuple[int, ...], count: int) -> Array:
    if not weight.ndim or len(weight) % count:
        return weight
    parts = np.split(weight, count)
    # `order` names the part of the reference that each part of the file is.
    return np.concatenate([parts[order.index(place)] for place in range(count)])


def _of_weights(text: str, weights: Mapping[str, Any]) -> Alternative:
    changes = tuple(Change(name, value) for name, value in weights.items())
    return Alternative("weight_layout", text, changes, weights=weights, least=_LEAST)
