"""Rules that choose kernels before anything is measured.

They follow measurements of many networks on two cores (docs/performance.md). The autotuner
replaces their choices by the fastest on this machine.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engine.backends.estimates import estimate_cost, estimate_numpy_seconds
from engine.backends.fusion import Strategy
from engine.backends.kernel import ONE_THREAD, REFERENCE, candidates, one_thread_kernel
from engine.backends.lowering import LoweringError
from engine.backends.shape_inference import infer_result
from engine.layers.convolution import Convolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.backends.fusion import Part
    from engine.backends.kernel import Backend, CompiledKernel
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["choose_kernel", "rank_strategies"]

# Below this many seconds NumPy computes faster than a library makes its kernel.
_WORTH_MAKING: Final = 2e-3
_WINOGRAD: Final = ("ncnn/winograd", "ncnn/winograd23")
# From this share of the time of all convolutions on, ncnn's transformation makes up for the
# rest.
_MOSTLY: Final = 0.7


def choose_kernel(
    operator: RuntimeOperator, inputs: Sequence[Value], backends: Mapping[str, Backend]
) -> tuple[str, CompiledKernel]:
    """Choose and compile the kernel of an operator.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    backends : mapping of str to Backend
        Those that may compute it, by name.

    Returns
    -------
    name : str
    compiled : callable
    """
    for name, compile_kernel in _rank_candidates(operator, inputs, backends):
        compiled = compile_kernel()
        if compiled is not None:
            return name, compiled
    return ONE_THREAD, one_thread_kernel(operator)


def _rank_candidates(
    operator: RuntimeOperator, inputs: Sequence[Value], backends: Mapping[str, Backend]
) -> Iterable[tuple[str, Callable[[], CompiledKernel | None]]]:
    """Yield candidates, the likely fastest first; none if NumPy is likely to be faster.

    NumPy with a buffer computes one pass over the elements as fast as a library. ncnn's
    transformation wins 3x3 convolutions, ONNX Runtime the others.
    """
    if REFERENCE in backends:
        yield from candidates(backends[REFERENCE], operator, inputs).items()
    if not _is_worth_making(operator, inputs, backends):
        return
    ncnn: Mapping[str, Callable[[], CompiledKernel | None]] = {}
    if "ncnn" in backends:
        ncnn = candidates(backends["ncnn"], operator, inputs)
    yield from ((name, ncnn[name]) for name in _WINOGRAD if name in ncnn)
    if "onnxruntime" in backends:
        yield from candidates(backends["onnxruntime"], operator, inputs).items()
    yield from ncnn.items()


def _is_worth_making(
    operator: RuntimeOperator, inputs: Sequence[Value], backends: Iterable[str]
) -> bool:
    """Return whether NumPy takes longer than a library that first makes its kernel."""
    output = None
    if "onnxruntime" in backends:
        names = [operand.name for operand in operator.inputs]
        with suppress(LoweringError):
            output = infer_result(operator, names, inputs)
    found = estimate_cost(operator, inputs, output)
    return estimate_numpy_seconds(operator, found) >= _WORTH_MAKING


def rank_strategies(strategies: Iterable[Strategy], parts: Iterable[Part]) -> list[Strategy]:
    """Sort strategies for a subgraph, the likely fastest first.

    The strategy of ncnn is first if its transformation computes most of the convolutions.
    """
    transformed = total = 0.0
    for part in parts:
        layer = part.operator.layer
        if isinstance(layer, Convolution):
            total += part.seconds
            transformed += part.seconds * _may_transform(layer)
    mostly = total > 0 and transformed >= _MOSTLY * total
    return sorted(strategies, key=lambda each: (each is Strategy.ELEMPACK) != mostly)


def _may_transform(layer: Convolution) -> bool:
    windows = layer.windows
    sizes = (windows.kernel, windows.stride, windows.dilation)
    return layer.groups == 1 and sizes == ((3, 3), (1, 1), (1, 1))
