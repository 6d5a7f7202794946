"""Operators that take some of the positions: select, slice, index, embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.products import PRODUCTS
from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims
    from engine.axes.layout import Size

__all__ = ["claim_parts", "cut"]

_WHOLE: Final = (1 << 31) - 1  # pnnx's word for "to the end" and "not selected"


@rule("select")
def select(call: Call) -> Results:
    """Take one position of a dimension, and drop the dimension."""
    dims = call.first
    place = call.place("dim", len(dims)) if dims else None
    if dims is None or place is None:
        return []
    claim_parts(call, dims[place])
    return [call.fit((*dims[:place], *dims[place + 1 :]))]


def claim_parts(call: Call, dim: Dim) -> None:
    """Note that a dimension has parts, such as query and key, that are taken one by one.

    Those of a weight may be anything, such as the sines and cosines of positions.
    """
    producer = call.operator.inputs[0].producer
    if len(dim) == 1 and call.factors.wholes(dim[0]):
        call.factors.parted.add(dim[0])
    elif producer is not None and producer.is_constant:
        call.factors.claim(dim, Kind.PART, Rank.GUESSED)


@rule("slice", "narrow")
def slice_(call: Call) -> Results:
    """Take a range of positions of some dimensions; a selected dimension is dropped."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None:
        return []
    places, kept = _sliced(call, len(dims))
    starts = _one_each(call, "start", places)
    steps = _one_each(call, "step", places, default=1)
    if len(kept) != len(shape):
        return []
    found = [dims[place] for place in kept]
    for place, start, step in zip(places, starts, steps, strict=True):
        if place in kept:
            at = kept.index(place)
            found[at] = cut(call, dims[place], start, shape[at], step)
    return [call.fit(found)]


def _sliced(call: Call, rank: int) -> tuple[tuple[int, ...], list[int]]:
    """Return the dimensions that are sliced, and those that no index selects a position of."""
    places = call.places("dims", rank) or call.places("dim", rank) or ()
    selects = call.integers("selects") or ()
    gone = {p for p, index in zip(places, selects, strict=False) if index != _WHOLE}
    return places, [place for place in range(rank) if place not in gone]


@rule("slicecopy", "slicescatter")
def assign(call: Call) -> Results:
    """Replace a range of positions by those of another value, which mean the same."""
    dims, source = call.input("self", 0), call.input("src", 1)
    if dims is None:
        return []
    _, kept = _sliced(call, len(dims))
    for place, other in zip(kept, source or (), strict=False):
        dim = dims[place]
        if len(kept) != len(source or ()):
            break
        if call.factors.extent(dim) == call.factors.extent(other):
            call.factors.unify(dim, other)
        elif len(dim) == len(other) == 1 and call.factors.extent(other) != 1:
            call.factors.relate(dim[0], other[0])
    return [call.fit(dims)]


def _one_each(
    call: Call, name: str, places: tuple[int, ...], default: int = 0
) -> tuple[int | None, ...]:
    """Return a parameter for each sliced dimension; None where it is an operand."""
    if name in call.operator.input_names or f"{name}s" in call.operator.input_names:
        return (None,) * len(places)
    given = call.integers(f"{name}s") or call.integers(name) or ()
    return given if len(given) == len(places) else (default,) * len(places)


def cut(call: Call, dim: Dim, start: int | None, size: Size, step: int | None = 1) -> Dim:
    """Return a range of a dimension: whole segments, if it begins and ends with one."""
    factors = call.factors
    whole = factors.extent(dim)
    if whole == size:
        return dim
    inner = _inner_positions(call, dim, start, size) if step == 1 else ()
    if inner:
        return inner
    if len(dim) == 1 and step == 1 and start is not None and isinstance(size, int):
        if start < 0 and isinstance(whole, int):
            start += whole
        found = _covering(call, dim[0], start, size)
        if len(found) == 1:
            return found[0]
        derived = factors.derive(dim, size)
        if found:
            factors.segments.setdefault(factors.find(derived[0]), found)
        return derived
    return factors.derive(dim, size)


def _inner_positions(call: Call, dim: Dim, start: int | None, size: Size) -> Dim:
    """Return what is inside one position of the outermost factor of a flattened dimension.

    Empty if a range has other positions than these.
    """
    count = call.factors.size(dim[1:])
    if start is None or not count or count != size or len(dim) == 1:
        return ()
    return dim[1:] if start % count == 0 else ()


def _covering(call: Call, factor: int, start: int, size: int) -> tuple[Dim, ...]:
    """Return the segments of a factor that a range consists of; none if it cuts one."""
    position = 0
    found: list[Dim] = []
    for segment in call.factors.segments.get(call.factors.find(factor), ()):
        length = call.factors.size(segment)
        if length is None or position >= start + size:
            break
        if position >= start:
            found.append(segment)
        position += length
    total = sum([call.factors.size(segment) or 0 for segment in found])
    return tuple(found) if total == size and position == start + size else ()


@rule("embedding")
def embedding(call: Call) -> Results:
    """Look up the features of each number."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or len(shape) != len(dims) + 1:
        return []
    if len(dims) == 3 and _sums(call, 2):
        call.claim(dims, (Kind.BATCH, Kind.TOKEN, Kind.PART), Rank.STATED)
    elif dims:
        call.factors.claim(dims[-1], Kind.TOKEN, _rank_of_tokens(call, dims))
    if len(dims) == 2:
        call.factors.claim(dims[0], Kind.BATCH, Rank.GUESSED)
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    return [call.fit((*dims, made))]


def _sums(call: Call, place: int) -> bool:
    """Whether the result is summed along a dimension, as the codes of a moment of sound are."""
    readers = call.operator.outputs[0].consumers
    return any(
        each.type in {"torch.sum", "torch.mean"} and each.params.get("dim") == (place,)
        for each in readers
    )


def _rank_of_tokens(call: Call, dims: Dims) -> Rank:
    """Return how certain it is that what is looked up are tokens.

    A single dimension may count samples, with a class or a user for each.
    """
    producer = call.operator.inputs[0].producer
    is_table = producer is not None and producer.is_constant
    is_sample = len(dims) == 1 and call.has_batch and not is_table
    return Rank.GUESSED if is_sample else Rank.STATED


@rule("embeddingbag")
def embed_bags(call: Call) -> Results:
    """Sum the features of the numbers of each bag, which begin at offsets."""
    table, numbers, offsets = (call.inputs[:3] + [None] * 3)[:3]
    if table is None or numbers is None or offsets is None:
        return []
    if len(table) != 2 or len(numbers) != 1 or len(offsets) != 1:
        return []
    call.claim(table, (Kind.VOCABULARY, Kind.FEATURE), Rank.STATED)
    call.factors.claim(numbers[0][-1:], Kind.TOKEN, Rank.STATED)
    if call.factors.size(numbers[0][:-1]) == call.factors.size(offsets[0]):
        call.factors.unify(numbers[0][:-1], offsets[0])
    call.factors.claim(offsets[0], Kind.BATCH, Rank.GUESSED)
    return [call.fit((offsets[0], table[1])), numbers, offsets, offsets]


@rule("index", "indexselect")
def index(call: Call) -> Results:
    """Pick positions by index."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or not dims:
        return []
    if call.operator.type.endswith("index_select"):
        return [_select_by_index(call, dims)]
    picked = _index_dims(call, dims)
    if picked is not None:
        return [call.fit(picked)]
    # Masks of transformers are indexed by a range of all positions, which adds dimensions.
    before, after = (
        [size for size in sizes if size != 1]
        for sizes in (map(call.factors.extent, dims), shape)
    )
    if before == after:
        return [call.factors.regroup(dims, shape)]
    # A list of some positions of one dimension, such as the last of several heads.
    changed = [dim for dim, size in zip(dims, shape, strict=False)
               if call.factors.extent(dim) != size]  # fmt: skip
    return [call.fit(dims)] if len(call.inputs) == 1 and len(changed) == 1 else [None]


@rule("indexput")
def put(call: Call) -> Results:
    """Put values at the positions of an index; one of all positions orders them anew."""
    dims, index, values = (call.inputs[:3] + [None] * 3)[:3]
    if dims and index is not None and len(index) == 1:
        call.factors.unify(dims[0], index[0])
        if values is not None and len(values) == len(dims):
            call.factors.unify(values[0], index[0])
    return [call.fit(dims)] if dims is not None else []


@rule("indexadd", "indexcopy")
def add_at_index(call: Call) -> Results:
    """Add rows at the positions of an index; the other dimensions are the same."""
    dims = call.first
    given = [each for each in call.inputs[1:] if each is not None]
    if dims is None or not given:
        return []
    source = next((each for each in given[::-1] if len(each) == len(dims)), ())
    for dim, other in zip(dims[1:], source[1:], strict=False):
        call.factors.unify(dim, other)
    return [call.fit(dims)]


@rule("scatter")
def scatter(call: Call) -> Results:
    """Put values at the positions that an index has along one dimension."""
    dims, index = call.first, call.inputs[2] if len(call.inputs) > 2 else None
    if dims is None:
        return []
    for dim, picked in zip(dims, index or (), strict=False):
        if call.factors.extent(dim) == call.factors.extent(picked):
            call.factors.unify(dim, picked)
    return [call.fit(dims)]


def _select_by_index(call: Call, dims: Dims) -> Dims | None:
    """Return dimensions of which one has the positions of an index.

    So a table of biases by distance is read for every query and key.
    """
    place, index = call.place("dim", len(dims)), call.input("index", 1)
    if place is None or index is None or len(index) != 1:
        return call.fit(dims)
    table, picked = call.operator.inputs[0].producer, call.operator.inputs[1].producer
    is_table = table is not None and table.is_constant
    if (
        is_table
        and place == 0
        and len(dims) == 2
        and not (picked is not None and picked.is_constant)
    ):
        call.factors.claim(dims[place], Kind.TOKEN, Rank.GUESSED)  # of positions
    return call.fit((*dims[:place], index[0], *dims[place + 1 :]))


def _index_dims(call: Call, dims: Dims) -> Dims | None:
    """Return the dimensions of ``x[i, j]``, where tensors index the first dimensions.

    The tensors follow the operand, also where the file has them in a list.
    """
    shape = call.shape or ()
    given = [each for each in call.inputs[1:] if each is not None]
    if not given or len(given) < len(call.inputs) - 1 or len({*map(len, given)}) > 1:
        return None
    if len(given) > len(dims) or len(shape) != len(given[0]) + len(dims) - len(given):
        return None
    names = str(call.param("expr", "")).replace(" ", "").strip("[](),'").split(",")
    if names != [""] and names != [f"@{place + 1}" for place in range(len(given))]:
        return None
    found = []
    for place, each in enumerate(zip(*given, strict=True)):
        fitting = [dim for dim in each if call.factors.extent(dim) == shape[place]]
        if not fitting:
            return None
        found.append(fitting[0])
    if len(given) > 1:
        _relate_picked(call, dims, found, given)
    return (*found, *dims[len(given) :])


def _relate_picked(call: Call, dims: Dims, found: list[Dim], given: list[Dims]) -> None:
    """Note what ``x[i, j]`` picks: every position of the first dimension, some of the last."""
    factors, last = call.factors, len(given) - 1
    long = [dim for dim in given[0] if factors.extent(dim) != 1]
    if len(long) == 1 and factors.extent(long[0]) == factors.extent(dims[0]):
        factors.unify(long[0], dims[0])
    if len(found) == len(given) and len(found[-1]) == len(dims[last]) == 1:
        factors.relate(found[-1][0], dims[last][0])


def _picks_distances(call: Call) -> bool:
    """Whether the last dimension has a score for each distance, of which a table picks some."""
    source, index = [operand.producer for operand in call.operator.inputs[:2]]
    if source is not None and source.type in PRODUCTS:
        return True
    is_table = index is not None and index.is_constant
    return is_table and not (source is not None and source.is_constant)


@rule("gather", "takealongdim")
def gather(call: Call) -> Results:
    """Pick positions of one dimension by an index of as many dimensions."""
    dims, index = call.first, call.input("index", 1)
    if dims is None:
        return []
    place = call.place("dim", len(dims))
    if index is None or len(index) != len(dims) or place is None:
        return [call.fit(dims)]
    is_score = place == len(dims) - 1 and _picks_distances(call)
    if is_score and call.factors.extent(dims[place]) != call.factors.extent(index[place]):
        # Scores by relative position, of which each pair of query and key takes one.
        call.factors.claim(dims[place], Kind.DISTANCE, Rank.STATED)
    for at, (dim, picked) in enumerate(zip(dims, index, strict=True)):
        if at != place:
            call.factors.unify(dim, picked)
        elif len(dim) == len(picked) == 1 and not is_score:
            call.factors.relate(dim[0], picked[0])
    return [call.fit([*dims[:place], index[place], *dims[place + 1 :]])]
