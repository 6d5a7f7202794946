"""Alternatives of a weight's numbers: the reference's, or those that the data imply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.fitting import least_squares
from engine.comparison.reasons.inner_weights import (
    OUTPUT_BIAS,
    OUTPUT_WEIGHT,
    PROJECTIONS,
    RECURRENT,
)
from engine.comparison.reasons.normalizing import norm_family
from engine.comparison.reasons.precision import ROUNDINGS, explained_by_rounding
from engine.comparison.reasons.reason import Change, kind_of_weight
from engine.comparison.reasons.results import channel_axes, describe_factor
from engine.comparison.reasons.sliding import sliding_of
from engine.comparison.reasons.unfolding import kernels_of, views_of
from engine.comparison.reasons.weight_layouts import layouts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = [
    "differing_weights",
    "kind_of_difference",
    "reference_weights",
    "solved_weights",
]

_CONSTANT: Final = "pnnx.Attribute"
_EMBEDDINGS: Final = frozenset({"nn.Embedding", "F.embedding"})
_MOST_NUMBERS: Final = 1 << 22  # size of the solved matrix
_MOST_WORK: Final = 1 << 30  # multiplications of a solution
_RICH: Final = 1.25  # equations for each unknown
_FEW_OF: Final = 8  # at most one channel in this many counts as few
_MOST_ELEMENTS: Final = 6  # elements located one by one
_LEAST: Final = 0.98
_LEAST_PLACES: Final = 3  # that tell a factor
_EXACTLY: Final = 1e-4  # of a difference, that its explanation may leave


def reference_weights(case: Case) -> Iterator[Alternative]:
    """Return the reference's weights, if they are known and differ."""
    theirs = {
        name: array
        for name, array in case.reference_weights.items()
        if name in case.weights
        and (array.dtype.kind == "c") == (case.weights[name].dtype.kind == "c")
        and not _equal(array, case.weights[name])
    }
    missing = [n for n in case.reference_weights if n not in case.weights and n == "bias"]
    for name in missing:
        array = case.reference_weights[name]
        yield Alternative(
            "bias", "The reference has a bias, the file has none. Add the reference's.",
            (Change(name, array),), {"bias": True} if "bias" in case.params else {},
            {name: array},
        )  # fmt: skip
    factor = _common_factor(case.weights, theirs)
    if factor is not None:
        yield Alternative(
            "scale",
            f"The reference's {' and '.join(theirs)}: {describe_factor(factor)}. Scale by it.",
            tuple(Change(name, array) for name, array in theirs.items()),
            weights=theirs,
        )
    order = _order_of_rows(case.weights, theirs)
    if order:
        yield Alternative(
            "weight_layout",
            f"The file has the rows of the reference's {' and '.join(theirs)} in the order "
            f"{order[:16]}. Reorder them.",
            tuple(Change(name, array) for name, array in theirs.items()),
            weights=theirs,
        )
    names = _exchanged_names(case.weights, theirs)
    if names:
        pairs = ", ".join(f"{name} as {other}" for name, other in names.items())
        yield Alternative(
            "weight_layout",
            f"The file has the reference's {pairs}. Exchange them.",
            tuple(Change(name, array) for name, array in theirs.items()),
            weights=theirs,
        )
    for name, array in theirs.items():
        yield _own_kind(case, name, case.weights[name], array)
    if len(theirs) > 1:
        yield Alternative(
            "weight_values",
            f"{', '.join(theirs)} differ from the reference's. Take the reference's.",
            tuple(Change(name, array) for name, array in theirs.items()),
            weights=theirs,
        )


def _equal(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=True))


def _common_factor(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float | None:
    """Return the factor between all of the weights; None if there is none, or no matrix."""
    matrices = [name for name, array in theirs.items() if array.ndim > 1 and array.size > 1]
    if not matrices or any(
        a.shape != ours[n].shape or a.dtype.kind != "f" for n, a in theirs.items()
    ):
        return None
    mine, other = (each[matrices[0]].astype(np.float64) for each in (ours, theirs))
    square = float(np.square(mine).sum())
    if not square or not np.isfinite(square):
        return None
    factor = float((mine * other).sum()) / square
    scaled = all(_close(ours[name] * factor, array) for name, array in theirs.items())
    return factor if factor and scaled else None


def _order_of_rows(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> tuple[int, ...]:
    """Return which row of the reference's weights each of ours is, if all have one order.

    Empty if they are no such rows, or no matrix is among the weights.
    """
    matrices = [name for name, array in theirs.items() if array.ndim > 1]
    if not matrices or any(
        a.shape != ours[n].shape or a.dtype != ours[n].dtype for n, a in theirs.items()
    ):
        return ()
    places = {row.tobytes(): place for place, row in enumerate(theirs[matrices[0]])}
    order = [places.get(row.tobytes(), -1) for row in ours[matrices[0]]]
    if sorted(order) != list(range(len(order))):  # other rows, or the same one twice
        return ()
    fits = all(array.ndim and _equal(array[order], ours[n]) for n, array in theirs.items())
    return tuple(order) if fits else ()


def _exchanged_names(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> dict[str, str]:
    """Return which weight of ours each of the reference's is, if only their names differ.

    As those of the two directions of a recurrent layer may.
    """
    left, found = list(theirs), dict[str, str]()
    for name, array in theirs.items():
        other = next((each for each in left if _equal(ours[each], array)), None)
        if other is None:
            return {}
        left.remove(other)
        found[name] = other
    return found


def kind_of_difference(case: Case, name: str, ours: Array, theirs: Array) -> str:
    """Return the kind of reason for which one array differs from another of the same weight."""
    if _common_factor({name: ours}, {name: theirs}) is not None:
        return "scale"
    if _order_of_rows({name: ours}, {name: theirs}):
        return "weight_layout"
    return _own_kind(case, name, ours, theirs).kind


def _own_kind(case: Case, name: str, ours: Array, theirs: Array) -> Alternative:
    """Return the alternative for one of the reference's weights, and how it differs."""
    change, weights = (Change(name, theirs),), {name: theirs}
    if ours.shape == theirs.shape and ours.dtype.kind == "f":
        for words, rounded in ROUNDINGS.items():
            if _close(rounded(theirs), ours):
                text = (
                    f"The {name} of the file is the reference's rounded to {words}. "
                    f"Store it as float32."
                )
                return Alternative("precision", text, change, weights=weights)
        if ours.ndim > 1:
            for words, other in layouts_of(case, name, ours):
                if _close(other.array, theirs):
                    text = (
                        f"The {name} of the reference is the file's {words}. Store it that way."
                    )
                    return Alternative("weight_layout", text, change, weights=weights)
    groups = _groups(case, name, theirs)
    if groups:
        text = f"The reference has {groups} groups, the file {case.value('groups', 1)}."
        return Alternative(
            "groups", f"{text} Set groups={groups}.", (Change("groups", groups), *change),
            {"groups": groups}, weights,
        )  # fmt: skip
    text = _describe_change(case, name, ours, theirs)
    return Alternative(kind_of_weight(name), text, change, weights=weights)


def _groups(case: Case, name: str, theirs: Array) -> int:
    windows, x = sliding_of(case), case.input
    ours = case.weights[name]
    if windows is None or windows.family != "conv" or name != "weight" or x is None:
        return 0
    if theirs.ndim != ours.ndim or theirs.shape[1] == ours.shape[1]:
        return 0
    return int(x.shape[-windows.rank - 1] // max(theirs.shape[1], 1))


def _close(one: Array, other: Array) -> bool:
    scale = _size(other)
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=1e-6 * scale))


def _size(weight: Array) -> float:
    """Return the largest finite absolute value of a weight."""
    return float(np.abs(weight).max(initial=0.0, where=np.isfinite(weight)))


def _describe_change(case: Case, name: str, ours: Array, theirs: Array) -> str:
    """Describe how many numbers of a weight differ; name them if they are few."""
    if ours.shape != theirs.shape:
        shapes = f"the shape {theirs.shape}, the file's {ours.shape}"
        return f"The {name} of the reference has {shapes}."
    scale = _size(theirs)
    differs = ~np.isclose(ours, theirs, rtol=1e-5, atol=1e-5 * scale)
    places = np.argwhere(differs)
    if not len(places):
        return f"The {name} of the file differs from the reference's. Take the reference's."
    if len(places) == 1:
        at = tuple(places[0].tolist())
        where = f"[{', '.join(map(str, at))}]"
        return (
            f"{name}{where} is {float(theirs[at]):.6g} in the reference, "
            f"{float(ours[at]):.6g} in the file. Set it."
        )
    mine, other, differs = (_by_channel(case, name, array) for array in (ours, theirs, differs))
    part = "row" if _is_table(case) else "channel"
    parts = np.unique(np.nonzero(differs)[0])
    factor = _common_factor({name: mine[parts[:1]]}, {name: other[parts[:1]]})
    if len(parts) == 1 and factor is not None:
        words = describe_factor(factor)
        return f"The {name} of {part} {parts[0]} of the reference is {words}. Scale it."
    of = f"{part} {parts[0]}" if len(parts) == 1 else f"{len(parts)} {part}s"
    where = f", in {of}" if ours.ndim > 1 or not _is_table(case) else ""
    largest = float(np.abs(theirs - ours).max())
    return (
        f"{len(places)} of {ours.size} numbers of the {name} differ{where}, by up to "
        f"{largest:.4g}. Take the reference's."
    )


def _is_table(case: Case) -> bool:
    """Whether a weight consists of rows rather than of channels."""
    return case.type == _CONSTANT or case.type in _EMBEDDINGS


def _by_channel(case: Case, name: str, weight: Array) -> Array:
    """Return a weight with the output's channels first, or the rows of a table."""
    if _is_table(case):
        return weight.reshape(-1, weight.shape[-1]) if weight.ndim > 1 else weight
    windows = sliding_of(case)
    if name != "weight" or windows is None or windows.family != "transpose":
        return weight
    return kernels_of(weight, case.value("groups", 1), transposed=True)


def solved_weights(case: Case) -> Iterator[Alternative]:
    """Return the weights implied by the inputs and the expected result."""
    if case.type == _CONSTANT and len(case.weights) == 1:
        yield from _stored(case)
    elif case.float_pair is None:
        return
    elif case.type in _EMBEDDINGS:
        yield from _table_rows(case)
    elif norm_family(case):
        yield from _affine(case)
    elif case.type == "nn.PReLU":
        yield from _slopes(case)
    elif any(n in case.weights and case.may_differ(n) for n in ("weight", OUTPUT_WEIGHT)):
        yield from _products(case)


def differing_weights(case: Case) -> Iterator[Alternative]:
    """Return a change of the weight or bias that is known to differ, by its hash.

    Its numbers are unknown. The smallest change that gives the result shows that this weight
    explains the difference; without the hash any weight would do.
    """
    if not case.differing:
        return
    if case.differing & PROJECTIONS or any(word in case.type for word in RECURRENT):
        yield from _of_inner_weights(case)
        return
    if case.float_pair is None:
        return
    if case.differing in ({"bias"}, {OUTPUT_BIAS}):
        (name,) = case.differing
        axes = channel_axes(case)
        ours, expected = case.float_pair
        residual = expected.astype(np.float64) - ours
        others = tuple(axis for axis in range(residual.ndim) if axis not in axes)
        yield Alternative(
            "bias",
            f"The {name} differs, as its hash tells; the other weights are equal. Take the "
            "reference's.",
            (Change(name, None),),
            result=ours + residual.mean(others, keepdims=True),
            solved=True,
            least=_LEAST,
        )
    found = _as_products(case) if case.differing & {"weight", OUTPUT_WEIGHT} else None
    if found is None or len(found.rows) ** 2 * found.rows.shape[2] > _MOST_WORK:
        return
    outputs, groups = len(found.weights), found.rows.shape[1]
    wanted = found.weights.astype(np.float64)
    for group in range(groups):
        case.check_cancelled()
        case.spend(_work_of(found.rows[:, group]))
        own = slice(group * outputs // groups, (group + 1) * outputs // groups)
        wanted[own] += least_squares(found.rows[:, group], found.residual[:, own]).T
    yield Alternative(
        "weight_values",
        f"The {found.name} differs, as its hash tells. These inputs are too few to tell its "
        "numbers. Take the reference's.",
        weights={found.name: _in_file_order(case, wanted, case.weights[found.name])},
        solved=True,
        least=_LEAST,
    )


def _of_inner_weights(case: Case) -> Iterator[Alternative]:
    """Return the weights of an attention's projections, or of gates, that are known to differ.

    What they must be, the result does not tell: a softmax or gates lie between.
    """
    names = sorted(case.differing or ())
    only = "bias" if all("bias" in name for name in names) else "weight_values"
    others = "; the other weights are equal" if len(names) < len(case.weights) else ""
    differ = "differs" if len(names) == 1 else "differ"
    yield Alternative(
        only,
        f"{' and '.join(names)} {differ}, as the hashes tell{others}. Take the reference's.",
        tuple(Change(name, None) for name in names),
        result=case.wanted,
        solved=True,
        least=_LEAST,
    )


def _stored(case: Case) -> Iterator[Alternative]:
    ((name, ours),) = case.weights.items()
    theirs = case.wanted
    if isinstance(theirs, np.ndarray) and theirs.shape == ours.shape:
        text = _describe_change(case, name, ours, theirs)
        yield Alternative(
            "weight_values", text, (Change(name, theirs),), weights={name: theirs}
        )


def _table_rows(case: Case) -> Iterator[Alternative]:
    index, table = case.input, case.weight()
    assert case.pair is not None  # noqa: S101 - the caller has checked it
    expected = case.pair[1]
    if index is None or table is None or index.dtype.kind not in "iu":
        return
    rows = index.reshape(-1)
    if not rows.size or rows.min() < 0 or rows.max() >= len(table):
        return
    wanted = table.copy()
    wanted[rows] = expected.reshape(-1, table.shape[1])
    if "weight" in case.weights:
        # A row that is looked up twice must agree: the result tells.
        text = _describe_change(case, "weight", table, wanted)
        change = (Change("weight", wanted),)
        yield Alternative(
            "weight_values", text, change, weights={"weight": wanted}, least=_LEAST
        )


def _slopes(case: Case) -> Iterator[Alternative]:
    x, weight = case.input, case.weights.get("weight")
    assert case.pair is not None  # noqa: S101 - the caller has checked it
    if x is None or weight is None:
        return
    below = np.minimum(x.astype(np.float64), 0)
    product = below * case.pair[1]
    others: Any = None if weight.size == 1 else (0, *range(2, x.ndim))
    squares = np.square(below).sum(others)
    known = weight.reshape(np.shape(squares)).astype(np.float64)
    slopes = np.divide(product.sum(others), squares, out=known, where=squares > 0)
    wanted = np.asarray(slopes, weight.dtype).reshape(weight.shape)
    text, change = _describe_change(case, "weight", weight, wanted), Change("weight", wanted)
    yield Alternative(
        "weight_values",
        text,
        (change,),
        weights={"weight": wanted},
        fitted=wanted.size,
        least=_LEAST,
    )


def _affine(case: Case) -> Iterator[Alternative]:
    """Return a normalisation's weight and bias, by regression of each channel."""
    assert case.pair is not None  # noqa: S101 - the caller has checked it
    ours, expected = (array.astype(np.float64) for array in case.pair)
    axes = channel_axes(case)
    others = tuple(axis for axis in range(ours.ndim) if axis not in axes)
    if not others or not (np.isfinite(ours).all() and np.isfinite(expected).all()):
        return
    shape = [ours.shape[axis] for axis in axes]
    weight, bias = case.weights.get("weight"), case.weights.get("bias")
    shift = 0.0 if bias is None else bias.reshape(
        [ours.shape[a] if a in axes else 1 for a in range(ours.ndim)])  # fmt: skip
    # First with the same bias: one number per channel may be enough.
    squares = np.square(ours - shift).sum(others, keepdims=True)
    products = ((ours - shift) * (expected - shift)).sum(others, keepdims=True)
    slopes = np.divide(products, squares, out=np.ones_like(squares), where=squares > 0)
    slopes[np.isclose(slopes, 1, atol=1e-6)] = 1
    yield _of_slopes(case, weight, slopes, (ours - shift) * slopes + shift, shape)
    means = [array.mean(others, keepdims=True) for array in (ours, expected)]
    squares = np.square(ours - means[0]).sum(others, keepdims=True)
    products = ((ours - means[0]) * (expected - means[1])).sum(others, keepdims=True)
    slopes = np.divide(products, squares, out=np.ones_like(squares), where=squares > 0)
    result = (ours - means[0]) * slopes + means[1]
    yield _of_slopes(case, weight, slopes, result, shape, offsets=True)


def _of_slopes(
    case: Case,
    weight: Array | None,
    slopes: Array,
    result: Array,
    shape: list[int],
    *,
    offsets: bool = False,
) -> Alternative:
    changed = int(np.count_nonzero(~np.isclose(slopes, 1, atol=1e-5)))
    wanted = slopes.reshape(shape).astype(np.float32)
    if weight is not None:
        wanted = (weight * wanted).astype(weight.dtype)
    stored = "running_var" in case.weights
    also = " or running_var" if stored else ""
    means = ", and its bias or running_mean," if offsets and stored else (
        ", and its bias," if offsets else "")  # fmt: skip
    text = (
        f"{changed} of {slopes.size} channels of the weight{also}{means} differ. "
        "Take the reference's."
    )
    bias = case.weights.get("bias")
    kind = "weight_values"
    if (weight is None or (weight == 1).all()) and (bias is None or not bias.any()):
        kind = "normalization"
        text = "The reference scales and shifts each channel, the file does not."
        text = f"{text} Take the reference's weight{' and bias' if offsets else ''}."
    fitted = (2 if offsets else 1) * max(changed, 1)
    change = (Change("weight", wanted),)
    return Alternative(kind, text, change, result=result, fitted=fitted, least=_LEAST)


class _Products(NamedTuple):
    """A linear operator as products of input rows with the weights of each output channel.

    Attributes
    ----------
    rows : ndarray of shape (P, G, K)
        The inputs of each output position, by group.
    residual : ndarray of shape (P, O)
        Expected result minus ours.
    told : ndarray of bool and shape (P, O)
        Where that is known for sure.
    weights : ndarray of shape (O, K)
        Ours.
    name : str
        Of the weight.
    """

    rows: Array
    residual: Array
    told: Array
    weights: Array
    name: str = "weight"


def _products(case: Case) -> Iterator[Alternative]:
    found = _as_products(case)
    if found is None:
        return
    floors = _floors(case, len(found.weights))
    largest = np.abs(found.residual).max(0, initial=0.0, where=found.told)
    channels = np.flatnonzero(largest > floors)
    if not channels.size:
        return
    precise = ""
    if not case.steps:  # what these change is no difference
        precise = explained_by_rounding(found.rows, found.residual, found.weights, channels)
    if precise:
        yield Alternative(
            "precision",
            f"The weight of the file is rounded to {precise}, the reference's is not. "
            "Store it as float32.",
            result=case.wanted,
        )
        return
    changes = np.zeros(found.weights.shape)
    per_group = len(found.weights) // found.rows.shape[1]
    for group in range(found.rows.shape[1]):
        case.check_cancelled()
        own = channels[channels // per_group == group]
        rows, told = found.rows[:, group], found.told[:, own]
        case.spend(_work_of(rows) * (1 if told.all() else own.size) + own.size * rows.size)
        solved = _solve(rows, found.residual[:, own], told, floors[own], found.weights[own])
        if solved is None:
            yield from _of_few_channels(case, found, channels)
            return
        changes[own] = solved.T
    fitted = sum(map(_count_fitted, found.weights, changes))
    wanted = found.weights + changes
    weight = case.weights[found.name]
    theirs = _in_file_order(case, wanted, weight)
    text = _describe_change(case, found.name, weight, theirs)
    if len(channels) < len(found.weights):
        differ = "differs" if channels.size == 1 else "differ"
        text = f"{text} Only {_name_channels(channels)} of {len(found.weights)} {differ}."
    if case.steps and fitted > channels.size:
        text = (
            f"{text} The rounding of stored weights leaves uncertain which numbers, and by how "
            "much."
        )
    yield Alternative(
        "weight_values", text, (Change(found.name, theirs),), weights={found.name: theirs},
        fitted=min(fitted, case.discrepancy.count // 2), least=_LEAST,
    )  # fmt: skip


def _of_few_channels(case: Case, found: _Products, channels: Array) -> Iterator[Alternative]:
    """Return the smallest change of weights for the few output channels that differ.

    Many changes would explain a few positions; the evidence is that all other channels agree.
    So no weights are named.
    """
    places, groups, unknowns = found.rows.shape
    outputs = len(found.weights)
    if channels.size * _FEW_OF > outputs or places != case.discrepancy.count // outputs:
        return
    if places > unknowns or places**2 * unknowns > _MOST_WORK:
        return
    wanted = found.weights.astype(np.float64)
    for channel in channels:
        case.check_cancelled()
        rows = found.rows[:, int(channel) * groups // outputs]
        case.spend(_work_of(rows))
        wanted[channel] += least_squares(rows, found.residual[:, channel])
    theirs = _in_file_order(case, wanted, case.weights[found.name])
    so = "differs, so its weights or bias do" if channels.size == 1 else (
        "differ, so their weights or biases do"
    )  # fmt: skip
    yield Alternative(
        "weight_values",
        f"Only {_name_channels(channels)} of {outputs} {so}. These inputs are too few to tell "
        "which. Compare them with the reference's.",
        weights={found.name: theirs},
        fitted=channels.size * places,
        least=_LEAST,
    )


def _work_of(rows: Array) -> float:
    """Return the operations that solving for weights takes."""
    return float(rows.size * min(rows.shape))


def _name_channels(channels: Array) -> str:
    if channels.size == 1:
        return f"output channel {int(channels[0])}"
    first = ", ".join(map(str, channels[:8].tolist()))
    return f"{channels.size} output channels ({first}{', …' if channels.size > 8 else ''})"


def _floors(case: Case, outputs: int) -> Array:
    """Return up to which difference each output channel of the result is rounding."""
    axes, shape = channel_axes(case), case.expected_shape or ()
    others = tuple(axis for axis in range(len(shape)) if axis not in axes)
    return np.broadcast_to(np.reshape(case.discrepancy.floor_over(others), -1), outputs)


def _solve(
    rows: Array, residuals: Array, told: Array, floors: Array, weights: Array
) -> Array | None:
    """Return the correction of the channels' weights; None if the data do not determine it.

    A factor of a channel is one number. A few wrong elements are located one by one. Otherwise
    there must be more equations than unknowns, and the solution must be exact.

    Parameters
    ----------
    rows : ndarray of shape (P, K)
    residuals : ndarray of shape (P, O)
    told : ndarray of bool and shape (P, O)
        Which residuals are known. Each channel is solved by its own, unless all are.
    floors : ndarray of shape (O,)
        Smaller differences of each channel are rounding.
    weights : ndarray of shape (O, K)
        Ours.

    Returns
    -------
    ndarray of shape (K, O), or None
    """
    sparse = []
    for residual, seen, floor, own in zip(residuals.T, told.T, floors, weights, strict=True):
        known = _seen_of(seen, rows, residual)
        few = _of_factor(*known, own, float(floor))
        if few is None:
            few = _few_elements(*known, float(floor))
        if few is None:
            break
        sparse.append(few)
    else:
        return np.array(sparse).T.reshape(rows.shape[1], -1)
    if told.all():
        return _all_elements(rows, residuals)
    if rows.shape[0] * rows.shape[1] ** 2 * told.shape[1] > _MOST_WORK:
        return None
    solutions = []
    for place, seen in enumerate(told.T):
        found = _all_elements(*_seen_of(seen, rows, residuals[:, place : place + 1]))
        if found is None:
            return None
        solutions.append(found)
    return np.concatenate(solutions, 1)


def _seen_of(seen: Array, rows: Array, residuals: Array) -> tuple[Array, Array]:
    """Return the rows and residuals of the positions that are known."""
    return (rows, residuals) if seen.all() else (rows[seen], residuals[seen])


def _all_elements(rows: Array, residuals: Array) -> Array | None:
    """Return the least squares solution; None if it is not exact, or not the only one."""
    places, unknowns = rows.shape
    if places < _RICH * unknowns or places * unknowns**2 > _MOST_WORK:
        return None
    solution = least_squares(rows, residuals)
    left = np.square(residuals - rows @ solution).sum(0)
    if (left > (1 - _LEAST) * np.square(residuals).sum(0)).any():
        return None
    solution[np.abs(solution) < 1e-5 * np.abs(solution).max(0, initial=0.0)] = 0
    return solution


def _of_factor(rows: Array, residual: Array, weights: Array, floor: float) -> Array | None:
    """Return the change of a channel's weights by one factor; None if that is not it."""
    product = rows.astype(np.float64) @ weights
    square = float(product @ product)
    if not square or np.count_nonzero(weights) < 2 or len(rows) < _LEAST_PLACES:
        return None
    change = float(product @ residual) / square
    apart = np.abs(residual - change * product).max()
    # The rounding of our weights is scaled, too.
    rounding = floor * max(1.0, abs(1 + change))
    is_factor = apart <= max(rounding, _EXACTLY * np.abs(residual).max())
    return change * weights.astype(np.float64) if is_factor else None


def _count_fitted(weights: Array, changes: Array) -> int:
    """Return how many numbers were fitted for the changes of a channel."""
    count = int(np.count_nonzero(changes))
    if count < 2 or not np.array_equal(changes != 0, weights != 0):
        return count
    factors = changes[changes != 0] / weights[changes != 0]
    return 1 if np.allclose(factors, factors[0], rtol=1e-6) else count


def _few_elements(rows: Array, residual: Array, floor: float) -> Array | None:
    """Locate a few elements by orthogonal matching pursuit; None if there are more."""
    norms = np.sqrt(np.square(rows, dtype=np.float64).sum(0))
    norms[norms == 0] = np.inf
    left, chosen = residual.astype(np.float64), list[int]()
    for _ in range(min(_MOST_ELEMENTS, len(rows) // 3)):
        chosen.append(int(np.argmax(np.abs(left @ rows) / norms)))
        part = rows[:, chosen].astype(np.float64)
        numbers, *_ = np.linalg.lstsq(part, residual, rcond=None)
        left = residual - part @ numbers
        if np.abs(left).max(initial=0.0) <= max(floor, _EXACTLY * np.abs(residual).max()):
            result = np.zeros(rows.shape[1])
            result[chosen] = numbers
            return result
    return None


def _as_products(case: Case) -> _Products | None:
    x, weight = case.input, case.weights.get("weight")
    assert case.pair is not None  # noqa: S101 - the caller has checked it
    residual = case.pair[1].astype(np.float64) - case.pair[0]
    told = np.ones(residual.shape, bool) if case.told is None else case.told
    windows = sliding_of(case)
    if x is None or not np.isfinite(residual).all():
        return None
    if OUTPUT_WEIGHT in case.weights:
        return _as_projected_heads(case, residual, told)
    if weight is None:
        return None
    if case.type == "nn.Linear":
        rows = x.reshape(-1, 1, x.shape[-1])
        chosen = _chosen(len(rows), rows.shape[2], told)
        ends, known = (each.reshape(-1, len(weight))[chosen] for each in (residual, told))
        return _Products(rows[chosen], ends, known, weight)
    if windows is None or windows.family == "pool" or not case.type.startswith("nn."):
        return None
    batch = x if x.ndim == windows.rank + 2 else x[np.newaxis]
    residual, told = (
        each.reshape(len(batch), -1, *each.shape[-windows.rank :]) for each in (residual, told)
    )
    groups = case.value("groups", 1)
    kernels = kernels_of(weight, groups, transposed=windows.family == "transpose")
    views = views_of(case, batch, windows)
    if views is None or views.shape[2 : 2 + windows.rank] != residual.shape[2:]:
        return None
    return _gathered(views, residual, told, kernels, groups)


def _as_projected_heads(case: Case, residual: Array, told: Array) -> _Products | None:
    """Return the projection at the end of an attention: a linear layer of the joined heads."""
    weight = case.weights[OUTPUT_WEIGHT]
    plain: dict[str, Array] = {OUTPUT_WEIGHT: np.eye(weight.shape[1], dtype=weight.dtype)}
    if OUTPUT_BIAS in case.weights:
        plain[OUTPUT_BIAS] = np.zeros(weight.shape[1], weight.dtype)
    heads = case.run(Alternative("", "", weights=plain))
    heads = heads[0] if isinstance(heads, tuple) else heads
    if not isinstance(heads, np.ndarray) or not np.isfinite(heads).all():
        return None
    rows = heads.reshape(-1, 1, weight.shape[1])
    chosen = _chosen(len(rows), weight.shape[1], told)
    ends, known = (each.reshape(-1, len(weight))[chosen] for each in (residual, told))
    return _Products(rows[chosen], ends, known, weight, OUTPUT_WEIGHT)


def _gathered(
    views: Array, residual: Array, told: Array, kernels: Array, groups: int
) -> _Products:
    """Gather the windows of some positions, (N, C, H'..., K...), as rows."""
    samples, channels = views.shape[:2]
    sizes = residual.shape[2:]
    rank = len(sizes)
    count = samples * int(np.prod(sizes))
    unknowns = kernels.shape[1]
    chosen = np.arange(count)[_chosen(count, unknowns * groups, told)]
    at = np.unravel_index(chosen, (samples, *sizes))
    rows = views[(at[0], slice(None), *at[1:])].reshape(len(chosen), groups, -1)
    if rows.shape[2] != unknowns:
        rows = rows.reshape(len(chosen), groups, unknowns)
    ends, known = (
        np.moveaxis(each, 1, -1).reshape(count, -1)[chosen] for each in (residual, told)
    )
    assert channels % groups == 0 and rank  # noqa: S101, PT018 - the layer has checked it
    return _Products(np.ascontiguousarray(rows), ends, known, kernels)


def _chosen(count: int, unknowns: int, told: Array) -> Any:  # noqa: ANN401 - an index
    """Return evenly spread indexes of as many positions as needed.

    Of those, a channel may know few.
    """
    most = max(_MOST_NUMBERS // max(unknowns, 1), 1)
    each = 2 if told.all() else 8
    wanted = min(count, most, max(each * unknowns, 1024))
    if wanted >= count:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(count, wanted, replace=False))


def _in_file_order(case: Case, rows: Array, weight: Array) -> Array:
    """Return rows of output channels in the file's layout, as `kernels_of` has them."""
    windows = sliding_of(case)
    if windows is None or windows.family != "transpose":
        result = rows.reshape(weight.shape)
    else:
        channels, kernels, *kernel = weight.shape
        groups = case.value("groups", 1)
        parts = rows.reshape(groups, kernels, channels // groups, *kernel)
        parts = np.flip(parts, tuple(range(3, parts.ndim))).swapaxes(1, 2)
        result = parts.reshape(weight.shape)
    result = np.ascontiguousarray(result, weight.dtype)
    result.flags.writeable = False
    return result
