"""The backend ONNX Runtime: one small session per operator and shape.

A session reads operands in place and writes to buffers of ours, so nothing is copied. Each
session has its own threads. They sleep between calls, so that others can use the processor.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.backend_names import PACKAGES
from engine.backends.buffers import Buffer, detach_buffer
from engine.backends.heap import register_trim
from engine.backends.lowering import (
    LoweringError,
    Operand,
    require_above_infinity,
    require_finite,
)
from engine.backends.nchwc import nchwc_to_nchw
from engine.text import format_count
from engine.threads import thread_count
from engine.values import LazyArray, address_of, materialise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from onnxruntime import NodeArg, SessionOptions

    from engine.backends.kernel import CompiledKernel
    from engine.backends.onnx_lowering import OnnxModel
    from engine.promotion import DType
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

__all__ = [
    "OnnxCompiledKernel",
    "OnnxRuntimeBackend",
]

_PROVIDER: Final = "CPUExecutionProvider"
_RESULTS: Final[dict[str, DType]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(int64)": np.dtype(np.int64),
    "tensor(bool)": np.dtype(np.bool_),
}
# Below the first number of bytes a second thread does not pay; above the second one it always
# pays. In between it is measured.
_WORTH_THREADS: Final = (1 << 16, 1 << 21)


@cache
def _library() -> ModuleType:
    """Import the library, on first use."""
    import onnxruntime

    library: ModuleType = onnxruntime
    _share_memory(library)
    return library


def _share_memory(library: ModuleType) -> None:
    """Have all sessions share one arena for their working memory.

    One arena for each session would hold several times that memory between calls. Without an
    arena a session allocates fresh pages on the heap.
    """
    from engine.backends.onnx_lowering import lower_to_onnx
    from engine.backends.subgraph import Subgraph

    arena = library.OrtMemoryInfo(
        "Cpu", library.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, library.OrtMemType.DEFAULT
    )
    library.create_and_register_allocator(arena, library.OrtArenaCfg(0, 1, -1, -1))
    graph = Subgraph()
    number = graph.read(Operand("x", 0, (1,), np.dtype(np.float32)))
    graph.give("y", graph.node("Identity", number), None)
    model = lower_to_onnx(graph)
    session = library.InferenceSession(
        model.content, _session_options(library, 1), providers=[_PROVIDER]
    )
    fed = {number: np.zeros(1, np.float32)}
    giving_back = library.RunOptions()
    giving_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def trim_arena() -> None:
        session.run(None, fed, giving_back)

    # This first allocation is tiny, because the arena never frees its first block.
    trim_arena()
    register_trim(trim_arena)


def _session_options(library: ModuleType, threads: int) -> SessionOptions:
    options: SessionOptions = library.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    # Threads spin for the parts of one call, never between calls.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


class OnnxRuntimeBackend:
    """Computes operators that have a lowering in `engine.backends.operator_lowerings`."""

    name = "onnxruntime"
    packages: tuple[str, ...] = PACKAGES["onnxruntime"]

    def describe(self, variant: str) -> str:
        """Describe a variant of `variants`."""
        level, _, count = variant.partition("-")
        layout = {"all": "all its optimisations", "basic": "images in NCHW"}
        return f"ONNX Runtime, {layout.get(level, level)}, {format_count(int(count), 'thread')}"

    def load(self, *, whole: bool) -> None:
        """Import the lowerings, and with `whole` the library itself."""
        import engine.backends.operator_lowerings  # noqa: F401

        if whole:
            _library()

    def supports(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may have a kernel for some inputs."""
        from engine.backends.operator_lowerings import LOWERINGS

        return LOWERINGS.has(operator)

    def variants(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> dict[str, Callable[[], CompiledKernel]]:
        """Return the variants of a kernel: with or without ONNX Runtime's own image layout.

        Converting to that layout and back costs as much as a small convolution, and so does
        waking a second thread.
        """
        try:
            model = _write_model(operator, inputs)
        except LoweringError:
            return {}
        levels = ("all", "basic") if model.has_convolution else ("all",)
        size = sum(v.nbytes for v in inputs if isinstance(v, np.ndarray))
        everyone = thread_count()
        least, surely = _WORTH_THREADS
        threads = (1,) if size < least else (everyone,) if size > surely else (everyone, 1)
        return {
            f"{level}-{count}": partial(_compile_single, model, inputs, level, count)
            for level in levels
            for count in dict.fromkeys(threads)
        }


def _write_model(operator: RuntimeOperator, inputs: Sequence[Value]) -> OnnxModel:
    from engine.backends.onnx_lowering import lower_to_onnx
    from engine.backends.operator_lowerings import LOWERINGS
    from engine.backends.subgraph import Subgraph, lower_operator

    graph = Subgraph()
    lower_operator(graph, operator, inputs, _make_names(inputs), "y", LOWERINGS)
    return lower_to_onnx(graph)


def _make_names(inputs: Sequence[Value]) -> list[str]:
    return [f"x{index}" for index in range(len(inputs))]


class OnnxCompiledKernel:
    """A session with inputs and outputs bound to buffers of ours.

    Parameters
    ----------
    model : OnnxModel
    operands : sequence of str
        Names of the arrays of a call.
    level : str
        ``all`` or ``basic``: ONNX Runtime's optimisation level.
    threads : int

    Attributes
    ----------
    seconds : None
        Time of each operator in the last run, which ONNX Runtime does not measure.
    """

    seconds: None = None

    def __init__(
        self,
        model: OnnxModel,
        operands: Sequence[str],
        level: str,
        threads: int,
    ) -> None:
        ort = _library()
        options = _session_options(ort, threads)
        if level == "basic":
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        if model.weights:
            values = map(ort.OrtValue.ortvalue_from_numpy, model.weights.values())
            options.add_external_initializers(list(model.weights), list(values))
        # The model is dropped: it holds copies of weights.
        self._outputs, self._refinements = model.outputs, model.refinements
        self._session = ort.InferenceSession(
            model.content, options, providers=[_PROVIDER], enable_fallback=False
        )
        # The wrapper keeps the model with its weights, to restart with other providers.
        self._session._model_bytes = None  # noqa: SLF001
        self._binding = self._session.io_binding()
        self._sources = [(i, operands.index(i.operand)) for i in model.inputs]
        self._addresses = [0] * len(model.inputs)
        self._buffers = [
            Buffer(*_size_of(found), output.nchwc or output.shape)
            for found, output in zip(self._session.get_outputs(), model.outputs, strict=True)
        ]
        for place in range(len(self._buffers)):
            self._bind_output(place)

    def run(self, inputs: Sequence[Value]) -> None:
        """Compute the results; those in use get new memory."""
        read: dict[str, Array] = {}  # copies must live until the session has read them
        for place, (declared, at) in enumerate(self._sources):
            array = inputs[at]
            assert isinstance(array, np.ndarray)  # noqa: S101 - the signature says so
            if not (array.flags.c_contiguous and array.flags.aligned):
                array = np.require(array, None, ["C", "A"])
            read[declared.operand] = array
            address = address_of(array)
            if address != self._addresses[place]:
                self._binding.bind_input(
                    declared.name, "cpu", 0, declared.dtype, declared.shape, address
                )
                self._addresses[place] = address
        for place, buffer in enumerate(self._buffers):
            if buffer.renew():
                self._bind_output(place)
        self._session.run_with_iobinding(self._binding)
        for each in self._refinements:
            source = each.source
            x = read[each.operand] if source is None else self._buffers[source].memory
            each.refine(x.reshape(-1), self._buffers[each.output].memory.reshape(-1))

    def checked(self, place: int, inputs: Sequence[Held]) -> Held:
        """Return the result of an operator, for its inputs.

        Raises
        ------
        SpecialNumbersError
            If the reference would give another result.
        """
        output, buffer = self._outputs[place], self._buffers[place]
        for index in output.above_infinity:
            value = inputs[index]
            require_above_infinity(value.stored if isinstance(value, LazyArray) else value)
        if output.finite:
            require_finite(buffer.memory)
        if output.nchwc is None or output.shape is None:
            return buffer.shown
        shown = buffer.shown
        return LazyArray(shown, output.shape, shown.dtype, _to_nchw, _as_it_is)

    def shown(self, place: int) -> Array:
        """Return a result of the last run."""
        return self._buffers[place].shown

    def _bind_output(self, place: int) -> None:
        memory = self._buffers[place].memory
        address = address_of(memory)
        name = self._outputs[place].name
        self._binding.bind_output(name, "cpu", 0, memory.dtype, memory.shape, address)


def _to_nchw(blocks: Array, shape: tuple[int, ...]) -> Array:
    """Convert a result to NCHW, and free the blocks."""
    array = nchwc_to_nchw(blocks, shape)
    detach_buffer(blocks)
    return array


def _as_it_is(blocks: Array) -> Array:
    return blocks


def _compile_single(
    model: OnnxModel, inputs: Sequence[Value], level: str, threads: int
) -> CompiledKernel:
    compiled = OnnxCompiledKernel(model, _make_names(inputs), level, threads)

    def run(inputs: Sequence[Value]) -> tuple[Value, ...]:
        compiled.run(inputs)
        return (materialise(compiled.checked(0, inputs)),)

    return run


def _size_of(found: NodeArg) -> tuple[tuple[int, ...], DType]:
    """Return the shape and dtype of a result, which the library infers from the inputs.

    Raises
    ------
    LoweringError
        If they depend on the values.
    """
    if found.type not in _RESULTS or not all(isinstance(size, int) for size in found.shape):
        raise LoweringError(f"a result of unknown size: {found.shape} {found.type}")
    return tuple(found.shape), _RESULTS[found.type]
