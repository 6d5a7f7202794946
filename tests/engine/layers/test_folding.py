"""Unfolding and folding."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError


def test_unfold_by_hand(run):
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    expected = [[[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]]
    y = run("nn.Unfold", x, kernel_size=2, dilation=1, padding=0, stride=1)
    np.testing.assert_array_equal(y, expected)


def test_fold_by_hand(run):
    x = np.ones((1, 4, 4), np.float32)
    y = run("nn.Fold", x, output_size=(3, 3), kernel_size=2)
    np.testing.assert_array_equal(y, [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]])


def test_padding_is_zero_and_dropped(run):
    x = np.full((1, 2, 2), 7, np.float32)
    columns = run("F.unfold", x, kernel_size=(1, 2), padding=(0, 1), stride=2)
    np.testing.assert_array_equal(columns, [[0, 7], [7, 0]])
    back = run("F.fold", columns, output_size=2, kernel_size=(1, 2), padding=(0, 1), stride=2)
    np.testing.assert_array_equal(back, [[[7, 7], [0, 0]]])


@pytest.mark.parametrize("shape", [(1, 4, 5), (1, 3, 4), (4,)])
def test_columns_that_do_not_fit(run, shape):
    with pytest.raises(LayerError, match="an image of 3×3 has 4 windows of 4 positions"):
        run("nn.Fold", np.ones(shape, np.float32), output_size=3, kernel_size=2)


def test_an_image_without_channels(run):
    with pytest.raises(LayerError, match="input has 2 dimensions, not 4"):
        run("nn.Unfold", np.ones((3, 3), np.float32), kernel_size=2)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [(3, 1, 0, 1), ((2, 4), 1, 2, (2, 1)), ((1, 3), (1, 2), (2, 4), 1), (2, 3, 1, 3)],
)
def test_against_pytorch(run, kernel, dilation, padding, stride, batched):
    torch = pytest.importorskip("torch")
    options = {"dilation": dilation, "padding": padding, "stride": stride}
    shape = (2, 3, 9, 8) if batched else (3, 9, 8)
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    columns = torch.nn.functional.unfold(torch.from_numpy(x), kernel, **options)
    found = run("F.unfold", x, kernel_size=kernel, **options)
    np.testing.assert_array_equal(found, columns.numpy())
    image = torch.nn.functional.fold(columns, (9, 8), kernel, **options)
    found = run("F.fold", found, output_size=(9, 8), kernel_size=kernel, **options)
    np.testing.assert_allclose(found, image.numpy(), rtol=1e-6)
