"""Every kernel of a function: of the single operator, and in fused subgraphs."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

import engine
from accuracy.measure import largest_by_range, pairs, points, units
from engine.backends import REFERENCE, all_backends
from engine.backends.fusion import Strategy
from engine.errors import InferenceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accuracy.functions import Function
    from engine.runtime import RuntimeGraph

__all__ = ["eager_errors", "errors"]

_CHANNELS: Final = 16  # the channels of one block
# A subgraph of ncnn leaves infinities to the reference. A sum of numbers below this is finite.
_SUMMABLE: Final = 1e32


def errors(function: Function, count: int) -> Iterator[tuple[str, list[float]]]:
    """Compute a function by every kernel, over the whole range of float32.

    Yields
    ------
    str
        The operator type and the kernel, ``numpy`` for the reference.
    list of float
        Largest error by range, in units in the last place.
    """
    inputs = _inputs(function, count)
    for kind, params in function.kinds:
        with tempfile.TemporaryDirectory(prefix="kuiper-studio-accuracy-") as folder:
            text = " ".join(f"{name}={_spelled(value)}" for name, value in params.items())
            graph = _graph(function, kind, text, Path(folder))
            for kernel, given, result in _computed(function, graph, inputs):
                yield f"{kind} {kernel}", _errors(function, given, result)


def eager_errors(function: Function, count: int) -> list[float]:
    """Return the largest error of PyTorch's function, by range."""
    import torch
    from torch.nn import functional

    inputs = _inputs(function, count)
    names = {"torch": torch, "F": functional, **function.weights}
    tensors = {name: torch.from_numpy(each) for name, each in zip("xy", inputs, strict=False)}
    result = eval(function.eager, names | tensors)  # the table's own expressions
    return _errors(function, inputs, result.numpy())


def _errors(function: Function, inputs: list[np.ndarray], found: np.ndarray) -> list[float]:
    error = units(found.ravel(), _right(function, inputs).ravel())
    return largest_by_range(inputs[0].ravel(), error)


def _inputs(function: Function, count: int) -> list[np.ndarray]:
    given = [points(count)] if function.operands == 1 else list(pairs(count))
    width = given[0].size // _CHANNELS
    shape = (1, _CHANNELS, 1, width)
    return [x[: _CHANNELS * width].reshape(shape) for x in given]


def _right(function: Function, inputs: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in inputs]
        if function.weights:  # weights are per channel
            return function.right(*wide)
        return function.right(*(x.ravel() for x in wide)).reshape(inputs[0].shape)


def _summable(function: Function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Replace numbers by 1 that a subgraph of ncnn would leave to the reference."""
    arrays = [*inputs, _right(function, inputs)]
    usable = np.logical_and.reduce([np.abs(each) < _SUMMABLE for each in arrays])
    return [np.where(usable, x, np.float32(1)) for x in inputs]


def _computed(
    function: Function, graph: RuntimeGraph, inputs: list[np.ndarray]
) -> Iterator[tuple[str, list[np.ndarray], np.ndarray]]:
    """Yield kernels with their inputs and results."""
    operator = graph.operator("f")
    assert operator.error is None, operator.reason
    yield REFERENCE, inputs, operator.forward(inputs)[0]
    for backend in all_backends():
        for variant, make in backend.variants(operator, inputs).items():
            yield f"{backend.name}/{variant}", inputs, make()(inputs)[0]
    last = graph.operator("after").index
    inputs = [x + np.float32(0) for x in inputs]  # a convolution turns -0 into 0
    for strategy in Strategy:
        name = f"{strategy.value}-2@{function.operands}-{last}"
        given = _summable(function, inputs) if strategy is Strategy.ELEMPACK else inputs
        kernels = {o.name: "" if o.is_input or o.is_output else name for o in graph.operators}
        session = engine.Session(graph, backend=kernels)
        session.feed(given)
        try:
            session.run()
        except InferenceError:  # there is no such subgraph
            continue
        yield name, given, session.value("y")


def _graph(function: Function, kind: str, text: str, folder: Path) -> RuntimeGraph:
    """Make a model with the function between 1x1 convolutions that copy their input."""
    given = range(function.operands)
    names = " ".join(f"c{index}" for index in given)
    weights = {f"{name}.weight": _ones() for name in (*(f"conv{i}" for i in given), "after")}
    said = "".join(f" @{name}=({array.size})f32" for name, array in function.weights.items())
    weights |= {f"f.{name}": array for name, array in function.weights.items()}
    lines = [
        *(f"pnnx.Input in{index} 0 1 x{index}" for index in given),
        *(_convolution(f"conv{index}", f"x{index}", f"c{index}") for index in given),
        f"{kind} f {function.operands} 1 {names} y {text}{said}",
        _convolution("after", "y", "z"),
        "pnnx.Output out 1 0 z",
    ]
    return engine.load(_written(folder / "m.pnnx.param", lines, weights))


def _convolution(name: str, operand: str, result: str) -> str:
    return (
        f"nn.Conv2d {name} 1 1 {operand} {result} bias=False dilation=(1,1) groups=16 "
        "in_channels=16 kernel_size=(1,1) out_channels=16 padding=(0,0) padding_mode=zeros "
        "stride=(1,1) @weight=(16,1,1,1)f32"
    )


def _ones() -> np.ndarray:
    return np.ones((_CHANNELS, 1, 1, 1), np.float32)


def _written(param: Path, lines: list[str], weights: Mapping[str, np.ndarray]) -> Path:
    operands = {
        name
        for line in lines
        for name in line.split()[4 : 4 + sum(map(int, line.split()[2:4]))]
    }
    text = "\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines])
    param.write_text(text + "\n", encoding="utf-8")
    with zipfile.ZipFile(param.with_suffix(".bin"), "w") as archive:
        for name, array in weights.items():
            archive.writestr(name, array.tobytes())
    return param


def _spelled(value: object) -> str:
    return f"{value:e}" if isinstance(value, float) else str(value)
