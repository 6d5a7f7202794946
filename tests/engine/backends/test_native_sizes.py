"""Libraries get only sizes that they count correctly: NumPy computes the rest.

Other sizes could end the process. So each case that once did runs in its own process and prints
the result.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from engine.backends import libraries
from engine.backends.lowering import LoweringError
from engine.backends.native_sizes import (
    require_elements,
    require_scratch,
    require_spread,
    require_windows,
)
from engine.errors import LayerError
from engine.layers.windows import Windows
from engine.memory_bound import Room, bounded

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

IMAGE = (1, 4, 64, 64)
BIG = (1 << 31) - 1


def windows(kernel=1, stride=1, padding=0, dilation=1, rank=2) -> Windows:
    def each(value):
        return value if isinstance(value, tuple) else (value,) * rank

    pads = tuple((number, number) for number in each(padding))
    return Windows(each(kernel), each(stride), each(dilation), pads)


class TestQuestions:
    @pytest.mark.parametrize(
        ("slid", "shape", "channels", "gathered"),
        [
            (windows(7, 2, 3), (1, 3, 224, 224), 64, 3),
            (windows(3, 1, 1), (1, 512, 7, 7), 512, 512),
            (windows(3, 1, 3), (1, 4, 1, 1), 4, 4),  # mostly padding, of next to nothing
            (windows(31, 1, 15), (1, 64, 56, 56), 64, 1),
            (windows(3, 1, 24, 24), (1, 256, 33, 33), 256, 256),
            (windows(3, 1, 1, rank=3), (1, 64, 16, 56, 56), 64, 64),
            (windows(16_000, 320, 0, rank=1), (1, 1, 480_000), 8, 1),
            (windows(3, 2, 1), (1, 64, 112, 112), 64, 0),
            (windows(112, 112), (1, 64, 112, 112), 64, 0),
        ],
    )
    def test_ordinary(self, slid, shape, channels, gathered):
        require_windows(slid, shape, channels, gathered=gathered)

    @pytest.mark.parametrize(
        "slid",
        [
            windows(1, 14_000, 7000),  # a padded copy of 3 GB for four numbers
            windows(1, 100_000, 100_000),
            windows(1, BIG, BIG),
            windows(3, BIG - 7, BIG - 7),
            windows(3, (BIG, 1), (BIG, 1)),
            windows(3, (1 << 30, 1), ((1 << 30) + 2, 1)),
            windows(1, 1 << 32),
            windows(1, 1 << 31),
            windows(1, 1, 0, 1 << 31),
            windows(3, BIG, BIG, BIG),
            windows((1, 3), 1, (1, 30_000), 30_000),
        ],
    )
    def test_beyond_bounds(self, slid):
        with pytest.raises(LoweringError):
            require_windows(slid, IMAGE, 8, gathered=4)
        with pytest.raises(LoweringError):
            require_windows(slid, IMAGE, 4)

    def test_no_room_for_a_window(self):
        with pytest.raises(LayerError, match="no room for a window"):
            require_windows(windows(2, 1, 0, 2), (1, 12, 2, 2), 12)

    def test_large_images(self):
        with pytest.raises(LoweringError):  # rows of 2^25
            require_windows(windows(rank=1), (1, 1, 1 << 25), 1, gathered=1)
        with pytest.raises(LoweringError):  # times 4096 from one row of windows to the next
            require_windows(windows(1, 4096), (1, 1, 1024, 1 << 15), 1, gathered=1)
        with pytest.raises(LoweringError):  # a result of 2^30 numbers
            require_windows(windows(), (1, 1, 1024, 1024), 1024, gathered=1)

    def test_windows_that_the_reference_reduces_by_axis(self):
        with pytest.raises(LoweringError):
            require_windows(windows(1023, 1, 511), (1, 8, 1024, 1024), 8)

    def test_transposed(self):
        require_spread(windows(4, 2, 1), (1, 256, 16, 16), 128)
        for slid in (
            windows(1, 1_000_000, 30_999_995),
            windows(1, 100_000, 3_099_995),
            windows(1, 20_000, 629_990),
            windows(3, 1, 0, BIG),
        ):
            with pytest.raises(LoweringError):
                require_spread(slid, IMAGE, 1)
        with pytest.raises(LoweringError, match="empty"):
            require_spread(windows(3, 1, 33), IMAGE, 1)
        with pytest.raises(LoweringError):
            require_spread(windows(1, 1 << 15), IMAGE, 1, (0, 0))

    def test_elements_and_scratch(self):
        require_elements((1 << 14, 1 << 14), ())
        with pytest.raises(LoweringError):
            require_elements((3,), (1 << 15, 1 << 15))
        require_scratch(1 << 20)
        with pytest.raises(LoweringError):
            require_scratch(1 << 29)
        with bounded(Room(1 << 20)), pytest.raises(LoweringError):
            require_scratch(1 << 20)


@pytest.mark.parametrize(
    ("kind", "shape", "weights", "params"),
    [
        ("nn.Conv2d", IMAGE, {"weight": (8, 4, 3, 3)},
         {"stride": (BIG - 7, 1), "padding": (BIG - 7, 1), "dilation": (1, 1)}),
        ("nn.Conv2d", IMAGE, {"weight": (1, 4, 1, 1)},
         {"stride": (14_000, 14_000), "padding": (7000, 7000), "dilation": (1, 1)}),
        ("nn.ConvTranspose2d", IMAGE, {"weight": (4, 1, 1, 1)},
         {"stride": (20_000, 20_000), "padding": (629_990, 629_990), "output_padding": (0, 0)}),
        ("nn.MaxPool2d", IMAGE, {}, {"kernel_size": BIG, "stride": 1, "padding": BIG // 2}),
        ("nn.AvgPool2d", IMAGE, {}, {"kernel_size": BIG, "stride": 1, "padding": BIG // 2}),
        ("nn.MaxPool1d", (1, 12, 2), {}, {"kernel_size": 2, "stride": 1, "dilation": 2}),
        ("nn.Hardtanh", IMAGE, {}, {"min_val": np.nan, "max_val": 1.0}),
        ("nn.Hardtanh", IMAGE, {}, {"min_val": 0.0, "max_val": np.nan}),
        ("nn.Hardtanh", IMAGE, {}, {"min_val": 2.0, "max_val": 1.0}),
        ("nn.PixelShuffle", IMAGE, {}, {"upscale_factor": 1 << 32}),  # its square is 0
        ("nn.PixelShuffle", IMAGE, {}, {"upscale_factor": 0}),
        ("nn.PixelShuffle", IMAGE, {}, {"upscale_factor": 3}),
        ("nn.ChannelShuffle", IMAGE, {}, {"groups": -2}),
    ],
)  # fmt: skip
def test_no_library_computes_it(operator, kind, shape, weights, params):
    inputs = [np.zeros(shape, np.float32)]
    given = {name: np.zeros(size, np.float32) for name, size in weights.items()}
    made = operator(kind, inputs, given, (), **params)
    for library in libraries().values():
        assert not library.variants(made, inputs), library.name


def test_attention_of_many_places(operator):
    """NumPy computes the scores in blocks; a library would hold 64 GiB of them."""
    inputs = [np.zeros((1, 1 << 17, 1), np.float32)] * 3
    made = operator("F.scaled_dot_product_attention", inputs, {}, ())
    for library in libraries().values():
        assert not library.variants(made, inputs), library.name


# In processes of their own

RUN = """
import json, sys
import numpy as np
import engine
from engine.session import Session
param, backend = sys.argv[1:]
graph = engine.load(param)
found = []
for fill in (1.0, 2.0):  # after tuning operators may be fused
    session = Session(graph, backend) if fill == 1 else session
    operand = graph.input_operands[0]
    shape = tuple(operand.shape)
    session.feed([np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * fill])
    session.run()
    session.tune()
    found.append(session.outputs()[0].tolist())
print(json.dumps(found))
"""


def slow_convolution(image, weight, stride, padding, dilation):
    """Loop over the few outputs and all taps, with Python's integers."""
    sizes = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(
            image.shape[1:], padding, dilation, weight.shape[2:], stride, strict=True
        )
    ]
    result = np.zeros((len(weight), *sizes))
    taps = list(np.ndindex(*weight.shape[2:]))
    for o, y, x in np.ndindex(*result.shape):
        for v, u in taps:
            row = y * stride[0] + v * dilation[0] - padding[0]
            column = x * stride[1] + u * dilation[1] - padding[1]
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                result[o, y, x] += image[:, row, column] @ weight[o, :, v, u]
    return result


@pytest.mark.parametrize("backend", ["onnxruntime", "ncnn", "auto"])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        (3, (BIG - 7, 1), (BIG - 7, 1), (1, 1)),  # these two corrupted the heap
        (3, (BIG, 1), (BIG, 1), (1, 1)),
        (3, ((1 << 30) + 2, 1), ((1 << 30) + 2, 1), (1, 1)),  # the others read anywhere
        (1, (100_000, 100_000), (100_000, 100_000), (1, 1)),
        (1, (BIG, BIG), (BIG, BIG), (1, 1)),
        (3, (BIG, BIG), (BIG, BIG), (1, 1)),
    ],
)
def test_convolutions_that_ended_the_process(
    make_pair, tmp_path, backend, kernel, stride, padding, dilation
):
    rng = np.random.default_rng(1)
    weight = rng.integers(-2, 3, (8, 4, kernel, kernel)).astype(np.float32)

    def pair(numbers):
        return f"({numbers[0]},{numbers[1]})"

    param = make_pair(
        "pnnx.Input in0 0 1 0 #0=(1,4,64,64)f32",
        f"nn.Conv2d c 1 1 0 1 bias=False dilation={pair(dilation)} groups=1 in_channels=4 "
        f"kernel_size=({kernel},{kernel}) out_channels=8 padding={pair(padding)} "
        f"padding_mode=zeros stride={pair(stride)} @weight=(8,4,{kernel},{kernel})f32",
        "nn.ReLU r 1 1 1 2",
        "pnnx.Output out 1 0 2",
        weights={"c.weight": weight},
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(param), backend],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    image = np.arange(4 * 64 * 64, dtype=np.float64).reshape(4, 64, 64)
    expected = np.maximum(slow_convolution(image, weight, stride, padding, dilation), 0)
    for fill, found in zip((1.0, 2.0), json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(found, [fill * expected], rtol=1e-5)
