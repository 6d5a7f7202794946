"""Memory for arrays that are read one after the other."""

import gc
import weakref

import numpy as np
import pytest

from engine.blocks import Blocks
from engine.errors import FeedError
from engine.memory_bound import Room, bounded
from engine.numpy_files import read_npy


def test_arrays_do_not_overlap():
    blocks = Blocks()
    taken = [blocks.take(size) for size in (1, 63, 64, 65, 1000, 0, 7)]
    for number, each in enumerate(taken):
        each.fill(number)
    for number, each in enumerate(taken):
        assert (each == number).all()
    assert [each.size for each in taken] == [1, 63, 64, 65, 1000, 0, 7]


def test_an_array_larger_than_a_block():
    blocks = Blocks()
    small, large, after = blocks.take(10), blocks.take(40 << 20), blocks.take(10)
    small[:], large[-10:], after[:] = 1, 2, 3
    assert (small.sum(), large[-10:].sum(), after.sum()) == (10, 20, 30)


def test_a_block_is_no_larger_than_the_bound():
    with bounded(Room(100_000)):
        assert Blocks().take(1000).size == 1000


def test_a_block_goes_with_its_last_array():
    blocks = Blocks()
    first, second = blocks.take(16 << 20), blocks.take(16 << 20)
    block = weakref.ref(first.base)
    del first, blocks
    gc.collect()
    assert block() is not None
    del second
    gc.collect()
    assert block() is None


@pytest.mark.parametrize("order", ["C", "F"])
def test_files_are_read_into_blocks(tmp_path, order):
    blocks, arrays = Blocks(), {}
    for dtype in ("<f4", ">f8", "?", "<c8", "<i2"):
        array = np.arange(60).reshape(3, 4, 5).astype(dtype, order=order)
        path = tmp_path / f"{len(arrays)}.npy"
        np.save(path, array)
        arrays[path] = array
    found = {path: read_npy(path, blocks) for path in arrays}
    for path, array in arrays.items():
        np.testing.assert_array_equal(found[path], array)
        assert found[path].dtype == array.dtype
        assert not found[path].flags.writeable


def test_a_file_that_is_cut_short(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(100))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FeedError, match="cut short: 792 of 800 bytes"):
        read_npy(path, Blocks())
