"""Alternatives that take something from elsewhere in the model: a tensor, or a layer's weights.

Converters lose one operand of a sum, connect a result with the wrong reader, and exchange the
weights of layers that are alike.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.reason import Change
from engine.comparison.reasons.weight_values import kind_of_difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.runtime import RuntimeOperand
    from engine.values import Array

__all__ = [
    "exchanged_factors",
    "exchanged_results",
    "lost_gates",
    "other_operands",
    "unequal_copies",
    "weights_of_others",
]

_MOST_OPERANDS: Final = 64
_MOST_READ: Final = 32  # alternatives for which the operator runs
_FEW_INPUTS: Final = 8
_PROBED: Final = 256  # elements that tell most operands apart
_NEAR: Final = 1e-3  # relative to the largest element
_EXACT: Final = 1 - 1e-6
_PRODUCTS: Final = frozenset({"torch.matmul", "torch.bmm", "torch.mm"})


def lost_gates(case: Case) -> Iterator[Alternative]:
    """Return sums and products with a smaller tensor, such as a number for each channel.

    Before those numbers are fitted, which would explain as much.
    """
    yield from _combined(case, smaller=True)


def exchanged_factors(case: Case) -> Iterator[Alternative]:
    """Return a product of matrices with its factors exchanged, as queries and keys may be.

    Before other layouts of its result, which is only transposed by that.
    """
    ours = case.ours
    if case.type in _PRODUCTS and isinstance(ours, np.ndarray) and ours.ndim > 1:
        yield Alternative(
            "expression",
            "The reference has the factors exchanged, each transposed, as if queries were "
            "taken for keys. Exchange what they are made from.",
            (Change("inputs", (1, 0)),), result=ours.swapaxes(-1, -2), least=_EXACT,
        )  # fmt: skip


def exchanged_results(case: Case) -> Iterator[Alternative]:
    """Return the results of an operator in another order, as the parts of a chunk may be."""
    ours = case.ours
    if not isinstance(ours, tuple) or not 2 <= len(ours) <= _FEW_INPUTS:
        return
    for one, other in itertools.combinations(range(len(ours)), 2):
        parts = [each for each in (ours[one], ours[other]) if isinstance(each, np.ndarray)]
        if len(parts) < 2 or parts[0].shape != parts[1].shape:
            continue
        results = list(ours)
        results[one], results[other] = results[other], results[one]
        yield Alternative(
            "channel_order",
            f"The reference has outputs {one} and {other} exchanged. Exchange what reads them.",
            (Change("outputs", (other, one)),), result=tuple(results), least=_EXACT,
        )  # fmt: skip


def other_operands(case: Case) -> Iterator[Alternative]:
    """Return sums and products with another tensor, and reading it instead of an input."""
    yield from _exchanged(case)
    yield from _combined(case, smaller=False)
    for source in _sources(case):
        yield from itertools.islice(_read(case, *source), _MOST_READ)
    yield from itertools.islice(_read_sum(case), _MOST_READ)


def _exchanged(case: Case) -> Iterator[Alternative]:
    """Return two inputs exchanged."""
    if not 2 <= len(case.inputs) <= _FEW_INPUTS:
        return
    for one, other in itertools.combinations(range(len(case.inputs)), 2):
        inputs = list(case.inputs)
        inputs[one], inputs[other] = inputs[other], inputs[one]
        yield Alternative(
            "expression",
            f"The reference has inputs {one} and {other} exchanged. Exchange them.",
            (Change("inputs", (other, one)),), inputs=inputs, least=_EXACT,
        )  # fmt: skip


def _combined(case: Case, *, smaller: bool) -> Iterator[Alternative]:
    if case.tail is not None:
        yield from itertools.islice(_added_before(case, smaller=smaller), _MOST_READ)
    elif case.pair is not None and case.pair[0].dtype.kind == "f":
        yield from _combined_with(case, *case.pair, smaller=smaller)
        yield from _lost(case, *case.pair, smaller=smaller)


def _combined_with(
    case: Case, ours: Array, expected: Array, *, smaller: bool
) -> Iterator[Alternative]:
    """Return what some elements tell to be our result combined with another tensor."""
    probe = _Probe(ours, expected)
    operands = _operands(case, ours, smaller=smaller)
    for operand, value in itertools.islice(operands, _MOST_OPERANDS):
        for verb, result in probe.combine(value):
            yield _combination(verb, operand, result)


def _lost(case: Case, ours: Array, expected: Array, *, smaller: bool) -> Iterator[Alternative]:
    """Return our result combined with a tensor that only the reference reads here."""
    if case.surroundings is None or len(case.surroundings.operator.outputs) != 1:
        return
    probe = _Probe(ours, expected)
    for key, value in case.surroundings.lost_tensors().items():
        fits = _is_broadcast(value.shape, ours.shape)
        if value.dtype.kind == "f" and fits and smaller == (value.shape != ours.shape):
            for verb, result in probe.combine(value):
                yield Alternative(
                    "expression",
                    f"The reference {verb} its tensor {key!r} here, too. Add what is lost.",
                    (Change("tensor", value),), result=result, least=_EXACT,
                )  # fmt: skip


def _is_broadcast(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


class _Probe:
    """Some elements of our result and of the expected one, which tell what combines them."""

    def __init__(self, ours: Array, expected: Array) -> None:
        every = max(ours.size // _PROBED, 1)
        self._ours = ours
        self._places = np.unravel_index(np.arange(0, ours.size, every), ours.shape)
        self._mine = ours[self._places].astype(np.float64)
        self._wanted = expected[self._places].astype(np.float64)
        self._limit = _NEAR * float(np.abs(self._wanted).max(initial=0.0))

    def combine(self, value: Array) -> Iterator[tuple[str, Array]]:
        """Return verbs and results that these elements tell to be the expected ones."""
        other = np.broadcast_to(value, self._ours.shape)[self._places].astype(np.float64)
        for verb, probe, result in (
            ("adds", self._mine + other, np.add),
            ("subtracts", self._mine - other, np.subtract),
            ("multiplies with", self._mine * other, np.multiply),
        ):
            if float(np.abs(probe - self._wanted).max(initial=0.0)) <= self._limit:
                yield verb, result(self._ours, value)


def _added_before(case: Case, *, smaller: bool) -> Iterator[Alternative]:
    """Return sums with another tensor before the functions that follow ours."""
    ours = case.ours
    if isinstance(ours, np.ndarray) and ours.dtype.kind == "f":
        for operand, value in _operands(case, ours, smaller=smaller):
            yield _combination("adds", operand, ours + value)


def _combination(verb: str, operand: RuntimeOperand, result: Array) -> Alternative:
    return Alternative(
        "expression",
        f"The reference {verb} the result of {_name_of(operand)} here, too. Add what is lost.",
        (Change("operand", operand.name),), result=result, least=_EXACT,
    )  # fmt: skip


def _read(
    case: Case, place: int, source: RuntimeOperand, given: Array
) -> Iterator[Alternative]:
    """Return other tensors in place of an input."""
    sources = case.surroundings.operator.inputs if case.surroundings is not None else ()
    for operand, value in _operands(case, given):
        if operand not in sources and not np.array_equal(value, given):
            yield Alternative(
                "expression",
                f"The reference reads {_name_of(operand)} here, the file "
                f"{_name_of(source)}. Connect that one.",
                (Change("operand", operand.name),),
                inputs=[*case.inputs[:place], value, *case.inputs[place + 1 :]],
                least=_EXACT,
            )


def _read_sum(case: Case) -> Iterator[Alternative]:
    """Return another tensor added to an input, as where a sum before ours is lost."""
    for place, source, given in _sources(case):
        for operand, value in _operands(case, given) if given.dtype.kind == "f" else ():
            yield Alternative(
                "expression",
                f"The reference reads the sum of {_name_of(operand)} and {_name_of(source)} "
                "here. Add what is lost.",
                (Change("operand", operand.name),),
                inputs=[*case.inputs[:place], given + value, *case.inputs[place + 1 :]],
                least=_EXACT,
            )


def _sources(case: Case) -> Iterator[tuple[int, RuntimeOperand, Array]]:
    """Return the inputs that other operators give: place, operand and value."""
    sources = case.surroundings.operator.inputs if case.surroundings is not None else ()
    for place, source in enumerate(sources):
        given = case.inputs[place]
        if isinstance(given, np.ndarray) and source.producer is not None:
            yield place, source, given


def _operands(
    case: Case, like: Array, *, smaller: bool = False
) -> Iterator[tuple[RuntimeOperand, Array]]:
    """Return other tensors of the same shape, or of one that is broadcast to it, and dtype.

    A reference may compute a grid in integers that is a constant of floats in ours.
    """
    if case.surroundings is None:
        return
    for operand, value in case.surroundings.operands(like.shape, smaller=smaller):
        if like.dtype in {value.dtype, operand.dtype}:
            yield operand, value.astype(like.dtype, copy=False)


def _name_of(operand: RuntimeOperand) -> str:
    producer = operand.producer
    if producer is None:
        return f"operand '{operand.name}'"
    if len(producer.outputs) == 1:
        return f"'{producer.name}'"
    return f"output {producer.outputs.index(operand)} of '{producer.name}'"


def unequal_copies(case: Case) -> Iterator[Alternative]:
    """Return either copy of a weight that the file passes to its own layer, too.

    pnnx writes a weight that two modules share (tie) so. If the copies differ, the layer has
    one operand too many.
    """
    if case.ours is not None or case.surroundings is None or not case.type.startswith("nn."):
        return
    for place, operand in enumerate(case.surroundings.operator.inputs):
        copy, producer = case.inputs[place], operand.producer
        if producer is None or not producer.is_constant or not isinstance(copy, np.ndarray):
            continue
        others = [*case.inputs[:place], *case.inputs[place + 1 :]]
        for name, own in case.weights.items():
            if own.shape == copy.shape and own.dtype == copy.dtype:
                text = (
                    f"The file passes '{producer.name}' to the layer, as a copy of its {name} "
                    f"that two layers share, but the two differ. The reference has the numbers "
                )
                yield Alternative(
                    kind_of_difference(case, name, copy, own),
                    f"{text}of the layer's {name}. Copy them.",
                    (Change(f"{producer.name}.data", own),), inputs=others, least=_EXACT,
                )  # fmt: skip
                yield Alternative(
                    kind_of_difference(case, name, own, copy),
                    f"{text}of '{producer.name}'. Copy them.",
                    (Change(name, copy),), weights={name: copy}, inputs=others, least=_EXACT,
                )  # fmt: skip


def weights_of_others(case: Case) -> Iterator[Alternative]:
    """Return the weights of other layers of ours."""
    if case.surroundings is None or not case.weights:
        return
    for twin in itertools.islice(case.surroundings.twins(), _MOST_READ):
        weights = {name: each.array for name, each in twin.attributes.items() if each.is_stored}
        if weights.keys() != case.weights.keys():
            continue
        kind, words = "weight_values", "weights"
        other = [n for n, each in weights.items() if not np.array_equal(each, case.weights[n])]
        if len(other) == 1:  # as in a copy that was made for a second call
            (words,) = other
            kind = kind_of_difference(case, words, case.weights[words], weights[words])
        yield Alternative(
            kind, f"The reference has the {words} of '{twin.name}' here. Exchange them.",
            tuple(Change(name, array) for name, array in weights.items()),
            weights=weights, least=_EXACT,
        )  # fmt: skip
