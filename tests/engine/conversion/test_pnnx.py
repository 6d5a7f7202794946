"""Conversions by pnnx itself; what comes out is compared with PyTorch's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.conversion.inspection import inspect
from engine.conversion.records import ConversionOptions
from engine.errors import ConversionError


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("traced.pt", ConversionOptions()),
        ("no_sizes.pt", ConversionOptions(("1,3,8,8",))),
        ("small.onnx", ConversionOptions()),
        ("open.onnx", ConversionOptions(("1,3,8,8",), ("2,3,16,16",))),
    ],
)
def test_a_converted_model_computes_like_pytorch(real_exporter, data, name, options):
    graph = engine.load(data / name, conversion=options)
    expected = np.load(data / "expected.npz")
    session = engine.Session(graph, backend="numpy")
    session.feed([expected["image"]])
    session.run()
    np.testing.assert_allclose(session.outputs()[0], expected["out"], rtol=1e-4, atol=1e-5)
    assert graph.conversion.ncnn_param.is_file()
    assert graph.conversion.ncnn_bin.is_file()
    assert graph.conversion.notes == ()
    wanted = (None, 3, None, None) if options.shapes2 else (1, 3, 8, 8)
    assert graph.input_operands[0].shape == wanted


def test_sizes_that_contradict_the_file_are_refused(real_exporter, data):
    with pytest.raises(ConversionError, match="give no size, or .* as the second size"):
        engine.load(data / "traced.pt", conversion=ConversionOptions(("1,3,9,9",)))


def test_sizes_that_the_model_cannot_take_are_refused(real_exporter, data):
    with pytest.raises(ConversionError, match="cannot be run at these sizes"):
        engine.load(data / "no_sizes.pt", conversion=ConversionOptions(("1,5,8,8",)))


@pytest.mark.parametrize("kind", ["TextEncoder", "Detector", "DecodingDetector"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_networks_of_users_convert_and_run(real_exporter, tmp_path, kind):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    import importlib.util

    place = Path(__file__).with_name("networks.py")
    spec = importlib.util.spec_from_file_location("networks", place)
    networks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(networks)
    torch.manual_seed(5)
    module = getattr(networks, kind)().eval()
    inputs = {
        "TextEncoder": lambda: (
            torch.tensor([[3, 1, 4, 1, 5, 9]]), torch.tensor([[1.0, 1, 1, 1, 0, 0]])
        ),
    }.get(kind, lambda: (torch.rand(1, 3, 64, 64),))()  # fmt: skip
    torch.jit.trace(module, inputs).save(str(tmp_path / "model.pt"))
    torch.onnx.export(module, inputs, tmp_path / "model.onnx", dynamo=False)
    with torch.no_grad():
        expected = module(*inputs)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    sessions = []
    for suffix in (".pt", ".onnx"):
        graph = engine.load(tmp_path / f"model{suffix}")
        session = engine.Session(graph, backend="numpy")
        session.feed([value.numpy() for value in inputs])
        session.run()
        assert graph.unsupported == ()
        given = session.outputs()
        assert len(given) == len(wanted)
        for ours, theirs in zip(given, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)
        sessions.append(session)
    script, onnx = sessions
    for ours, theirs in ((script, onnx), (onnx, script)):
        found = engine.compare(ours, theirs)
        assert (found.verdict, found.origins, found.missing_outputs) == ("same", (), ())


@pytest.mark.filterwarnings("ignore::Warning")  # of the tracer
@pytest.mark.parametrize(
    ("name", "training", "words"),
    [
        ("BatchNorm2d", True, "traced in training mode"),
        ("BatchNorm2d", False, ""),
        ("Dropout", True, "traced in training mode"),
        ("Dropout", False, ""),
        ("AlphaDropout", True, "traced in training mode"),
    ],
)
def test_a_trace_in_training_mode_is_told(real_exporter, tmp_path, name, training, words):
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, name)
    model = torch.nn.Sequential(layer(3) if "Norm" in name else layer(0.5), torch.nn.ReLU())
    traced = torch.jit.trace(model.train(training), torch.zeros(2, 3, 4, 4), check_trace=False)
    traced.save(tmp_path / "m.pt")
    notes = engine.load(tmp_path / "m.pt").conversion.notes
    assert [words in note for note in notes] == [True] * bool(words)


@pytest.mark.filterwarnings("ignore::Warning")  # of the tracer
def test_statistics_of_the_batch_are_no_training(tmp_path):
    """A BatchNorm without others takes them in evaluation, too."""
    torch = pytest.importorskip("torch")
    model = torch.nn.BatchNorm2d(3, track_running_stats=False).eval()
    torch.jit.trace(model, torch.zeros(2, 3, 4, 4)).save(tmp_path / "m.pt")
    assert not inspect(tmp_path / "m.pt").trains


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_bool_masks_of_fused_attentions_mean_what_they_meant(real_exporter, tmp_path):
    """pnnx makes a module of such an attention, in which true is a key to ignore."""
    torch = pytest.importorskip("torch")

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.last = (
                torch.nn.Linear(8, 8) for _ in range(4)
            )
            places = torch.arange(5)
            self.register_buffer("mask", (places[None] <= places[:, None])[None, None])

        def forward(self, x):
            projected = self.query(x) * 4**-0.5, self.key(x), self.value(x)
            query, key, value = (each.view(1, -1, 2, 4).transpose(1, 2) for each in projected)
            mixed = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=self.mask, scale=1.0
            )
            return self.last(mixed.transpose(1, 2).reshape(1, -1, 8))

    torch.manual_seed(3)
    network, x = Attention().eval(), torch.randn(1, 5, 8)
    with torch.no_grad():
        expected = network(x).numpy()
        torch.jit.trace(network, x).save(str(tmp_path / "m.pt"))
    graph = engine.load(tmp_path / "m.pt")
    session = engine.Session(graph, backend="numpy")
    session.feed([x.numpy()])
    session.run()
    assert "nn.MultiheadAttention" in [each.type for each in graph.operators]
    np.testing.assert_allclose(session.outputs()[0], expected, rtol=1e-4, atol=1e-5)
    (note,) = graph.conversion.notes
    assert note.startswith("pnnx took the bool masks of 1 attention for the opposite")
    assert graph.export_faults == ()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_operators_that_pnnx_joins_wrongly_are_left_apart(real_exporter, tmp_path):
    """It takes patches that are put back in their places for shuffled pixels."""
    torch = pytest.importorskip("torch")

    class Patches(torch.nn.Module):
        def forward(self, x):
            patches = x.reshape(1, 4, 2, 2, 3, 2).permute(0, 1, 3, 5, 2, 4).reshape(1, 4, 4, 6)
            patches = patches.softmax(2)
            return (
                patches.reshape(1, 4, 2, 2, 2, 3).permute(0, 1, 4, 2, 5, 3).reshape(1, 4, 4, 6)
            )

    x = torch.randn(1, 4, 4, 6)
    torch.jit.trace(Patches(), x).save(str(tmp_path / "m.pt"))
    graph = engine.load(tmp_path / "m.pt")
    session = engine.Session(graph, backend="numpy")
    session.feed([x.numpy()])
    session.run()
    expected = np.empty((1, 4, 4, 6))
    for row in range(2):
        for column in range(2):  # a place in each patch, over all patches
            part = x.numpy()[:, :, row::2, column::2]
            powers = np.exp(x.numpy().astype("d"))
            total = sum(powers[:, :, r::2, c::2] for r in range(2) for c in range(2))
            expected[:, :, row::2, column::2] = np.exp(part.astype("d")) / total
    np.testing.assert_allclose(session.outputs()[0], expected, rtol=1e-5)
    assert "pnnx joined 1 operator wrongly" in graph.conversion.notes[-1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("branches", [True, False])
def test_constants_of_scripted_branches_are_told(real_exporter, tmp_path, branches):
    torch = pytest.importorskip("torch")

    class Plain(torch.nn.Module):
        def forward(self, x):
            return x.exp()

    class Branching(torch.nn.Module):
        def forward(self, x):
            if x.shape[0] > 4:
                return x.exp()
            return x.exp() * 2

    module = Branching() if branches else Plain()
    torch.jit.script(module.eval()).save(str(tmp_path / "m.pt"))
    graph = engine.load(tmp_path / "m.pt", conversion=ConversionOptions(("2,3",)))
    told = [note.startswith("it was scripted, and") for note in graph.conversion.notes]
    assert told == [True] * branches


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_slices_of_open_sizes_stay(real_exporter, tmp_path):
    """pnnx removes a slice that states the same open sizes before and behind it."""
    torch = pytest.importorskip("torch")

    class Middle(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x[:, :, 1:-2])

    path = tmp_path / "m.pt"
    torch.jit.trace(Middle(), torch.rand(1, 3, 6)).save(str(path))
    graph = engine.load(path, conversion=ConversionOptions(("1,3,6",), ("1,3,9",)))
    x = np.random.default_rng(4).standard_normal((1, 3, 7)).astype("f")
    session = engine.Session(graph, backend="numpy")
    session.feed([x])
    session.run()
    np.testing.assert_array_equal(session.outputs()[0], np.maximum(x[:, :, 1:5], 0))
    assert any("removed 1 slice of open sizes" in note for note in graph.conversion.notes)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("suffix", ["pt", "onnx"])
def test_sizes_that_a_model_computes_may_change(real_exporter, tmp_path, suffix):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")

    class Pyramid(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (torch.nn.Conv2d(count, 8, 3, 2, 1) for count in (3, 8))

        def forward(self, image):
            large = self.first(image)
            small = self.second(large)
            wide = torch.nn.functional.interpolate(
                small, size=large.shape[-2:], mode="bilinear"
            )
            return (large + wide).flatten(2).transpose(1, 2).reshape(image.shape[0], -1, 4)

    torch.manual_seed(1)
    network, path = Pyramid().eval(), tmp_path / f"m.{suffix}"
    image = torch.rand(1, 3, 16, 16)
    if suffix == "pt":
        torch.jit.trace(network, image).save(str(path))
    else:
        torch.onnx.export(
            network, image, path, dynamo=False, input_names=["image"],
            dynamic_axes={"image": {0: "images", 2: "rows", 3: "columns"}},
        )  # fmt: skip
    options = ConversionOptions(("1,3,16,16",), ("2,3,24,32",))
    graph = engine.load(path, conversion=options)
    for sizes in ((1, 3, 16, 16), (2, 3, 24, 32), (3, 3, 20, 28)):
        image = torch.rand(*sizes)
        session = engine.Session(graph, backend="numpy")
        session.feed([image.numpy()])
        session.run()
        with torch.no_grad():
            expected = network(image).numpy()
        np.testing.assert_allclose(session.outputs()[0], expected, rtol=1e-4, atol=1e-5)
