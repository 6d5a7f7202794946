"""A subgraph compiled by ncnn, which returns results in ncnn's layout.

ncnn packs as many channels (its *elempack*) as the processor computes at once. Returning an
image in NCHW would write it once more; returning it packed costs nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.backends.lowering import SpecialNumbersError
from engine.backends.nchwc import nchwc_to_nchw
from engine.backends.ncnn_net import NcnnNet, can_unpack, free_unused_results, mat_of, unpack
from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.backends.ncnn_lowering import NcnnNetwork
    from engine.values import Array, Held, Value

__all__ = ["NcnnCompiledSubgraph"]

_NCHW, _AS_IT_IS = 0, 1  # ncnn's extraction type
_FLOAT32 = np.dtype(np.float32)


class NcnnCompiledSubgraph:
    """A network that takes operands and returns results of several operators.

    Parameters
    ----------
    network : NcnnNetwork
    operands : sequence of str
        Names of the arrays of a call.
    threads : int

    Attributes
    ----------
    seconds : list of float
        Time of each operator in the last run.
    """

    def __init__(self, network: NcnnNetwork, operands: Sequence[str], threads: int) -> None:
        # Tiles of 6x6 results are no faster than tiles of 4x4, and their errors are several
        # times as large.
        self._net = NcnnNet(
            network.text, network.weights, threads, use_winograd63_convolution=False
        )
        self._outputs, self._verdict = network.outputs, network.verdict
        self._refinements, self._operands = network.refinements, operands
        sizes, before = zip(*network.watched, strict=True)
        self._watched = np.repeat(before, sizes)  # outputs before each number's value
        self._sources = [(operands.index(name), sides) for name, sides in network.inputs]
        self._results: list[Any] = [None] * len(self._outputs)
        self.seconds = [0.0] * len(self._outputs)
        self._right = 0  # number of results, from the first on, that equal the reference's

    def run(self, inputs: Sequence[Value]) -> None:
        """Compute the results."""
        self._results = [None] * len(self._outputs)
        self._right = 0
        arrays = [
            np.require(inputs[at], None, ["C", "A"]).reshape(sides)
            for at, sides in self._sources
        ]
        with self._net.net.create_extractor() as extractor:
            extractor.set_light_mode(False)
            for place, array in enumerate(arrays):
                extractor.input(f"in{place}", mat_of(array))
            results = []
            now = time.perf_counter()
            for place, output in enumerate(self._outputs):  # extracting one computes its inputs
                kind = _AS_IT_IS if output.elempack else _NCHW
                results.append(_extract(extractor, output.blob, kind))
                if output.seen_by is not None:
                    _extract(extractor, output.seen_by, _AS_IT_IS)
                before, now = now, time.perf_counter()
                self.seconds[place] = now - before
            finite = np.isfinite(np.array(_extract(extractor, self._verdict, _NCHW)))
        self._results = [
            mat if output.elempack else _to_array(mat, output.shape)
            for mat, output in zip(results, self._outputs, strict=True)
        ]
        self._refine(inputs)
        for result in self._results:
            if isinstance(result, np.ndarray):
                result.flags.writeable = False
        self._right = len(results) if finite.all() else self._count_right(finite)

    def _refine(self, inputs: Sequence[Value]) -> None:
        for each in self._refinements:
            started = time.perf_counter()
            operand = (
                np.require(inputs[self._operands.index(each.operand)], None, ["C"])
                if each.source is None
                else self._results[each.source]
            )
            runs = zip(
                _split_runs(operand), _split_runs(self._results[each.output]), strict=True
            )
            for x, result in runs:
                each.refine(x.reshape(-1), result.reshape(-1))
            self.seconds[each.output] += time.perf_counter() - started

    def _count_right(self, finite: Array) -> int:
        """Count the results before the first number that is not finite."""
        count = int(self._watched[~finite].min())
        # Of a summand only the sum is checked.
        for place, result in enumerate(self._results[:count]):
            blocks = result if isinstance(result, np.ndarray) else _read_blocks(result)
            if not np.isfinite(blocks).all():
                return place
        return count

    def shown(self, place: int) -> Array | None:
        """Return a result of the last run in NCHW; None if it is packed."""
        result = self._results[place]
        return result if isinstance(result, np.ndarray) else None

    def checked(self, place: int, inputs: Sequence[Held]) -> Held:  # noqa: ARG002
        """Return the result of an operator; packed ones only once.

        Raises
        ------
        SpecialNumbersError
            If NaN or infinities occur in it or upstream: ncnn spreads or ignores them.
        """
        if place >= self._right:
            raise SpecialNumbersError
        result = self._results[place]
        if isinstance(result, np.ndarray):
            return result
        self._results[place] = None  # the value owns its memory
        return LazyArray(result, self._outputs[place].shape, _FLOAT32, _to_nchw, _images)


def _extract(extractor: Any, blob: int, kind: int) -> Any:  # noqa: ANN401 - untyped
    status, mat = extractor.extract(blob, kind)
    if status:
        raise RuntimeError("ncnn computed nothing")
    return mat


def _to_array(mat: Any, shape: tuple[int, ...]) -> Array:  # noqa: ANN401 - untyped
    return np.ascontiguousarray(np.array(mat, copy=False)).reshape(shape)


def _split_runs(result: Any) -> Sequence[Array]:  # noqa: ANN401 - untyped
    """Contiguous parts of a result, in its own memory."""
    array = result if isinstance(result, np.ndarray) else _read_blocks(result)
    return [array] if array.flags.c_contiguous else list(array)


def _read_blocks(mat: Any) -> Array:  # noqa: ANN401 - untyped
    """Return the elements of an ncnn matrix: (G, H, W, b), or a vector."""
    size = mat.elempack
    header = mat.elempack, mat.elemsize, mat.w, mat.cstep
    # NumPy accepts only matrices of single numbers, so b packed numbers become b columns.
    # Then there are no gaps between the groups.
    mat.elempack, mat.elemsize = 1, mat.elemsize // size
    mat.w, mat.cstep = mat.w * size, mat.cstep * size
    memory = np.array(mat, copy=False)
    mat.elempack, mat.elemsize, mat.w, mat.cstep = header
    if memory.ndim < 3:
        return memory
    groups, height, width = memory.shape
    return memory.reshape(groups, height, width // size, size)


def _images(mat: Any) -> Array | None:  # noqa: ANN401 - untyped
    """Return the elements of an ncnn image as (1, G, H, W, b), in its own memory."""
    blocks = _read_blocks(mat)
    return blocks[np.newaxis] if blocks.ndim == 4 else None


def _to_nchw(mat: Any, shape: tuple[int, ...]) -> Array:  # noqa: ANN401 - untyped
    """Convert a result to NCHW, in the memory of an earlier one if possible."""
    free_unused_results()
    if mat.dims == 3 and mat.elempack > 1 and can_unpack():
        array = np.empty((mat.c * mat.elempack, mat.h, mat.w), _FLOAT32)
        unpack(mat, array)
        return array.reshape(shape)
    blocks = _read_blocks(mat)
    if blocks.ndim == 1:
        return blocks.copy().reshape(shape)
    return nchwc_to_nchw(blocks[None], shape)
