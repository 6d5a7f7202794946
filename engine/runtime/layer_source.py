"""Where the operators of a graph get their layers: each is built when first asked for."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import EngineError, LayerError, ModelFileError, UnsupportedOperatorError
from engine.layers import OperatorCall, build_layer, layer_files_of, layer_table
from engine.runtime.operator import Bound

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from engine.layers import Layer, LayerFile, Registration
    from engine.layers.notes import OperatorNote
    from engine.pnnx import Graph
    from engine.runtime.operator import RuntimeOperator
    from engine.runtime.parameter import RuntimeAttribute
    from engine.values import Array

__all__ = ["LayerSource"]


class LayerSource:
    """Builds the layers of a graph's operators from what is registered now.

    Whatever is registered or unloaded later is nothing to the graph. Operators without
    weights that differ in nothing but their operands share a layer, which only computes. Those
    with weights are checked without reading these: their layer is built twice, first with
    zeros that take no memory, and with the weights when it is to compute.

    Parameters
    ----------
    file : Graph
    missing_weights : EngineError or None
        What is wrong with operators that have weights, when the model was opened without.
    """

    def __init__(self, file: Graph, missing_weights: EngineError | None) -> None:
        self._file = file
        self._missing_weights = missing_weights
        self._registered = layer_table()
        self._shared: dict[Hashable, Bound] = {}
        self._suggestions: dict[str, str] = {}
        self._lock = RLock()  # a session's thread and a window's may both ask

    @cached_property
    def from_onnx(self) -> bool:
        """Whether pnnx made the file from an ONNX model.

        It then names inputs and outputs ``in0``, ``in1``, ... and ``out0``, ...; those of a
        TorchScript are ``pnnx_input_0`` and ``pnnx_output_0``.
        """
        ends = {"pnnx.Input": "in", "pnnx.Output": "out"}
        names = [(ends[o.type], o.name) for o in self._file.operators if o.type in ends]
        return bool(names) and all(
            name.removeprefix(end).isdecimal() and name.startswith(end) for end, name in names
        )

    @cached_property
    def _table(self) -> Mapping[str, Registration]:
        if not self.from_onnx:
            return self._registered
        # All of ONNX's layers come with it, which most models do not need.
        from engine.layers.onnx.meanings import onnx_table

        return onnx_table(self._registered)

    @property
    def files(self) -> tuple[LayerFile, ...]:
        """The user's files of layers that were loaded, with the types that are theirs."""
        return layer_files_of(self._registered)

    def bind(self, operator: RuntimeOperator) -> Bound:
        """Check an operator; what is wrong is returned, never raised.

        The layers of a user's file may look at weights as they like, so these are read.
        """
        if operator.is_input or operator.is_output:
            return Bound()
        if self._missing_weights is not None and operator.has_attributes:
            return Bound(error=self._missing_weights)
        with self._lock:
            if operator.type not in self._table:
                return Bound(error=self._unknown(operator))
            key = self._key(operator)
            found = self._shared.get(key) if key is not None else None
            if found is None:
                found = self._check(operator)
                if key is not None and found.layer is not None:
                    self._shared[key] = found
            return found

    def with_weights(self, operator: RuntimeOperator) -> Layer:
        """Build the layer of an operator that was checked, with its weights.

        Raises
        ------
        LayerError
            If a weight cannot be read.
        EngineError
            If the layer does not like what it is.
        """
        weights = {key: _read(key, a) for key, a in operator.attributes.items()}
        with self._lock:
            return self._build(operator, weights)

    def is_random(self, operator: RuntimeOperator) -> bool:
        """Whether an operator draws random numbers, or may."""
        layer = operator.checked_layer
        return layer is not None and bool(layer.generator)

    def note(self, type: str) -> OperatorNote:  # noqa: A002 - pnnx's own word
        """What there is to know of a type of operators."""
        from engine.layers.notes import note

        return note(type)

    def _check(self, operator: RuntimeOperator) -> Bound:
        file = self._table[operator.type].file
        attributes = operator.attributes.items()
        try:
            if file is None:
                weights = {key: _stand_in(a) for key, a in attributes}
            else:
                weights = {key: a.array for key, a in attributes}
            return Bound(self._build(operator, weights), None, file)
        except EngineError as exc:
            return Bound(None, exc, file)

    def _build(self, operator: RuntimeOperator, weights: Mapping[str, Array]) -> Layer:
        call = OperatorCall(
            name=operator.name,
            type=operator.type,
            params=operator.params,
            attributes=weights,
            input_names=operator.input_names,
            output_count=operator.result_count,
            constants=operator.constants(),
            output_shapes=operator.output_shapes,
            storage=operator.storage,
        )
        return build_layer(call, self._table)

    def _key(self, operator: RuntimeOperator) -> Hashable | None:
        """All that a layer is made of; None for one that must be the operator's own.

        A layer of the user's may keep something from one call to the next.
        """
        if operator.has_attributes or operator.constants():
            return None
        if self._table[operator.type].file is not None:
            return None
        return (
            operator.type,
            operator.parameter_texts,
            operator.input_names,
            operator.result_count,
            operator.output_shapes,
            operator.storage,
        )

    def _unknown(self, operator: RuntimeOperator) -> UnsupportedOperatorError:
        # To look for a similar name among a thousand takes long, and there may be many such.
        known = self._suggestions.get(operator.type)
        candidates = self._table if known is None else [known]
        error = UnsupportedOperatorError(operator.name, operator.type, candidates)
        self._suggestions[operator.type] = error.suggestion
        return error


def _stand_in(attribute: RuntimeAttribute) -> Array:
    """Zeros of a weight's shape and dtype, all of them in one place."""
    if not attribute.is_stored:
        return attribute.array  # which says why there is none
    return np.broadcast_to(np.zeros((), attribute.dtype), attribute.shape)


def _read(key: str, attribute: RuntimeAttribute) -> Array:
    try:
        return attribute.array
    except ModelFileError as exc:
        raise LayerError(f"its weight @{key} cannot be read: {exc}") from exc
