"""Messages across a socket, with arrays of all sizes, in both directions at once."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from kuiper_studio.engine_service.connection import Connection, ConnectionLostError
from kuiper_studio.engine_service.protocol import Answer

FOLDER = Path("/proc/self/fd")


@pytest.fixture
def ends():
    one, other = (Connection(end) for end in socket.socketpair())
    yield one, other
    one.close()
    other.close()


def descriptors():
    return {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("nbytes", [0, 1, 65_535, 65_536, 5_000_000])
def test_an_array_of_any_size(ends, nbytes):
    one, other = ends
    value = np.random.default_rng(nbytes).integers(0, 256, nbytes).astype(np.uint8)
    threading.Thread(target=one.send, args=(Answer(3, value, found=True),)).start()
    found = other.receive()
    assert (found.ticket, found.found) == (3, True)
    np.testing.assert_array_equal(found.result, value)


def test_several_arrays_of_other_sizes(ends):
    one, other = ends
    values = tuple(np.full(count, count, np.float32) for count in (1, 100_000, 3, 0, 77))
    one.send(Answer(1, values))
    for found, value in zip(other.receive().result, values, strict=True):
        np.testing.assert_array_equal(found, value)
        assert not found.flags.writeable


def test_messages_stay_in_order(ends):
    one, other = ends
    sent = [Answer(k, np.full(k * 3000, k, np.uint8)) for k in range(60)]
    sender = threading.Thread(target=lambda: [one.send(each) for each in sent])
    sender.start()
    for k in range(60):
        found = other.receive()
        assert found.ticket == k
        assert found.result.size == 3000 * k
        assert (found.result == k).all()
    sender.join()


def test_several_threads_may_send(ends):
    one, other = ends
    threads = [
        threading.Thread(
            target=lambda k=k: [
                one.send(Answer(k, np.full(50_000, k, np.uint8))) for _ in range(20)
            ]
        )
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    counts = dict.fromkeys(range(4), 0)
    for _ in range(80):
        found = other.receive()
        assert (found.result == found.ticket).all()
        counts[found.ticket] += 1
    assert set(counts.values()) == {20}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs Linux's /proc")
def test_no_descriptor_is_left(ends):
    one, other = ends
    before = descriptors()
    for _ in range(20):
        one.send(Answer(1, np.zeros(200_000)))
        other.receive()
    assert descriptors() == before


def test_the_other_end_is_gone(ends):
    one, other = ends
    other.close()
    with pytest.raises(ConnectionLostError):
        one.receive()
    with pytest.raises(ConnectionLostError):
        one.send(Answer(1, np.zeros(1000)))


def test_closing_wakes_waiting_threads(ends):
    one, other = ends
    ended = threading.Event()

    def wait():
        with pytest.raises(ConnectionLostError):
            other.receive()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    one.close()
    assert ended.wait(5)


@pytest.mark.parametrize("garbage", [b"\xff" * 64, b"\0" * 13 + b"rest"])
def test_other_bytes_are_no_message(garbage):
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(garbage)
        theirs.shutdown(socket.SHUT_WR)
        connection = Connection(ours)
        with pytest.raises(ConnectionLostError):
            connection.receive()
        connection.close()
