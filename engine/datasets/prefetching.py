"""Tells the processor what compiled loops will read soon.

A loop that reads once what another library has written waits for memory more than it computes.
The processor looks ahead by itself only where loops do little else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["prefetch"]

_READ, _KEEP, _DATA = 0, 3, 1  # arguments of LLVM's instruction


def prefetch(array: Array, place: int) -> None:
    """Let the processor read an element into its cache; without compiling, do nothing.

    Parameters
    ----------
    array : ndarray
        C-contiguous.
    place : int
        Of the element in memory. It may lie behind the array: nothing is read.
    """


@overload(prefetch)  # type: ignore[untyped-decorator]  # Numba has no types
def _prefetch(array: Any, place: Any) -> Any:  # noqa: ANN401, ARG001 - types of Numba
    def call(array: Any, place: Any) -> Any:  # noqa: ANN401
        _fetch(array, place)

    return call


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(_: Any, array: Any, place: Any) -> Any:  # noqa: ANN401
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(start, [arguments[1]]), byte)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, *[number] * 3])
        )
        builder.call(function, [address, *map(number, (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(array, place), generate
