"""Every recorder as a user runs it, with the real library."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from ncnn_files import INT8, f32, stored_by_pnnx, tagged, write_pair

import engine
from comparison_network import conv3x3, make_weights, truth
from engine.comparison.recorders import RECORDERS, recorder_script
from engine.comparison.references.reference import hash_weight


def load_recorder(library, folder):
    """Import the script from where the user put it."""
    file = folder / f"{library}_recorder.py"
    file.write_text(recorder_script(library), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"user_{library}_recorder", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("library", RECORDERS)
def test_a_script_of_one_file(library):
    script = recorder_script(library)
    assert "import engine" not in script
    assert "from engine" not in script
    compile(script, "recorder.py", "exec")


def torch_module():
    torch = pytest.importorskip("torch")
    weights = {key: torch.from_numpy(array) for key, array in make_weights().items()}

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.act = torch.nn.ReLU(inplace=True)
            self.mix = torch.nn.Conv2d(4, 4, 1)
            self.fc = torch.nn.Linear(256, 5)

        def forward(self, x):
            x = self.act(self.conv(x))
            x = torch.nn.functional.relu(self.mix(x) + x)
            return self.fc(torch.flatten(x, 1))

    module = Module().eval()
    module.load_state_dict(weights)
    return torch, module


@pytest.mark.parametrize("scripted", [False, True], ids=["module", "TorchScript"])
def test_torch(make_session, tmp_path, image, tensors, scripted):
    torch, module = torch_module()
    recorder = load_recorder("torch", tmp_path)
    if scripted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch advises another export
            module = torch.jit.trace(module, torch.from_numpy(image))
    folder = recorder.record(module, (torch.from_numpy(image),), tmp_path / "recording")
    reference = engine.open_reference(folder)
    arrays = [reference.array(tensor.key) for tensor in reference.tensors]
    for key, expected in tensors.items():  # in place and flattened ones as well
        assert any(
            a.size == expected.size
            and np.allclose(a.reshape(-1), expected.reshape(-1), rtol=1e-4, atol=1e-4)
            for a in arrays
        ), key
    assert len(reference.inputs) == len(reference.outputs) == 1
    found = engine.compare(make_session(), reference)
    assert found.verdict == "same"
    names = {row.operator.name: row.matched_by for row in found.rows}
    assert names["fc"] in {"weights", "name"}
    faulty = make_session({"expr=add(@0,@1)": "expr=mul(@0,@1)"})
    (origin,) = engine.compare(faulty, reference).origins
    assert origin.operator.name == "sum"


def test_torch_records_the_calls(tmp_path, image):
    torch, module = torch_module()
    recorder = load_recorder("torch", tmp_path)
    folder = recorder.record(module, torch.from_numpy(image), tmp_path / "recording")
    table = json.loads((folder / "recording.json").read_text(encoding="utf-8"))
    calls = [(each["name"], each["type"]) for each in table["operators"]]
    assert calls[0] == ("conv", "Conv2d/aten::convolution")
    assert [name for name, _ in calls] == [
        "conv", "act", "mix", "aten::add", "aten::relu", "fc",
    ]  # fmt: skip
    exact = np.ascontiguousarray(make_weights()["conv.weight"])
    import hashlib

    assert table["operators"][0]["weights"]["conv.weight"] == {
        "size": 108,
        "float32": hashlib.sha256(exact.tobytes()).hexdigest(),
        "float16": hashlib.sha256(exact.astype(np.float16).tobytes()).hexdigest(),
        "pnnx": hashlib.sha256(stored_by_pnnx(exact).tobytes()).hexdigest(),
    }
    with pytest.raises(FileExistsError, match="not empty"):
        recorder.record(module, torch.from_numpy(image), folder)


def opened(folder):
    """The recorded tensors by name, and the keys of inputs and outputs."""
    reference = engine.open_reference(folder)
    arrays = {
        each.key.partition(":")[2]: reference.array(each.key) for each in reference.tensors
    }
    return arrays, reference


def test_torch_takes_named_inputs_and_gives_what_a_dataclass_holds(tmp_path):
    torch = pytest.importorskip("torch")

    @dataclass
    class Output:
        logits: torch.Tensor
        hidden: None = None

    class Module(torch.nn.Module):
        def forward(self, x, *, mask):
            return Output(logits=(x * 2).masked_fill(mask, 0))

    x = np.arange(4, dtype=np.float32)
    given = {"mask": torch.tensor([True, False, False, True]), "x": x}  # also an array of NumPy
    recorder = load_recorder("torch", tmp_path)
    _, reference = opened(recorder.record(Module(), given, tmp_path / "recording"))
    assert len(reference.inputs) == 2
    (key,) = reference.outputs
    np.testing.assert_array_equal(reference.array(key), [0, 2, 4, 0])


def test_torch_leaves_out_tensors_without_elements(tmp_path):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lazy = torch.nn.LazyLinear(2)

        def forward(self, x):
            return torch.empty(3, device="meta") + 1, x.to_sparse_csr(), self.lazy(x) * 0 + 3

    recorder = load_recorder("torch", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, on lazy modules and sparse tensors
        folder = recorder.record(Module(), torch.ones(2, 3), tmp_path / "recording")
    _, reference = opened(folder)
    (key,) = reference.outputs
    np.testing.assert_array_equal(reference.array(key), np.full((2, 2), 3))


def test_torch_sees_what_is_written_through_a_view(tmp_path):
    """As detectors decode boxes: parts of a tensor are assigned, and then all of it is used."""
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 4))

        def forward(self, x):
            boxes = x.clone()
            boxes[:, :2] = boxes[:, :2] * 3
            turned = boxes.t()
            turned[3] = 7
            self.cache[1:] = x[1:]
            return boxes, self.cache * 2, turned.flatten()

    x = np.float32([[1, 2, 3, 4], [5, 6, 7, 8]])
    recorder = load_recorder("torch", tmp_path)
    folder = recorder.record(Module(), torch.from_numpy(x), tmp_path / "recording")
    reference = engine.open_reference(folder)
    boxes, cache, turned = (reference.array(key) for key in reference.outputs)
    np.testing.assert_array_equal(boxes, [[3, 6, 3, 7], [15, 18, 7, 7]])
    np.testing.assert_array_equal(cache, [[0, 0, 0, 0], [10, 12, 14, 16]])
    np.testing.assert_array_equal(turned.ravel(), [3, 15, 6, 18, 3, 7, 7, 7])
    np.testing.assert_array_equal(reference.array(reference.inputs[0]), x)
    whole = [call for call in reference.operators if call.type.endswith("written in place")]
    assert whole
    for call in whole:  # of what the tensor was before, and of the part that was written
        assert len(call.inputs) == 2


def test_torch_takes_arrays_in_lists_and_dictionaries(tmp_path):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def forward(self, batch, factor):
            return batch["pair"][0] * factor + batch["pair"][1], batch["pair"][0].bfloat16()

    pair = [np.float32([1, 2]), torch.ones(2)]
    recorder = load_recorder("torch", tmp_path)
    folder = recorder.record(Module(), ({"pair": pair}, 3), tmp_path / "recording")
    reference = engine.open_reference(folder)
    found = [reference.array(key).tolist() for key in reference.outputs]
    assert found == [[4, 7], [1, 2]]
    assert len(reference.inputs) == 2


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_torch_records_numbers_that_numpy_does_not_have(tmp_path, kind):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def forward(self, x):
            return x.to(getattr(torch, kind))

    recorder = load_recorder("torch", tmp_path)
    folder = recorder.record(Module(), torch.tensor([0.5, 1.25]), tmp_path / "recording")
    reference = engine.open_reference(folder)
    assert reference.array(reference.outputs[0]).tolist() == [0.5, 1.25]


def test_torch_warns_of_training_mode(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    recorder = load_recorder("torch", tmp_path)
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    recorder.record(module, torch.ones(1, 2), tmp_path / "first")
    assert "call module.eval(), and record again" in capsys.readouterr().err
    recorder.record(module.eval(), torch.ones(1, 2), tmp_path / "second")
    assert capsys.readouterr().err == ""


def test_torch_refuses_what_is_no_module_before_it_writes(tmp_path):
    torch = pytest.importorskip("torch")
    recorder = load_recorder("torch", tmp_path)
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module, not function"):
        recorder.record(lambda x: x, torch.ones(1), tmp_path / "recording")
    assert not (tmp_path / "recording").exists()


def test_torch_keeps_what_came_before_a_failure(tmp_path):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def forward(self, x):
            torch.mul(x, 2)
            raise KeyError("of the user")

    module, recorder = Module(), load_recorder("torch", tmp_path)
    with pytest.raises(KeyError, match="of the user"):
        recorder.record(module, torch.ones(3), tmp_path / "recording")
    arrays, reference = opened(tmp_path / "recording")
    np.testing.assert_array_equal(arrays["mul"], [2, 2, 2])
    assert reference.outputs == ()
    assert not module._forward_hooks


def onnx_model(path):
    helper = pytest.importorskip("onnx.helper")
    from onnx import TensorProto, numpy_helper, save

    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("Conv", ["a", "mix.weight", "mix.bias"], ["m"]),
        helper.make_node("Add", ["m", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["l"]),
        helper.make_node("Flatten", ["l"], ["f"]),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5))],
        [numpy_helper.from_array(array, key) for key, array in make_weights().items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def test_onnxruntime(make_session, tmp_path, image, tensors):
    pytest.importorskip("onnxruntime")
    onnx_model(tmp_path / "m.onnx")
    recorder = load_recorder("onnxruntime", tmp_path)
    folder = recorder.record(tmp_path / "m.onnx", [image], tmp_path / "recording")
    reference = engine.open_reference(folder)
    found = {t.names[0]: reference.array(t.key) for t in reference.tensors}
    for name, key in {"x": "0", "c": "1", "a": "2", "m": "3", "s": "4", "l": "5", "f": "6",
                      "y": "7"}.items():  # fmt: skip
        np.testing.assert_allclose(found[name], tensors[key], rtol=1e-4, atol=1e-4)
    compared = engine.compare(make_session(), reference)
    assert (compared.verdict, len(compared.rows)) == ("same", 8)
    assert {row.matched_by for row in compared.rows} >= {"input", "weights", "content"}


def small_onnx(path, nodes, inputs, output="y"):
    """A model of nodes; `inputs` are ONNX's numbers of dtypes and sizes by name."""
    onnx = pytest.importorskip("onnx")
    ends = [onnx.helper.make_tensor_value_info(n, *kind) for n, kind in inputs.items()]
    last = onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "g", ends, [last])
    opset = [onnx.helper.make_opsetid("", 19)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], "has the inputs x, mask, but 0 were given"),
        ({"x": np.ones((1, 3), "f")}, "'mask' is missing"),
        (
            {"x": np.ones((1, 3), "f"), "mask": np.ones(3, bool), "z": np.ones(1)},
            "'z' is none of them",
        ),
        ([np.ones((1, 3), "f"), np.ones(3, "f")], "'mask' takes bool, not float32"),
        ([np.ones((2, 4), "f"), np.ones(3, bool)], r"'x' takes \(batch, 3\), not \(2, 4\)"),
        ([np.ones(3, "f"), np.ones(3, bool)], r"'x' takes \(batch, 3\), not \(3,\)"),
    ],
)
def test_onnxruntime_says_what_a_model_takes(tmp_path, inputs, words):
    pytest.importorskip("onnxruntime")
    helper, proto = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx").TensorProto
    nodes = [helper.make_node("Where", ["mask", "x", "x"], ["y"])]
    taken = {"x": (proto.FLOAT, ("batch", 3)), "mask": (proto.BOOL, (3,))}
    path = small_onnx(tmp_path / "m.onnx", nodes, taken)
    recorder = load_recorder("onnxruntime", tmp_path)
    with pytest.raises(ValueError, match=words):
        recorder.record(path, inputs, tmp_path / "recording")
    assert not (tmp_path / "recording").exists()


@pytest.mark.parametrize("largest", [1 << 31, 10])
def test_onnxruntime_records_what_numpy_does_not_have(tmp_path, monkeypatch, largest):
    """Also of a model that is too large for one file, and given by float64."""
    pytest.importorskip("onnxruntime")
    helper, proto = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx").TensorProto
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=proto.BFLOAT16),
        helper.make_node("Cast", ["x"], ["tiny"], to=proto.FLOAT8E4M3FN),
        helper.make_node("SplitToSequence", ["x"], ["parts"]),
        helper.make_node("Cast", ["narrow"], ["y"], to=proto.FLOAT),
    ]
    path = small_onnx(tmp_path / "m.onnx", nodes, {"x": (proto.FLOAT, (3,))})
    recorder = load_recorder("onnxruntime", tmp_path)
    monkeypatch.setattr(recorder, "_LARGEST", largest)
    x = np.array([1, 1.00390625, -3])  # the second is between two numbers of bfloat16
    arrays, reference = opened(recorder.record(path, x, tmp_path / "recording"))
    assert arrays["x"].dtype == np.float32
    assert arrays["narrow"].tolist() == arrays["y"].tolist() == [1, 1, -3]
    assert arrays["tiny"].tolist() == [1, 1, -3]
    assert [call.type for call in reference.operators] == [n.op_type for n in nodes]
    assert len(reference.outputs) == 1


def ncnn_model(path):
    """Convolution and activation in one layer, as pnnx fuses them."""
    weights = make_weights()
    path.write_text(
        "7767517\n3 3\n"
        "Input in 0 1 x\n"
        "Convolution conv 1 1 x c 0=4 1=3 4=1 5=1 6=108 9=1\n"
        "Convolution mix 1 1 c m 0=4 1=1 5=1 6=16\n",
        encoding="ascii",
    )
    tag = np.uint32(0).tobytes()
    parts = [tag, weights["conv.weight"], weights["conv.bias"], tag, weights["mix.weight"],
             weights["mix.bias"]]  # fmt: skip
    data = b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)
    path.with_suffix(".bin").write_bytes(data)


def test_onnxruntime_hashes_the_weights_of_a_product_as_a_linear_layer_has_them(tmp_path):
    """Exporters transpose them, and store equal ones once."""
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(3)
    weight, bias = rng.standard_normal((4, 4)).astype("f"), rng.standard_normal(4).astype("f")
    make, number = onnx.helper.make_node, onnx.TensorProto.FLOAT
    nodes = [make("Identity", ["bias"], ["copy"]), make("MatMul", ["x", "onnx::1"], ["m"]),
             make("Add", ["copy", "m"], ["y"])]  # fmt: skip
    ends = [onnx.helper.make_tensor_value_info(name, number, [2, 4]) for name in "xy"]
    stored = {"onnx::1": weight.T, "bias": bias}
    tensors = [onnx.numpy_helper.from_array(a.copy(), name) for name, a in stored.items()]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, tmp_path / "m.onnx")
    recorder = load_recorder("onnxruntime", tmp_path)
    x = rng.standard_normal((2, 4)).astype("f")
    folder = recorder.record(tmp_path / "m.onnx", [x], tmp_path / "recording")
    calls = {call.type: call.weights() for call in engine.open_reference(folder).operators}
    assert calls["MatMul"]["onnx::1"].float32 == hash_weight(weight.T).float32
    assert calls["MatMul"]["onnx::1 transposed"].float32 == hash_weight(weight).float32
    assert calls["Add"]["copy"].float32 == hash_weight(bias).float32


def test_ncnn(make_session, tmp_path, image):
    pytest.importorskip("ncnn")
    ncnn_model(tmp_path / "m.ncnn.param")
    recorder = load_recorder("ncnn", tmp_path)
    folder = recorder.record(tmp_path / "m.ncnn.param", [image], tmp_path / "recording")
    reference = engine.open_reference(folder)
    found = {t.names[0]: reference.array(t.key) for t in reference.tensors}
    weights = make_weights()
    conv = conv3x3(image, weights["conv.weight"], weights["conv.bias"])
    np.testing.assert_allclose(found["c"], np.maximum(conv, 0)[0], rtol=1e-4, atol=1e-4)
    expected = truth(image, weights)["3"]
    np.testing.assert_allclose(found["m"], expected[0], rtol=1e-4, atol=1e-4)
    session = make_session()
    compared = engine.compare(session, reference)
    rows = {row.operand: row for row in compared.rows}
    assert compared.verdict == "same"
    assert rows["2"].reference.endswith("c")  # the last of the group
    assert rows["3"].layout.name == "no batch axis"
    assert "1" not in rows


def test_ncnn_gets_indices_as_int32(tmp_path):
    """PyTorch's int64 indexes reach a layer as ncnn reads them."""
    pytest.importorskip("ncnn")
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    lines = ["Input in 0 1 x", "Embed words 1 1 x y 0=4 1=10 2=0 3=40"]
    param = write_pair(tmp_path, lines, tagged(table))
    indexes = np.int64([3, 1, 7, 2])
    recorder = load_recorder("ncnn", tmp_path)
    reference = engine.open_reference(recorder.record(param, [indexes], tmp_path / "out"))
    found = {t.names[0]: reference.array(t.key) for t in reference.tensors}
    np.testing.assert_array_equal(found["x"], indexes)
    np.testing.assert_array_equal(found["y"], table[indexes])


def test_ncnn_computes_quantised_layers_in_int8(tmp_path):
    pytest.importorskip("ncnn")
    rng = np.random.default_rng(5)
    weight = rng.integers(-127, 128, (4, 12)).astype(np.int8)
    bias, x = rng.standard_normal(4).astype("f"), rng.standard_normal(12).astype("f")
    scales, step = np.float32([90, 110, 70, 130]), np.float32(127 / np.abs(x).max())
    path = write_pair(
        tmp_path,
        ("Input in0 0 1 in0", "InnerProduct fc 1 1 in0 1 0=4 1=1 2=48 8=2"),
        tagged(weight, INT8) + f32(bias) + f32(scales) + f32([step]),
        blobs=2,
    )
    recorder = load_recorder("ncnn", tmp_path)
    reference = engine.open_reference(recorder.record(path, [x], tmp_path / "recording"))
    steps = np.round(x.astype(float) * step).astype(int)
    expected = weight.astype(int) @ steps / (scales.astype(float) * step) + bias
    np.testing.assert_allclose(reference.array(reference.outputs[0]), expected, rtol=1e-5)


def test_ncnn_names_layers_that_it_does_not_have(tmp_path):
    pytest.importorskip("ncnn")
    lines = ("Input in0 0 1 in0", "torch.std std_1 1 1 in0 1", "ReLU relu 1 1 1 2")
    path = write_pair(tmp_path, lines)
    recorder = load_recorder("ncnn", tmp_path)
    with pytest.raises(ValueError, match=r"does not have the layers torch\.std \(std_1\):"):
        recorder.record(path, [np.ones(4, "f")], tmp_path / "recording")


def test_ncnn_takes_as_many_inputs_as_the_model_has(tmp_path):
    pytest.importorskip("ncnn")
    lines = ("Input a 0 1 a", "Input b 0 1 b", "BinaryOp add 2 1 a b c")
    path = write_pair(tmp_path, lines)
    recorder = load_recorder("ncnn", tmp_path)
    with pytest.raises(ValueError, match=r"has 2 inputs \(a, b\), not 1"):
        recorder.record(path, [np.ones(4, "f")], tmp_path / "recording")


def test_a_crash_of_ncnn_becomes_a_sentence(tmp_path, image):
    pytest.importorskip("ncnn")
    ncnn_model(tmp_path / "m.ncnn.param")
    np.save(tmp_path / "x.npy", image)
    script = tmp_path / "script.py"
    text = recorder_script("ncnn")
    crashing = text.replace("extractor.extract(blob.name)", "os.abort()")
    assert crashing != text
    script.write_text(crashing, encoding="utf-8")
    given = (tmp_path / "m.ncnn.param", tmp_path / "recording", tmp_path / "x.npy")
    ended = subprocess.run(
        [sys.executable, script, *given], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "it crashes at conv (Convolution)" in ended.stderr


def write_torchscript(path):
    torch, module = torch_module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch advises another export
        torch.jit.trace(module, torch.zeros(1, 3, 8, 8)).save(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's, of its own loader
@pytest.mark.parametrize(
    ("library", "write", "name"),
    [
        ("torch", write_torchscript, "m.pt"),
        ("onnxruntime", onnx_model, "m.onnx"),
        ("ncnn", ncnn_model, "m.ncnn.param"),
    ],
)
def test_the_command_line_of_a_recorder(
    tmp_path, image, monkeypatch, capfd, library, write, name
):
    pytest.importorskip(library)
    write(tmp_path / name)
    np.save(tmp_path / "x.npy", image)
    script = tmp_path / "script.py"
    script.write_text(recorder_script(library), encoding="utf-8")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        return (ended.value.code, *capfd.readouterr())

    given = tmp_path / name, tmp_path / "recording", tmp_path / "x.npy"
    assert call(*given) == (0, f"{tmp_path / 'recording'}\n", "")
    reference = engine.open_reference(tmp_path / "recording")
    fed = reference.array(reference.inputs[0])
    np.testing.assert_array_equal(fed.reshape(image.shape), image)
    status, printed, complaint = call(*given)
    assert (status, printed) == (2, "")
    assert "is not empty" in complaint
    damaged = tmp_path / f"damaged{name[1:]}"
    damaged.write_bytes(b"no model")
    status, _, complaint = call(damaged, tmp_path / "nothing", tmp_path / "x.npy")
    assert status == 2
    assert "Traceback" not in complaint
    status, _, complaint = call(tmp_path / name)
    assert status == 2
    assert complaint.startswith("usage: script.py MODEL.")
