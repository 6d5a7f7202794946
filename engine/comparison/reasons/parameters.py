"""Alternatives of one parameter: other numbers, flags, modes and axes."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.fitting import fit_number
from engine.comparison.reasons.reason import Change
from engine.layers.annotations import is_union
from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.comparison.reasons.case import Case
    from engine.values import Array, Value

__all__ = [
    "WINDOWED",
    "format_value",
    "other_corners",
    "other_epsilons",
    "other_numbers",
    "other_ranges",
    "other_shapes",
    "other_values",
    "set_parameter",
]

WINDOWED: Final = re.compile(
    r"(?:^|[.:])(conv_?transpose|conv|max_?pool|avg_?pool|lp_?pool)([123])d$", re.IGNORECASE
)
"""Types of convolution and pooling; `sliding` has the alternatives of their sizes."""

_SIZES: Final = frozenset(
    {"padding", "output_padding", "stride", "dilation", "kernel_size", "groups"}
)

_RESHAPES: Final = frozenset({"Tensor.reshape", "Tensor.view", "torch.reshape", "ncnn.Reshape"})
_SIDES: Final = {1: ("w",), 2: ("w", "h"), 3: ("w", "h", "c"), 4: ("w", "h", "d", "c")}

# Parameters with a kind of reason of their own.
_KINDS: Final = {
    **dict.fromkeys(("padding", "output_padding", "pad", "padding_mode"), "padding"),
    "stride": "stride",
    "dilation": "dilation",
    **dict.fromkeys(("groups", "num_groups"), "groups"),
    "ceil_mode": "ceil_mode",
    "count_include_pad": "count_include_pad",
    "align_corners": "align_corners",
    "eps": "eps",
    **dict.fromkeys(
        ("unbiased", "correction", "track_running_stats", "training", "use_input_stats"),
        "normalization",
    ),
    **dict.fromkeys(
        ("dim", "dims", "axis", "axes", "dim0", "dim1", "start_dim", "end_dim", "source",
         "destination", "dims_self", "dims_other"),
        "axis",
    ),
    "scale": "scale",
}  # fmt: skip

# Parameters that repeat a weight's shape or do not affect results.
_FIXED: Final = frozenset({
    "in_channels", "out_channels", "in_features", "out_features", "num_features",
    "num_channels", "num_embeddings", "embedding_dim", "embed_dim", "input_size",
    "hidden_size", "num_layers", "normalized_shape", "affine", "elementwise_affine", "bias",
    "momentum", "dtype", "device", "layout", "inplace", "return_indices", "kdim", "vdim",
    "memory_format", "num_parameters", "transposed", "expr", "data", "add_bias_kv",
    "training", "padding_idx", "weight", "input", "proj_size", "dropout", "out_dtype",
    "in1_features", "in2_features", "max_norm", "half_to_float", "add_zero_attn",
})  # fmt: skip

_WORDS: Final = {
    "mode": ("nearest", "nearest-exact", "bilinear", "bicubic", "area", "linear", "trilinear",
             "constant", "reflect", "replicate", "circular", "sum", "mean", "max"),
    "padding_mode": ("zeros", "reflect", "replicate", "circular", "border", "reflection"),
    "approximate": ("none", "tanh"),
    "rounding_mode": (None, "trunc", "floor"),
    "nonlinearity": ("tanh", "relu"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "indexing": ("ij", "xy"),
}  # fmt: skip

_EPSILONS: Final = (1e-5, 1e-3, 1e-6, 1e-12, 1e-8, 1e-4, 1e-7, 1e-2, 1e-10, 0.0)
_EPSILON_GRID: Final = tuple(10.0 ** (n / 2) for n in range(-24, 3))
_MOST: Final = 128  # alternatives of one parameter
_FIT_LEAST: Final = 0.99
_TRIVIAL: Final = 1 << 8  # dims up to which axes are permuted


def set_parameter(
    name: str,
    value: Any,  # noqa: ANN401 - of any type
    old: Any,  # noqa: ANN401
    kind: str = "",
    **more: Any,  # noqa: ANN401
) -> Alternative:
    """Return the alternative with another value of one parameter."""
    text = (
        f"The reference has {name}={format_value(value)}, the file {format_value(old)}. "
        f"Set {name}={format_value(value)}."
    )
    kind = kind or _KINDS.get(name, "parameter")
    return Alternative(kind, text, (Change(name, value),), {name: value}, **more)


def format_value(value: Any) -> str:  # noqa: ANN401 - of any type
    """Format a parameter's value as Python does, floats with six digits."""
    if isinstance(value, tuple):
        inner = ", ".join(map(format_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value) if isinstance(value, str) else str(value)


def other_values(case: Case) -> Iterator[Alternative]:
    """Return other values of each parameter: flags, modes, integers, axes."""
    for name in _names(case):
        old = case.value(name)
        values = itertools.islice(_values(case, name, old), _MOST)
        tried: list[Any] = [old]
        for value in values:
            if any(value == one and type(value) is type(one) for one in tried):
                continue
            tried.append(value)
            yield set_parameter(name, value, old)


def other_corners(case: Case) -> Iterator[Alternative]:
    """Return bilinear resizing without aligned corners, for types that always align them."""
    if case.type not in {"nn.UpsamplingBilinear2d", "F.upsample_bilinear"}:
        return
    yield Alternative(
        "align_corners",
        f"The reference does not align the corners, {case.type} does. "
        "Use F.interpolate with mode=bilinear and align_corners=False.",
        (Change("align_corners", value=False),),
        {"mode": "bilinear", "align_corners": False},
        type="F.interpolate",
    )


def other_ranges(case: Case) -> Iterator[Alternative]:
    """Return slices of the same length that start elsewhere."""
    start, end, x = case.params.get("start"), case.params.get("end"), case.input
    dim = case.params.get("dim", 0)
    if x is None or not isinstance(dim, int) or not -x.ndim <= dim < x.ndim:
        return
    if not (isinstance(start, int) and isinstance(end, int)) or not 0 <= start < end:
        return
    for first in range(min(x.shape[dim] - (end - start) + 1, _MOST)):
        if first != start:
            stop = first + end - start
            yield Alternative(
                "parameter",
                f"The reference takes {first} to {stop}, the file {start} to {end}. "
                f"Set start={first} and end={stop}.",
                (Change("start", first), Change("end", stop)),
                {"start": first, "end": stop},
            )


def other_shapes(case: Case) -> Iterator[Alternative]:
    """Return other shapes of a reshape, whose elements keep their order.

    The reference's, if it shows that. Otherwise what follows tells, but only in ncnn's format,
    where it fails or gives another shape: the files of pnnx state the shape, and of equal
    shapes any order of sides may undo a wrong permutation behind it.
    """
    ours, shape = case.ours, case.expected_shape
    if case.type not in _RESHAPES or not isinstance(ours, np.ndarray):
        return
    told = case.type.startswith("ncnn.") and not case.discrepancy.is_comparable
    if shape is None and not told:
        return
    for wanted in [shape] if shape is not None else _other_sides(ours.shape, case.input):
        if wanted != ours.shape and math.prod(wanted) == ours.size:
            yield _reshaped(case, ours, wanted, fitted=0 if shape is not None else len(wanted))


def _other_sides(ours: tuple[int, ...], x: Array | None) -> Iterator[tuple[int, ...]]:
    """Return the sides of a shape in other orders, and the input's, some of them joined."""
    yield from itertools.islice(itertools.permutations(ours), 1, None)
    if x is None:
        return
    for count in range(1, x.ndim):
        for cuts in itertools.combinations(range(1, x.ndim), count):
            parts = itertools.pairwise((0, *cuts, x.ndim))
            yield tuple(math.prod(x.shape[start:stop]) for start, stop in parts)


def _reshaped(case: Case, ours: Array, shape: tuple[int, ...], fitted: int) -> Alternative:
    changes: tuple[Change, ...] = (Change("shape", shape),)
    if case.type.startswith("ncnn."):  # which counts from the last axis
        changes = tuple(map(Change, _SIDES.get(len(shape), ()), reversed(shape)))
    wanted = ", ".join(f"{change.name}={change.value}" for change in changes)
    more = " in place of shape_expr" if "shape_expr" in case.params else ""
    return Alternative(
        "parameter",
        f"The reference gives {format_shape(shape)}, the file {format_shape(ours.shape)}. "
        f"Set {wanted}{more}.",
        changes, result=ours.reshape(shape), fitted=fitted,
    )  # fmt: skip


def other_epsilons(case: Case) -> Iterator[Alternative]:
    """Return other epsilons: the usual ones, then the best fit."""
    if "eps" not in case.arguments and "eps" not in case.params:
        return
    old = case.value("eps")
    known = [value for value in _EPSILONS if value != old]
    for value in known:
        yield set_parameter("eps", value, old, least=_FIT_LEAST)
    # A large one resembles a weight of zeros, and a factor of the weight.
    if case.discrepancy.is_constant or case.differing:
        return

    def score(value: float) -> float:
        return -case.left(Alternative("eps", "", params={"eps": value}))

    best = fit_number(score, _EPSILON_GRID)
    if best != old and best not in known:
        yield set_parameter("eps", best, old, fitted=1, least=_FIT_LEAST)


def other_numbers(case: Case) -> Iterator[Alternative]:
    """Return the best fit of each floating-point parameter."""
    for name in _names(case):
        old = case.value(name)
        if name == "eps" or not _is_float(case, name, old):
            continue
        start = 0.0 if old is None else float(old)
        if not math.isfinite(start):
            continue

        def score(value: float, name: str = name) -> float:
            return -case.left(Alternative("parameter", "", params={name: value}))

        best = fit_number(score, _grid(start))
        if best != old:
            yield set_parameter(name, best, old, fitted=1, least=_FIT_LEAST)


def _names(case: Case) -> list[str]:
    """Return the parameters in the file, then those left at their defaults."""
    known = [
        name
        for name, (default, _) in case.arguments.items()
        if name not in case.params
        and name not in case.weights
        and name not in case.call.input_names
        and isinstance(default, (bool, int, float, str, tuple, type(None)))
    ]
    names = [name for name in case.params if name not in case.call.input_names]
    fixed = _FIXED | _SIZES if WINDOWED.search(case.type) else _FIXED
    return [name for name in (*names, *known) if name not in fixed]


def _is_float(case: Case, name: str, old: object) -> bool:
    if isinstance(old, (bool, str, tuple)):
        return False
    hint = case.arguments.get(name, (None, Any))[1]
    options = get_args(hint) if is_union(hint) else (hint,)
    return isinstance(old, float) or (float in options and (old is None or bool not in options))


def _grid(start: float) -> list[float]:
    """Return increasing numbers around a value, of both signs."""
    sizes = {2.0**n for n in range(-10, 6)}
    sizes |= {abs(start) * factor for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)}
    return sorted({0.0, start, *sizes, *(-size for size in sizes)})


def _values(case: Case, name: str, old: Any) -> Iterator[Any]:  # noqa: ANN401
    if _KINDS.get(name) == "axis" and not isinstance(old, bool):
        yield from _axes(case, name, old)
    elif isinstance(old, bool) or (old is None and _takes_bool(case, name)):
        yield not old
    elif isinstance(old, str) or (old is None and name in _WORDS):
        yield from _WORDS.get(name, ())
    elif isinstance(old, int) and not _is_float(case, name, old):
        yield from _neighbours(old)
    elif isinstance(old, tuple) and old:
        yield from _tuples(old)
    elif isinstance(old, float) and name == "scale_factor":
        yield from (1.0, 2.0, 3.0, 4.0, 8.0, 0.5, 0.25)


def _takes_bool(case: Case, name: str) -> bool:
    hint = case.arguments.get(name, (None, Any))[1]
    return bool in (get_args(hint) if is_union(hint) else (hint,))


def _neighbours(old: int) -> Iterator[int]:
    yield from (old - 1, old + 1, 2 * old, old // 2, 1, 0, old - 2, old + 2, 3, 4, 8, 16, -1)
    yield from range(5, 33)


def _tuples(old: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Return tuples with one or all numbers changed, or in another order."""
    if len(old) <= 4:
        yield from itertools.islice(itertools.permutations(old), 1, None)
    else:
        yield old[::-1]
        for one, other in itertools.combinations(range(len(old)), 2):
            exchanged = list(old)
            exchanged[one], exchanged[other] = old[other], old[one]
            yield tuple(exchanged)
    if not all(isinstance(item, (int, float)) for item in old):
        return
    for step in (1, -1, 2, -2):
        yield tuple(item + step for item in old)
        for place in range(len(old)):
            yield (*old[:place], old[place] + step, *old[place + 1 :])
    for factor in (2, 0.5):
        yield tuple(type(item)(item * factor) for item in old)


def _axes(case: Case, name: str, old: Any) -> Iterator[Any]:  # noqa: ANN401
    ndims = [value.ndim for value in case.inputs if isinstance(value, np.ndarray)]
    ndim = max(ndims, default=0)
    if name in {"dim", "axis"} and "stack" in case.type:
        ndim += 1
    if isinstance(old, tuple):
        yield from _axis_tuples(old, ndim)
        return
    same = old % ndim if isinstance(old, int) and ndim else None
    yield from (axis for axis in range(ndim) if axis != same)
    if old is None or name == "dim":
        for count in (2, 3):
            yield from itertools.combinations(range(ndim), count)


def _axis_tuples(old: Sequence[Any], ndim: int) -> Iterator[Value]:
    """Return as many other axes; all orders of them if they are all axes."""
    count = len(old)
    if math.perm(ndim, count) <= _TRIVIAL and count == ndim:
        yield from itertools.permutations(range(ndim))
    yield from itertools.combinations(range(ndim), count)
    for other in (count - 1, count + 1):
        if 0 < other <= ndim:
            yield from itertools.combinations(range(ndim), other)
