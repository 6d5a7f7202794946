"""Alternatives that take something from elsewhere in the model: a tensor, or a layer's weights.

Converters lose one operand of a sum, connect a result with the wrong reader, and exchange the
weights of layers that are alike.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.reason import Change, kind_of_weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.runtime import RuntimeOperand

__all__ = [
    "exchanged_factors",
    "lost_gates",
    "other_operands",
    "unequal_copies",
    "weights_of_others",
]

_MOST_OPERANDS: Final = 64
_MOST_READ: Final = 16  # alternatives for which the operator runs
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


def other_operands(case: Case) -> Iterator[Alternative]:
    """Return sums and products with another tensor, and reading it instead of an input."""
    yield from _exchanged(case)
    yield from _combined(case, smaller=False)
    if case.surroundings is not None:
        yield from itertools.islice(_read(case), _MOST_READ)


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
    if case.surroundings is None or case.pair is None or case.tail is not None:
        return
    ours, expected = case.pair
    if ours.dtype.kind != "f":
        return
    places = np.unravel_index(np.arange(0, ours.size, max(ours.size // _PROBED, 1)), ours.shape)
    mine, wanted = (each[places].astype(np.float64) for each in (ours, expected))
    limit = _NEAR * float(np.abs(wanted).max(initial=0.0))
    for operand, value in itertools.islice(
        case.surroundings.operands(ours.shape, smaller=smaller), _MOST_OPERANDS
    ):
        if value.dtype.kind != "f":
            continue
        other = np.broadcast_to(value, ours.shape)[places].astype(np.float64)
        for verb, probe, result in (
            ("adds", mine + other, np.add),
            ("subtracts", mine - other, np.subtract),
            ("multiplies with", mine * other, np.multiply),
        ):
            if float(np.abs(probe - wanted).max(initial=0.0)) <= limit:
                yield Alternative(
                    "expression",
                    f"The reference {verb} the result of {_name_of(operand)} here, too. "
                    "Add what is lost.",
                    (Change("operand", operand.name),), result=result(ours, value),
                    least=_EXACT,
                )  # fmt: skip


def _read(case: Case) -> Iterator[Alternative]:
    assert case.surroundings is not None  # noqa: S101 - the caller has looked
    sources = case.surroundings.operator.inputs
    for place, source in enumerate(sources):
        given = case.inputs[place]
        if not isinstance(given, np.ndarray) or source.producer is None:
            continue
        for operand, value in case.surroundings.operands(given.shape):
            if operand in sources or value.dtype != given.dtype or np.array_equal(value, given):
                continue
            yield Alternative(
                "expression",
                f"The reference reads {_name_of(operand)} here, the file "
                f"{_name_of(source)}. Connect that one.",
                (Change("operand", operand.name),),
                inputs=[*case.inputs[:place], value, *case.inputs[place + 1 :]],
                least=_EXACT,
            )


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
                    kind_of_weight(name), f"{text}of the layer's {name}. Copy them.",
                    (Change(f"{producer.name}.data", own),), inputs=others, least=_EXACT,
                )  # fmt: skip
                yield Alternative(
                    kind_of_weight(name), f"{text}of '{producer.name}'. Copy them.",
                    (Change(name, copy),), weights={name: copy}, inputs=others, least=_EXACT,
                )  # fmt: skip


def weights_of_others(case: Case) -> Iterator[Alternative]:
    """Return the weights of other layers of ours."""
    if case.surroundings is None or not case.weights:
        return
    for twin in itertools.islice(case.surroundings.twins(), _MOST_READ):
        weights = {name: each.array for name, each in twin.attributes.items() if each.is_stored}
        if weights.keys() == case.weights.keys():
            yield Alternative(
                "weight_values",
                f"The reference has the weights of '{twin.name}' here. Exchange them.",
                tuple(Change(name, array) for name, array in weights.items()),
                weights=weights, least=_EXACT,
            )  # fmt: skip
