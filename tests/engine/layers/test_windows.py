"""Where windows stand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers.layer import OperatorCall
from engine.layers.windows import (
    Windows,
    axis_taps,
    blocks,
    new_output,
    per_axis,
    ready,
    reduce_axis,
    require_image,
    spatial_rank,
    working_dtype,
)
from engine.memory_bound import Room, bounded


@pytest.mark.parametrize(
    ("operator_type", "rank"),
    [("nn.MaxPool2d", 2), ("F.avg_pool1d", 1), ("nn.BatchNorm3d", 3)],
)
def test_spatial_rank(operator_type, rank):
    assert spatial_rank(OperatorCall("x", operator_type, {})) == rank


def test_spatial_rank_of_a_type_without_one():
    with pytest.raises(ParameterError, match="does not contain 1d, 2d or 3d"):
        spatial_rank(OperatorCall("x", "nn.ReLU", {}))


@pytest.mark.parametrize(
    ("value", "rank", "expected"),
    [(3, 2, (3, 3)), ((3,), 3, (3, 3, 3)), ((1, 2), 2, (1, 2)), ((4,), 1, (4,))],
)
def test_per_axis(value, rank, expected):
    assert per_axis("stride", value, rank) == expected


@pytest.mark.parametrize(
    ("value", "least", "message"),
    [
        ((1, 2, 3), 0, "stride=(1, 2, 3) has 3 numbers; 2 spatial axes need 2"),
        (0, 1, "stride=0 must not be less than 1"),
        ((1, -1), 0, "stride=(1, -1) must not be less than 0"),
    ],
)
def test_per_axis_errors(value, least, message):
    with pytest.raises(ParameterError) as caught:
        per_axis("stride", value, 2, least)
    assert str(caught.value) == message
    assert caught.value.parameter == "stride"


def test_require_image():
    require_image(np.zeros((1, 2, 3, 4)), 2)
    require_image(np.zeros((2, 3, 4)), 2)
    with pytest.raises(LayerError) as caught:
        require_image(np.zeros((5, 6)), 2)
    assert str(caught.value) == (
        "input has 2 dimensions, not 4 (or 3 without a batch): its shape is 5×6"
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "i4"), ("c8", "c8")],
)
def test_working_dtype(dtype, expected):
    assert working_dtype(np.dtype(dtype)) == np.dtype(expected)


def test_ready_copies_only_what_is_not_fit():
    fit = np.arange(4, dtype=np.float32)
    assert np.shares_memory(ready(fit, np.dtype("f4")), fit)
    unaligned = np.frombuffer(b"\0" + fit.tobytes(), np.uint8)[1:].view(np.float32)
    assert not unaligned.flags.aligned
    assert ready(unaligned, np.dtype("f4")).flags.aligned
    np.testing.assert_array_equal(ready(unaligned, np.dtype("f4")), fit)


def test_an_absurd_output_is_refused_before_memory_is_taken():
    with bounded(Room(1 << 30, held=1 << 20)), pytest.raises(LayerError) as caught:
        new_output((1 << 20, 1 << 20), np.dtype("f4"))
    assert str(caught.value) == (
        "an array 1048576×1048576 of float32 would take 4.4 TB; the memory bound is 1.1 GB, "
        "of which 1.0 MB are taken: --memory-bound raises it, or Debug → Memory… in the window"
    )


@pytest.mark.parametrize(
    ("numbers", "ceil_mode", "expected"),
    [
        # size, kernel, stride, dilation, before, after
        pytest.param((5, 3, 1, 1, 0, 0), False, 3, id="valid"),
        pytest.param((5, 3, 1, 1, 1, 1), False, 5, id="same"),
        pytest.param((5, 3, 2, 1, 0, 0), False, 2, id="stride"),
        pytest.param((6, 3, 2, 1, 0, 0), False, 2, id="rounds-down"),
        pytest.param((6, 3, 2, 1, 0, 0), True, 3, id="rounds-up"),
        pytest.param((7, 3, 1, 2, 0, 0), False, 3, id="dilation"),
        # The third window would start at 4 + 1 - 1 = 4, in the padding behind.
        pytest.param((4, 1, 2, 1, 0, 1), True, 2, id="last-must-start-inside"),
        pytest.param((1, 2, 2, 1, 0, 0), True, 1, id="ceil-of-a-short-image"),
    ],
)
def test_counts(numbers, ceil_mode, expected):
    size, kernel, stride, dilation, before, after = numbers
    windows = Windows((kernel,), (stride,), (dilation,), ((before, after),))
    assert windows.counts((size,), ceil_mode=ceil_mode) == (expected,)


def test_no_room_for_a_window():
    windows = Windows((3, 3), (1, 1), (1, 4), ((0, 0), (1, 1)))
    with pytest.raises(LayerError) as caught:
        windows.counts((5, 5))
    assert str(caught.value) == (
        "spatial axis 2 of 2 has no room for a window: size 5 + padding 1 + 1 is less than "
        "its extent 9 (4 × (3 − 1) + 1)"
    )


@pytest.mark.parametrize(
    "numbers", list(itertools.product((1, 2, 5), (1, 3), (1, 2, 3), (1, 2), (0, 1, 3, -2)))
)
def test_axis_taps(numbers):
    size, kernel, stride, dilation, before = numbers
    count = 4
    found = axis_taps(size, count, kernel, stride, dilation, before)
    got = [
        list(zip(range(count)[outputs], range(size)[inputs], strict=True))
        for outputs, inputs in found
    ]
    read = [
        [
            (o, o * stride + tap * dilation - before)
            for o in range(count)
            if 0 <= o * stride + tap * dilation - before < size
        ]
        for tap in range(kernel)
    ]
    assert got == [pairs for pairs in read if pairs]


@pytest.mark.parametrize("stride", [1, 3, (1 << 31) - 9, 1 << 40])
def test_taps_that_only_read_padding_are_not_looked_at(stride):
    """Two outputs, the image of 3 under the middle of the second's window."""
    kernel = (1 << 31) - 1
    before = stride + kernel // 2
    found = list(axis_taps(3, 2, kernel, stride, 1, before))
    got = sorted(
        pair
        for outputs, inputs in found
        for pair in zip(range(2)[outputs], range(3)[inputs], strict=True)
    )
    # Output 0 begins `stride` farther out: it sees the image where its window is long enough.
    first = [(0, 0), (0, 1), (0, 2)] if stride + kernel // 2 + 2 < kernel else []
    assert got == [*first, (1, 0), (1, 1), (1, 2)]
    assert len(found) <= 6


def test_numbers_of_taps_go_through_the_rows_of_the_kernel():
    windows = Windows((3, 4), (1, 1), (1, 1), ((1, 1), (3, 0)))
    found = [tap for tap, _, _ in windows.taps((1, 1), (slice(0, 1), slice(0, 1)))]
    assert found == [1 * 4 + 3]


@pytest.mark.parametrize("limit", [1, 30, 70, 150, 1000])
@pytest.mark.parametrize("counts", [(7,), (3, 5), (2, 3, 4)])
def test_blocks_are_runs_that_cover_everything(counts, limit):
    positions = np.arange(np.prod(counts)).reshape(counts)
    found = [positions[block].ravel() for block in blocks(counts, 10, limit)]
    np.testing.assert_array_equal(np.concatenate(found), positions.ravel())
    assert max(map(len, found)) <= max(1, limit // 10)


def test_reduce_axis_with_uneven_windows():
    image = np.array([[1.0, 5.0, 2.0, 4.0]])
    taps = [
        (np.array([0, 1]), np.array([0, 2])),
        (np.array([0, 1]), np.array([1, 3])),
        (np.array([1]), np.array([0])),
    ]
    result = reduce_axis(image, 1, 3, iter(taps), np.add, 0)
    np.testing.assert_array_equal(result, [[6.0, 7.0, 0.0]])
