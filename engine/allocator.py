"""Checks every array of NumPy before its memory is allocated.

NumPy lets a program replace the allocator of arrays (NEP 49) for the current thread and
context. Here the memory still comes from NumPy's own allocator, but a function is called
first with the number of bytes. So the intermediate arrays of a layer count, too, whoever wrote
it, and no layer can forget the check.

The functions of NumPy's C interface that this needs have had the same places in its table
since NumPy 1.22. Freeing calls NumPy's own function directly, because arrays may outlive
Python's functions at the end of a process.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["get_allocator_setter", "make_checked_allocator"]

_SET_HANDLER: Final = 304  # PyDataMem_SetHandler, PyDataMem_GetHandler
_GET_HANDLER: Final = 305
_CAPSULE: Final = b"mem_handler"
_VERSION: Final = 1
_SMALL: Final = 1 << 12  # bytes; the check of a smaller array would take longer than the array

_VOID, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_MALLOC: Final = ctypes.PYFUNCTYPE(_VOID, _VOID, _SIZE)
_CALLOC: Final = ctypes.PYFUNCTYPE(_VOID, _VOID, _SIZE, _SIZE)
_REALLOC: Final = ctypes.PYFUNCTYPE(_VOID, _VOID, _VOID, _SIZE)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler`` of NumPy's ``ndarraytypes.h``."""

    _fields_ = [  # type: ignore[mutable-override]
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _VOID),
        ("malloc", _VOID),
        ("calloc", _VOID),
        ("realloc", _VOID),
        ("free", _VOID),
    ]


@cache
def _table() -> Any:  # noqa: ANN401 - an array of pointers
    """NumPy's C interface."""
    capsule = import_module("numpy._core._multiarray_umath")._ARRAY_API  # noqa: SLF001
    return ctypes.cast(_pointer_in(capsule, None), ctypes.POINTER(_VOID))


def _pointer_in(capsule: object, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = _VOID, [ctypes.py_object, ctypes.c_char_p]
    pointer: int = get(capsule, name)
    return pointer


@cache
def get_allocator_setter() -> Callable[[object], object]:
    """Return NumPy's function that sets the allocator of the current context.

    Returns
    -------
    callable
        Takes an allocator and returns the previous one.
    """
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    function: Callable[[object], object] = kind(_table()[_SET_HANDLER])
    return function


def make_checked_allocator(fits: Callable[[int], bool]) -> object:
    """Make an allocator that calls a check first.

    Parameters
    ----------
    fits : callable
        Takes a number of bytes; if it returns False, NumPy raises MemoryError with shape and
        dtype. Not called for small arrays. Must not raise.

    Returns
    -------
    object
        For `get_allocator_setter`. NumPy's own allocator if its version is unknown here.
    """
    present = ctypes.PYFUNCTYPE(ctypes.py_object)(_table()[_GET_HANDLER])()
    own = _Handler.from_address(_pointer_in(present, _CAPSULE))
    if own.version != _VERSION:
        return present
    take, take_zeros, change = _MALLOC(own.malloc), _CALLOC(own.calloc), _REALLOC(own.realloc)

    def malloc(context: Any, size: int) -> Any:  # noqa: ANN401 - a pointer
        return take(context, size) if size < _SMALL or fits(size) else None

    def calloc(context: Any, count: int, size: int) -> Any:  # noqa: ANN401
        few = count * size < _SMALL or fits(count * size)
        return take_zeros(context, count, size) if few else None

    def realloc(context: Any, memory: Any, size: int) -> Any:  # noqa: ANN401
        return change(context, memory, size) if size < _SMALL or fits(size) else None

    functions = (_MALLOC(malloc), _CALLOC(calloc), _REALLOC(realloc))
    pointers = (ctypes.cast(function, _VOID) for function in functions)
    handler = _Handler(b"asking", _VERSION, own.context, *pointers, own.free)
    # Kept alive: arrays may be freed after Python has cleared its modules.
    for kept in (present, handler, *functions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [_VOID, ctypes.c_char_p, _VOID]
    allocator: object = make(ctypes.addressof(handler), _CAPSULE, None)
    return allocator
