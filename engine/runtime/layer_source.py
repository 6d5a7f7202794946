"""Builds the layers of a graph's operators on first use."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import (
    EngineError,
    LayerError,
    ModelFileError,
    ParameterError,
    UnsupportedOperatorError,
)
from engine.layers import OperatorCall, build_layer, layer_files_of, layer_table
from engine.layers.layer import LibraryLayer, NotInNumpyError
from engine.runtime.operator import Bound

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    from engine.layers import Layer, LayerFile, Registration
    from engine.layers.notes import OperatorNote
    from engine.pnnx import Graph
    from engine.runtime.operator import RuntimeOperator
    from engine.runtime.parameter import RuntimeAttribute
    from engine.values import Array

__all__ = ["LayerSource"]


class LayerSource:
    """Builds the layers of a graph's operators from the current registrations.

    Later registrations do not affect the graph. Operators without weights that differ only in
    their operands share a layer. Operators with weights are checked without reading them: their
    layer is built twice, first with zeros that take no memory, and with the weights on first
    use.

    Parameters
    ----------
    file : Graph
    param_path : Path
        Where it was read.
    missing_weights : EngineError or None
        Error of operators with weights, if the model was opened without its ``.bin``.

    Attributes
    ----------
    param_path : Path
    """

    def __init__(
        self, file: Graph, param_path: Path, missing_weights: EngineError | None
    ) -> None:
        self._file, self.param_path = file, param_path
        self._missing_weights = missing_weights
        self._registered = layer_table()
        self._shared: dict[Hashable, Bound] = {}
        self._suggestions: dict[str, str] = {}
        self._lock = RLock()  # several threads may use it

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
        if self._file.format == "ncnn":
            # Imported here: most models are of PNNX.
            from engine.layers.ncnn.meanings import ncnn_table

            return ncnn_table(self._registered)
        if not self.from_onnx:
            return self._registered
        # Imported here: it imports all of ONNX's layers, which most models do not need.
        from engine.layers.onnx.meanings import onnx_table

        return onnx_table(self._registered)

    @property
    def files(self) -> tuple[LayerFile, ...]:
        """The loaded layer files of the user, with their types."""
        return layer_files_of(self._registered)

    def bind(self, operator: RuntimeOperator) -> Bound:
        """Check an operator; errors are returned, not raised.

        Layers of the user may use the values of weights, so these are read.
        """
        if operator.is_input or operator.is_output:
            return Bound()
        if self._missing_weights is not None and operator.has_attributes:
            return Bound(error=self._missing_weights)
        if operator.tied_inputs and not operator.inputs:
            return Bound(error=self._without_input(operator))
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
            If the layer cannot be built with these weights.
        """
        weights = {key: _read(key, a) for key, a in operator.attributes.items()}
        with self._lock:
            return self._build(operator, weights)

    def is_random(self, operator: RuntimeOperator) -> bool:
        """Whether an operator draws random numbers, or may."""
        layer = operator.checked_layer
        return layer is not None and bool(layer.generator)

    def note(self, type: str) -> OperatorNote:  # noqa: A002 - pnnx's own word
        """Return the note on a type."""
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
        try:
            return build_layer(call, self._table)
        except ParameterError as exc:
            if isinstance(exc.__cause__, NotInNumpyError):
                return LibraryLayer(str(exc.__cause__))
            raise

    def _key(self, operator: RuntimeOperator) -> Hashable | None:
        """Return a key of a layer's arguments; None for a layer that cannot be shared.

        A layer of the user may keep state between calls.
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

    def _without_input(self, operator: RuntimeOperator) -> ParameterError:
        from engine.runtime.export_faults import find_export_faults

        (fault,) = find_export_faults([operator], from_onnx=self.from_onnx)
        return ParameterError(
            "input",
            fault.reason,
            operator=operator.name,
            operator_type=operator.type,
        )

    def _unknown(self, operator: RuntimeOperator) -> UnsupportedOperatorError:
        # Cached: finding a similar name among a thousand takes long.
        known = self._suggestions.get(operator.type)
        candidates = self._table if known is None else [known]
        error = UnsupportedOperatorError(operator.name, operator.type, candidates)
        self._suggestions[operator.type] = error.suggestion
        return error


def _stand_in(attribute: RuntimeAttribute) -> Array:
    """Return zeros of a weight's shape and dtype, all in the same memory."""
    if not attribute.is_stored:
        return attribute.array  # which raises the error
    return np.broadcast_to(np.zeros((), attribute.dtype), attribute.shape)


def _read(key: str, attribute: RuntimeAttribute) -> Array:
    try:
        return attribute.array
    except ModelFileError as exc:
        raise LayerError(f"its weight @{key} cannot be read: {exc}") from exc
