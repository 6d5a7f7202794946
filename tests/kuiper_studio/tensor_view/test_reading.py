"""How the dimensions of arrays are read."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.tensor_view.reading import Kind, read_shape


@pytest.mark.parametrize(
    ("shape", "kind", "channels", "plane", "fixed"),
    [
        pytest.param((1, 64, 56, 56), Kind.PLANES, 64, (56, 56), [("Batch", 1)], id="4-D"),
        pytest.param((2, 3, 5, 7), Kind.PLANES, 3, (5, 7), [("Batch", 2)], id="batch"),
        pytest.param((3, 5, 7), Kind.PLANES, 3, (5, 7), [], id="3-D"),
        pytest.param((5, 7), Kind.PLANES, 1, (5, 7), [], id="2-D"),
        pytest.param(
            (2, 8, 4, 5, 6), Kind.PLANES, 8, (5, 6), [("Batch", 2), ("Depth", 4)], id="5-D"
        ),
        pytest.param(
            (2, 8, 4, 3, 5, 6),
            Kind.PLANES,
            8,
            (5, 6),
            [("Batch", 2), ("Axis 2", 4), ("Axis 3", 3)],
            id="6-D",
        ),
        pytest.param((1000,), Kind.VECTOR, 1, (1, 1000), [], id="1-D"),
        pytest.param((1, 10), Kind.VECTOR, 1, (1, 10), [("Batch", 1)], id="1xK"),
        pytest.param((10, 1), Kind.VECTOR, 1, (1, 10), [("Axis 1", 1)], id="Kx1"),
        pytest.param((2, 512, 1, 1), Kind.VECTOR, 1, (1, 512), None, id="pixels"),
        pytest.param((), Kind.NUMBER, 1, (1, 1), [], id="0-D"),
        pytest.param((1, 1, 1), Kind.NUMBER, 1, (1, 1), None, id="one-element"),
        pytest.param((1, 0, 7), Kind.EMPTY, 1, (1, 1), [], id="empty"),
    ],
)
def test_readings(shape, kind, channels, plane, fixed):
    reading = read_shape(shape)
    assert reading.kind is kind
    assert reading.channels == channels
    assert reading.plane == plane
    if fixed is not None:
        assert [(axis.name, axis.size) for axis in reading.fixed] == fixed


@pytest.mark.parametrize(
    ("shape", "channels", "plane", "fixed", "note"),
    [
        ((1, 56, 48, 96), 96, (56, 48), [("Batch", 1)], "batch × rows × columns × channel"),
        ((5, 7, 3), 3, (5, 7), [], "rows × columns × channel"),
        ((2, 4, 5, 6, 8), 8, (5, 6), [("Batch", 2), ("Depth", 4)],
         "batch × depth × rows × columns × channel"),
        ((5, 7), 1, (5, 7), [], "rows × columns"),
        ((2, 512, 1, 1), 1, (512, 1), [("Batch", 2)], "batch × rows × columns × channel"),
    ],
)  # fmt: skip
def test_channels_last(shape, channels, plane, fixed, note):
    reading = read_shape(shape, channels_last=True)
    assert (reading.kind, reading.channels, reading.plane) == (Kind.PLANES, channels, plane)
    assert [(axis.name, axis.size) for axis in reading.fixed] == fixed
    assert reading.note == f"{'×'.join(map(str, shape))} read as {note}"


def test_channels_last_of_one_pixel():
    reading = read_shape((2, 1, 1, 512), channels_last=True)
    assert (reading.kind, reading.plane) == (Kind.VECTOR, (1, 512))
    assert reading.index((1, 0, 0), 0, 0, 6) == (1, 0, 0, 6)


def test_index_with_channels_last():
    reading = read_shape((2, 4, 5, 7, 3), channels_last=True)
    assert reading.index((1, 3), 2, 4, 6) == (1, 3, 4, 6, 2)


def test_pixels_of_a_batch_keep_the_batch():
    reading = read_shape((2, 512, 1, 1))
    assert [(a.axis, a.size) for a in reading.fixed] == [(0, 2), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("shape", "fixed", "channel", "row", "column", "index"),
    [
        ((2, 3, 5, 7), (1,), 2, 4, 6, (1, 2, 4, 6)),
        ((2, 3, 4, 5, 7), (1, 3), 2, 4, 6, (1, 2, 3, 4, 6)),
        ((3, 5, 7), (), 2, 4, 6, (2, 4, 6)),
        ((5, 7), (), 0, 4, 6, (4, 6)),
        ((10,), (), 0, 0, 6, (6,)),
        ((1, 10), (0,), 0, 0, 6, (0, 6)),
        ((2, 9, 1, 1), (1, 0, 0), 0, 0, 6, (1, 6, 0, 0)),
    ],
)
def test_index(shape, fixed, channel, row, column, index):
    found = read_shape(shape).index(fixed, channel, row, column)
    assert found == index
    assert np.zeros(shape)[found] == 0  # it is a place of the array


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 64, 56, 56), "1×64×56×56 read as batch × channel × rows × columns"),
        ((64, 56, 56), "64×56×56 read as channel × rows × columns"),
        ((5, 7), "5×7 read as rows × columns"),
        ((2, 8, 4, 5, 6), "2×8×4×5×6 read as batch × channel × depth × rows × columns"),
        ((1, 10), "1×10 shown as 10 bars"),
    ],
)
def test_notes(shape, words):
    assert read_shape(shape).note == words
