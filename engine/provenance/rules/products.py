"""Products of matrices: linear layers, matmul and its relatives, einsum.

All of them are contractions. Each operand has a label for every dimension; labels of the
result have the element's position, the others are summed over.
"""

from __future__ import annotations

import itertools
import string
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers import linear, matmul, matrices
from engine.layers.arguments import as_ints
from engine.layers.einsum import einsum
from engine.layers.ncnn import products as ncnn
from engine.provenance.arithmetic import activate_sum, add_up, format_index, grid, multiply
from engine.provenance.call import NoBreakdownError, Operand, is_array, take
from engine.provenance.records import Interval, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.values import Array

__all__ = ["PRODUCTS", "explain_product", "locate_product", "read_product"]


class _Member(NamedTuple):
    """One factor of a contraction.

    Attributes
    ----------
    array : Operand or ndarray
    name : str
    labels : str
        One for each dimension.
    """

    array: Operand | Array
    name: str
    labels: str


class _Contraction(NamedTuple):
    """A sum of products.

    Attributes
    ----------
    members : tuple of _Member
    result : str
        Labels of the result.
    offset : _Member or None
        What is added; broadcast to the result.
    alpha, beta : float
        Factors of the products and of the offset.
    activation : (int, sequence of float)
        That a layer of ncnn applies to the sums; 0 for none.
    """

    members: tuple[_Member, ...]
    result: str
    offset: _Member | None = None
    alpha: float = 1.0
    beta: float = 1.0
    activation: tuple[int, Sequence[float]] = (0, ())


def _matrix_labels(left: int, right: int) -> tuple[str, str, str]:
    """Return the labels of a matrix product of operands with that many dimensions."""
    if min(left, right) < 1:
        raise NoBreakdownError("a number is no matrix")
    batch = string.ascii_uppercase[: max(left, right, 2) - 2]
    first = "k" if left == 1 else batch[len(batch) - left + 2 :] + "mk"
    second = "k" if right == 1 else batch[len(batch) - right + 2 :] + "kn"
    return first, second, batch + "m" * (left > 1) + "n" * (right > 1)


def _linear(call: Call) -> _Contraction:
    layer, given = call.layer, call.arguments
    weight, bias = given.get("weight"), given.get("bias")
    if isinstance(layer, linear.Linear):
        weight, bias = layer.weight, layer.bias
    if weight is None or not 1 <= weight.ndim <= 2:
        raise NoBreakdownError("the weight is no matrix")
    input = call.array("input")
    lead = string.ascii_uppercase[: input.ndim - 1]
    out = "n" * (weight.ndim - 1)  # a single row gives one number for each position
    members = (_Member(input, "input", lead + "k"), _Member(weight, "weight", out + "k"))
    offset = None if bias is None else _Member(bias, "bias", "n" * bias.ndim)
    return _Contraction(members, lead + out, offset)


def _matmul(call: Call, one: str = "input", other: str = "other") -> _Contraction:
    left, right = call.arguments[one], call.arguments[other]
    first, second, result = _matrix_labels(left.ndim, right.ndim)
    return _Contraction((_Member(left, one, first), _Member(right, other, second)), result)


def _add_product(call: Call, one: str, other: str) -> _Contraction:
    given = call.arguments
    found = _matmul(call, one, other)
    added, alpha, beta = given["input"], given.get("alpha", 1), given.get("beta", 1)
    if not isinstance(alpha, (int, float)) or not isinstance(beta, (int, float)):
        raise NoBreakdownError("alpha and beta are no numbers")
    labels = found.result[len(found.result) - added.ndim :]
    offset = _Member(added, "input", labels) if beta else None
    return found._replace(offset=offset, alpha=float(alpha), beta=float(beta))


def _einsum(call: Call) -> _Contraction:
    return _contract(call.arguments.get("equation"), call.arguments["operands"])


def _ncnn_einsum(call: Call) -> _Contraction:
    if not isinstance(call.layer, ncnn.Einsum) or call.layer.equation.endswith(("->", "ii")):
        raise NoBreakdownError("a sum over all letters has no breakdown")
    return _contract(call.layer.equation, call.arguments["inputs"])


def _contract(equation: Any, operands: Sequence[Any]) -> _Contraction:
    """Return a contraction by its equation, in which ``...`` may stand for dimensions."""
    if not isinstance(equation, str) or not all(map(is_array, operands)):
        raise NoBreakdownError("the equation or an operand is computed")
    text, arrow, result = equation.replace(" ", "").partition("->")
    parts = text.split(",")
    if len(parts) != len(operands):
        raise NoBreakdownError(f"equation {equation} does not fit {len(operands)} operands")
    unused = (letter for letter in string.ascii_letters if letter not in equation)
    spread = max(
        [each.ndim - len(part) + 3 for part, each in zip(parts, operands, strict=True)
         if "..." in part],
        default=0,
    )  # fmt: skip
    names = "".join(itertools.islice(unused, spread))

    def expand(part: str, ndim: int) -> str:
        missing = ndim - len(part.replace("...", ""))
        return part.replace("...", names[len(names) - missing :] if missing else "")

    labels = [expand(part, each.ndim) for part, each in zip(parts, operands, strict=True)]
    if not arrow:
        letters = text.replace("...", "").replace(",", "")
        result = names + "".join(sorted({c for c in letters if letters.count(c) == 1}))
    else:
        result = result.replace("...", names)
    members = [
        _Member(each, f"operand {place}", label)
        for place, (each, label) in enumerate(zip(operands, labels, strict=True))
    ]
    return _Contraction(tuple(members), result)


def _bilinear(call: Call) -> _Contraction:
    one, two = call.arguments["input1"], call.arguments["input2"]
    weight, bias = call.arguments["weight"], call.arguments["bias"]
    lead = string.ascii_uppercase[: one.ndim - 1]
    members = (
        _Member(one, "input1", lead + "i"), _Member(weight, "weight", "nij"),
        _Member(two, "input2", lead + "j"),
    )  # fmt: skip
    offset = None if bias is None else _Member(bias, "bias", "n")
    return _Contraction(members, lead + "n", offset)


def _outer(call: Call) -> _Contraction:
    left, right = call.arguments["input"], call.arguments["vec2"]
    return _Contraction((_Member(left, "input", "m"), _Member(right, "vec2", "n")), "mn")


def _add_outer(call: Call, one: str, other: str, labels: tuple[str, str]) -> _Contraction:
    """Return a product that is added to a matrix."""
    given = call.arguments
    alpha, beta = given["alpha"], given["beta"]
    if not isinstance(alpha, (int, float)) or not isinstance(beta, (int, float)):
        raise NoBreakdownError("alpha and beta are no numbers")
    added = given["input"]
    members = (_Member(given[one], one, labels[0]), _Member(given[other], other, labels[1]))
    offset = _Member(added, "input", "mn"[2 - added.ndim :]) if beta else None
    return _Contraction(members, "mn", offset, float(alpha), float(beta))


def _inner(call: Call) -> _Contraction:
    left, right = call.arguments["input"], call.arguments["other"]
    if not left.ndim or not right.ndim:
        raise NoBreakdownError("a number is no vector")
    rows = string.ascii_uppercase[: left.ndim - 1]
    columns = string.ascii_lowercase[: right.ndim - 1]
    members = _Member(left, "input", rows + "z"), _Member(right, "other", columns + "z")
    return _Contraction(members, rows + columns)


def _tensordot(call: Call) -> _Contraction:
    left, right = call.arguments["input"], call.arguments["other"]
    own, others = (
        as_ints(call.arguments[f"dims_{each}"], "dims") for each in ("self", "other")
    )
    one = list(string.ascii_uppercase[: left.ndim])
    two = list(string.ascii_lowercase[: right.ndim])
    for axis, other in zip(own, others, strict=True):
        two[other % right.ndim] = one[axis % left.ndim]
    result = [label for label in (*one, *two) if (label in one) != (label in two)]
    members = _Member(left, "input", "".join(one)), _Member(right, "other", "".join(two))
    return _Contraction(members, "".join(result))


def _vecdot(call: Call) -> _Contraction:
    """Return products along one dimension of two tensors that are broadcast."""
    left, right = call.arguments["x"], call.arguments["y"]
    labels = string.ascii_lowercase[: max(left.ndim, right.ndim)]
    axis = int(call.arguments["dim"]) % len(labels)
    members = [
        _Member(each, name, labels[len(labels) - each.ndim :])
        for each, name in ((left, "x"), (right, "y"))
    ]
    return _Contraction(tuple(members), labels[:axis] + labels[axis + 1 :])


def _trace(call: Call) -> _Contraction:
    input = call.array("input")
    if len(set(input.shape)) > 1:
        raise NoBreakdownError("the matrix is not square")
    return _Contraction((_Member(input, "input", "ii"),), "")


def _inner_product(call: Call) -> _Contraction:
    """Return a fully connected layer of ncnn, which takes an image as one vector."""
    layer, input = call.layer, call.array("input")
    if not isinstance(layer, ncnn.InnerProduct) or layer.int8:
        raise NoBreakdownError("sums of rounded numbers have no breakdown")
    weight, lead, summed = layer.weight, "R", "k"
    if not layer.is_rows(input.shape):
        lead, summed = "", string.ascii_letters[: input.ndim]
        weight = weight.reshape(len(weight), *input.shape)
    members = (
        _Member(input, "input", lead + summed), _Member(weight, "weight", "n" + summed)
    )  # fmt: skip
    offset = None if layer.bias is None else _Member(layer.bias, "bias", "n")
    return _Contraction(members, lead + "n", offset, activation=layer.activation)


def _ncnn_matmul(call: Call) -> _Contraction:
    found = _matmul(call, "a", "b")
    left, right = found.members
    if call.arguments["transB"] and right.array.ndim > 1:
        labels = right.labels
        right = right._replace(labels=labels[:-2] + labels[:-3:-1])
    # A product of two vectors has one dimension too.
    return found._replace(members=(left, right), result=found.result or "z")


def _gemm(call: Call) -> _Contraction:
    """Return a product of matrices, each of which may be a weight."""
    layer = call.layer
    if not isinstance(layer, ncnn.Gemm):
        raise NoBreakdownError("this is no product of matrices")
    a, b, c = layer.split(call.arguments["inputs"])
    members = []
    for name, array, sides, swapped in zip(
        "AB", (a, b), ("mk", "kn"), layer.swaps, strict=True
    ):  # fmt: skip
        labels = sides[::-1] if swapped else sides
        if array.ndim == 3:  # with a middle axis of size 1
            labels = f"{labels[0]}z{labels[1]}"
        members.append(_Member(array, name, labels))
    result = "nm" if layer.is_transposed else "mn"
    if layer.has_middle:
        result = f"{result[0]}z{result[1]}"
    offset = None
    if c is not None:
        rows, _, columns = layer.sizes(a.shape, b.shape)
        if layer.constant["C"]:
            c = layer.reshape_c(c, rows, columns)
        line = "n" if c.shape == (columns,) else "m"
        offset = _Member(c, "C", "mn" if c.ndim == 2 else line)
    return _Contraction(tuple(members), result, offset, layer.alpha, layer.alpha * layer.beta)


PRODUCTS: dict[Any, Any] = {
    ncnn.InnerProduct: _inner_product,
    ncnn.matmul: _ncnn_matmul,
    ncnn.Gemm: _gemm,
    linear.Linear: _linear,
    linear.linear: _linear,
    matmul.matmul: _matmul,
    matmul.mm: lambda call: _matmul(call, other="mat2"),
    matmul.bmm: lambda call: _matmul(call, other="mat2"),
    matmul.mv: lambda call: _matmul(call, other="vec"),
    matmul.dot: _matmul,
    matmul.addmm: lambda call: _add_product(call, "mat1", "mat2"),
    matmul.baddbmm: lambda call: _add_product(call, "batch1", "batch2"),
    matmul.addmv: lambda call: _add_product(call, "mat", "vec"),
    matmul.vdot: _matmul,
    matmul.inner: _inner,
    matmul.outer: _outer,
    matmul.tensordot: _tensordot,
    matmul.addbmm: lambda call: _add_outer(call, "batch1", "batch2", ("bmk", "bkn")),
    matmul.addr: lambda call: _add_outer(call, "vec1", "vec2", ("m", "n")),
    matmul.vecdot: _vecdot,
    matrices.trace: _trace,
    linear.bilinear: _bilinear,
    einsum: _einsum,
    ncnn.Einsum: _ncnn_einsum,
}


def read_product(call: Call) -> _Contraction:
    """Return a product as a contraction."""
    return PRODUCTS[call.layer_code](call)  # type: ignore[no-any-return]


def _sizes(members: Sequence[_Member]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for member in members:
        for label, size in zip(member.labels, member.array.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return sizes


def _at(member: _Member, columns: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Return a member's indices, with broadcast dimensions at 0; shape (T, D)."""
    rows = [
        columns[label] if size > 1 else np.zeros_like(columns[label])
        for label, size in zip(member.labels, member.array.shape, strict=True)
    ]
    count = len(next(iter(columns.values()))) if columns else 1
    return np.stack(rows, axis=1) if rows else np.zeros((count, 0), np.int64)


@explains(*PRODUCTS)
def explain_product(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products over all labels that the result lacks."""
    found = read_product(call)
    sizes = _sizes(found.members)
    places = dict(zip(found.result, index, strict=True))
    summed = [label for label in sizes if label not in places]
    spread = grid(*[range(sizes[label]) for label in summed])
    columns = dict(zip(summed, spread.T, strict=True))
    for label, place in places.items():
        columns[label] = np.full(len(spread), place)
    factors = [take(each.array, each.name, _at(each, columns)) for each in found.members]
    shape = [sizes[label] for label in summed]
    axes = ["term"] if len(summed) == 1 else [f"index {label}" for label in summed]
    terms = multiply(factors, shape, axes, found.alpha)
    offset, name = None, ""
    if found.offset is not None:
        own = {label: np.array([at]) for label, at in places.items()}
        added = take(found.offset.array, found.offset.name, _at(found.offset, own))
        offset, name = (
            found.beta * float(added.values[0]),
            _call_out(added.name, added.indices[0]),
        )
    texts = [
        f"{factor.name}{format_index([places.get(label, label) for label in member.labels])}"
        for factor, member in zip(factors, found.members, strict=True)
    ]
    scale = "" if found.alpha == 1 else f"{found.alpha:g} · "
    start = f"{'' if found.beta == 1 else f'{found.beta:g} · '}{name} + " if name else ""
    sign = f"{scale}Σ" if summed else scale.strip(" ·")
    formula = f"y{format_index(index)} = {start}{sign} {' · '.join(texts)}".replace("  ", " ")
    return activate_sum(call, add_up(call, formula, terms, offset, name), found.activation)


def _call_out(name: str, index: Sequence[Any]) -> str:
    return f"{name}{format_index([int(each) for each in index])}"


@locates(*PRODUCTS)
def locate_product(call: Call, box: Box) -> Mapping[str, Box]:
    """Keep the positions of the result's labels; the others count as a whole."""
    found = read_product(call)
    places = dict(zip(found.result, box, strict=True))
    regions: dict[str, Box] = {}
    members = (*found.members, *((found.offset,) if found.offset is not None else ()))
    for member in members:
        if not isinstance(member.array, Operand):
            continue
        region = tuple([
            places[label] if label in places and size > 1 else Interval.whole(size)
            for label, size in zip(member.labels, member.array.shape, strict=True)
        ])  # fmt: skip
        regions[member.array.name] = join_boxes(regions.get(member.array.name), region)
    return regions
