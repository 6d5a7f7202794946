"""KuiperInfer's tensor: what its own tests say, the orders, aliasing, and misuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.errors import EngineError, TensorError
from engine.tensor import Tensor


def counting(*shape, dtype=np.float32):
    """0, 1, 2, … in C order."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def down_the_columns(array):
    """KuiperInfer's own memory order, spelled out."""
    channels, rows, cols = array.shape
    return [
        array[c, r, k].item() for c in range(channels) for k in range(cols) for r in range(rows)
    ]


@pytest.mark.parametrize(
    ("shape", "shapes", "raw_shapes"),
    [
        ((3, 224, 200), (3, 224, 200), (3, 224, 200)),
        ((1, 13, 14), (1, 13, 14), (13, 14)),
        ((13, 15), (1, 13, 15), (13, 15)),
        ((1, 24), (1, 1, 24), (24,)),
        ((3,), (1, 1, 3), (3,)),
        ((1, 1, 5), (1, 1, 5), (5,)),
        ((2, 1, 5), (2, 1, 5), (2, 1, 5)),
        ((1, 5, 1), (1, 5, 1), (5, 1)),
        ((1,), (1, 1, 1), (1,)),
    ],
)
def test_shapes(shape, shapes, raw_shapes):
    for tensor in (Tensor.create(*shape), Tensor(np.zeros(shape))):
        assert tensor.shapes() == shapes
        assert (tensor.channels, tensor.rows, tensor.cols) == shapes
        assert tensor.raw_shapes() == raw_shapes
        assert tensor.size == np.prod(shape)
        assert tensor.plane_size == shapes[1] * shapes[2]
        assert not tensor.empty


def test_a_scalar_is_one_element():
    tensor = Tensor(np.array(7.0))
    assert tensor.shapes() == (1, 1, 1)
    assert tensor.raw_shapes() == (1,)
    assert tensor.at(0, 0, 0) == 7


def test_dtypes():
    assert Tensor.create(2).dtype == np.float32
    assert Tensor.create(2, dtype=np.int8).dtype == np.int8
    assert Tensor([1, 2]).dtype == np.int64
    assert Tensor(np.zeros(0)).empty


def test_it_is_a_view():
    array = counting(2, 3, 4)
    tensor = Tensor(array)
    assert np.shares_memory(tensor.data, array)
    assert np.shares_memory(tensor.slice(1), array)
    tensor.slice(1)[0, 0] = -1
    tensor.data[0, 2, 3] = -2
    array[0, 0, 0] = -3
    assert (array[1, 0, 0], array[0, 2, 3], tensor.at(0, 0, 0)) == (-1, -2, -3)
    assert np.shares_memory(np.asarray(tensor), array)
    assert not np.shares_memory(np.array(tensor), array)


def test_elements():
    array = counting(3, 4, 5)
    tensor = Tensor(array)
    np.testing.assert_array_equal(tensor.slice(2), array[2])
    assert tensor.at(1, 2, 3) == array[1, 2, 3]
    assert isinstance(tensor.at(1, 2, 3), np.float32)
    assert [tensor.index(i) for i in range(60)] == down_the_columns(array)
    np.testing.assert_array_equal(tensor.values(), np.arange(60))
    assert tensor.values(row_major=False).tolist() == down_the_columns(array)
    assert not np.shares_memory(tensor.values(), array)


def test_fill():
    tensor = Tensor.create(2, 3, 4)
    assert tensor.fill(2.5) is tensor
    assert set(tensor.values()) == {2.5}
    tensor.fill(range(24))
    np.testing.assert_array_equal(tensor.data, counting(2, 3, 4))
    tensor.fill(list(range(24)), row_major=False)
    assert [tensor.index(i) for i in range(24)] == list(range(24))
    assert tensor.at(1, 2, 0) == 14
    tensor.fill(np.ones((2, 3, 4)))
    assert set(tensor.values()) == {1}
    assert set(tensor.fill(0).ones().values()) == {1}


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=3, max_dims=3, max_side=5)), st.booleans()
)
def test_values_are_what_was_filled(array, row_major):
    tensor = Tensor.create(*array.shape, dtype=np.int64)
    tensor.fill(array.ravel(), row_major=row_major)
    np.testing.assert_array_equal(tensor.values(row_major=row_major), array.ravel())


def test_random_numbers():
    tensor = Tensor.create(4, 50, 50).rand(seed=7)
    assert np.array_equal(tensor.data, Tensor.create(4, 50, 50).rand(seed=7).data)
    assert not np.array_equal(tensor.data, Tensor.create(4, 50, 50).rand(seed=8).data)
    assert abs(tensor.data.mean()) < 0.05
    assert abs(tensor.data.std() - 1) < 0.05
    shifted = Tensor.create(4, 50, 50).rand(np.random.default_rng(1), mean=5, std=0.1)
    assert abs(shifted.data.mean() - 5) < 0.01
    uniform = Tensor.create(4, 50, 50).rand_uniform(1, low=-2, high=3)
    assert -2 <= uniform.data.min() < -1.9
    assert 2.9 < uniform.data.max() <= 3
    integers = Tensor.create(4, 50, 50, dtype=np.uint8).rand_uniform(1, low=3, high=6)
    assert set(integers.values()) == {3, 4, 5, 6}


def test_transform():
    tensor = Tensor(counting(2, 2, 3))
    assert tensor.transform(lambda value: 1.0 if value > 5 else -value) is tensor
    assert tensor.values().tolist() == [0, -1, -2, -3, -4, -5, 1, 1, 1, 1, 1, 1]
    assert tensor.transform(np.abs).values().tolist() == [0, 1, 2, 3, 4, 5, 1, 1, 1, 1, 1, 1]
    seen = []
    Tensor(counting(1, 2, 2)).transform(lambda v: seen.append(v) or v)
    assert seen == [0, 1, 2, 3]
    assert all(type(value) is float for value in seen)


def test_padding():
    array = np.ones((3, 4, 5), np.float32)
    tensor = Tensor(array)
    assert tensor.padding(1, 2, 3, 4, value=0.5) is tensor
    assert tensor.shapes() == (3, 7, 12)
    for c, row, col in np.ndindex(3, 7, 12):
        inside = 1 <= row < 5 and 3 <= col < 8
        assert tensor.at(c, row, col) == (1 if inside else 0.5)
    assert array.shape == (3, 4, 5)
    assert not np.shares_memory(tensor.data, array)


def test_padding_makes_three_raw_shapes():
    assert Tensor.create(4).padding(0, 0, 1, 0).raw_shapes() == (1, 1, 5)
    assert Tensor.create(2, 4).padding(0, 0, 0, 0).raw_shapes() == (1, 2, 4)


@pytest.mark.parametrize("shape", [(24,), (4, 6), (4, 3, 2), (1, 24), (1, 4, 6)])
def test_reshape_takes_and_puts_back_down_the_columns(shape):
    array = counting(2, 3, 4)
    tensor = Tensor(array.copy())
    assert tensor.reshape(shape) is tensor
    assert tensor.raw_shapes() == shape
    assert tensor.shapes() == (1,) * (3 - len(shape)) + shape
    assert [tensor.index(i) for i in range(24)] == down_the_columns(array)


@pytest.mark.parametrize("shape", [(24,), (4, 6), (4, 3, 2), (1, 24), (1, 4, 6)])
def test_row_major_reshape_is_numpys(shape):
    array = counting(2, 3, 4)
    tensor = Tensor(array).reshape(shape, row_major=True)
    assert tensor.raw_shapes() == shape
    np.testing.assert_array_equal(tensor.data.reshape(shape), array.reshape(shape))
    assert np.shares_memory(tensor.data, array)


def test_flatten():
    # the numbers of KuiperInfer's own test
    tensor = Tensor(counting(3, 3, 3)).flatten()
    assert tensor.shapes() == (1, 1, 27)
    assert tensor.raw_shapes() == (27,)
    assert [tensor.index(i) for i in range(9)] == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    row_major = Tensor(counting(3, 3, 3)).flatten(row_major=True)
    assert [row_major.index(i) for i in range(27)] == list(range(27))


def test_reshaping_back_and_forth():
    array = counting(2, 3, 4)
    tensor = Tensor(array.copy()).reshape((6, 4)).reshape((24,)).reshape((2, 3, 4))
    np.testing.assert_array_equal(tensor.data, array)


def test_clone():
    array = counting(1, 2, 3)
    array.flags.writeable = False
    tensor = Tensor(array).reshape((1, 2, 3), row_major=True)
    copy = tensor.clone()
    assert copy.raw_shapes() == tensor.raw_shapes() == (1, 2, 3)
    copy.fill(9)
    assert tensor.at(0, 0, 0) == 0


def test_add_and_multiply():
    big = Tensor(counting(3, 2, 2))
    channel = Tensor(np.array([10, 20, 30], np.float32).reshape(3, 1, 1))
    expected = counting(3, 2, 2)
    for c in range(3):
        expected[c] += 10 * (c + 1)
    for result in (big.add(channel), channel.add(big), big + channel, channel + big):
        np.testing.assert_array_equal(result.data, expected)
        assert result.dtype == np.float32
        assert not np.shares_memory(result.data, big.data)
    product = big.multiply(channel)
    assert product.values().tolist() == [0, 10, 20, 30, 80, 100, 120, 140, 240, 270, 300, 330]
    assert (big * channel).is_same(product)
    assert (channel * big).is_same(product)
    assert (big + 1).values().tolist() == list(range(1, 13))
    assert (big * 2).values().tolist() == list(range(0, 24, 2))


def test_results_have_pytorchs_dtype():
    integers, floats = Tensor.create(2, dtype=np.int64), Tensor.create(2, dtype=np.float16)
    assert (integers + floats).dtype == np.float16
    assert (integers * 0.5).dtype == np.float32
    assert (floats * 0.5).dtype == np.float16
    assert (Tensor(np.array([60000], np.float16)) * 2).at(0, 0, 0) == np.inf


def test_a_result_drops_leading_ones():
    tensor = Tensor.create(24).reshape((1, 24))
    assert (tensor + tensor).raw_shapes() == (24,)


def test_is_same():
    tensor = Tensor(counting(2, 3))
    assert tensor.is_same(tensor + 9e-6)
    assert not tensor.is_same(tensor + 1e-3)
    assert tensor.is_same(tensor + 1e-3, threshold=1e-2)
    assert not tensor.is_same(Tensor(counting(3, 2)))
    assert Tensor([np.nan, np.inf]).is_same(Tensor([np.nan, np.inf]))


def test_show():
    assert Tensor(counting(2, 1, 2)).show() == "Channel: 0\n[[0. 1.]]\nChannel: 1\n[[2. 3.]]"
    assert repr(Tensor(counting(2, 3, 4))) == "Tensor(2×3×4, float32)"


def test_batch():
    array = counting(2, 3, 4, 5)
    tensors = Tensor.batch(array)
    assert [t.raw_shapes() for t in tensors] == [(3, 4, 5)] * 2
    for sample, tensor in zip(array, tensors, strict=True):
        np.testing.assert_array_equal(tensor.data, sample)
        assert np.shares_memory(tensor.data, array)


@pytest.mark.parametrize(
    ("shape", "count", "raw_shapes"),
    [
        ((), 1, (1,)),
        ((7,), 1, (7,)),
        ((2, 7), 2, (7,)),
        ((2, 6, 7), 2, (6, 7)),
        ((2, 1, 6, 7), 2, (6, 7)),
        ((2, 3, 4, 6, 7), 2, (12, 6, 7)),
        ((2, 3, 4, 2, 6, 7), 2, (24, 6, 7)),
        ((0, 3, 6, 7), 0, None),
    ],
)
def test_batches_of_other_ranks(shape, count, raw_shapes):
    array = counting(*shape)
    tensors = Tensor.batch(array)
    assert len(tensors) == count
    assert all(tensor.raw_shapes() == raw_shapes for tensor in tensors)
    assert all(np.shares_memory(tensor.data, array) for tensor in tensors)
    values = [value for tensor in tensors for value in tensor.values()]
    np.testing.assert_array_equal(values, array.ravel())


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda: Tensor(np.zeros((2, 3, 4, 5))), "not 4 dimensions"),
        (lambda: Tensor(np.array(["a"])), "holds numbers"),
        (Tensor.create, "no shape of one to three sizes"),
        (lambda: Tensor.create(1, 2, 3, 4), "no shape of one to three sizes"),
        (lambda: Tensor.create(2, -1), "no shape of one to three sizes"),
        (lambda: Tensor.create(2, 3).at(1, 0, 0), "channel 1 is not among the 1"),
        (lambda: Tensor.create(2, 3).at(0, 2, 0), "row 2 is not among the 2"),
        (lambda: Tensor.create(2, 3).at(0, 0, -1), "col -1 is not among the 3"),
        (lambda: Tensor.create(2, 3).slice(-1), "channel -1 is not among the 1"),
        (lambda: Tensor.create(2, 3).index(6), "index 6 is not among the 6"),
        (lambda: Tensor.create(2, 3).fill([1, 2]), "2 values for 6 elements"),
        (lambda: Tensor.create(2, 3).reshape((7,)), "do not fill"),
        (lambda: Tensor.create(2, 3).reshape((-1,)), "no shape"),
        (lambda: Tensor.create(2, 3).padding(0, -1, 0, 0), "negative width"),
        (lambda: Tensor.create(2, 3) + Tensor.create(2, 4), "cannot be broadcast"),
        (lambda: Tensor.create(2, dtype=np.int8).rand(), "do not fit int8"),
        (lambda: Tensor.create(2).rand_uniform(low=1, high=0), "range 1 to 0 is empty"),
    ],
)
def test_misuse(misuse, message):
    with pytest.raises(TensorError, match=message) as caught:
        misuse()
    assert isinstance(caught.value, EngineError)


@pytest.mark.parametrize(
    "write",
    [
        lambda tensor: tensor.fill(1),
        lambda tensor: tensor.ones(),
        lambda tensor: tensor.rand(),
        lambda tensor: tensor.rand_uniform(),
        lambda tensor: tensor.transform(np.abs),
    ],
)
def test_a_read_only_array_makes_a_read_only_tensor(write):
    array = np.zeros((2, 3), np.float32)
    array.flags.writeable = False
    with pytest.raises(TensorError, match="clone it to write"):
        write(Tensor(array))
    assert write(Tensor(array).clone()) is not None
