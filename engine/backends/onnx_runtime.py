"""ONNX Runtime as a backend: one small session per operator and shape.

A session reads operands where they lie and writes into memory of ours, so that nothing is
copied on the way. Each has threads of its own, which must sleep between calls: they would
take the processor from all the others.
"""

from __future__ import annotations

import os
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backends.buffers import Buffer
from engine.backends.forms import (
    NoFormError,
    Operand,
    require_above_infinity,
    require_finite,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from engine.backends.kernel import Program
    from engine.backends.onnx_graph import OnnxModel
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["OnnxRuntimeBackend", "thread_count"]

_DTYPES: Final = frozenset(map(np.dtype, (np.float32, np.int64)))
# With fewer bytes of operands, waking another thread costs more than it brings; with more
# than the second number it pays for certain; in between it is measured.
_WORTH_THREADS: Final = (1 << 16, 1 << 21)


def thread_count() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@cache
def _library() -> ModuleType:
    """The library, imported when it is first needed."""
    import onnxruntime

    library: ModuleType = onnxruntime
    return library


class OnnxRuntimeBackend:
    """Computes operators that have a form in `engine.backends.onnx_forms`."""

    name = "onnxruntime"
    packages: tuple[str, ...] = ("onnxruntime", "onnx")

    def describe(self, variant: str) -> str:
        """Say in words which way to compute a variant of `programs` is."""
        level, _, count = variant.partition("-")
        layout = {"all": "all its optimisations", "basic": "images as they lie"}.get(
            level, level
        )
        return f"ONNX Runtime, {layout}, {count} thread{'' if count == '1' else 's'}"

    def load(self, *, whole: bool) -> None:
        """Import the forms, and with `whole` the library itself."""
        import engine.backends.onnx_forms  # noqa: F401

        if whole:
            _library()

    def supports(self, operator: RuntimeOperator) -> bool:
        """Whether there may be a program for an operator, whatever its inputs."""
        from engine.backends.onnx_forms import FORMS

        return FORMS.has(operator)

    def programs(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> dict[str, Callable[[], Program]]:
        """Ways to compute an operator: with or without ONNX Runtime's own image layout.

        Going over to that layout and back costs as much as a small convolution, and so does
        waking a second thread.
        """
        if any(_is_foreign(value) for value in inputs):
            return {}
        try:
            model = _written(operator, inputs)
        except NoFormError:
            return {}
        levels = ("all", "basic") if model.has_convolution else ("all",)
        size = sum(v.nbytes for v in inputs if isinstance(v, np.ndarray))
        everyone = thread_count()
        least, surely = _WORTH_THREADS
        threads = (1,) if size < least else (everyone,) if size > surely else (everyone, 1)
        return {
            f"{level}-{count}": partial(_OnnxProgram, model, inputs, level, count)
            for level in levels
            for count in dict.fromkeys(threads)
        }


def _is_foreign(value: Value) -> bool:
    return isinstance(value, np.ndarray) and (value.dtype not in _DTYPES or not value.size)


def _written(operator: RuntimeOperator, inputs: Sequence[Value]) -> OnnxModel:
    from engine.backends.onnx_forms import FORMS
    from engine.backends.onnx_graph import OnnxGraph

    graph = OnnxGraph()
    operands = [
        Operand(f"x{index}", index, value.shape, value.dtype)
        if isinstance(value, np.ndarray)
        else value
        for index, value in enumerate(inputs)
    ]
    if len(operator.outputs) != 1:
        raise NoFormError("several outputs")
    result = FORMS.write(graph, operator, operands)
    # A bare name is a result in its own shape, a pair of name and shape one in that shape.
    name, shape = (result, None) if isinstance(result, str) else result
    return graph.finish(name, shape)


class _OnnxProgram:
    """A session whose inputs and outputs are bound to our memory."""

    def __init__(
        self, model: OnnxModel, inputs: Sequence[Value], level: str, threads: int
    ) -> None:
        ort = _library()
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        if level == "basic":
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.inter_op_num_threads = 1
        # One arena per session, which never gives memory back, holds several times what an
        # operator needs between calls; without it a pass takes no longer.
        options.enable_cpu_mem_arena = False
        # Threads wait awake for the parts of one call, never between calls.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self._session = ort.InferenceSession(
            model.content, options, providers=["CPUExecutionProvider"]
        )
        # The wrapper keeps the model, weights and all, to begin anew with other providers.
        self._session._model_bytes = None  # noqa: SLF001
        self._binding = self._session.io_binding()
        self._operands = model.inputs
        self._above_infinity, self._finite = model.above_infinity, model.finite
        self._addresses = [0] * len(model.inputs)
        # The library works out the shapes of the results when it first computes them.
        feeds = {o.name: _array(inputs[o.index]).reshape(o.shape) for o in model.inputs}
        (result,) = self._session.run([model.output], feeds)
        self._output = model.output
        self._buffer = Buffer(result.shape, result.dtype, model.shape)
        self._bind_output()

    def __call__(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        for index in self._above_infinity:
            require_above_infinity(inputs[index])
        kept = []  # copies must live until the session has read them
        for place, operand in enumerate(self._operands):
            array = inputs[operand.index]
            assert isinstance(array, np.ndarray)  # noqa: S101 - the signature says so
            if not (array.flags.c_contiguous and array.flags.aligned):
                array = np.require(array, None, ["C", "A"])
                kept.append(array)
            address = array.__array_interface__["data"][0]
            if address != self._addresses[place]:
                self._binding.bind_input(
                    operand.name, "cpu", 0, operand.dtype, operand.shape, address
                )
                self._addresses[place] = address
        if self._buffer.renew():
            self._bind_output()
        self._session.run_with_iobinding(self._binding)
        if self._finite:
            require_finite(self._buffer.memory)
        return (self._buffer.shown,)

    def _bind_output(self) -> None:
        memory = self._buffer.memory
        address = memory.__array_interface__["data"][0]
        self._binding.bind_output(self._output, "cpu", 0, memory.dtype, memory.shape, address)


def _array(value: Value) -> Array:
    return np.require(value, None, ["C", "A"])
