"""A reference made of arrays, and a comparison with it."""

from __future__ import annotations

import engine
from engine.comparison import Tolerances
from engine.comparison.aligned import Aligned
from engine.comparison.aligning import align
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.matching import Matcher
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.comparison.references.reference import hash_weight
from engine.comparison.row_making import make_rows

__all__ = ["align_with", "compare", "reference_of"]


def reference_of(arrays, calls):
    """A reference of arrays by key, and of calls: type, inputs, output and named weights."""
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    operators = [
        ReferenceOperator(
            f"{kind}{place}", kind, given, (made,),
            lambda weights=weights: {n: hash_weight(w) for n, w in weights.items()},
        )
        for place, (kind, given, made, weights) in enumerate(calls)
    ]  # fmt: skip
    keys = tuple(arrays)
    return Reference("theirs", tensors, operators, keys[:1], keys[-1:])


def compare(path, reference, *inputs):
    """Compare what NumPy computes for a model with a reference."""
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed(inputs)
    return engine.compare(session, reference)


def align_with(session, reference):
    """Both sides of a comparison, with rows that are not judged yet; the session has run."""
    tolerances, index = Tolerances(), FingerprintIndex(reference)
    matcher = Matcher(session.graph, reference, index, {})
    alignment = align(session, reference, index, matcher, tolerances.float32)
    aligned = Aligned(session, reference, alignment, tolerances, lambda: None, {})
    make_rows(aligned, index.shapes)
    return aligned
