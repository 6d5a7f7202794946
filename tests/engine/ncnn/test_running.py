"""Models of ncnn's own format, computed by ncnn and by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import F16, INT8, f32, tagged, write_pair

import engine
from engine.backends.ncnn_file_kernels import compile_layer
from engine.backends.ncnn_net import NcnnNet
from engine.errors import EngineError, FeedError, SessionStateError
from engine.layers.notes import note
from engine.ncnn.options import EXACT, NcnnOptions
from engine.self_check import self_check
from engine.states import OperatorStatus
from engine.threads import thread_count

RNG = np.random.default_rng(7)
NETWORK = [
    "Input in0 0 1 in0",
    "Convolution conv 1 1 in0 1 0=8 1=3 4=1 5=1 6=216 9=1",
    "Split split 1 2 1 2 3",
    "ConvolutionDepthWise dw 1 1 2 4 0=8 1=3 3=2 4=1 5=1 6=72 7=8 9=2 -23310=1,0.1",
    "Pooling pool 1 1 3 5 0=0 1=2 2=2",
    "BinaryOp add 2 1 4 5 6 0=0",
    "Swish act 1 1 6 7",
    "Deconvolution up 1 1 7 8 0=4 1=2 3=2 5=1 6=128",
    "BatchNorm norm 1 1 8 9 0=4 1=1e-5",
    "Pooling mean 1 1 9 10 0=1 4=1",
    "InnerProduct fc 1 1 10 11 0=5 1=1 2=20",
    "Softmax prob 1 1 11 out0 0=0 1=1",
]


def network_weights():
    def draw(count):
        return RNG.standard_normal(count).astype(np.float32)

    return b"".join(
        [
            tagged(draw(216).astype(np.float16), F16), f32(draw(8)),
            tagged(draw(72)), f32(draw(8)),
            tagged(draw(128)), f32(draw(4)),
            f32(draw(4)), f32(draw(4)), f32(np.abs(draw(4)) + 1), f32(draw(4)),
            tagged(draw(20)), f32(draw(5)),
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return write_pair(tmp_path_factory.mktemp("net"), NETWORK, network_weights())


IMAGE = RNG.standard_normal((3, 16, 16)).astype(np.float32)


def whole(path, options):
    """Every blob of the whole network by ncnn itself."""
    ncnn = pytest.importorskip("ncnn")
    net = ncnn.Net()
    net.opt.lightmode = False
    net.opt.num_threads = thread_count()
    for field, value in NcnnOptions.parse(options).fields.items():
        setattr(net.opt, field, value)
    assert net.load_param(str(path)) == net.load_model(str(path.with_suffix(".bin"))) == 0
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(IMAGE).clone())
    names = engine.load(path).operands
    return {name: np.array(extractor.extract(name)[1]) for name in names}


@pytest.mark.parametrize("options", ["exact", "deployed", "packing", "winograd,sgemm"])
def test_numbers_equal_those_of_the_whole_network(network, options):
    expected = whole(network, options)
    session = engine.Session(engine.load(network), backend="ncnn", ncnn_options=options)
    session.feed([IMAGE])
    kernels = {record.kernel for record in session.run()}
    assert kernels == {"", f"ncnn/{NcnnOptions.parse(options).text}"}
    for name, blob in expected.items():
        assert session.value(name).tobytes() == blob.tobytes(), name


def test_numpy_agrees(network):
    expected = whole(network, "exact")
    session = engine.Session(engine.load(network), backend="numpy")
    session.feed([IMAGE])
    session.run()
    for name, blob in expected.items():
        np.testing.assert_allclose(session.value(name), blob, 1e-4, 1e-4, err_msg=name)


def test_auto_uses_ncnn_also_for_overrides_and_recomputing(network):
    pytest.importorskip("ncnn")
    session = engine.Session(engine.load(network), memory_limit=20_000)
    session.feed([IMAGE[np.newaxis]])  # the batch of one is left out
    session.run()
    first = session.value("1").copy()
    assert session.record("conv").kernel == "ncnn/exact"
    other = np.zeros((8, 8, 8), np.float32)
    session.override("6", other)
    session.run()
    assert session.value("7").tolist() == other.tolist()
    session.clear_override("6")
    session.run()
    assert session.value("1").tobytes() == first.tobytes()


def test_self_check_compares_ncnn_with_numpy(network):
    pytest.importorskip("ncnn")
    session = engine.Session(engine.load(network))
    session.feed([IMAGE])
    found = self_check(session)
    assert found.agrees
    assert {c.kernel for c in found.comparisons} >= {"ncnn/exact"}


def test_unknown_options_are_refused(network):
    with pytest.raises(SessionStateError, match="no option 'fast'"):
        engine.Session(engine.load(network), ncnn_options="fast")


def run(folder, lines, inputs, weights=b"", backend="numpy"):
    session = engine.Session(engine.load(write_pair(folder, lines, weights)), backend)
    session.feed([np.asarray(array, np.float32) for array in inputs])
    session.run()
    return session


def inputs_of(*arrays):
    return [f"Input in{place} 0 1 in{place}" for place in range(len(arrays))]


class TestNumpy:
    """Expectations by hand, or by a slow loop."""

    def test_convolution_with_padding_of_any_number(self, tmp_path):
        weight = RNG.standard_normal((2, 3, 3, 3)).astype(np.float32)
        line = "Convolution c 1 1 in0 out 0=2 1=3 4=1 15=2 14=0 16=1 18=0.5 5=0 6=54 3=2"
        found = run(tmp_path, [*inputs_of(0), line], [IMAGE], tagged(weight)).value("out")
        padded = np.full((3, 17, 19), 0.5, np.float32)
        padded[:, :16, 1:17] = IMAGE
        expected = [
            [[(padded[:, i : i + 3, j : j + 3] * kernel).sum() for j in range(0, 17, 2)]
             for i in range(0, 15, 2)]
            for kernel in weight
        ]  # fmt: skip
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4)

    @pytest.mark.parametrize("pad", [-233, -234])
    def test_convolution_that_keeps_the_size(self, tmp_path, pad):
        line = f"Convolution c 1 1 in0 out 0=1 1=2 4={pad} 6=4"
        weights = tagged(np.ones(4, np.float32))
        found = run(tmp_path, [*inputs_of(0), line], [[[[1, 2], [3, 4]]]], weights).value("out")
        expected = {-233: [[10, 6], [7, 4]], -234: [[1, 3], [4, 10]]}[pad]
        assert found[0].tolist() == expected

    def test_pooling_beyond_the_end(self, tmp_path):
        image = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3)
        lines = [*inputs_of(0), "Pooling p 1 1 in0 out 0=0 1=2 2=2"]
        assert run(tmp_path, lines, [image]).value("out").tolist() == [[[5, 6], [8, 9]]]
        lines[1] = "Pooling p 1 1 in0 out 0=1 1=2 2=2"
        assert run(tmp_path, lines, [image]).value("out").tolist() == [[[3, 4.5], [7.5, 9]]]

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [(2, [[2.5, 1.5], [1.75, 1]]), (3, [[0.25, 0.75], [1, 2.5]])],
    )
    def test_a_mean_that_keeps_the_size_counts_its_zeros(self, tmp_path, mode, expected):
        lines = [*inputs_of(0), f"Pooling p 1 1 in0 out 0=1 1=2 2=1 5={mode}"]
        assert run(tmp_path, lines, [[[[1, 2], [3, 4]]]]).value("out").tolist() == [expected]

    def test_a_window_of_padding_only(self, tmp_path):
        lines = [*inputs_of(0), "Pooling1D p 1 1 in0 out 0=0 1=1 2=2 3=1"]
        assert run(tmp_path, lines, [[[5, 7, 6]]]).value("out").tolist() == [
            [np.finfo(np.float32).min, 7, np.finfo(np.float32).min]
        ]
        lines[1] = "Pooling1D p 1 1 in0 out 0=1 1=2 2=3 3=1"
        found = run(tmp_path, lines, [[[5, 7, 6, 8, 9]]]).value("out")
        # windows of the padding and 5, of 6 and 8, and of nothing
        np.testing.assert_array_equal(found, [[5, 7, np.nan]])

    def test_depth_is_padded_after_also_when_others_are_before(self, tmp_path):
        line = "Convolution3D c 1 1 in0 out 0=1 1=2 4=-234 6=8"
        image = np.zeros((1, 2, 2, 2), np.float32)
        image[0, 0, 0, 0] = 1
        weights = tagged(np.arange(8, dtype=np.float32))
        found = run(tmp_path, [*inputs_of(0), line], [image], weights).value("out")
        # Rows and columns begin one before, so the first number meets both taps of each.
        assert found[0].tolist() == [[[3, 2], [1, 0]], [[0, 0], [0, 0]]]

    def test_output_padding_beyond_the_stride_has_the_bias(self, tmp_path):
        line = "Deconvolution1D d 1 1 in0 out 0=1 1=2 5=1 6=2 18=3"
        weights = tagged(np.array([1, 10], np.float32)) + f32([0.5])
        found = run(tmp_path, [*inputs_of(0), line], [[[1, 2]]], weights).value("out")
        assert found.tolist() == [[1.5, 12.5, 20.5, 0.5, 0.5, 0.5]]

    def test_deconvolution_without_a_size_to_keep(self, tmp_path):
        line = "Deconvolution1D d 1 1 in0 out 0=1 1=2 4=-233 6=2"
        weights = tagged(np.array([1, 10], np.float32))
        found = run(tmp_path, [*inputs_of(0), line], [[[1, 2]]], weights).value("out")
        assert found.tolist() == [[1, 12, 20]]

    def test_a_matrix_is_normalised_as_one_channel(self, tmp_path):
        line = "InstanceNorm n 1 1 in0 out 0=2 1=0"
        weights = f32([2, 99]) + f32([1, 99])
        found = run(tmp_path, [*inputs_of(0), line], [[[1, 3], [3, 1]]], weights).value("out")
        assert found.tolist() == [[-1, 3], [3, -1]]

    @pytest.mark.parametrize("kind", [2, 3])
    def test_positions_are_those_of_the_scale(self, tmp_path, kind):
        torch = pytest.importorskip("torch")
        line = f"Interp i 1 1 in0 out 0={kind} 1=1.7 2=0.6"
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(IMAGE)[None],
            scale_factor=(1.7, 0.6),
            mode=["bilinear", "bicubic"][kind - 2],
        )
        found = run(tmp_path, [*inputs_of(0), line], [IMAGE]).value("out")
        np.testing.assert_allclose(found, expected[0], 1e-4, 1e-4)

    def test_crop_without_a_size(self, tmp_path):
        lines = [*inputs_of(0), "Crop c 1 1 in0 out 0=1 1=1"]
        with pytest.raises(EngineError, match="the operand that gives the size is missing"):
            run(tmp_path, lines, [IMAGE])

    def test_inner_axes_are_extended(self, tmp_path):
        lines = [*inputs_of(0, 1), "BinaryOp b 2 1 in0 in1 out 0=1"]
        image = np.zeros((2, 3, 4), np.float32)
        found = run(tmp_path, lines, [image, [1, 2]]).value("out")
        assert found[:, 0, 0].tolist() == [-1, -2]
        found = run(tmp_path, lines, [image, [1, 2, 3, 4]]).value("out")
        assert found[0, 0].tolist() == [-1, -2, -3, -4]

    def test_sizes_are_expressions(self, tmp_path):
        lines = [*inputs_of(0), 'Reshape r 1 1 in0 out 6="*(0w,2),-1"']
        assert run(tmp_path, lines, [np.zeros((2, 3, 4))]).value("out").shape == (3, 8)

    def test_axes_are_permuted(self, tmp_path):
        image = np.arange(24).reshape(2, 3, 4)
        lines = [*inputs_of(0), "Permute p 1 1 in0 out 0=3"]  # c w h
        expected = image.transpose(1, 2, 0)
        assert run(tmp_path, lines, [image]).value("out").tolist() == expected.tolist()

    def test_layers_without_numpy_code_are_left_to_ncnn(self, tmp_path):
        lines = [*inputs_of(0), "Spectrogram s 1 1 in0 out 0=4", "ReLU r 1 1 in0 b"]
        session = run(tmp_path, lines, [np.ones(9)])
        assert session.status("s") is OperatorStatus.UNSUPPORTED
        assert "choose the backend ncnn" in session.record("s").reason
        assert session.has_value("b")

    def test_int8_equals_ncnn(self, tmp_path):
        pytest.importorskip("ncnn")
        weight = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
        data = tagged(weight, INT8) + f32([1, 2, 3, 4]) + f32([50, 60, 70, 80]) + f32([30])
        lines = [*inputs_of(0), "Convolution c 1 1 in0 out 0=4 1=3 5=1 6=108 8=2 9=1"]
        by_numpy = run(tmp_path, lines, [IMAGE], data)
        by_ncnn = run(tmp_path, lines, [IMAGE], data, "ncnn")
        assert by_ncnn.record("c").backend == "ncnn"
        np.testing.assert_allclose(by_numpy.value("out"), by_ncnn.value("out"), 1e-5, 1e-5)

    @pytest.mark.parametrize("shape", [(4,), (1, 4)])
    @pytest.mark.parametrize("backend", ["numpy", "ncnn"])
    def test_indices_may_be_a_batch_of_one(self, tmp_path, shape, backend):
        """As exported encoders of texts take them; ncnn reads the first row."""
        if backend == "ncnn":
            pytest.importorskip("ncnn")
        table = RNG.standard_normal((5, 3)).astype(np.float32)
        lines = [*inputs_of(0), "Embed e 1 1 in0 out 0=3 1=5 3=15"]
        session = engine.Session(
            engine.load(write_pair(tmp_path, lines, tagged(table))), backend
        )
        session.feed([np.array([4, 0, 2, 4], np.int32).reshape(shape)])
        session.run()
        np.testing.assert_array_equal(session.value("out"), table[[4, 0, 2, 4]])

    @pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
    @pytest.mark.parametrize("direction", [0, 1, 2])
    def test_recurrent_layers_equal_ncnn(self, tmp_path, kind, direction):
        pytest.importorskip("ncnn")
        gates, biases = {"LSTM": (4, 4), "GRU": (3, 4), "RNN": (1, 1)}[kind]
        count = 2 if direction == 2 else 1
        sizes = [count * gates * 5 * 3, count * biases * 5, count * gates * 5 * 5]
        data = b"".join(tagged(RNG.standard_normal(n).astype(np.float32)) for n in sizes)
        lines = [*inputs_of(0), f"{kind} r 1 1 in0 out 0=5 1={sizes[0]} 2={direction}"]
        x = RNG.standard_normal((7, 3))
        expected = run(tmp_path, lines, [x], data, "ncnn")
        assert expected.record("r").backend == "ncnn"
        found = run(tmp_path, lines, [x], data).value("out")
        np.testing.assert_allclose(found, expected.value("out"), 1e-4, 1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "Convolution c 1 1 in0 out 0=2 1=3 6=999 3=0",
        "Convolution c 1 1 in0 out 0=2 1=99 6=6",
        "Convolution c 1 1 in0 out 0=2 1=1 6=4",
        "Convolution c 1 1 in0 out 0=2 1=1 6=6 9=2",
        "Convolution c 1 1 in0 out 0=2 1=1 6=6 4=2000000000",
        "Convolution c 1 1 in0 out 0=2 1=1 6=6 2=0",
        "Convolution c 0 1 out 0=2 1=1 6=6",
        "Convolution c 1 2 in0 out x 0=2 1=1 6=6",
        "Convolution c 1 1 in0 out 0=2 1=1 6=6 19=1",
        "ConvolutionDepthWise c 1 1 in0 out 0=2 1=1 6=6 7=0",
        "Deconvolution c 1 1 in0 out 0=2 1=1 6=6 20=5 21=5",
        "Pooling p 1 1 in0 out 1=0",
        "Pooling p 1 1 in0 out 1=2 2=0",
        "Pooling p 1 1 in0 out 7=1 8=2000000000",
        "Padding p 1 1 in0 out 0=2000000000",
        "Padding p 1 1 in0 out 0=-5",
        "Padding p 1 1 in0 out 0=90 4=2",
        "Pooling p 1 1 in0 out 0=1 1=1 11=3 2=2 12=1 5=3",
        "Interp i 1 1 in0 out 0=1 1=1e9 2=1e9",
        "Interp i 1 1 in0 out 0=1 3=-1 4=-1",
        "Interp i 1 1 in0 out 0=2 5=1",
        "Reshape r 1 1 in0 out 0=100000 1=1 2=3",
        "Reshape r 1 1 in0 out 0=0 1=-1 2=-1",
        'Reshape r 1 1 in0 out 6="9w,//(1,0)"',
        'Reshape r 1 1 in0 out 6="*,*"',
        "Permute p 1 1 in0 out 0=77",
        "Slice s 1 2 in0 out x -23300=2,7,-5",
        "Slice s 1 2 in0 out x 1=9 -23300=2,-233,-233",
        "Crop c 1 1 in0 out -23309=1,-99 -23310=1,99 -23311=1,7",
        "Concat c 1 1 in0 out 0=9",
        "Softmax s 1 1 in0 out 0=9 1=1",
        "Reduction r 1 1 in0 out 0=99 1=1",
        "Reduction r 1 1 in0 out 1=0 -23303=1,9 5=1",
        "BinaryOp b 1 1 in0 out 0=0",
        "BinaryOp b 1 1 in0 out 0=77 1=1",
        "UnaryOp u 1 1 in0 out 0=77",
        "Eltwise e 1 1 in0 out 0=0",
        "PixelShuffle p 1 1 in0 out 0=0",
        "PixelShuffle p 1 1 in0 out 0=2000000000",
        "ShuffleChannel s 1 1 in0 out 0=0",
        "Reorg r 1 1 in0 out 0=0",
        "Tile t 1 1 in0 out 0=0 1=2000000000",
        "Tile t 1 1 in0 out 0=0 1=-1",
        "Squeeze s 1 1 in0 out -23303=1,77",
        "ExpandDims e 1 1 in0 out -23303=3,0,1,2",
        "MatMul m 1 1 in0 out",
        "SDPA s 1 1 in0 out",
        "MultiHeadAttention m 1 1 in0 out 0=3 1=0 2=9",
        "Gemm g 1 1 in0 out",
        "PReLU p 1 1 in0 out 0=0",
        "LRN l 1 1 in0 out 1=2000000000",
        "SPP s 1 1 in0 out 1=2000000000",
        "PriorBox p 1 1 in0 out",
        "ROIPooling r 1 1 in0 out 0=2000000000 1=2000000000",
        "Yolov3DetectionOutput y 1 1 in0 out 0=2000000000 1=2000000000",
        "DeepCopy d 0 1 out",
        "Noop n 1 2 in0 out x",
    ],
)
def test_ncnn_gets_no_layer_that_would_crash_it(tmp_path, line):
    pytest.importorskip("ncnn")
    lines = ["Input in0 0 1 in0", line, "ReLU r 1 1 in0 fine"]
    path = write_pair(tmp_path, lines, tagged(np.ones(6, np.float32)))
    try:
        graph = engine.load(path)
    except EngineError:
        path.with_suffix(".bin").write_bytes(b"")
        try:
            graph = engine.load(path)
        except EngineError:
            return
    session = engine.Session(graph, backend="ncnn")
    session.feed([IMAGE])
    try:
        session.run()
    except EngineError:
        return
    operator = graph.operators[1]
    assert session.status(operator.name) is OperatorStatus.UNSUPPORTED
    assert session.record(operator.name).reason
    assert session.has_value("fine")


def test_every_layer_is_documented():
    from engine.layers.ncnn.table import LAYERS

    note("ncnn.ReLU")  # which imports them
    assert len(LAYERS) > 80
    assert [kind for kind in LAYERS if not note(kind).summary] == []
    assert note("ncnn.Softmax").arguments[1].name == "axis"


def test_operands_in_any_memory_order(tmp_path):
    """ncnn gets a copy of them, which lives until ncnn has taken it."""
    pytest.importorskip("ncnn")
    path = write_pair(
        tmp_path, ["Input in 0 1 x", "BinaryOp double 1 1 x y 0=2 1=1 2=2.0"], blobs=2
    )
    values = RNG.standard_normal((6, 40, 50)).astype(np.float32)
    operator = engine.load(path).operator("double")
    for order in ((0, 1, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)):
        x = values.transpose(order)
        (y,) = compile_layer(operator, [x], EXACT)([x])
        np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize(
    ("layer", "weights", "shape", "alone"),
    [
        ("Convolution a 1 1 in0 out0 0=8 1=3 4=1 5=0 6=216", 216, (3, 16, 16), True),
        # 64·32·9 multiplications at each of 64·64 places, and 16·32·9 at 40·40.
        ("Convolution a 1 1 in0 out0 0=64 1=3 4=1 5=0 6=18432", 18432, (32, 64, 64), False),
        ("Convolution a 1 1 in0 out0 0=16 1=3 3=2 4=1 5=0 6=4608", 4608, (32, 80, 80), True),
        ("InnerProduct a 1 1 in0 out0 0=5 1=0 2=100", 100, (20,), True),
        ("Swish a 1 1 in0 out0", 0, (8, 64, 64), True),
        ("MatMul a 2 1 in0 in0 out0", 0, (4, 4), False),
    ],
)
def test_small_layers_are_computed_by_one_thread(
    tmp_path, monkeypatch, layer, weights, shape, alone
):
    pytest.importorskip("ncnn")
    monkeypatch.setattr("engine.backends.ncnn_file_kernels.thread_count", lambda: 4)
    counts = []

    class Counted(NcnnNet):
        def __init__(self, text, pieces, threads, **options):
            counts.append(threads)
            super().__init__(text, pieces, threads, **options)

    monkeypatch.setattr("engine.backends.ncnn_file_kernels.NcnnNet", Counted)
    drawn = tagged(RNG.standard_normal(weights).astype(np.float32)) if weights else b""
    path = write_pair(tmp_path, ["Input in0 0 1 in0", layer], drawn)
    operator = engine.load(path).operator("a")
    array = np.zeros(shape, np.float32)
    compile_layer(operator, [array] * len(operator.inputs), EXACT)
    assert counts == [1 if alone else 4]


PADDED = (
    "Input in0 0 1 in0", "Padding border 1 1 in0 1 0=1 1=1 2=1 3=1 4=2",
    "Convolution conv 1 1 1 out0 0=2 1=3 5=0 6=54",
)  # fmt: skip


def test_a_layer_behind_a_border_tells_the_rank_of_the_input(tmp_path):
    """As pnnx writes F.pad; a batch of one was fed to the layers, and the second failed."""
    weight = np.random.default_rng(2).standard_normal((2, 3, 3, 3)).astype(np.float32)
    graph = engine.load(write_pair(tmp_path, PADDED, tagged(weight)))
    (operand,) = graph.input_operands
    assert operand.shape is not None
    assert (operand.shape[0], len(operand.shape)) == (3, 3)
    session = engine.Session(graph, backend="numpy")
    session.feed([np.ones((1, 3, 5, 6), np.float32)])
    session.run()
    assert session.value("out0").shape == (2, 5, 6)


def test_a_batch_is_refused_with_what_to_do(tmp_path):
    session = engine.Session(
        engine.load(write_pair(tmp_path, PADDED, tagged(np.zeros(54, "f"))))
    )
    with pytest.raises(FeedError, match="one sample at a time: feed one of the 4"):
        session.feed([np.ones((4, 3, 5, 6), np.float32)])
