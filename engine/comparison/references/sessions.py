"""References that are sessions: another run of a model, or of another model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
    hash_weight,
)
from engine.comparison.references.varied_inputs import vary
from engine.comparison.requantised import dequantise, find_requantised
from engine.errors import EngineError, SessionStateError
from engine.runtime.members import LISTS
from engine.states import OperatorStatus, SessionState
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from engine.comparison.references.reference import WeightHash
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session, StepRecord
    from engine.values import Array, Value

__all__ = [
    "fit_batch",
    "hash_weights",
    "names_of_members",
    "reference_of_model",
    "reference_of_session",
    "run_to_end",
]


def run_to_end(session: Session, progress: Callable[[int, int], None] | None = None) -> Session:
    """Return a finished session of the same run; the given one is not changed.

    Parameters
    ----------
    session : Session
    progress : callable, optional
        Called with the number of operators done and the total; an exception ends the run.

    Raises
    ------
    SessionStateError
        If it has no input.
    """
    if session.state is SessionState.NEED_INPUT:
        raise SessionStateError("the session has no input yet: feed() it first")
    if session.state in {SessionState.FINISHED, SessionState.FAILED}:
        return session
    kernels = {record.operator.name: record.kernel for record in session.records}
    whole = session.fork(session.backend if session.backend != "recorded" else kernels)
    total = len(whole.graph.operators)

    def tell(record: StepRecord) -> None:
        if progress is not None:
            progress(record.index + 1, total)

    try:
        whole.run(on_step=tell)
    except EngineError:
        return whole  # compare the operators that ran; the session's state says the rest
    return whole


def reference_of_session(
    session: Session, title: str = "", progress: Callable[[int, int], None] | None = None
) -> Reference:
    """Make a reference from a session; a copy runs to the end if the session has not.

    Parameters
    ----------
    session : Session
    title : str, optional
        Default the name of its model.
    progress : callable, optional
        See `run_to_end`.

    Returns
    -------
    Reference
        Aliases the session's values.

    Raises
    ------
    SessionStateError
        If the session has no input.
    """
    run = run_to_end(session, progress)
    graph = run.graph
    requantised = find_requantised(graph)
    tensors = [
        ReferenceTensor(
            operand.name,
            partial(_value_of, run, operand.name, requantised.get(operand.name)),
            (operator.name,) if len(operator.outputs) == 1 else (),
            operator.name,
            operator.type,
            "input" if operator.is_input else "constant" if operator.is_constant else "",
        )
        for operator in graph.operators
        for operand in operator.outputs
        if _is_tensor(run, operand.name)
    ]
    known = {tensor.key for tensor in tensors}
    return Reference(
        title or graph.source_path.name,
        tensors,
        [_operator(operator, known) for operator in graph.operators],
        [operand.name for operand in graph.input_operands],
        [
            name
            for operand in graph.output_operands
            for name in names_of_members(operand)
            if name in known
        ],
        again=partial(_run_again, run, title),
        failure=_failure_of(run),
    )


def _failure_of(run: Session) -> str:
    """Say why the first operator that a run could not compute failed; ``""`` if none did."""
    failed = {OperatorStatus.FAILED, OperatorStatus.UNSUPPORTED}
    reasons = [record.reason for record in run.records if record.status in failed]
    return reasons[0].partition("; ")[0] if reasons else ""


def _run_again(
    run: Session, title: str, progress: Callable[[int, int], None] | None
) -> Reference:
    """Make a reference from a finished run's model and kernels on other inputs.

    The memory bound is that of both runs together.
    """
    other = run.fork({record.operator.name: record.kernel for record in run.records})
    other.memory_bound = max(0, run.memory_bound - run.held_bytes)
    other.feed({o.name: vary(run.value(o.name)) for o in run.graph.input_operands})
    total = len(run.graph.operators)

    def tell(record: StepRecord) -> None:
        if progress is not None:
            progress(record.index + 1, total)

    other.run(on_step=tell)
    return reference_of_session(other, title)


def reference_of_model(
    session: Session,
    inputs: Sequence[Value],
    title: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Reference:
    """Make a reference from a new session of a model by running it on inputs.

    Parameters
    ----------
    session : Session
    inputs : sequence of Value
    title : str, optional
        Default the name of its model.
    progress : callable, optional
        See `run_to_end`.

    Raises
    ------
    FeedError
        If the inputs do not fit the model.
    """
    operands = session.graph.input_operands
    if len(operands) == len(inputs):
        inputs = [
            fit_batch(np.asarray(value), operand)
            for value, operand in zip(inputs, operands, strict=True)
        ]
    session.feed([np.asarray(value) for value in inputs])
    return reference_of_session(session, title, progress)


def fit_batch(value: Array, operand: RuntimeOperand) -> Array:
    """Add or drop the batch axis, which models in ncnn's format lack."""
    rank = value.ndim if operand.shape is None else len(operand.shape)
    if value.ndim == rank + 1 and value.shape[0] == 1:
        return value.reshape(value.shape[1:])
    return value[np.newaxis] if value.ndim + 1 == rank else value


def _is_tensor(session: Session, operand: str) -> bool:
    if not session.has_value(operand):
        return False
    metadata = session.metadata(operand)
    return isinstance(metadata, ArrayMetadata) and is_numeric(metadata)


def _value_of(session: Session, operand: str, scale: float | None) -> Array:
    return np.asarray(dequantise(session.value(operand), scale))


def names_of_members(operand: RuntimeOperand) -> list[str]:
    """Return the operands of an output: itself, or the members of a list, of each list once."""
    found: list[str] = []
    seen: set[str] = set()
    left = [operand]
    while left:
        each = left.pop()
        producer = each.producer
        if producer is None or producer.type not in LISTS:
            found.append(each.name)
        elif each.name not in seen:
            seen.add(each.name)
            left += reversed(producer.inputs)
    return found


def _operator(operator: RuntimeOperator, known: Collection[str]) -> ReferenceOperator:
    return ReferenceOperator(
        operator.name,
        operator.type,
        tuple([operand.name for operand in operator.inputs if operand.name in known]),
        tuple([operand.name for operand in operator.outputs if operand.name in known]),
        partial(hash_weights, operator),
        partial(_weights_of, operator),
    )


def _weights_of(operator: RuntimeOperator) -> Mapping[str, Array]:
    return {key: each.array for key, each in operator.attributes.items() if each.is_stored}


def hash_weights(operator: RuntimeOperator) -> Mapping[str, WeightHash]:
    """Hash the stored weights of an operator, by name."""
    return {
        key: hash_weight(attribute.array)
        for key, attribute in operator.attributes.items()
        if attribute.is_stored and attribute.dtype.kind in "fiub"
    }
