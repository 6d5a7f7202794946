"""NumPy for ncnn's layers that sample, rotate and copy; against loops and ncnn itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

import engine
from engine.errors import EngineError

RNG = np.random.default_rng(5)


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def codes(equation):
    return f"-23300={len(equation)},{','.join(str(ord(letter)) for letter in equation)}"


def compute(folder, layer, inputs, weights=b"", backend="numpy"):
    """Compute one layer, written as type and parameters."""
    kind, _, params = layer.partition(" ")
    names = [f"i{place}" for place in range(len(inputs))]
    lines = [
        *(f"Input {name} 0 1 {name}" for name in names),
        f"{kind} layer {len(names)} 1 {' '.join(names)} o {params}",
    ]
    session = engine.Session(engine.load(write_pair(folder, lines, weights)), backend=backend)
    session.feed(inputs)
    session.run()
    return np.asarray(session.value("o"))


def columns_of(x, kernel, stride, dilation, pads, value=0.0):
    """Windows of an image as columns, in a loop."""
    (top, bottom), (left, right) = pads
    image = np.full(
        (len(x), x.shape[1] + top + bottom, x.shape[2] + left + right), value, np.float32
    )
    image[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    counts = [
        (image.shape[1 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i in range(2)
    ]
    result = np.zeros((len(x) * math.prod(kernel), math.prod(counts)), np.float32)
    for row, (c, u, v) in enumerate(np.ndindex(len(x), *kernel)):
        for column, (i, j) in enumerate(np.ndindex(*counts)):
            place = i * stride[0] + u * dilation[0], j * stride[1] + v * dilation[1]
            result[row, column] = image[c, *place]
    return result


class TestColumns:
    def test_unfold(self, tmp_path):
        x = draw(2, 6, 7)
        got = compute(tmp_path, "Unfold 1=3 11=2 2=2 12=1 3=1 13=2 4=1 15=2 14=0 16=1", [x])
        assert np.array_equal(got, columns_of(x, (2, 3), (2, 1), (1, 2), ((0, 1), (1, 2))))

    def test_unfold_keeps_the_size(self, tmp_path):
        """An odd position more is added after the image with -233, before it with -234."""
        x = draw(1, 4, 4)
        for number, pads in ((-233, ((0, 1),) * 2), (-234, ((1, 0),) * 2)):
            got = compute(tmp_path, f"Unfold 1=2 4={number} 18=0.5", [x])
            assert np.array_equal(got, columns_of(x, (2, 2), (1, 1), (1, 1), pads, 0.5))

    def test_fold_adds_what_unfold_took(self, tmp_path):
        """Every element comes back as often as a window has it."""
        x = draw(2, 5, 6)
        pads = ((1, 0), (0, 2))
        columns = columns_of(x, (3, 2), (1, 2), (1, 1), pads)
        line = "Fold 1=2 11=3 3=2 13=1 4=0 15=2 14=1 16=0 20=6 21=5"
        times = columns_of(np.ones_like(x), (3, 2), (1, 2), (1, 1), pads)
        count = compute(tmp_path, line, [times])
        assert count.shape == (2, 5, 6)
        assert count[0, 2, 2] == 3
        assert np.allclose(compute(tmp_path, line, [columns]), x * count, atol=1e-6)


class TestRotaryEmbed:
    @pytest.mark.parametrize("width", [3, 6])
    def test_halves(self, tmp_path, width):
        x, cos, sin = draw(2, 4, 6), draw(1, 4, width), draw(1, 4, width)
        got = compute(tmp_path, "RotaryEmbed 0=0", [x, cos, sin])
        for h, p, j in np.ndindex(2, 4, 3):
            k = j + width - 3  # the other half of the angles, if there is one
            a, b = x[h, p, j], x[h, p, j + 3]
            assert got[h, p, j] == pytest.approx(a * cos[0, p, j] - b * sin[0, p, j], abs=1e-6)
            assert got[h, p, j + 3] == pytest.approx(
                b * cos[0, p, k] + a * sin[0, p, k], abs=1e-6
            )

    def test_neighbours(self, tmp_path):
        angles = np.array([[0.0, math.pi / 2]], np.float32)
        x = np.array([[[1, 2, 3, 4]]], np.float32)
        got = compute(tmp_path, "RotaryEmbed 0=1", [x, np.cos(angles), np.sin(angles)])
        assert got.round(5).tolist() == [[[1, 2, -4, 3]]]


class TestNormalize:
    @pytest.mark.parametrize(
        ("params", "axes"), [("4=1 0=0", (0,)), ("4=0 0=1", (1, 2)), ("4=1 0=1", (0, 1, 2))]
    )
    @pytest.mark.parametrize("mode", [0, 1, 2])
    def test_lengths(self, tmp_path, params, axes, mode):
        x, factors, eps = draw(3, 2, 4), np.array([1, 2, 3], np.float32), 0.5
        total = (x.astype(np.float64) ** 2).sum(axes, keepdims=True)
        length = (np.sqrt(total + eps), np.maximum(np.sqrt(total), eps),
                  np.sqrt(np.maximum(total, eps)))[mode]  # fmt: skip
        got = compute(
            tmp_path, f"Normalize {params} 1=0 2={eps} 3=3 9={mode}", [x], f32(factors)
        )
        assert np.allclose(got, x / length * factors[:, None, None], atol=1e-6)


def test_a_region_is_replaced(tmp_path):
    x, part = draw(3, 4, 5), draw(2, 1, 3)
    wanted = x.copy()
    wanted[1:3, 2:3, 2:5] = part
    for params in ("0=2 1=2 2=1", "-23309=3,1,2,2", "-23309=2,1,-3 -23311=2,0,2"):
        expected = wanted
        if "-23311" in params:
            expected = x.copy()
            expected[1:3, 0:1, 2:5] = part
        assert np.array_equal(compute(tmp_path, f"CopyTo {params}", [x, part]), expected)


@pytest.mark.parametrize("backend", ["numpy", "ncnn"])
def test_a_volume_gives_an_image_its_size_but_no_channels(tmp_path, backend):
    pytest.importorskip("ncnn")
    x = draw(4, 5, 6)
    got = compute(tmp_path, "Crop 0=1 1=2", [x, draw(1, 2, 3, 4)], backend=backend)
    assert np.array_equal(got, x[:, 2:5, 1:5])


def test_diagonals(tmp_path):
    vector, matrix = np.array([1, 2], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    assert compute(tmp_path, "Diag 0=-1", [vector]).tolist() == [
        [0, 0, 0], [1, 0, 0], [0, 2, 0]
    ]  # fmt: skip
    assert compute(tmp_path, "Diag 0=1", [matrix]).tolist() == [1, 5]


def test_sums_over_letters(tmp_path):
    a, b = draw(2, 3, 4), draw(4, 5)
    wanted = np.zeros((2, 3, 5), np.float32)
    for i, j, k, m in np.ndindex(2, 3, 5, 4):
        wanted[i, j, k] += a[i, j, m] * b[m, k]
    got = compute(tmp_path, f"Einsum {codes('ijm,mk->ijk')}", [a, b])
    assert np.allclose(got, wanted, atol=1e-5)
    assert compute(tmp_path, f"Einsum {codes('ii')}", [np.eye(3, dtype=np.float32)]) == [3]


@pytest.mark.parametrize(
    ("params", "shape"),
    [('12=0 13=0 6="1,1,//(24,0n),0n"', (24, 1, 1)), ("0=4 1=6 2=1 12=233 13=0", (6, 4))],
)
def test_a_batch_of_one_image(tmp_path, params, shape):
    x = draw(2, 3, 4)
    assert np.array_equal(compute(tmp_path, f"Reshape {params}", [x]), x.reshape(shape))


def test_moved_taps_of_whole_pixels(tmp_path):
    """Offsets of a row down read what lies below; factors weigh it."""
    x, weight = draw(2, 5, 5), draw(3, 2, 1, 1)
    offset = np.zeros((2, 5, 5), np.float32)
    offset[0] = 1
    factors = draw(1, 5, 5)
    below = np.zeros_like(x)
    below[:, :-1] = x[:, 1:]
    wanted = np.einsum("oc,chw->ohw", weight[:, :, 0, 0], below * factors)
    got = compute(
        tmp_path, "DeformableConv2D 0=3 1=1 6=6", [x, offset, factors], tagged(weight)
    )
    assert np.allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("params", ["0=1 1=1 2=1", "0=2 1=2 2=0 3=1", "0=1 1=3 2=1"])
def test_positions_of_elements(tmp_path, params):
    """Positions at the centres of elements give these elements."""
    x = draw(2, 3, 5)
    aligned = "2=1" in params
    rows, columns = (
        np.linspace(-1, 1, size) if aligned else (2 * np.arange(size) + 1) / size - 1
        for size in (3, 5)
    )
    grid = np.stack(np.broadcast_arrays(columns[None], rows[:, None]), -1).astype(np.float32)
    if "3=1" in params:
        grid = np.ascontiguousarray(np.moveaxis(grid, -1, 0))
    assert np.allclose(compute(tmp_path, f"GridSample {params}", [x, grid]), x, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        ("RotaryEmbed 0=0", [(2, 4, 6), (1, 3, 6), (1, 3, 6)]),  # too few positions
        ("RotaryEmbed 0=0", [(2, 4, 6), (4, 2), (4, 2)]),
        ("CopyTo 0=4", [(3, 5), (2, 2)]),  # beyond the end
        ("CopyTo -23309=2,-4,0", [(3, 5), (2, 2)]),
        ("Fold 1=3 20=2 21=2", [(9, 1)]),  # a window larger than the image
        ("Fold 1=2 20=4 21=4", [(4, 8)]),  # too few columns
        ("Unfold 1=4", [(1, 3, 3)]),
        ("GridSample 0=1 1=1", [(2, 3, 4), (2, 2, 1)]),
        ("Diag 0=9", [(3, 3)]),
        (f"Einsum {codes('ij,jk->ik')}", [(2, 3), (4, 5)]),
    ],
)
def test_ncnn_gets_nothing_that_it_would_read_or_write_beyond(tmp_path, layer, shapes):
    pytest.importorskip("ncnn")
    with pytest.raises(EngineError):
        compute(tmp_path, layer, [draw(*shape) for shape in shapes], backend="ncnn")


@pytest.mark.parametrize(
    ("layer", "shapes", "weights"),
    [
        ("RotaryEmbed 0=1", [(2, 4, 6), (1, 4, 3), (1, 4, 3)], b""),
        ("Normalize 0=0 1=0 2=0.1 3=3 4=1 9=1", [(3, 2, 4)], f32([1, 2, 3])),
        ("Unfold 1=3 4=1 3=2", [(2, 6, 7)], b""),
        ("Fold 1=2 20=3 21=4", [(8, 6)], b""),
        ("GridSample 0=3 1=2", [(2, 4, 5), (3, 4, 2)], b""),
        ("CopyTo 0=1 1=2 2=1", [(3, 4, 5), (2, 2, 3)], b""),
        ("Diag 0=-2", [(4, 3)], b""),
        (f"Einsum {codes('ijm,kjm->ijk')}", [(2, 3, 4), (5, 3, 4)], b""),
        ("DeformableConv2D 0=2 1=3 3=1 4=1 6=54 9=1", [(3, 5, 5), (18, 5, 5), (9, 5, 5)],
         tagged(draw(54))),
    ],
)  # fmt: skip
def test_ncnn_agrees(tmp_path, layer, shapes, weights):
    pytest.importorskip("ncnn")
    inputs = [draw(*shape) for shape in shapes]
    ours, theirs = (
        compute(tmp_path, layer, inputs, weights, backend) for backend in ("numpy", "ncnn")
    )
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, atol=1e-4)


class TestMasks:
    """ncnn reads a row of the mask for each query, also where there is one only."""

    @pytest.mark.parametrize("shape", [(3, 5), (1, 3, 5), (2, 3, 5)])
    def test_of_all_queries(self, tmp_path, shape):
        pytest.importorskip("ncnn")
        query, key, value, mask = draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 6), draw(*shape)
        scores = query @ key.swapaxes(1, 2) / 2 + mask
        shares = np.exp(scores) / np.exp(scores).sum(2, keepdims=True)
        for backend in ("numpy", "ncnn"):
            got = compute(tmp_path, "SDPA 5=1", [query, key, value, mask], backend=backend)
            assert np.allclose(got, shares @ value, atol=1e-5)

    @pytest.mark.parametrize("backend", ["numpy", "ncnn"])
    @pytest.mark.parametrize("shape", [(1, 5), (1, 1, 5), (2, 1, 5), (3, 1)])
    def test_of_one_row(self, tmp_path, shape, backend):
        pytest.importorskip("ncnn")
        inputs = [draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 6), draw(*shape)]
        with pytest.raises(EngineError, match="the mask must be 3×5, or ncnn reads beyond"):
            compute(tmp_path, "SDPA 5=1", inputs, backend=backend)


class TestRegions:
    def test_maxima_of_bins(self, tmp_path):
        x = draw(2, 6, 8)
        got = compute(
            tmp_path, "ROIPooling 0=3 1=1 2=0.5", [x, np.array([2, 4, 12, 7], np.float32)]
        )
        # Columns 1 to 6 in three bins of two; rows 2 to 4, as 3.5 is rounded away from 0.
        wanted = np.stack([x[:, 2:5, a : a + 2].max((1, 2)) for a in (1, 3, 5)], 1)
        assert np.array_equal(got, wanted[:, np.newaxis])

    def test_means_of_bins_with_channels_of_their_own(self, tmp_path):
        x = draw(8, 6, 8)
        corners = np.array([1, 0, 4, 3], np.float32)
        got = compute(tmp_path, "PSROIPooling 0=2 1=2 2=1.0 3=2", [x, corners])
        for q, row, column in np.ndindex(2, 2, 2):
            part = x[4 * q + 2 * row + column, 2 * row : 2 * row + 2]
            wanted = part[:, 1 + 2 * column : 3 + 2 * column].mean()
            assert got[q, row, column] == pytest.approx(wanted, abs=1e-6)

    @pytest.mark.parametrize("aligned", [0, 1])
    def test_samples_of_bins(self, tmp_path, aligned):
        """As PyTorch: two samples a bin and axis, between the pixels; none outside count."""
        x, corners = draw(3, 7, 9), np.array([1.3, 0.8, 22.9, 15.1], np.float32)
        got = compute(tmp_path, f"ROIAlign 0=3 1=2 2=0.5 3=2 4={aligned} 5=1", [x, corners])
        left, top, right, bottom = (float(c) * 0.5 - aligned * 0.5 for c in corners)
        for row, column in np.ndindex(2, 3):
            total = np.zeros(3)
            for i, j in np.ndindex(2, 2):
                v = top + (row + (i + 0.5) / 2) * (bottom - top) / 2
                u = left + (column + (j + 0.5) / 2) * (right - left) / 3
                if not (-1 <= v <= 7 and -1 <= u <= 9):
                    continue
                v, u = min(max(v, 0), 6), min(max(u, 0), 8)
                for a, b in np.ndindex(7, 9):
                    share = max(0, 1 - abs(v - a)) * max(0, 1 - abs(u - b))
                    total += share * x[:, a, b]
            assert np.allclose(got[:, row, column], total / 4, atol=1e-5)

    def test_a_bin_in_the_middle_of_pixels(self, tmp_path):
        """Of version 0: one sample between four pixels is their mean."""
        x = draw(1, 4, 4)
        corners = np.array([1, 1, 2, 2], np.float32)
        got = compute(tmp_path, "ROIAlign 0=1 1=1 2=1.0 3=1", [x, corners])
        assert got[0, 0, 0] == pytest.approx(x[0, 1:3, 1:3].mean(), abs=1e-6)


def test_largest_elements(tmp_path):
    x = np.array([[1, 9, 3], [9, 2, 0]], np.float32)
    assert compute(tmp_path, "ArgMax 0=1 1=3", [x]).tolist() == [[9, 9, 3], [3, 1, 2]]
    assert compute(tmp_path, "ArgMax 0=0 1=1", [x]).tolist() == [[3]]


def test_means_and_deviations_of_channels(tmp_path):
    x = draw(3, 4, 5)
    got = compute(tmp_path, "StatisticsPooling 0=1", [x])
    assert np.allclose(got, [*x.mean((1, 2)), *x.std((1, 2))], atol=1e-6)


class TestOnlyNcnn:
    """Layers without NumPy code: ncnn gets what fits, and nothing else."""

    PRIORS = np.stack([np.linspace(0, 1, 8), np.full(8, 0.1)]).astype(np.float32)

    @pytest.mark.parametrize(
        ("layer", "inputs"),
        [
            ("DetectionOutput 0=3 4=0.1", [draw(8), np.full(6, 0.4, np.float32), PRIORS]),
            ("PriorBox -23300=1,10.0 -23302=1,2.0 9=40 10=40", [draw(2, 3, 3), draw(3, 9, 9)]),
            ("Proposal 5=0", [draw(18, 2, 3), draw(36, 2, 3), np.array([64, 64, 1], "f4")]),
            ("YoloDetectionOutput 0=2 1=1 2=0.01 -23304=2,1.0,2.0", [draw(7, 2, 2)]),
            ("Yolov3DetectionOutput 0=2 1=1 2=0.01 -23304=2,1.0,2.0 -23305=1,0.0 -23306=1,8.0",
             [draw(7, 2, 2)]),
            ("Spectrogram 0=8 1=1", [draw(20)]),
            ("InverseSpectrogram 0=8 1=1", [draw(5, 4, 2)]),
        ],
    )  # fmt: skip
    def test_operands_that_fit(self, tmp_path, layer, inputs):
        pytest.importorskip("ncnn")
        assert compute(tmp_path, layer, inputs, backend="ncnn").size

    @pytest.mark.parametrize(
        ("layer", "shapes"),
        [
            ("DetectionOutput 0=3", [(8,), (5,), (2, 8)]),  # a confidence is missing
            ("DetectionOutput 0=3", [(4,), (6,), (2, 8)]),
            ("DetectionOutput 0=3", [(8,), (6,), (8,)]),  # no variances
            ("DetectionOutput 0=3 2=-5", [(8,), (6,), (2, 8)]),
            ("PriorBox -23300=2,1.0,2.0 -23301=1,3.0 9=40 10=40", [(1, 3, 3), (1, 4, 4)]),
            ("PriorBox -23300=1,1.0 9=-233 10=40", [(1, 3, 3)]),
            ("Proposal", [(17, 2, 3), (36, 2, 3), (3,)]),
            ("Proposal", [(18, 2, 3), (36, 2, 3), (2,)]),
            ("YoloDetectionOutput 0=2 1=1 -23304=1,1.0", [(7, 2, 2)]),
            ("YoloDetectionOutput 0=2 1=2 -23304=4,1,1,1,1", [(13, 2, 2)]),
            (
                "Yolov3DetectionOutput 0=2 1=1 -23304=2,1,1 -23305=1,1.0 -23306=1,8.0",
                [(7, 2, 2)],
            ),
            ("Yolov3DetectionOutput 0=2 1=1 -23304=2,1,1 -23305=1,0.0", [(7, 2, 2)]),
            ("Spectrogram 0=8", [(4,)]),  # too short for its mirrored border
            ("Spectrogram 0=8 3=9", [(20,)]),  # a window longer than the transform
            ("InverseSpectrogram 0=8", [(6, 4, 2)]),
            ("SPP 1=2", [(3, 4, 4)]),
            ("ArgMax 1=4", [(3,)]),
            ("ROIAlign 0=1 1=1", [(1, 4, 4), (3,)]),
            ("PSROIPooling 0=2 1=2 3=2", [(7, 4, 4), (4,)]),
        ],
    )
    def test_others_are_refused(self, tmp_path, layer, shapes):
        pytest.importorskip("ncnn")
        with pytest.raises(EngineError):
            compute(tmp_path, layer, [draw(*shape) for shape in shapes], backend="ncnn")
