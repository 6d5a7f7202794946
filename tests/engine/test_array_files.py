"""Files of arrays, read back by NumPy's and safetensors' own readers."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from engine.array_files import is_numeric, pieces, write_npy, write_npz, write_safetensors

RNG = np.random.default_rng(5)

ARRAYS = {
    "f32": RNG.standard_normal((3, 4, 5)).astype(np.float32),
    "f16": RNG.standard_normal((7,)).astype(np.float16),
    "f64": RNG.standard_normal((2, 2)),
    "bool": np.array([[True, False, True]]),
    "i8": np.arange(-3, 3, dtype=np.int8),
    "u8": np.arange(5, dtype=np.uint8),
    "i64": np.array([-(1 << 62), 1 << 62]),
    "c64": np.array([1 + 2j, np.nan], np.complex64),
    "scalar": np.array(2.5, np.float32),
    "no elements": np.zeros((0, 3), np.float32),
    "no elements, turned": np.zeros((4, 0), np.float16).T,
    "many dimensions": np.ones((1,) * 32, np.float32),
    "turned": RNG.standard_normal((6, 9)).astype(np.float32).T,
    "Fortran": np.asfortranarray(RNG.standard_normal((3, 4, 5)).astype(np.float32)),
    "every third": np.arange(30, dtype=np.int16)[::3],
    "backwards": np.arange(10, dtype=np.float32)[::-1],
    "broadcast": np.broadcast_to(np.float32(3), (50, 4)),
    "big-endian": np.arange(6, dtype=">f4").reshape(2, 3),
    "big-endian turned": np.arange(6, dtype=">i8").reshape(2, 3).T,
    "not finite": np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    "odd address": np.frombuffer(bytes(range(9)), np.uint8)[1:].view(np.float32),
}


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    little = expected.dtype.newbyteorder("<")
    return (
        found.dtype == little
        and found.shape == expected.shape
        and found.tobytes() == np.ascontiguousarray(expected).astype(little).tobytes()
    )


@pytest.mark.parametrize("name", ARRAYS)
def test_npy(tmp_path, name):
    write_npy(tmp_path / "x.npy", ARRAYS[name])
    assert same(np.load(tmp_path / "x.npy", allow_pickle=False), ARRAYS[name])


def test_npy_is_byte_for_byte_numpys(tmp_path):
    write_npy(tmp_path / "ours.npy", ARRAYS["f32"])
    np.save(tmp_path / "theirs.npy", ARRAYS["f32"])
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@pytest.mark.parametrize("most", [1, 7, 130, None], ids=["1", "7", "130", "no writev"])
@pytest.mark.parametrize("name", ["f32", "no elements", "turned"])
def test_npy_where_the_system_takes_a_part_at_a_time(tmp_path, monkeypatch, name, most):
    write, writev = os.write, getattr(os, "writev", None)
    if most is None or writev is None:
        monkeypatch.delattr(os, "writev", raising=False)
    else:
        parts = lambda file, buffers: write(file, b"".join(buffers)[:most])  # noqa: E731
        monkeypatch.setattr(os, "writev", parts)
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:most]))
    write_npy(tmp_path / "x.npy", ARRAYS[name])
    assert same(np.load(tmp_path / "x.npy", allow_pickle=False), ARRAYS[name])


def test_npy_does_not_replace_a_file(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        write_npy(tmp_path / "x.npy", ARRAYS["f32"])
    assert (tmp_path / "x.npy").read_bytes() == b"mine"


def test_npz(tmp_path):
    write_npz(tmp_path / "x.npz", ARRAYS.items())
    with np.load(tmp_path / "x.npz", allow_pickle=False) as found:
        assert set(found.files) == set(ARRAYS)
        assert all(same(found[name], array) for name, array in ARRAYS.items())


def test_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    write_safetensors(path, ARRAYS, {"manifest": 'with "quotes" and é'})
    found = safetensors.numpy.load_file(path)
    assert set(found) == set(ARRAYS)
    assert all(same(found[name], array) for name, array in ARRAYS.items())
    with safetensors.safe_open(path, "np") as opened:
        assert opened.metadata() == {"manifest": 'with "quotes" and é'}


def test_safetensors_are_aligned(tmp_path):
    """Whoever maps the file can view each array in place."""
    path = tmp_path / "x.safetensors"
    arrays = {
        "a": np.ones(3, np.uint8), "b": np.ones(5, np.float64), "c": np.ones(1, np.bool_),
        "d": np.ones(3, np.float16), "e": np.ones((2, 1), "f4"), "f": np.ones(7, np.int64),
    }  # fmt: skip
    for more in ("", "x", "xxxxx"):  # the header is of any length
        write_safetensors(path, arrays, {"manifest": more})
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + length])
        assert (8 + length) % 8 == 0
        for name, array in arrays.items():
            begin, end = header[name]["data_offsets"]
            assert (8 + length + begin) % array.itemsize == 0, name
            assert end - begin == array.nbytes
        path.unlink()


def test_safetensors_without_arrays(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {})
    assert safetensors.numpy.load_file(tmp_path / "x.safetensors") == {}


def test_safetensors_refuses_a_header_that_nobody_reads(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.array_files._LONGEST_HEADER", 100)
    with pytest.raises(ValueError, match="readers accept 100"):
        write_safetensors(tmp_path / "x", {"a": ARRAYS["f32"]}, {"manifest": "x" * 100})
    assert not (tmp_path / "x").exists()


def test_equal_arrays_give_equal_files(tmp_path):
    for name in ("one", "two"):
        write_npz(tmp_path / f"{name}.npz", ARRAYS.items())
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("size", [1, 8, 1 << 20])
def test_pieces_are_the_elements_in_order(monkeypatch, name, size):
    monkeypatch.setattr("engine.array_files._PIECE", size)
    monkeypatch.setattr("engine.array_files._BUFFER", size)
    array = ARRAYS[name]
    found = b"".join(bytes(piece) for piece in pieces(array))
    assert found == np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


def test_pieces_are_no_copies(tmp_path):
    array = np.zeros(4 << 20, np.float32)
    for turned in (array, array.reshape(2048, 2048).T):
        tracemalloc.start()
        write_npy(tmp_path / f"{turned.ndim}.npy", turned)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 << 20


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_the_progress_callback_may_cancel(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("engine.array_files._PIECE", 16)
    seen = []

    def watch(piece: memoryview) -> None:
        seen.append(len(piece))
        if len(seen) == 3:
            raise InterruptedError("enough")

    array = np.arange(100, dtype=np.float32)
    write = {
        "npy": lambda path: write_npy(path, array, watch),
        "npz": lambda path: write_npz(path, [("a", array)], watch),
        "safetensors": lambda path: write_safetensors(path, {"a": array}, None, watch),
    }[kind]
    with pytest.raises(InterruptedError, match="enough"):
        write(tmp_path / "x")
    assert seen == [16, 16, 16]


@pytest.mark.parametrize("write", [write_npy, lambda p, a: write_npz(p, [("a", a)])])
def test_no_file_is_overwritten(tmp_path, write):
    (tmp_path / "x").write_text("old")
    with pytest.raises(FileExistsError):
        write(tmp_path / "x", ARRAYS["f32"])
    assert (tmp_path / "x").read_text() == "old"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros(1), True),
        (np.zeros(1, bool), True),
        (np.array(["text"]), False),
        (np.array([None]), False),
        (np.zeros(1, [("a", "i4")]), False),
        (np.array(["2026-01-01"], "M8[D]"), False),
    ],
)
def test_is_numeric(array, expected):
    assert is_numeric(array) is expected
