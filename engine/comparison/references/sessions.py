"""References that are sessions: another run of a model, or of another model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.references.reference import (
    Reference,
    ReferenceOperator,
    ReferenceTensor,
    hash_weight,
)
from engine.errors import EngineError, SessionStateError
from engine.session import Session
from engine.states import SessionState
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.comparison.references.reference import WeightHash
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = [
    "LISTS",
    "hash_weights",
    "reference_of_model",
    "reference_of_session",
    "run_to_end",
]

LISTS: Final = frozenset({"prim::TupleConstruct", "prim::ListConstruct"})
"""Operators whose output is a list of their inputs."""


def run_to_end(session: Session) -> Session:
    """Return a finished session of the same run; the given one is not changed.

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
    try:
        whole.run()
    except EngineError:
        return whole  # compare the operators that ran; the session's state says the rest
    return whole


def reference_of_session(session: Session, title: str = "") -> Reference:
    """Make a reference from a session; a copy runs to the end if the session has not.

    Parameters
    ----------
    session : Session
    title : str, optional
        Default the name of its model.

    Returns
    -------
    Reference
        Aliases the session's values.

    Raises
    ------
    SessionStateError
        If the session has no input.
    """
    run = run_to_end(session)
    graph = run.graph
    tensors = [
        ReferenceTensor(
            operand.name,
            partial(_value_of, run, operand.name),
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
        [key for operand in graph.output_operands for key in _members(operand.name, run)],
    )


def reference_of_model(
    graph: RuntimeGraph, inputs: Sequence[Value], backend: str, title: str = ""
) -> Reference:
    """Make a reference from a model by running it on inputs.

    Raises
    ------
    FeedError
        If the inputs do not fit the model.
    """
    session = Session(graph, backend=backend)
    operands = graph.input_operands
    if len(operands) == len(inputs):
        inputs = [
            _fit(np.asarray(value), operand)
            for value, operand in zip(inputs, operands, strict=True)
        ]
    session.feed([np.asarray(value) for value in inputs])
    return reference_of_session(session, title)


def _fit(value: Array, operand: RuntimeOperand) -> Array:
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


def _value_of(session: Session, operand: str) -> Array:
    return np.asarray(session.value(operand))


def _members(operand: str, session: Session) -> list[str]:
    """Return the tensors of an output: itself, or the members of a list."""
    if _is_tensor(session, operand):
        return [operand]
    producer = session.graph.operand(operand).producer
    if producer is None or producer.type not in LISTS:
        return []
    return [key for each in producer.inputs for key in _members(each.name, session)]


def _operator(operator: RuntimeOperator, known: Collection[str]) -> ReferenceOperator:
    return ReferenceOperator(
        operator.name,
        operator.type,
        tuple([operand.name for operand in operator.inputs if operand.name in known]),
        tuple([operand.name for operand in operator.outputs if operand.name in known]),
        partial(hash_weights, operator),
    )


def hash_weights(operator: RuntimeOperator) -> Mapping[str, WeightHash]:
    """Hash the stored weights of an operator, by name."""
    return {
        key: hash_weight(attribute.array)
        for key, attribute in operator.attributes.items()
        if attribute.is_stored and attribute.dtype.kind in "fiub"
    }
