"""Numbers of parameters at the ends of what a file can say: no end of work, no native fault."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers.resampling import weighted_taps

BIG = (1 << 31) - 1
HALF = BIG // 2


def image(*shape):
    size = math.prod(shape)
    return (np.arange(size, dtype=np.float32) * 7 % 11 - 5).reshape(shape)


def slow_windows(x, kernel, stride, padding, count):
    """What each window of a 1-D signal sees, with Python's integers."""
    seen = []
    for o in range(count):
        start = o * stride - padding
        seen.append([x[i] for i in range(len(x)) if start <= i < start + kernel])
    return seen


class TestWindows:
    """Windows of two thousand million positions over a few pixels."""

    @pytest.mark.parametrize(
        ("kernel", "stride", "padding"),
        [
            (BIG, 1, HALF), (BIG, 3, HALF), (BIG, BIG, HALF), (BIG - 1, 1, HALF),
            ((1 << 62) + 1, 2, 1 << 61), ((1 << 62) + 1, 1 << 61, 1 << 61), (9, 1, 4),
        ],
    )  # fmt: skip
    def test_maximum_and_average(self, run, kernel, stride, padding):
        x = image(2, 3, 8)
        count = (8 + 2 * padding - kernel) // stride + 1
        params = {"kernel_size": kernel, "stride": stride, "padding": padding}
        largest = run("nn.MaxPool1d", x, **params)
        summed = run("nn.AvgPool1d", x, divisor_override=None, **params)
        inside = run("nn.AvgPool1d", x, count_include_pad=False, **params)
        assert largest.shape == summed.shape == inside.shape == (2, 3, count)
        for place in np.ndindex(2, 3):
            windows = slow_windows(x[place].tolist(), kernel, stride, padding, count)
            expected = [max(w, default=-np.inf) for w in windows]
            np.testing.assert_array_equal(largest[place], expected)
            # All of the window counts, but what is behind the padding.
            reached = [
                min(o * stride - padding + kernel, 8 + padding) - (o * stride - padding)
                for o in range(count)
            ]
            expected = [sum(w) / n for w, n in zip(windows, reached, strict=True)]
            np.testing.assert_allclose(summed[place], expected, rtol=1e-5)
            expected = [sum(w) / max(len(w), 1) for w in windows]
            np.testing.assert_allclose(inside[place], expected, rtol=1e-5)

    def test_places_of_the_largest(self, run):
        x = image(1, 2, 4, 4)
        values, places = run(
            "nn.MaxPool2d", x, kernel_size=BIG, stride=1, padding=HALF, return_indices=True
        )
        assert values.shape == (1, 2, 4, 4)
        assert (values == x.max((2, 3), keepdims=True)).all()
        assert places[0, :, 0, 0].tolist() == [int(c.argmax()) for c in x[0]]

    def test_volumes(self, run):
        x = image(1, 1, 2, 3, 2)
        params = {"kernel_size": BIG, "stride": 1, "padding": HALF}
        assert (run("nn.MaxPool3d", x, **params) == x.max()).all()
        found = run("nn.AvgPool3d", x, **params)
        np.testing.assert_allclose(
            found, np.full(x.shape, x.sum() / float(BIG) ** 3), rtol=1e-5
        )

    def test_power_average(self, run):
        x = np.abs(image(1, 1, 6))
        with pytest.raises(LayerError, match="no room for a window"):
            run("nn.LPPool1d", x, norm_type=2.0, kernel_size=BIG)
        found = run("nn.LPPool1d", x, norm_type=1.0, kernel_size=6)
        np.testing.assert_allclose(found, [[[x.sum()]]], rtol=1e-6)

    @pytest.mark.parametrize("size", [BIG, BIG - 1, (1 << 62) + 1, 5, 4])
    def test_local_response(self, run, size):
        x = image(1, 6, 2, 2)
        found = run("nn.LocalResponseNorm", x, size=size, alpha=0.5, beta=0.75, k=2.0)
        for c in range(6):
            first, last = max(0, c - size // 2), min(6, c - size // 2 + size)
            total = np.square(x[:, first:last].astype(np.float64)).sum(1)
            expected = x[:, c] / (2.0 + 0.5 / size * total) ** 0.75
            np.testing.assert_allclose(found[:, c], expected, rtol=1e-5)

    def test_unfolding(self, run):
        """A window of a million rows, two of which see the image."""
        x = image(1, 1, 2, 3)
        found = run("nn.Unfold", x, kernel_size=(1_000_001, 1), padding=(500_000, 0))
        assert found.shape == (1, 1_000_001, 6)
        columns = found.reshape(1_000_001, 2, 3)
        expected = np.zeros_like(columns)
        for o in range(2):
            for i in range(2):
                expected[i + 500_000 - o, o] = x[0, 0, i]
        np.testing.assert_array_equal(columns, expected)

    def test_a_computed_kernel_that_is_mostly_outside(self, run):
        x, kernel = image(1, 1, 3, 3), np.ones((1, 1, 1501, 1501), np.float32)
        found = run("F.conv2d", x, kernel, padding=750)
        np.testing.assert_allclose(found, np.full((1, 1, 3, 3), x.sum()), rtol=1e-5)


class TestRepetition:
    @pytest.mark.parametrize(
        ("repeats", "dim"),
        [
            (np.array([(1 << 63) - 1, (1 << 63) - 1, 4, 0]), None),  # whose sum is 2 in 64 bits
            (1 << 62, 0),
            (np.array([1 << 62] * 4), 0),
        ],
    )
    def test_counts_that_wrap_around(self, run, repeats, dim):
        with pytest.raises(LayerError, match="the memory bound is"):
            run("torch.repeat_interleave", np.ones(4, np.float32), repeats, dim=dim)

    def test_counts_that_do_not_fit(self, run):
        with pytest.raises(LayerError, match="there are 3 repeats for 4 elements"):
            run("torch.repeat_interleave", np.ones((4, 2)), np.array([1, 2, 3]), dim=0)

    def test_nothing_of_much(self, run):
        x = np.ones((4, 2), np.float32)
        assert run("torch.tile", x, dims=(1 << 40, 0)).shape == (4 << 40, 0)
        assert run("torch.tile", x, dims=(0, 3, 2)).shape == (0, 12, 4)


class TestLists:
    @pytest.mark.parametrize(
        ("operator_type", "params"),
        [
            ("torch.split", {"split_size_or_sections": 1}),
            ("torch.chunk", {"chunks": 1 << 40}),
            ("torch.unbind", {}),
            ("torch.tensor_split", {"sections": 1 << 40}),
        ],
    )
    def test_too_many_members(self, run, operator_type, params):
        x = np.broadcast_to(np.zeros(1, np.int8), (1 << 30,))
        with pytest.raises(LayerError, match="members; a list has at most 8192"):
            run(operator_type, x, **params)

    def test_chunks_of_nothing(self, run):
        assert len(run("torch.chunk", np.zeros(0), chunks=3)) == 3
        with pytest.raises(LayerError, match="members; a list has at most 8192"):
            run("torch.chunk", np.zeros(0), chunks=1 << 40)

    def test_a_long_list_of_sizes(self, run):
        with pytest.raises(LayerError, match="shape has 1000000 members"):
            run("Tensor.reshape", np.zeros(4), np.ones(1_000_000, np.int64))


def many(*shape):
    """Zeros that take no memory."""
    return np.broadcast_to(np.float32(0), shape)


MORE = (1 << 20) + 1


@pytest.mark.parametrize(
    ("operator_type", "operands", "params"),
    [
        ("torch.mode", (many(MORE),), {}),
        ("torch.cdist", (many(MORE, 1), many(1, 1)), {}),
        ("torch.searchsorted", (many(MORE, 1), many(MORE, 1)), {}),
        ("torchvision.ops.nms", (many(MORE, 4), many(MORE)), {"iou_threshold": 0.5}),
        ("torchvision.ops.RoIPool", (many(1, 1, 2, 2), many(MORE, 5)), {"output_size": 1}),
        ("nn.Unfold", (image(1, 1, 2048, 1024),), {"kernel_size": (2048, 1024)}),
        ("RNN", (many(MORE, 1, 1), many(1, 1, 1), many(1, 1, 1)), {}),
    ],
)
def test_what_goes_one_by_one_is_not_endless(run, operator_type, operands, params):
    with pytest.raises(LayerError, match=r"are too many to process one by one"):
        run(operator_type, *operands, **params)


def test_a_sequence_of_too_many_steps(run):
    weights = {n: np.zeros((4, 1), np.float32) for n in ("weight_ih_l0", "weight_hh_l0")}
    with pytest.raises(LayerError, match="1048577 steps of a sequence are too many"):
        run("nn.LSTM", many(MORE, 1, 1), weights=weights, bias=False)


LONG = 1 << 22


@pytest.mark.parametrize(
    ("operator_type", "operands", "params"),
    [
        ("torch.matmul", (many(LONG, 1), many(1, LONG)), {}),
        ("torch.matmul", (many(LONG, 64), many(64, LONG)), {}),
        ("F.linear", (many(LONG, 64), many(LONG, 64)), {}),
        ("torch.einsum", (many(LONG), many(LONG)), {"equation": "i,j->"}),
        ("torch.einsum", (many(2, LONG), many(2, LONG)), {"equation": "...i,...j->..."}),
        ("torch.cdist", (many(1 << 20, 1), many(1 << 20, 1)), {}),
        ("F.scaled_dot_product_attention", (many(1, 1 << 20, 1),) * 3, {}),
        ("F.conv1d", (many(1, 1, LONG), many(LONG, 1, 1)), {}),
    ],
)
def test_products_of_long_operands(run, operator_type, operands, params):
    """Refused for the work, or for the memory where the result is as large."""
    with pytest.raises(LayerError, match=r"products are too many|the memory bound is"):
        run(operator_type, *operands, **params)


class TestCombinations:
    @pytest.mark.parametrize("with_replacement", [False, True])
    @pytest.mark.parametrize(
        ("size", "r"), [(0, 0), (0, 2), (4, 0), (4, 1), (4, 2), (4, 4), (3, 5)]
    )
    def test_a_few(self, run, size, r, with_replacement):
        choose = (
            itertools.combinations_with_replacement
            if with_replacement
            else itertools.combinations
        )
        expected = list(choose(range(size), r)) if r else []
        found = run(
            "torch.combinations", np.arange(size), r=r, with_replacement=with_replacement
        )
        np.testing.assert_array_equal(found.reshape(-1), np.reshape(expected, -1))

    @pytest.mark.parametrize(
        ("size", "r", "with_replacement"),
        [(40, 20, False), (1_000_000, 500_000, False), (1, 1 << 40, True), (1000, 1000, True)],
    )
    def test_too_many(self, run, size, r, with_replacement):
        with pytest.raises(LayerError, match=f"the ways to choose {r} of {size} elements are"):
            run("torch.combinations", np.zeros(size), r=r, with_replacement=with_replacement)

    def test_more_than_there_are(self, run):
        assert run("torch.combinations", np.zeros(3), r=1 << 40).size == 0


class TestOthers:
    def test_differences(self, run):
        x = np.arange(12.0).reshape(2, 6) ** 2
        assert run("torch.diff", x, n=6).shape == (2, 0)
        assert run("torch.diff", x, n=1 << 62).shape == (2, 0)
        np.testing.assert_array_equal(run("torch.diff", x, n=2), np.full((2, 4), 2.0))
        with pytest.raises(LayerError, match="at most 4096 times, not 5000"):
            run("torch.diff", np.zeros(10_000), n=5000)

    def test_wrapping_a_signal_around(self, run):
        params = {"n_fft": 1 << 20, "center": True, "pad_mode": "circular"}
        with pytest.raises(LayerError, match="cannot be wrapped around 524288 times"):
            run("torch.stft", np.zeros(8, np.float32), **params)

    def test_the_working_memory_of_a_transform(self, run):
        with pytest.raises(LayerError, match="the memory bound is"):
            run("torch.fft.fft", np.zeros(8, np.float32), n=1 << 33)
        with pytest.raises(LayerError, match="the memory bound is"):
            run("DFT", np.zeros((1, 8, 1), np.float32), dft_length=1 << 33)

    def test_blocks_of_scales(self, run):
        x = np.arange(8, dtype=np.int8).reshape(1, 8)
        scales = np.array([[1.0, 10.0]], np.float32)
        found = run("DequantizeLinear", x, scales, axis=1, block_size=4)
        np.testing.assert_array_equal(found, [[0, 1, 2, 3, 40, 50, 60, 70]])
        found = run("DequantizeLinear", x, scales, axis=1, block_size=1 << 62)
        np.testing.assert_array_equal(found, [[0, 1, 2, 3, 4, 5, 6, 7]])
        with pytest.raises(LayerError, match="block_size=-3 is less than 1"):
            run("DequantizeLinear", x, scales, axis=1, block_size=-3)

    def test_taps_beyond_the_image(self):
        """A hundred taps, most of them of the last position."""
        rng = np.random.default_rng(3)
        x, positions = rng.normal(size=(2, 3, 4)), rng.integers(0, 3, (100, 5))
        weights = rng.normal(size=(100, 5))
        expected = np.zeros((2, 5, 4))
        for tap, output in np.ndindex(100, 5):
            expected[:, output] += weights[tap, output] * x[:, positions[tap, output]]
        np.testing.assert_allclose(weighted_taps(x, 1, positions, weights), expected)

    def test_many_parts_of_a_region(self, run):
        """More parts than pixels: many are alike."""
        x = image(1, 2, 5, 6)
        box = np.array([[0, 1, 0, 4, 3]], np.float32)
        found = run("torchvision.ops.RoIPool", x, box, output_size=(300, 400))
        for row, column in [(0, 0), (299, 399), (150, 201), (74, 99), (75, 100)]:
            top, bottom = math.floor(row * 4 / 300), math.ceil((row + 1) * 4 / 300)
            left, right = (
                1 + math.floor(column * 4 / 400),
                1 + math.ceil((column + 1) * 4 / 400),
            )
            expected = x[0, :, top:bottom, left:right].max((1, 2))
            np.testing.assert_array_equal(found[0, :, row, column], expected)

    @pytest.mark.parametrize("samples", [2, 30, 3000])
    def test_many_samples_of_a_region(self, run, samples):
        x = image(1, 2, 5, 6)
        box = np.array([[0, 0.5, 0.25, 4.5, 3.75]], np.float32)
        found = run("torchvision.ops.RoIAlign", x, box, output_size=1, sampling_ratio=samples)
        places = (np.arange(samples) + 0.5) / samples

        def weights(start, stop, size):
            total = np.zeros(size)
            for at in start + places * (stop - start):
                low = int(at)
                total[low] += 1 - (at - low)
                total[min(low + 1, size - 1)] += at - low
            return total / samples

        rows, columns = weights(0.25, 3.75, 5), weights(0.5, 4.5, 6)
        expected = np.einsum("chw,h,w->c", x[0].astype(np.float64), rows, columns)
        np.testing.assert_allclose(found[0, :, 0, 0], expected, rtol=1e-4, atol=1e-4)
        with pytest.raises(LayerError, match="samples in each part of a box are too many"):
            run("torchvision.ops.RoIAlign", x, box, output_size=1, sampling_ratio=1 << 20)

    def test_numbers_below_the_least(self, run):
        with pytest.raises(ParameterError, match="stride=-1 must not be less than 1"):
            run("nn.MaxPool1d", image(1, 1, 4), kernel_size=2, stride=-1)
