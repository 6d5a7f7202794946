"""Operators that concatenate and split: the segments of a dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule
from engine.axes.rules.moving import claim_parts, cut

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims, Factors

__all__ = ["concatenate", "join_dims"]

_MOST_SEGMENTS = 16  # more segments are unreadable


@rule("cat", "concat", "concatenate")
def concatenate(call: Call) -> Results:
    """Concatenate along a dimension."""
    shape = call.shape
    if shape is None:
        return []
    place = call.place("dim", len(shape))
    return [] if place is None else [join_dims(call, place)]


def join_dims(call: Call, place: int) -> Dims | None:
    """Return the dimensions of inputs that are concatenated along one dimension."""
    shape = call.shape
    inputs = [dims for dims in call.inputs if not _is_empty(call, dims)]
    given = [dims for dims in inputs if dims is not None]
    if shape is None or not given or any(len(dims) != len(shape) for dims in given):
        return None
    found: list[Dim] = []
    for at, size in enumerate(shape):
        dims = [each[at] for each in given]
        if at == place:
            pieces = dims if len(given) == len(inputs) else []
            found.append(
                (_join(call, pieces),) if pieces else call.factors.derive(dims[0], size)
            )
        else:
            dims.sort(key=len, reverse=True)
            for dim in dims[1:]:
                call.factors.unify(dims[0], dim)
            found.append(dims[0])
    return call.fit(found)


def _is_empty(call: Call, dims: Dims | None) -> bool:
    """Whether an input is an empty list, such as a cache of keys before the first token."""
    return dims is not None and len(dims) == 1 and call.factors.extent(dims[0]) == 0


def _join(call: Call, pieces: list[Dim]) -> int:
    factors = call.factors
    if len(pieces) == 1:
        return factors.whole(pieces[0])
    sizes = [factors.size(piece) for piece in pieces]
    total = None if None in sizes else sum([size for size in sizes if size is not None])
    made = factors.make(total)
    flat = [part for piece in pieces for part in _segments(factors, piece)]
    if 1 < len(flat) <= _MOST_SEGMENTS:
        factors.segments[made] = tuple(flat)
    mixed = {factors.mixed.get(factors.find(piece[0]), ()) for piece in pieces}
    if len(mixed) == 1 and () not in mixed:
        factors.mixed[made] = mixed.pop()
    if all(len(piece) == 1 and not factors.parts(piece[0]) for piece in pieces):
        for piece, size in zip(pieces, sizes, strict=True):
            if size != 1:  # one position has no meaning to give
                factors.relate(made, piece[0])
    return made


def _segments(factors: Factors, dim: Dim) -> tuple[Dim, ...]:
    """Return the segments of a dimension, or the dimension itself."""
    own = factors.segments.get(factors.find(dim[0])) if len(dim) == 1 else None
    return own or (dim,)


@rule("stack")
def stack(call: Call) -> Results:
    """Join values along a new dimension."""
    shape = call.shape
    given = [dims for dims in call.inputs if dims is not None]
    if shape is None or not given or any(len(dims) + 1 != len(shape) for dims in given):
        return []
    place = call.place("dim", len(shape))
    if place is None:
        return []
    for dims in given[1:]:
        for one, other in zip(given[0], dims, strict=True):
            call.factors.unify(one, other)
    made = (call.factors.make(shape[place]),)
    call.factors.claim(made, Kind.PART, Rank.GUESSED)
    return [call.fit((*given[0][:place], made, *given[0][place:]))]


@rule("split", "chunk", "tensorsplit", "splitwithsizes")
def split(call: Call) -> Results:
    """Split a dimension into ranges."""
    dims = call.first
    place = call.place("dim", len(dims)) if dims else None
    if dims is None or place is None:
        return []
    if all(shape is not None and shape[place:] and shape[place] == 1 for shape in call.shapes):
        claim_parts(call, dims[place])
        call.factors.claim(dims[place], Kind.PART, Rank.GUESSED)
    results: Results = []
    start: int | None = 0
    for shape in call.shapes:
        if shape is None or len(shape) != len(dims):
            results.append(None)
            start = None
            continue
        size = shape[place]
        found = list(dims)
        found[place] = cut(call, dims[place], start, size)
        results.append(call.fit(found, len(results)))
        start = start + size if start is not None and isinstance(size, int) else None
    return results


@rule("unbind")
def unbind(call: Call) -> Results:
    """Return each position of a dimension as a value."""
    dims = call.first
    place = call.place("dim", len(dims)) if dims else None
    if dims is None or place is None:
        return []
    claim_parts(call, dims[place])
    readers = [reader for operand in call.operator.outputs for reader in operand.consumers]
    is_looked_up = bool(readers) and all(each.type.endswith("mbedding") for each in readers)
    if place == len(dims) - 1 or is_looked_up:  # such as the numbers of a box, or codebooks
        call.factors.claim(dims[place], Kind.PART, Rank.GUESSED)
    kept = (*dims[:place], *dims[place + 1 :])
    return [call.fit(kept, at) for at in range(len(call.shapes))]


@rule("glu")
def gate(call: Call) -> Results:
    """Gate one half of a dimension by the other."""
    return [call.fit(call.first)] if call.first is not None else []
