"""Numbers in the cells of a picture."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.tensor_view.cell_digits import cell_texts, may_fit


@pytest.mark.parametrize(
    ("values", "room", "expected"),
    [
        (np.array([[0, 12], [-3, 7]]), 2, ["0", "12", "−3", "7"]),
        (np.array([0, 120]), 2, []),  # none rather than some
        (np.array([2**63 - 1, -(2**63)]), 20, ["9223372036854775807", "−9223372036854775808"]),
        (np.array([1, 0], np.uint8), 1, ["1", "0"]),
        (np.array([0.12345, -1.5]), 6, ["0.123", "−1.500"]),
        (np.array([0.12345, -1.5]), 5, ["0.12", "−1.50"]),
        (np.array([0.12345, -1.5]), 4, ["0.1", "−1.5"]),
        (np.array([0.12345, -1.5]), 3, []),  # 0.1 has room, -1.5 has not
        (np.array([1234.5, 3.0]), 5, ["1234", "3"]),
        (np.array([1e-5, -2.5e-5]), 7, ["1.0e−5", "−2.5e−5"]),
        (np.array([1.7e308, 0.0]), 6, ["2e308", "0e0"]),
        (np.array([np.nan, np.inf, 2.0, -0.0]), 5, ["", "", "2.000", "0.000"]),
        (np.array([np.nan, np.nan]), 5, ["", ""]),
        (np.zeros(2, np.float32), 5, ["0.000", "0.000"]),
    ],
)  # fmt: skip
def test_equal_decimals_in_the_room_of_a_cell(values, room, expected):
    assert cell_texts(values, room) == expected


def test_floats_wait_for_larger_cells_and_many_cells_have_none():
    assert may_fit(20, 100, floats=False)
    assert not may_fit(20, 100, floats=True)
    assert may_fit(64, 100, floats=True)
    assert not may_fit(10, 100, floats=False)
    assert not may_fit(20, 100_000, floats=False)


def test_written_in_black_or_white_as_the_cell_needs(pane):
    pane.set_value("x", np.array([[0, 9], [9, 0]]))
    pane.actions_table.map_chosen.emit("grey")

    def inks(row, column):
        image = pane.plane.grab().toImage()
        x, y, width, height = map(round, pane.plane.port.cell_rect(row, column))
        return {
            image.pixelColor(left, top).name()
            for left in range(x + 3, x + width - 3)
            for top in range(y + 3, y + height - 3)
        }

    assert max(inks(0, 0)) > "#c0c0c0"  # a white 0 on black
    assert min(inks(0, 1)) < "#404040"
    pane.actions_table["tensor.digits"].trigger()
    assert inks(0, 0) == {"#000000"}
    assert inks(0, 1) == {"#ffffff"}
