"""Where pictures of operands lie on an input: against positions worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import TensorError
from engine.provenance.alignment import align_grid
from engine.provenance.records import GridCell

RNG = np.random.default_rng(3)
CONV = "nn.Conv2d {0} 1 1 {1} {2} bias=False dilation=(1,1) groups=1 in_channels={3} \
kernel_size=({4},{4}) out_channels={5} padding=({6},{6}) padding_mode=zeros stride=({7},{7}) \
@weight=({5},{3},{4},{4})f32"


def weight(out, into, size):
    return RNG.standard_normal((out, into, size, size)).astype(np.float32)


@pytest.fixture
def run(make_pair):
    """A function that runs a model of some lines over an input."""

    def make(lines, shape, weights=None):
        session = engine.Session(engine.load(make_pair(*lines, weights=weights or {})))
        session.feed([RNG.standard_normal(shape).astype(np.float32)])
        session.run()
        return session

    return make


def cells(rows, columns, *, channel=(0, 0)):
    """Three cells of a picture with channels first."""
    top, left = rows // 4, columns // 4
    places = (top, left), (rows - 1 - top, left), (top, columns - 1 - left)
    return [GridCell(row, column, (*channel, row, column)) for row, column in places]


def test_strides_and_padding(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        CONV.format("stem", 0, 1, 3, 7, 2, 3, 2),
        CONV.format("next", 1, 2, 2, 3, 2, 1, 2),
        "pnnx.Output out 1 0 2",
    )
    weights = {"stem.weight": weight(2, 3, 7), "next.weight": weight(2, 2, 3)}
    session = run(lines, (1, 3, 32, 48), weights)
    found = align_grid(session, "2", "0", (2, 3), cells(8, 12))
    # The middle of element 0 is element 0 of the input, whose middle is at 0.5; stride 4.
    assert found.rows == (0.5 - 2, 4)
    assert found.columns == (0.5 - 2, 4)
    assert found.sizes == (32, 48)
    assert found.extent == (11, 11)  # 7 + 2 * (3 - 1)


def test_an_enlarged_picture_has_cells_below_one(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        "F.upsample up 1 1 0 1 align_corners=None mode=nearest scale_factor=(2,2) size=None",
        "pnnx.Output out 1 0 1",
    )
    session = run(lines, (1, 3, 8, 8))
    found = align_grid(session, "1", "0", (2, 3), cells(16, 16))
    assert found.rows[1] == pytest.approx(0.5, abs=0.1)


def test_tokens_fold_to_patches(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        CONV.format("patches", 0, 1, 3, 4, 5, 0, 4),
        "torch.flatten flat 1 1 1 2 end_dim=-1 start_dim=2",
        "torch.permute turn 1 1 2 3 dims=(0,2,1)",
        "pnnx.Output out 1 0 3",
    )
    session = run(lines, (1, 3, 16, 16), {"patches.weight": weight(5, 3, 4)})
    grid = [GridCell(r, c, (0, 4 * r + c, 2)) for r, c in ((1, 1), (2, 1), (1, 2))]
    found = align_grid(session, "3", "0", (2, 3), grid)
    assert (found.rows, found.columns, found.extent) == ((0, 4), (0, 4), (4, 4))


def test_what_depends_on_everything_has_no_place(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        "F.softmax all 1 1 0 1 dim=2",
        "pnnx.Output out 1 0 1",
    )
    found = align_grid(run(lines, (1, 3, 8, 8)), "1", "0", (2, 3), cells(8, 8))
    assert found.rows is None
    assert found.columns == (0, 1)
    assert not found.is_known


def test_a_transposed_picture_is_none_of_the_input(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        "torch.transpose turn 1 1 0 1 dim0=2 dim1=3",
        "pnnx.Output out 1 0 1",
    )
    session = run(lines, (1, 3, 8, 8))
    assert align_grid(session, "1", "0", (2, 3), cells(8, 8)) is None


def test_a_single_row_lies_where_its_field_is(run) -> None:
    lines = (
        "pnnx.Input in 0 1 0",
        "F.avg_pool2d pool 1 1 0 1 kernel_size=(8,2) padding=(0,0) stride=(8,2)",
        "pnnx.Output out 1 0 1",
    )
    found = align_grid(run(lines, (1, 3, 8, 8)), "1", "0", (2, 3), cells(1, 4))
    assert (found.rows, found.columns) == ((0, 8), (0, 2))


def test_an_index_outside_is_refused(run) -> None:
    lines = ("pnnx.Input in 0 1 0", "F.relu act 1 1 0 1", "pnnx.Output out 1 0 1")
    with pytest.raises(TensorError):
        align_grid(run(lines, (1, 3, 8, 8)), "1", "0", (2, 3), cells(80, 8))
