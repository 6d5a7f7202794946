"""Encodes messages as bytes, with their arrays in separate buffers.

A message is pickled without its arrays, which the sender puts into shared memory. Decoding
makes only objects of listed types, so neither side can make the other run code.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

# Modules whose classes may be decoded.
_OWN: Final = ("engine.", "kuiper_studio.engine_service.")
# Other types of messages, and the functions that rebuild arrays and errors.
_ALLOWED: Final = frozenset(
    {
        ("builtins", "bytearray"),
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("collections", "OrderedDict"),
        ("engine.errors", "restore_error"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
        ("pathlib", "Path"),
        ("pathlib", "PosixPath"),
        ("pathlib", "WindowsPath"),
        ("pathlib._local", "PosixPath"),
        ("pathlib._local", "WindowsPath"),
    }
)


class _Decoder(pickle.Unpickler):
    """An unpickler that refuses types that are not listed."""

    @override
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        if module.startswith(_OWN) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"a message must not contain {module}.{name}")


def encode(message: object) -> tuple[bytes, list[memoryview]]:
    """Encode a message.

    Returns
    -------
    bytes
    list of memoryview
        Memory of its arrays, flat, in order; not copied.
    """
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return data, [buffer.raw() for buffer in buffers]


def decode(data: bytes, buffers: Sequence[memoryview]) -> object:
    """Decode a message.

    Parameters
    ----------
    data : bytes
    buffers : sequence of memoryview
        The buffers of `encode`, in which the message's arrays lie. Arrays of read-only memory
        are read-only.

    Raises
    ------
    pickle.UnpicklingError
        If it contains a type that is not listed.
    """
    return _Decoder(io.BytesIO(data), buffers=buffers).load()
