"""Attention that pnnx keeps as one operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dim, Dims, Factors

__all__ = ["claim_heads", "claim_split_heads"]


def claim_heads(factors: Factors, dims: Dims) -> None:
    """Note which dimension counts heads: the third last, or one that is split from features."""
    if len(dims) > 4 and claim_split_heads(factors, dims[:-2]):
        return  # the third last counts windows or frames
    if len(dims) > 3:
        factors.claim(dims[-3], Kind.HEAD, Rank.STATED)
        for leaf in factors.leaves(dims[-3]):  # several if heads share keys
            origin = factors.kind(factors.origin(leaf))
            if factors.kind(leaf) is Kind.UNKNOWN and origin in {Kind.UNKNOWN, Kind.FEATURE}:
                factors.claim((leaf,), Kind.HEAD, Rank.STATED)
        return
    claim_split_heads(factors, dims[:1])


def claim_split_heads(factors: Factors, dims: Dims) -> bool:
    """Note which dimensions were split from features; return whether there are any."""
    found = [
        leaf
        for dim in dims
        for leaf in factors.leaves(dim)
        if factors.sizes[leaf] != 1
        and factors.wholes(leaf)
        and factors.kind(factors.origin(leaf)) is Kind.FEATURE
    ]
    for leaf in found:
        factors.claim((leaf,), Kind.HEAD, Rank.STATED)
    return bool(found)


@rule("scaleddotproductattention")
def attend(call: Call) -> Results:
    """Weigh values by the match of queries and keys."""
    query, key = call.input("query", 0), call.input("key", 1)
    value, mask = call.input("value", 2), call.input("attn_mask", 3)
    if query is None or key is None or value is None:
        return []
    if not len(query) == len(key) == len(value) or len(query) < 3:
        return []
    factors = call.factors
    for place in range(len(query) - 2):
        factors.unify(query[place], key[place])
        factors.unify(key[place], value[place])
    factors.unify(query[-1], key[-1])
    factors.unify(key[-2], value[-2])
    claim_heads(factors, query)
    factors.note_apart(query[:-2])
    for dims in (query, key):
        factors.claim_positions(dims[-2])
        factors.claim(dims[-1], Kind.FEATURE, Rank.EXPECTED)
    factors.claim(value[-1], Kind.FEATURE, Rank.EXPECTED)
    if mask is not None and len(mask) >= 2:
        scores = (*query[:-2], query[-2], key[-2])
        for dim, other in zip(mask[::-1], scores[::-1], strict=False):
            factors.unify(dim, other)
    return [call.fit((*query[:-1], value[-1]))]


@rule("multiheadattention", "multiheadattentionforward")
def attend_by_heads(call: Call) -> Results:
    """Attend with projections of queries, keys and values."""
    shape = call.shape
    if not shape:
        return []
    given, mask = _sort_operands(call, len(shape))
    if not given:
        return []
    query = given[0]
    batch_first = call.param("batch_first") is True and len(query) == 3
    if len(query) == 3:
        samples = query[0 if batch_first else 1]
        call.factors.note_series(samples)
        call.factors.note_apart((samples,))
    for dims in given:
        _claim_tokens(call, dims, batch_first=batch_first)
        _claim_own_heads(call, dims[-1])
    if len(given) == 3:
        token = 1 if batch_first else 0
        call.factors.unify(given[1][token], given[2][token])
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    key = given[1] if len(given) > 1 else query
    token = len(query) - 2 if batch_first else 0
    if mask is not None and len(mask) >= 2:
        call.factors.unify(mask[-2], query[token])
        call.factors.unify(mask[-1], key[token])
        if len(mask) == 3:
            _claim_mask(call, mask, query, batch_first=batch_first)
    return [call.fit((*query[:-1], made)), _weights(call, query, key, batch_first=batch_first)]


def _sort_operands(call: Call, rank: int) -> tuple[list[Dims], Dims | None]:
    """Return queries, keys and values, and the mask of scores.

    The mask may be the first operand, and the file may call the last sequence the mask.
    """
    extent = call.factors.extent
    named = call.input("attn_mask", len(call.inputs))
    others = [dims for dims in call.inputs if dims is not None and dims is not named]
    sequences = [dims for dims in others if len(dims) == rank]
    width = call.integer("embed_dim", 0)
    if named is not None and len(named) == rank and extent(named[-1]) == width:
        sequences, named = [*sequences, named][:3], None if len(sequences) < 3 else named
    token = -2 if rank == 2 or call.param("batch_first") is True else 0
    scores = [extent(dims[token]) for dims in (*sequences[:2], *sequences[-1:])[:2]]
    for dims in others if named is None and rank > 2 else ():
        if [extent(dim) for dim in dims] == scores:
            named = dims
    return sequences[:3], named


def _claim_tokens(call: Call, dims: Dims, *, batch_first: bool) -> None:
    if len(dims) == 2:
        kinds: tuple[Kind, ...] = (Kind.TOKEN, Kind.FEATURE)
    elif batch_first:
        kinds = (Kind.BATCH, Kind.TOKEN, Kind.FEATURE)
    else:
        kinds = (Kind.TOKEN, Kind.BATCH, Kind.FEATURE)
    if len(dims) == len(kinds):
        call.claim(dims, kinds, Rank.EXPECTED)
        call.factors.claim_positions(dims[kinds.index(Kind.TOKEN)])


def _claim_own_heads(call: Call, dim: Dim) -> None:
    """Name heads of features that were turned by head, as rotary positions do."""
    factors = call.factors
    heads, *rest = [leaf for leaf in factors.leaves(dim) if factors.sizes[leaf] != 1] or dim
    if rest and factors.sizes[heads] == call.integer("num_heads", 0):
        factors.claim((heads,), Kind.HEAD, Rank.STATED)


def _claim_mask(call: Call, mask: Dims, query: Dims, *, batch_first: bool) -> None:
    """Split the first dimension of a mask into samples and heads."""
    samples = query[0 if batch_first else 1]
    heads = call.integer("num_heads", 0)
    if heads > 1 and call.factors.size(mask[0]) == heads * (call.factors.size(samples) or 0):
        head = call.factors.make(heads)
        call.factors.claim((head,), Kind.HEAD, Rank.STATED)
        call.factors.unify(mask[0], (*samples, head))


def _weights(call: Call, query: Dims, key: Dims, *, batch_first: bool) -> Dims | None:
    """Return the dimensions of the second output: queries by keys, perhaps by heads."""
    shape = call.shapes[1] if len(call.shapes) > 1 else None
    if shape is None or len(query) != 3 or len(key) != 3:
        return None
    batch, token = (0, 1) if batch_first else (1, 0)
    scores = [query[batch], query[token], key[token]]
    if len(shape) == 4:
        head = (call.factors.make(shape[1]),)
        call.factors.claim(head, Kind.HEAD, Rank.STATED)
        scores.insert(1, head)
    return call.fit(scores, 1)


@rule("transformerencoderlayerfwd")
def encode(call: Call) -> Results:
    """Keep tokens and features; the other inputs are weights."""
    dims = call.first
    if dims is None or len(dims) != 3:
        return []
    call.claim(dims, (Kind.BATCH, Kind.TOKEN, Kind.FEATURE), Rank.EXPECTED)
    for weight in call.inputs[1:]:
        if weight is not None and len(weight) < 3:
            call.claim(weight, (Kind.FEATURE,) * len(weight), Rank.EXPECTED)
    return [call.fit(dims)]
