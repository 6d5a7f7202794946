"""Products of matrices and einsum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule
from engine.axes.rules.attention import claim_split_heads

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims

__all__ = ["multiply"]


@rule("matmul", "bmm", "mm")
def matmul(call: Call) -> Results:
    """Multiply matrices; the other dimensions are broadcast."""
    if len(call.inputs) < 2:
        return []
    _claim_weight(call, 1)
    return [multiply(call, call.inputs[0], call.inputs[1])]


def _claim_weight(call: Call, place: int) -> None:
    """Name the features that a constant matrix maps to others."""
    producer = call.operator.inputs[place].producer
    dims = call.inputs[place]
    if producer is not None and producer.is_constant and dims is not None and len(dims) == 2:
        call.claim(dims, (Kind.FEATURE, Kind.FEATURE), Rank.EXPECTED)


@rule("addmm", "baddbmm")
def matmul_and_add(call: Call) -> Results:
    """Multiply two matrices and add a third value."""
    one, other = call.input("mat1", 1), call.input("mat2", 2)
    if call.operator.type.endswith("baddbmm"):
        one, other = call.input("batch1", 1), call.input("batch2", 2)
    if len(call.inputs) == 3:
        _claim_weight(call, 2)
    found = multiply(call, one, other)
    added = call.first
    if found is not None and added is not None:
        for dim, same in zip(added[::-1], found[::-1], strict=False):
            if call.factors.extent(dim) == call.factors.extent(same):
                call.factors.unify(dim, same)
    return [found]


def multiply(call: Call, one: Dims | None, other: Dims | None) -> Dims | None:
    """Return the dimensions of a product, and unify the dimensions that it sums over."""
    shape = call.shape
    if one is None or other is None or shape is None or not one or not other:
        return None
    factors = call.factors
    factors.unify(one[-1], other[-2] if len(other) > 1 else other[0])
    ends = [*one[-2:-1], *(other[-1:] if len(other) > 1 else ())]
    lead: list[Dim] = []
    for place in range(-len(shape) + len(ends), 0):
        size = shape[place - len(ends) + len(shape)]
        dims = [d[place - 2] for d in (one, other) if len(d) >= 2 - place]
        same = [dim for dim in dims if factors.extent(dim) == size]
        for dim in same[1:]:
            factors.unify(same[0], dim)
        lead.append(same[0] if same else (factors.make(size),))
    found = [*lead, *ends]
    if len(found) != len(shape):
        return None
    # Parts of the features that are multiplied one by one are heads, with a softmax or without.
    claim_split_heads(factors, tuple(lead))
    return call.fit(found)


@rule("cdist")
def measure(call: Call) -> Results:
    """Measure the distance of each position of one input from each of the other."""
    one, other = call.input("x1", 0), call.input("x2", 1)
    if one is None or other is None or len(one) < 2 or len(other) < 2:
        return []
    for dims in (one, other):
        call.claim(dims[-2:], (Kind.TOKEN, Kind.FEATURE), Rank.EXPECTED)
    return [multiply(call, one, (*other[:-2], *other[-1:], *other[-2:-1]))]


@rule("einsum")
def einsum(call: Call) -> Results:
    """Unify the dimensions with the same letter."""
    equation = str(call.param("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    words = left.split(",")
    if "." in equation or len(words) != len(call.inputs):
        return []
    letters: dict[str, Dim] = {}
    for word, dims in zip(words, call.inputs, strict=True):
        if dims is None or len(word) != len(dims):
            continue
        for letter, dim in zip(word, dims, strict=True):
            if letter in letters:
                call.factors.unify(letters[letter], dim)
            letters.setdefault(letter, dim)
    if not arrow:
        right = "".join(sorted([letter for letter in letters if left.count(letter) == 1]))
    if any(letter not in letters for letter in right):
        return []
    if len(words) > 1:
        apart = [letter for letter in right if all(letter in word for word in words)]
        claim_split_heads(call.factors, tuple([letters[letter] for letter in apart]))
    return [call.fit([letters[letter] for letter in right])]


@rule("groupedmm")
def multiply_groups(call: Call) -> Results:
    """Multiply each row by the matrix of its group, which layers of experts have."""
    rows, weights, ends = (call.inputs[:3] + [None] * 3)[:3]
    if rows is None or weights is None or len(rows) != 2 or len(weights) != 3:
        return []
    call.claim(weights, (Kind.EXPERT, Kind.FEATURE, Kind.FEATURE), Rank.STATED)
    call.factors.unify(rows[1], weights[1])
    if ends is not None and len(ends) == 1:
        call.factors.unify(ends[0], weights[0])
    return [call.fit((rows[0], weights[2]))]


@rule("linalgsolve", "linalgsolvetriangular", "solve", "solvetriangular")
def solve(call: Call) -> Results:
    """Solve equations by a matrix: the result has the dimensions of their right-hand side."""
    matrix, other = (call.inputs[:2] + [None] * 2)[:2]
    if matrix is None or other is None or len(other) != len(matrix) or len(other) < 2:
        return []
    for place in range(len(other) - 2):
        call.factors.unify(other[place], matrix[place])
    for place in (-2, -1):
        if call.factors.extent(other[-2]) == call.factors.extent(matrix[place]):
            call.factors.unify(other[-2], matrix[place])
    return [call.fit(other)]


@rule("outer", "ger")
def outer(call: Call) -> Results:
    """Multiply each element of one vector with each of another."""
    if len(call.inputs) != 2 or call.inputs[0] is None or call.inputs[1] is None:
        return []
    return [call.fit((*call.inputs[0], *call.inputs[1]))]


@rule("bilinear")
def bilinear(call: Call) -> Results:
    """Replace the features of two inputs by those of the result."""
    dims, shape = call.first, call.shape
    if dims is None or not dims or shape is None or not shape:
        return []
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    return [call.fit((*dims[:-1], made))]
