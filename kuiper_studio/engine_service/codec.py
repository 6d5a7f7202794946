"""Messages as bytes, and their arrays beside them.

A message is pickled, and its arrays are left where they are: whoever sends puts them into
memory that both sides see. What comes in makes only objects of the kinds that messages consist
of, so neither side can make the other run code.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode", "encode"]

# Modules whose classes may come in.
_OWN: Final = ("engine.", "kuiper_studio.engine_service.")
# What else messages consist of, and what makes arrays and errors again.
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
    """Refuses everything that no message consists of."""

    @override
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        if module.startswith(_OWN) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"a message may not hold {module}.{name}")


def encode(message: object) -> tuple[bytes, list[memoryview]]:
    """Spell a message.

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
    """Make a message again.

    Parameters
    ----------
    data : bytes
    buffers : sequence of memoryview
        What `encode` gave; arrays of the message lie in it. Those of memory that is read-only
        are read-only.

    Raises
    ------
    pickle.UnpicklingError
        If it holds anything but what messages consist of.
    """
    return _Decoder(io.BytesIO(data), buffers=buffers).load()
