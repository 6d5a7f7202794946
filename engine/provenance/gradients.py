"""The effective weight within a receptive field, and a check of the field by noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import EngineError, TensorError
from engine.provenance.backward import go_back
from engine.provenance.call import CANNOT, Call
from engine.provenance.explaining import check_index
from engine.provenance.fields import receptive_field
from engine.provenance.records import EffectiveWeight, FieldCheck
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Array

__all__ = ["check_field", "effective_weight"]

_MOST_ELEMENTS: Final = 1 << 25  # of one operand; 8 bytes each
_SEED: Final = 1


def _never() -> None:
    pass


def effective_weight(
    session: Session,
    operand: str,
    index: Sequence[int],
    source: str,
    check_cancelled: Callable[[], None] = _never,
) -> EffectiveWeight:
    """Return the derivative of an element by each element of an input.

    Each operator is taken as linear about the values of this run: ReLU passes on what it let
    through, a maximum what it chose. The derivative is the sum, over all paths from a position
    of the input to the element, of the products of these slopes and weights. Computed in
    float64; about as long as a pass in NumPy.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change.
    operand : str
    index : sequence of int
    source : str
        An input of the model.
    check_cancelled : callable, optional
        Called between operators; what it raises ends the work.

    Returns
    -------
    EffectiveWeight

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor, has no such element, or an operator on the way cannot be
        followed.
    """
    metadata, given = session.metadata(operand), session.metadata(source)
    if not isinstance(metadata, ArrayMetadata) or not isinstance(given, ArrayMetadata):
        raise TensorError(f"operand {operand} or {source} is no tensor")
    place = check_index(metadata.shape, index)
    gradients: dict[str, npt.NDArray[np.float64]] = {operand: np.zeros(metadata.shape)}
    gradients[operand][place] = 1.0
    upstream = _upstream(session, source)
    producer = session.graph.operand(operand).producer
    waiting = {producer.index} if producer is not None and producer.name in upstream else set()
    while waiting:
        position = max(waiting)  # all consumers of its outputs have been passed
        waiting.remove(position)
        operator = session.graph.operators[position]
        check_cancelled()
        reached = [session.graph.operand(n) for n in _go_back(session, operator, gradients)]
        waiting |= {
            each.producer.index
            for each in reached
            if each.producer is not None
            and each.producer.inputs
            and each.producer.name in upstream
        }
    found = gradients.get(source)
    if found is None:
        found = np.zeros(given.shape)
    return EffectiveWeight(operand, place, source, found)


def _upstream(session: Session, source: str) -> set[str]:
    """Return the names of the operators that depend on an input."""
    reached = {source}
    names = set()
    for operator in session.graph.operators:
        if any(each.name in reached for each in operator.inputs):
            names.add(operator.name)
            reached |= {each.name for each in operator.outputs}
    return names


def _go_back(
    session: Session,
    operator: RuntimeOperator,
    gradients: dict[str, npt.NDArray[np.float64]],
) -> set[str]:
    """Replace the gradients by an operator's outputs with those by its inputs.

    Returns
    -------
    set of str
        The operands whose gradient changed.
    """
    reached: set[str] = set()
    for number, output in enumerate(operator.outputs):
        gradient = gradients.pop(output.name, None)
        if gradient is None or output.name in session.overrides or not gradient.any():
            continue
        if any(
            isinstance(each, ArrayMetadata) and np.prod(each.shape) > _MOST_ELEMENTS
            for each in (session.metadata(given.name) for given in operator.inputs)
        ):
            raise TensorError(f"{operator.label} takes too many elements to follow a weight")
        try:
            call = Call.of(session, operator, number)
            found = go_back(call, gradient)
        except CANNOT as exc:
            raise TensorError(f"{operator.label} cannot be followed: {exc}") from exc
        for name, part in found.items():
            before = gradients.get(name)
            gradients[name] = part if before is None else before + part
        reached |= found.keys()
    return reached


def check_field(
    session: Session,
    operand: str,
    index: Sequence[int],
    check_cancelled: Callable[[], None] = _never,
) -> FieldCheck:
    """Compute an element twice, with noise outside its receptive field the second time.

    Both passes are NumPy's.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change: a copy runs.
    operand : str
    index : sequence of int
    check_cancelled : callable, optional
        Called between operators; what it raises ends the work.

    Returns
    -------
    FieldCheck

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor or has no such element, or the noise makes an operator fail.
    """
    field = receptive_field(session, operand, index)
    producer = session.graph.operand(operand).producer
    if producer is None:
        raise TensorError(f"nothing produces operand {operand}")
    noise = np.random.default_rng(_SEED)
    boxes = {source.operand: source.slices for source in field.inputs}
    changed, inputs = 0, {}
    for each in session.graph.input_operands:
        value = np.asarray(session.value(each.name))
        kept = boxes.get(each.name)
        inputs[each.name] = noisy = _with_noise(value, kept, noise)
        changed += int((noisy != value).sum()) if noisy is not value else 0
    values: list[float] = []
    # Only NumPy: a library's algorithm may let neighbours into the rounding of an element.
    for given in ({}, inputs):
        run = session.fork("numpy")
        if given:
            run.feed(given)
            for name, override in session.overrides.items():
                supplied: Any = override.value
                run.override(name, supplied, override.source)
        try:
            while run.position <= producer.index:
                check_cancelled()
                run.step()
        except EngineError as exc:
            raise TensorError(f"the pass with noise stopped: {exc}") from exc
        values.append(float(np.asarray(run.value(operand))[field.index]))
    return FieldCheck(operand, field.index, values[0], values[1], changed)


def _with_noise(
    value: Array, kept: tuple[slice, ...] | None, noise: np.random.Generator
) -> Array:
    """Return an array with noise outside of a region, within the range of its values.

    Whole numbers, which may be indices, are put in another order; other dtypes stay.
    """
    if value.dtype.kind not in "fiu" or not value.size:
        return value
    if value.dtype.kind == "f":
        finite = value[np.isfinite(value)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        made = noise.uniform(float(low), float(high) + 1.0, value.shape).astype(value.dtype)
    else:
        made = noise.permutation(value.reshape(-1)).reshape(value.shape)
    if kept is not None:
        made[kept] = value[kept]
    return made
