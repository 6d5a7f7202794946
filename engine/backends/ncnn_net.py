"""The backend ncnn: a network of one layer per operator and shape.

Everything is float32: by default ncnn stores half-precision numbers if the processor has them.
Its threads spin while they wait for work, which takes the processor from other libraries'
threads. So spinning is limited when ncnn is loaded.
"""

from __future__ import annotations

import ctypes
import math
import os
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.backend_names import PACKAGES
from engine.backends.buffers import Buffer
from engine.backends.heap import register_trim, unload
from engine.backends.lowering import LoweringError, Operand, require_finite
from engine.backends.ncnn_layers import MAGIC, format_layer, format_params, layer_types
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from engine.backends.kernel import CompiledKernel
    from engine.backends.ncnn_operators import NcnnLayer
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["NcnnBackend", "NcnnNet", "can_unpack", "free_unused_results", "mat_of", "unpack"]

# Rounds that OpenMP's threads spin. A processor that has rested wakes slowly, and threads that
# sleep pay for this at each operator: after 0.3 s of rest a pass of resnet18 takes 2.5 times as
# long with 3000 rounds. In a loop both are equal. Beside a program that keeps a core busy
# resnet18 is as fast, but first passes of unet and vit_b_32 take twice as long as with 3000.
_SPIN_ROUNDS: Final = "200000"
_LARGE_WEIGHTS: Final = 2 << 20  # bytes
_FEW_PIXELS: Final = 14 * 14
_OPEN_FILE: Final = "/proc/self/fd/{}"
_LOWER_PRECISION: Final = (
    "use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage",
    "use_int8_inference",
)  # fmt: skip


@cache
def _library() -> ModuleType:
    """Import the library, on first use."""
    # OpenMP reads these only when it is loaded.
    if "GOMP_SPINCOUNT" not in os.environ and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = _SPIN_ROUNDS
    import ncnn

    library: ModuleType = ncnn
    return library


@cache
def _pools() -> tuple[Any, Any]:
    """Return the pools for results and scratch memory that all networks share.

    By default each network has its own pools and never frees them.
    """
    library = _library()
    pools = library.PoolAllocator(), library.PoolAllocator()
    for pool in pools:
        register_trim(pool.clear)
        # Never freed: results live in them, even at exit, when Python deletes objects in any
        # order.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    return pools


def mat_of(array: Array) -> Any:  # noqa: ANN401 - untyped
    """Wrap an array's memory for ncnn; the array must stay alive."""
    return _library().Mat(array)


@cache
def _one_thread() -> Any:  # noqa: ANN401 - untyped
    option = _library().Option()
    option.num_threads = 1
    return option


@cache
def can_unpack() -> bool:
    """Whether `unpack` writes where it is told to, tried once."""
    packed = _library().Mat()
    image = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    _library().convert_packing(mat_of(image), packed, 4, _one_thread())
    array = np.zeros_like(image)
    unpack(packed, array)
    return np.array_equal(array, image)


def unpack(mat: Any, array: Array) -> None:  # noqa: ANN401 - untyped
    """Write a packed image into an array, which takes a third of NumPy's time.

    Parameters
    ----------
    mat : ncnn.Mat
        Of three dimensions.
    array : ndarray of float32, shape (C, H, W)
    """
    _library().convert_packing(mat, mat_of(array), 1, _one_thread())


class NcnnBackend:
    """Computes operators that have a lowering in `engine.backends.ncnn_operators`."""

    name = "ncnn"
    packages: tuple[str, ...] = PACKAGES["ncnn"]

    def describe(self, variant: str) -> str:
        """Describe a variant of `variants`."""
        kernels = {
            "winograd": ", Winograd's transformation",
            "winograd23": ", Winograd's transformation of small tiles",
            "gemm": ", a product of matrices",
            "plain": "",
        }
        return f"ncnn{kernels.get(variant, f', {variant} options')}"

    def load(self, *, whole: bool) -> None:
        """Import the lowerings, and with `whole` the library itself."""
        import engine.backends.ncnn_operators  # noqa: F401

        if whole:
            _library()

    def supports(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may have a kernel for some inputs."""
        from engine.backends.ncnn_operators import LOWERINGS

        return LOWERINGS.has(operator)

    def variants(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> dict[str, Callable[[], CompiledKernel]]:
        """Return the variants of a kernel: with or without Winograd's transformation.

        Transformed weights are several times as large, less so with small tiles. That does not
        pay for many channels of few pixels.
        """
        from engine.backends.ncnn_operators import LOWERINGS

        if len(inputs) != 1 or not isinstance(inputs[0], np.ndarray):
            return {}
        array = inputs[0]
        if array.dtype != np.float32 or not array.size:
            return {}
        try:
            layer = LOWERINGS.write(None, operator, [Operand("x", 0, array.shape, array.dtype)])
        except LoweringError:
            return {}
        variants: tuple[str, ...] = ("winograd", "winograd23", "gemm")
        if not layer.may_transform:
            variants = ("plain",)
        elif _is_heavy(layer):
            variants = ("winograd23", "gemm")
        return {name: partial(_NcnnCompiledKernel, layer, name) for name in variants}


def _is_heavy(layer: NcnnLayer) -> bool:
    """Return whether the weights are too large, and the pixels too few, for ncnn's large tiles.

    They take four to seven times the memory of the weights, and more time than small tiles.
    """
    pixels = math.prod(layer.output_shape[-2:])
    return sum(w.nbytes for w in layer.weights) > _LARGE_WEIGHTS and pixels <= _FEW_PIXELS


def free_unused_results() -> None:
    """Free the memory of unused results."""
    results, _ = _pools()
    results.clear()


@cache
def _has_layer(kind: str) -> bool:
    """Return whether ncnn has a type of layers. ncnn prints a line about an unknown one."""
    return bool(_library().layer_to_index(kind) >= 0)


class NcnnNet:
    """A network, in float32 throughout.

    Parameters
    ----------
    text : str
        As in a ``.param`` file.
    weights : iterable of ndarray of float32
        The contents of a ``.bin`` file, in order.
    threads : int
    **options : bool
        Options of ncnn, by name.

    Attributes
    ----------
    net : ncnn.Net

    Raises
    ------
    LoweringError
        If ncnn does not know a layer, or weights are of another dtype.
    """

    def __init__(
        self, text: str, weights: Iterable[Array], threads: int, **options: bool
    ) -> None:
        self.net = net = _library().Net()
        net.opt.num_threads = threads
        for option in _LOWER_PRECISION:
            setattr(net.opt, option, False)
        for option, value in options.items():
            setattr(net.opt, option, value)
        # A reference to the pools, because the network must not outlive them.
        self._pools = net.opt.blob_allocator, net.opt.workspace_allocator = _pools()
        if not all(map(_has_layer, layer_types(text))) or net.load_param_mem(text):
            raise LoweringError("ncnn does not know a layer")
        arrays = [np.ascontiguousarray(weight) for weight in weights]
        if any(array.dtype != np.float32 for array in arrays):
            raise LoweringError("weights of another dtype")
        self._content = _load_weights(net, arrays)


def _load_weights(net: Any, arrays: Sequence[Array]) -> bytes:  # noqa: ANN401 - untyped
    """Load a network's weights; return an object that must live as long as the network.

    ncnn frees weights that it read from a file after it has converted their layout. Weights in
    our memory it keeps using. So an in-memory file is used where the system has one.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("weights"), "wb") as file:
            for array in arrays:
                file.write(array.data)
                unload(array)
            file.flush()
            path = _OPEN_FILE.format(file.fileno())
            # ncnn prints a line on standard error if it cannot open the file.
            if os.access(path, os.R_OK) and not net.load_model(path):
                return b""
    content = b"".join(array.data for array in arrays)
    net.load_model_mem(content)
    return content


class _NcnnCompiledKernel:
    """A network of one layer that writes to a buffer of ours."""

    def __init__(self, layer: NcnnLayer, variant: str) -> None:
        transformed = variant.startswith("winograd")
        options = {"use_winograd_convolution": transformed}
        if variant == "winograd23":  # tiles of 2x2 results; ncnn itself chooses 4x4
            options |= {
                "use_winograd43_convolution": False,
                "use_winograd63_convolution": False,
            }
        params = format_params(layer.type, layer.params)
        lines = [
            format_layer("Input", "in0", [], ["in0"], ""),
            format_layer(layer.type, "layer", ["in0"], ["out0"], params),
        ]
        text = "\n".join([MAGIC, "2 2", *lines, ""])
        self._net = NcnnNet(text, layer.weights, thread_count(), **options)
        self._input_shape = layer.input_shape
        # Winograd's transformation spreads NaN and infinities over a tile.
        self._finite = transformed
        self._buffer = Buffer(layer.output_shape, np.dtype(np.float32))

    def __call__(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        array = np.require(inputs[0], None, ["C", "A"]).reshape(self._input_shape)
        self._buffer.renew()
        with self._net.net.create_extractor() as extractor:
            extractor.input("in0", mat_of(array))
            status, result = extractor.extract("out0")
            found = np.array(result, copy=False)
            if status or found.size != self._buffer.memory.size:
                raise RuntimeError("ncnn returned no result")
            self._buffer.memory[...] = found.reshape(self._buffer.memory.shape)
        if self._finite:
            require_finite(self._buffer.memory)
        return (self._buffer.shown,)
