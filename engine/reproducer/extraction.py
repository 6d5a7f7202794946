"""Extracts operators from a graph, with their constants."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.dump.names import UniqueNames, archive_name
from engine.errors import ExportError
from engine.pnnx import DTYPES, Graph, Parameter
from engine.pnnx import Operand as FileOperand
from engine.runtime.operator import BASE
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.pnnx import Operator
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Extract", "extract", "output_names"]

_INPUT: Final = "pnnx.Input"
_OUTPUT: Final = "pnnx.Output"
_NCNN: Final = "ncnn."
_PACK: Final = "prim::TupleConstruct"
_CONSTANT: Final = "prim::Constant"
_DTYPE_NAMES: Final = {
    dtype: name for name, dtype in DTYPES.items() if name not in {"bf16", "c32", "null"}
}


@dataclass(frozen=True, slots=True)
class Extract:
    """Extracted operators as a graph, with their input and output values.

    Attributes
    ----------
    graph : Graph
        Its weights are those of the model.
    inputs, expected : dict of str to ndarray
        By operand of `graph`, in the order of its inputs and outputs. Members of a tuple have
        their index after the operand's name.
    operators : tuple of RuntimeOperator
        The extracted operators, without their constants.
    """

    graph: Graph
    inputs: dict[str, Array]
    expected: dict[str, Array]
    operators: tuple[RuntimeOperator, ...]


def extract(
    session: Session,
    selected: Iterable[RuntimeOperator],
    expected: Mapping[str, Value] | None = None,
) -> Extract:
    """Extract operators from the graph of a session.

    Parameters
    ----------
    session : Session
        It has computed at least the operators' inputs.
    selected : iterable of RuntimeOperator
        Input and output operators of the model are ignored.
    expected : mapping of str to Value, optional
        By operand of the session's graph; other outputs default to the session's values.

    Raises
    ------
    ExportError
        If there is nothing to extract, or a value is missing or cannot be written.
    """
    return _begin(session, selected).result(expected or {})


def output_names(session: Session, selected: Iterable[RuntimeOperator]) -> tuple[str, ...]:
    """Return the operands that extracted operators give to others or to nobody, in order.

    Raises
    ------
    ExportError
        If there is nothing to extract.
    """
    return _begin(session, selected).output_names()


def _begin(session: Session, selected: Iterable[RuntimeOperator]) -> _Extraction:
    if any(op.type.startswith(_NCNN) for op in session.graph.operators):
        raise ExportError("a model in ncnn's format cannot be written as PNNX")
    chosen = [op for op in selected if not (op.is_input or op.is_output)]
    if not chosen:
        raise ExportError("none of the chosen operators computes anything; choose others")
    members = _with_unpacking(chosen)
    _check_repeatable(session, members)
    return _Extraction(session, members)


def _with_unpacking(chosen: Sequence[RuntimeOperator]) -> tuple[RuntimeOperator, ...]:
    """Add the operators that unpack a result, because they define how many members it has."""
    members = {op.index: op for op in chosen}
    for operator in chosen:
        if operator.result_count > len(operator.outputs):
            members.update((op.index, op) for op in operator.outputs[0].consumers)
    return tuple(members[index] for index in sorted(members) if not members[index].is_output)


def _check_repeatable(session: Session, members: Sequence[RuntimeOperator]) -> None:
    """Refuse operators whose results depend on more than their inputs."""
    names = {operator.name for operator in members}
    for operator in members:
        record = session.record(operator.name)
        if record.random if record is not None else operator.random:
            raise ExportError(
                f"operator {operator.name!r} draws random numbers, which a reproducer cannot "
                "repeat; choose operators downstream of it"
            )
        for operand in operator.outputs:
            taken = any(consumer.name in names for consumer in operand.consumers)
            if taken and operand.name in session.overrides:
                raise ExportError(
                    f"operand {operand.name} is overridden, so it is not the result of "
                    f"operator {operator.name!r}; clear the override, or choose operators "
                    "downstream of it"
                )


def _views_down_to(base: RuntimeOperand, view: RuntimeOperand) -> Iterator[RuntimeOperator]:
    """Yield the operators between a tensor and a view of it."""
    while view is not base and view.producer is not None and view.producer.inputs:
        yield view.producer
        view = view.producer.inputs[0]


def _is_fixed(session: Session, operator: RuntimeOperator) -> bool:
    """Whether an operator needs no input and gives the session's value every time."""
    overridden = any(operand.name in session.overrides for operand in operator.outputs)
    return operator.is_constant and not operator.random and not overridden


class _Extraction:
    """Makes the graph of an extract.

    Parameters
    ----------
    session : Session
    members : sequence of RuntimeOperator
        In execution order.
    """

    def __init__(self, session: Session, members: Sequence[RuntimeOperator]) -> None:
        self._session, self._members = session, tuple(members)
        self._graph = Graph()
        self._names = UniqueNames(archive_name, fold=str)
        self._operator_names = UniqueNames(archive_name, fold=str)
        self._made: dict[str, FileOperand] = {}
        self._taken = self._taken_operators()
        order = {operator.name: operator.index for operator in self._taken}
        self._file = [op for op in session.graph.file.operators if op.name in order]
        self._file.sort(key=lambda operator: order[operator.name])

    def _taken_operators(self) -> tuple[RuntimeOperator, ...]:
        """Return the members, the views whose memory they read, and their constants."""
        taken = {operator.index: operator for operator in self._members}
        for operator in self._members:
            if operator.storage is not None and operator.input_names[-1:] == (BASE,):
                views = _views_down_to(operator.inputs[-1], operator.inputs[0])
                taken.update((view.index, view) for view in views)
        for operator in tuple(taken.values()):
            for operand in (*operator.inputs, *operator.tied_inputs):
                producer = operand.producer
                if producer is not None and _is_fixed(self._session, producer):
                    taken[producer.index] = producer
        return tuple(taken[index] for index in sorted(taken))

    def result(self, expected: Mapping[str, Value]) -> Extract:
        """Make the graph, and collect its input and output values."""
        outputs = self.output_names()
        unknown = sorted(expected.keys() - set(outputs))
        if unknown:
            raise ExportError(
                f"operand {unknown[0]} is not an output of these operators, so it has no "
                f"expected value; their outputs are {', '.join(outputs)}"
            )
        given = {name: self._value_of_input(name) for name in self._input_names()}
        wanted = {name: self._expected(name, expected) for name in outputs}
        inputs = self._add_inputs(given)
        for operator in self._file:
            self._add_operator(operator, wanted)
        return Extract(self._graph, inputs, self._add_outputs(wanted), self._members)

    # Inputs and outputs

    def _input_names(self) -> tuple[str, ...]:
        """Return the operands produced by none of the operators, in order of use."""
        produced = {operand.name for op in self._taken for operand in op.outputs}
        used = (operand.name for operator in self._file for operand in operator.inputs)
        return tuple(dict.fromkeys(name for name in used if name not in produced))

    def output_names(self) -> tuple[str, ...]:
        """Return the members' outputs that other operators read, or nobody, in order."""
        inside = {operator.name for operator in self._taken}
        names = tuple(
            operand.name
            for operator in self._members
            for operand in operator.outputs
            if not operand.consumers or any(c.name not in inside for c in operand.consumers)
        )
        if not names:
            raise ExportError("these operators have no outputs; choose others")
        return names

    def _value_of_input(self, name: str) -> Value:
        if not self._session.has_value(name):
            taking = next(op for op in self._file for o in op.inputs if o.name == name)
            raise ExportError(
                f"operand {name}, which operator {taking.name!r} reads, has no value yet; run "
                "the session as far as that operator"
            )
        return self._session.value(name)

    def _expected(self, name: str, expected: Mapping[str, Value]) -> Value:
        if name in expected:
            value = expected[name]
            return value if isinstance(value, tuple) else np.asarray(value)
        if self._session.has_value(name):
            return self._session.value(name)
        raise ExportError(
            f"operand {name} has no value; give its expected value, or run the session as far "
            "as its producer"
        )

    # The graph

    def _add_inputs(self, given: Mapping[str, Value]) -> dict[str, Array]:
        """Add inputs for arrays, constants for numbers and texts, and pack tuples."""
        arrays: dict[str, Array] = {}
        for name, value in given.items():
            self._made[name] = self._add_value(self._names.claim(name), value, arrays)
        return arrays

    def _add_value(self, name: str, value: Value, arrays: dict[str, Array]) -> FileOperand:
        if isinstance(value, np.ndarray):
            order = "in" if self._taken[0].from_onnx else "pnnx_input_"
            source = self._new_operator(_INPUT, f"{order}{len(arrays)}")
            arrays[name] = value
        elif isinstance(value, tuple):
            members = [
                self._add_value(self._names.claim(f"{name}_{index}"), member, arrays)
                for index, member in enumerate(value)
            ]
            source = self._new_operator(_PACK, f"pack_{name}")
            for member in members:
                source.add_input(member)
        else:
            source = self._new_operator(_CONSTANT, f"constant_{name}")
            source.params["value"] = _constant(name, value)
        operand = self._graph.new_operand(name)
        _annotate(operand, value)
        source.add_output(operand)
        return operand

    def _new_operator(self, kind: str, name: str) -> Operator:
        return self._graph.new_operator(kind, self._operator_names.claim(name))

    def _add_operator(self, operator: Operator, wanted: Mapping[str, Value]) -> None:
        """Add a copy of an operator, which shares its parameters and weights."""
        copy = self._new_operator(operator.type, operator.name)
        copy.params.update(operator.params)
        copy.attrs.update(operator.attrs)
        for operand, name in zip(operator.inputs, operator.input_names, strict=True):
            copy.add_input(self._made[operand.name], name)
        for operand in operator.outputs:
            made = self._graph.new_operand(self._names.claim(operand.name))
            if self._session.has_value(operand.name):
                _annotate(made, self._session.value(operand.name))
            elif operand.name in wanted:
                _annotate(made, wanted[operand.name])
            else:
                made.shape, made.dtype = operand.shape, operand.dtype
            copy.add_output(made)
            self._made[operand.name] = made

    def _add_outputs(self, wanted: Mapping[str, Value]) -> dict[str, Array]:
        """Add outputs for all numeric values; return them, with tuples flattened."""
        arrays: dict[str, Array] = {}
        count = 0
        for name, value in wanted.items():
            members = [np.asarray(member) for member in flatten_value((value,))]
            if not all(map(is_numeric, members)):
                continue
            made = self._made[name]
            several = isinstance(value, tuple)
            for index, member in enumerate(members):
                key = self._names.claim(f"{made.name}_{index}") if several else made.name
                arrays[key] = member
            order = "out" if self._taken[0].from_onnx else "pnnx_output_"
            self._new_operator(_OUTPUT, f"{order}{count}").add_input(made)
            count += 1
        if not arrays:
            raise ExportError(
                "these operators have no numeric outputs to compare; choose others"
            )
        return arrays


def _annotate(operand: FileOperand, value: Value) -> None:
    """Set shape and dtype of an array; numbers and lists have none in a file."""
    if not isinstance(value, np.ndarray):
        return
    dtype = _DTYPE_NAMES.get(value.dtype.newbyteorder("<"))
    if dtype is None:
        raise ExportError(
            f"operand {operand.name} is of {value.dtype}, which PNNX cannot write; choose "
            "operators that neither read nor produce it"
        )
    if value.ndim:
        operand.shape, operand.dtype = value.shape, dtype


def _constant(name: str, value: Value) -> Parameter:
    """Return a number or text as a parameter, with all digits."""
    text = repr(value) if not isinstance(value, str) else value
    with suppress(ValueError):
        parameter = Parameter.parse(text)
        if type(parameter.value) is type(value) and repr(parameter.value) == repr(value):
            return parameter
    raise ExportError(f"operand {name} is {value!r}, which cannot be written as a constant")
