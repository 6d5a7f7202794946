"""Kernels for the layers of a model in ncnn's format: ncnn itself, with the user's options.

Each layer is a network of its own, with the line and the weights that the file has. Between
layers ncnn only converts float32 to the layer's format (half precision, packed channels) and
back. float32 represents these formats exactly, so the numbers equal those of the whole network,
bit for bit. But each layer can run again, in any order and on overridden operands. NumPy
computes the layers that ncnn does not know.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.backends.kernel import (
    ONE_THREAD,
    REFERENCE,
    Kernels,
    NumpyKernel,
    SpecializedKernel,
    one_thread_kernel,
)
from engine.backends.lowering import LoweringError
from engine.backends.ncnn_file_limits import require_computable
from engine.backends.ncnn_layers import MAGIC, format_layer
from engine.backends.ncnn_net import NcnnBackend, NcnnNet, mat_of
from engine.errors import UnsupportedOperatorError
from engine.layers.layer import LibraryLayer
from engine.ncnn.options import EXACT, NcnnOptions
from engine.ncnn.reader import ncnn_name
from engine.ncnn.types import TYPES, is_quantized, param_id
from engine.ncnn.weights import encode_layer
from engine.runtime.activity import announce
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.backends.exclusions import Exclusions
    from engine.backends.kernel import CompiledKernel, Kernel
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = [
    "LayerKernel",
    "NcnnFileBackend",
    "can_compute",
    "compile_layer",
    "make_layer_kernels",
]

NCNN: Final = NcnnBackend.name

_INT8_BITS: Final = 8
_ALONE: Final = 1 << 23  # multiply-accumulates below which one thread computes a layer
# Layers whose work grows faster than their operands.
_PRODUCTS: Final = frozenset({"Einsum", "Gemm", "MatMul", "MultiHeadAttention", "SDPA"})
_UNNAMED: Final = {"featmask": 31}


class NcnnFileBackend(NcnnBackend):
    """ncnn, also for the layers of a model of its own format."""

    @override
    def supports(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may have a kernel for some inputs."""
        return can_compute(operator) or super().supports(operator)

    @override
    def variants(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> dict[str, Callable[[], CompiledKernel]]:
        """Return the variants of a kernel; a layer has one, with exact options."""
        if can_compute(operator):
            return {EXACT.text: partial(compile_layer, operator, inputs, EXACT)}
        return super().variants(operator, inputs)


def can_compute(operator: RuntimeOperator) -> bool:
    """Return whether ncnn computes the type of a layer of its own format."""
    return bool(ncnn_name(operator.type))


def compile_layer(
    operator: RuntimeOperator, inputs: Sequence[Value], options: NcnnOptions
) -> CompiledKernel:
    """Compile the kernel of a layer for inputs of these shapes and dtypes.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    options : NcnnOptions

    Raises
    ------
    LoweringError
        If ncnn must not compute it.
    UnsupportedOperatorError
        If ncnn must not compute it, and NumPy has no code for it.
    """
    try:
        require_computable(operator, inputs)
        return LayerKernel(operator, options, _threads_for(operator, inputs))
    except LoweringError as exc:
        raise _make_error(operator, str(exc)) from exc


def _threads_for(operator: RuntimeOperator, inputs: Sequence[Value]) -> int:
    """Return how many threads compute a layer.

    Threads wait for each other at the end of each layer. Where one of them must share its
    processor with another program, that takes longer than a small layer itself.
    """
    sizes = [value.shape for value in inputs if isinstance(value, np.ndarray)]
    if ncnn_name(operator.type) in _PRODUCTS or not sizes:
        return thread_count()
    weights = sum(attribute.size for attribute in operator.attributes.values())
    multiplied = weights * max(map(_positions, sizes)) // _stride(operator)
    work = multiplied + sum(map(math.prod, sizes))
    return 1 if work < _ALONE else thread_count()


def _positions(shape: tuple[int, ...]) -> int:
    """Return the places at which a layer uses its weights, at most, without strides."""
    return max(shape) if len(shape) == 2 else math.prod(shape[1:])


def _stride(operator: RuntimeOperator) -> int:
    if not ncnn_name(operator.type).startswith("Convolution"):
        return 1  # that of a deconvolution makes more places
    width = operator.params.get("stride_w")
    width = max(width, 1) if isinstance(width, int) else 1
    height = operator.params.get("stride_h")
    return width * (max(height, 1) if isinstance(height, int) else width)


def _make_error(operator: RuntimeOperator, reason: str) -> Exception:
    if isinstance(operator.checked_layer, LibraryLayer):
        return UnsupportedOperatorError(operator.name, operator.type, reason=reason)
    return LoweringError(reason)


def make_layer_kernels(
    name: str | Mapping[str, str],
    operators: Sequence[RuntimeOperator],
    excluded: Exclusions,
    options: NcnnOptions | None,
) -> Kernels:
    """Make the kernels of a model of ncnn's own format.

    Parameters
    ----------
    name : str, or mapping of str to str
        A backend, or the kernels of an earlier run by operator.
    operators : sequence of RuntimeOperator
    excluded : Exclusions
    options : NcnnOptions or None
        None where ncnn cannot be used.
    """

    def wanted(operator: RuntimeOperator) -> NcnnOptions | None:
        if options is None or NCNN in excluded[operator.name] or not can_compute(operator):
            return None
        if isinstance(name, str):
            return options if name in {"auto", NCNN} else None
        backend, _, variant = name.get(operator.name, REFERENCE).partition("/")
        return NcnnOptions.parse(variant) if backend == NCNN else None

    def make(operator: RuntimeOperator) -> Kernel:
        chosen = wanted(operator)
        if chosen is None:
            return NumpyKernel(operator)
        return SpecializedKernel(operator, _Chooser(chosen).choose)

    return Kernels(operators, make)


class _Chooser:
    """Chooses ncnn, with the same options for every layer."""

    def __init__(self, options: NcnnOptions) -> None:
        self._options = options

    def choose(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> tuple[str, CompiledKernel]:
        name = f"{NCNN}/{self._options.text}"
        announce(operator.name, name)
        try:
            return name, compile_layer(operator, inputs, self._options)
        except UnsupportedOperatorError as exc:
            return name, partial(_refuse, exc)
        except Exception:  # noqa: BLE001 - NumPy computes the layers that ncnn refuses
            return ONE_THREAD, one_thread_kernel(operator)


def _refuse(error: UnsupportedOperatorError, _inputs: Sequence[Value]) -> tuple[Value, ...]:
    raise error


class LayerKernel:
    """A network of one layer of the file.

    Parameters
    ----------
    operator : RuntimeOperator
    options : NcnnOptions
    threads : int

    Raises
    ------
    LoweringError
        If ncnn refuses the layer.
    """

    def __init__(self, operator: RuntimeOperator, options: NcnnOptions, threads: int) -> None:
        self._operator = operator
        names = [operand.name for operand in operator.inputs]
        self._sources = list(dict.fromkeys(names))  # one may be taken twice
        blobs = {name: f"in{place}" for place, name in enumerate(self._sources)}
        self._results = [f"out{place}" for place in range(len(operator.outputs))]
        kind = ncnn_name(operator.type)
        lines = [format_layer("Input", blob, [], [blob], "") for blob in blobs.values()]
        taken = [blobs[name] for name in names]
        params = " ".join(_format_params(operator, kind))
        lines.append(format_layer(kind, "layer", taken, self._results, params))
        count = len(blobs) + len(self._results)
        text = "\n".join([MAGIC, f"{len(lines)} {count}", *lines, ""])
        quantized = is_quantized(operator.params)
        pieces = encode_layer(kind, operator.params, operator.attributes)
        self._net = NcnnNet(
            text,
            [np.frombuffer(piece, np.float32) for piece in pieces if piece],
            threads,
            lightmode=False,
            use_int8_inference=quantized,
            **options.fields,
        )

    def __call__(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Compute the outputs: copies of ncnn's blobs without padding."""
        arrays = {o.name: x for o, x in zip(self._operator.inputs, inputs, strict=True)}
        with self._net.net.create_extractor() as extractor:
            for place, name in enumerate(self._sources):
                array = _as_mat(arrays[name])  # alive until it is copied
                # A copy: ncnn may read a few bytes beyond the end, which is only safe in its
                # own memory.
                extractor.input(f"in{place}", mat_of(array).clone())
            return tuple(self._extract(extractor, name) for name in self._results)

    def _extract(self, extractor: Any, name: str) -> Array:  # noqa: ANN401 - untyped
        status, blob = extractor.extract(name)
        batch = getattr(blob, "n", 1)  # the oldest ncnn that we use has no batches
        if status or blob.empty() or batch != 1:
            reason = "ncnn returned no result" if status or blob.empty() else "it has a batch"
            raise _make_error(self._operator, f"{reason} for {name}, status {status}")
        array: Array = np.array(blob)
        _, stored = extractor.extract(name, 1)
        if stored.elembits() == _INT8_BITS:  # integers that were passed as float32
            array = array.astype(np.int8)
        array.flags.writeable = False
        return array


def _as_mat(value: Value) -> Array:
    """Return an operand as an array that ncnn can take."""
    array = np.require(value, None, ["C", "A"])
    if array.dtype.itemsize == 4 or array.dtype == np.int8:
        return array
    return array.astype(np.int32 if array.dtype.kind in "biu" else np.float32)


def _format_params(operator: RuntimeOperator, kind: str) -> list[str]:
    """Format parameters as the file has them, without the shapes of blobs."""
    words: list[str] = []
    known = TYPES[kind].kinds
    for name, text in operator.parameter_texts:
        value = operator.params[name]
        if name in known:
            key = param_id(kind, name)
        elif name in _UNNAMED:
            key = _UNNAMED[name]
        else:
            key = int(name)  # parameters of a newer ncnn
        if isinstance(value, str):
            words.append(f'{key}="{text}"')
        elif isinstance(value, tuple):
            words.append(f"{-23300 - key}={len(value)},{text[1:-1]}")
        elif value is not None:
            words.append(f"{key}={text}")
    return words
