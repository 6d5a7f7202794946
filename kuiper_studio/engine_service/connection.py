"""One end of the connection between a window and the engine's process.

Messages are framed on a Unix socket. Large arrays go through an unnamed file in memory
(memfd) whose descriptor is sent with the message. It has no name, so it never remains after the
last process that uses it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import struct
import tempfile
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Final

from kuiper_studio.engine_service.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Connection", "ConnectionLostError"]

_HEADER: Final = struct.Struct("<QIB")  # bytes of the message, number of arrays, their offset
_INLINE, _SHARED = 0, 1
_SIZE: Final = struct.Struct("<Q")
_SHARED_FROM: Final = 1 << 16  # bytes; sending fewer takes less time than making a file
_ALIGNMENT: Final = 64
_MOST_ARRAYS: Final = 1 << 20
_PIECE: Final = 1 << 20


class ConnectionLostError(Exception):
    """The other end is gone."""


class Connection:
    """Sends and receives messages; one thread may send while another receives.

    Parameters
    ----------
    end : socket.socket
        One of a pair of Unix stream sockets; closed with the connection.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = Lock()

    def send(self, message: object) -> None:
        """Send a message.

        Raises
        ------
        ConnectionLostError
            If the other end is gone.
        """
        data, buffers = encode(message)
        sizes = [buffer.nbytes for buffer in buffers]
        shared = sum(sizes) >= _SHARED_FROM
        header = _HEADER.pack(len(data), len(sizes), _SHARED if shared else _INLINE)
        head = b"".join((header, *map(_SIZE.pack, sizes), data))
        try:
            if shared:
                descriptor = _write_shared(buffers)
                try:
                    with self._sending:
                        sent = socket.send_fds(self._socket, [head], [descriptor])
                        if sent < len(head):
                            self._socket.sendall(memoryview(head)[sent:])
                finally:
                    os.close(descriptor)
            else:
                with self._sending:
                    self._socket.sendall(b"".join((head, *buffers)))
        except OSError as exc:
            raise ConnectionLostError(str(exc)) from None

    def receive(self) -> object:
        """Wait for the next message.

        Raises
        ------
        ConnectionLostError
            If the other end is gone, or sends an invalid message.
        """
        descriptors: list[int] = []
        try:
            head = self._read(_HEADER.size, descriptors)
            length, count, place = _HEADER.unpack(head)
            _require_message(possible=count <= _MOST_ARRAYS)
            packed = self._read(count * _SIZE.size, descriptors)
            sizes = [size for (size,) in _SIZE.iter_unpack(packed)]
            data = self._read(length, descriptors)
            if place == _SHARED:
                buffers = _map_shared(descriptors.pop(), sizes)
            else:
                buffers = [memoryview(self._read(size, descriptors)) for size in sizes]
            return decode(data, buffers)
        except ConnectionLostError:
            raise
        except OSError as exc:
            raise ConnectionLostError(str(exc)) from None
        except Exception as exc:  # unpickling invalid bytes can raise any error
            raise ConnectionLostError(f"received an invalid message: {exc}") from exc
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def close(self) -> None:
        """Close the connection; wakes a thread that is receiving."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, nbytes: int, descriptors: list[int]) -> bytes:
        """Read `count` bytes; put received file descriptors into `descriptors`."""
        parts: list[bytes] = []
        missing = nbytes
        while missing:
            part, found, _, _ = socket.recv_fds(self._socket, min(missing, _PIECE), 1)
            descriptors.extend(found)
            if not part:
                raise ConnectionLostError("the other end is closed")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def _require_message(*, possible: bool) -> None:
    if not possible:
        raise ConnectionLostError("received an invalid message")


def _places(sizes: Sequence[int]) -> list[int]:
    """Return the offset of each array in shared memory, and the total size."""
    return list(accumulate((-(-s // _ALIGNMENT) * _ALIGNMENT for s in sizes), initial=0))


def _write_shared(buffers: Sequence[memoryview]) -> int:
    """Copy arrays into a new unnamed file; return its descriptor."""
    places = _places([buffer.nbytes for buffer in buffers])
    descriptor = _unnamed_file()
    try:
        os.ftruncate(descriptor, places[-1])
        for place, buffer in zip(places, buffers, strict=False):
            written = 0
            while written < buffer.nbytes:
                written += os.pwrite(descriptor, buffer[written:], place + written)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _map_shared(descriptor: int, sizes: Sequence[int]) -> list[memoryview]:
    """Map the arrays of an unnamed file and close it; the mapping keeps its memory."""
    places = _places(sizes)
    try:
        _require_message(possible=os.fstat(descriptor).st_size >= places[-1])
        whole = memoryview(mmap.mmap(descriptor, places[-1], prot=mmap.PROT_READ))
    finally:
        os.close(descriptor)
    return [whole[p : p + size] for p, size in zip(places, sizes, strict=False)]


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("kuiper-studio", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:  # systems without memfd
        return os.dup(file.fileno())
