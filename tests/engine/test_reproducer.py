"""Reproducers: operators taken out of a model, with data and a check."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.errors import DumpExistsError, ExportError, InferenceError, UnknownNameError
from engine.reproducer.numpy_operators import numpy_function

ROOT = Path(__file__).resolve().parents[2]
X = np.array([[-1.0, 2.0, 3.0]], np.float32)


@pytest.fixture
def chain(make_pair):
    """Input, times two, ReLU, plus itself: of X 0, 8 and 12."""
    return make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "pnnx.Expression double 1 1 0 1 expr=mul(@0,2.0) #0=(1,3)f32 #1=(1,3)f32",
        "nn.ReLU relu 1 1 1 2 #1=(1,3)f32 #2=(1,3)f32",
        "pnnx.Expression sum 2 1 2 2 3 expr=add(@0,@1) #2=(1,3)f32 #3=(1,3)f32",
        "pnnx.Output out 1 0 3 #3=(1,3)f32",
    )


def run(param, *inputs):
    session = engine.Session(engine.load(param), backend="numpy")
    session.feed(inputs)
    session.run()
    return session


def read(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def run_again(folder):
    """What the pair gives in a session of its own."""
    session = engine.Session(engine.load(folder / "reproducer.pnnx.param"), backend="numpy")
    inputs = read(folder / "inputs.npz")
    if inputs:
        session.feed(inputs)
    session.run()
    return session.outputs()


def check(folder, *arguments, checked=("numpy", "kuiper-studio")):
    """Run the script; the rows of those that must be able to compute it."""
    ended = subprocess.run(
        [sys.executable, str(folder / "check.py"), *arguments],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert not ended.stderr, ended.stderr
    for name in checked:
        rows = [line for line in ended.stdout.splitlines() if line.startswith(name)]
        assert rows
        assert not any("not checked" in row for row in rows), ended.stdout
    return ended.returncode, ended.stdout


def check_with_numpy_only(folder):
    """Run the script where no other library can be imported; status and rows."""
    others = dict.fromkeys(("engine", "torch", "ncnn"))
    program = (
        f"import runpy, sys; sys.modules.update({others}); sys.argv = ['check.py']; "
        f"runpy.run_path({str(folder / 'check.py')!r}, run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not ended.stderr, ended.stderr
    rows = [line.split(maxsplit=5) for line in ended.stdout.splitlines()[1:]]
    assert {row[0] for row in rows} == {"numpy", "kuiper-studio", "torch", "ncnn"}
    return ended.returncode, [row[1:] for row in rows if row[0] == "numpy"]


def torch_if_installed():
    try:
        import torch  # noqa: F401
    except ImportError:
        return ()
    return ("torch",)


def test_a_chain(chain, tmp_path):
    folder = engine.write_reproducer(run(chain, X), ["relu", "sum"], tmp_path / "r")
    assert {path.name for path in folder.iterdir()} == {
        "reproducer.pnnx.param", "reproducer.pnnx.bin", "inputs.npz", "expected.npz",
        "README.md", "check.py",
    }  # fmt: skip
    inputs, expected = read(folder / "inputs.npz"), read(folder / "expected.npz")
    assert list(inputs) == ["1"]
    np.testing.assert_array_equal(inputs["1"], [[-2, 4, 6]])
    assert list(expected) == ["3"]
    np.testing.assert_array_equal(expected["3"], [[0, 8, 12]])
    graph = engine.load(folder / "reproducer.pnnx.param")
    assert [op.type for op in graph.operators] == [
        "pnnx.Input", "nn.ReLU", "pnnx.Expression", "pnnx.Output",
    ]  # fmt: skip
    np.testing.assert_array_equal(run_again(folder)[0], [[0, 8, 12]])
    status, table = check(folder, checked=("numpy", "kuiper-studio", *torch_if_installed()))
    assert status == 0, table


def test_shapes_are_those_of_the_data(chain, tmp_path):
    session = run(chain, np.ones((4, 5), np.float32))
    folder = engine.write_reproducer(session, ["relu"], tmp_path / "r")
    graph = engine.load(folder / "reproducer.pnnx.param")
    assert graph.operand("1").shape == graph.operand("2").shape == (4, 5)


def test_operators_between_the_chosen_ones_are_an_input_and_an_output(chain, tmp_path):
    folder = engine.write_reproducer(run(chain, X), ["double", "sum"], tmp_path / "r")
    assert list(read(folder / "inputs.npz")) == ["0", "2"]
    assert list(read(folder / "expected.npz")) == ["1", "3"]
    first, second = run_again(folder)
    np.testing.assert_array_equal(first, [[-2, 4, 6]])
    np.testing.assert_array_equal(second, [[0, 8, 12]])


def test_expected_values_of_another_program_differ(chain, tmp_path):
    folder = engine.write_reproducer(
        run(chain, X), ["relu"], tmp_path / "r", expected={"2": np.float32([[0, 4, 7]])}
    )
    np.testing.assert_array_equal(read(folder / "expected.npz")["2"], [[0, 4, 7]])
    status, table = check(folder)
    assert status == 1
    assert "differs" in table
    assert check(folder, "--tolerance", "0.5")[0] == 0


def test_outputs_of_a_reference_are_expected(chain, make_pair, tmp_path):
    np.savez(tmp_path / "theirs.npz", **{
        "0": X, "1": 2 * X, "2": np.float32([[-1, 4, 6]]), "3": np.float32([[-2, 8, 12]]),
    })  # fmt: skip
    session = run(chain, X)
    steps = []
    folder = engine.write_reproducer(
        session, ["relu", "sum"], tmp_path / "r", reference=tmp_path / "theirs.npz",
        progress=lambda done, total: steps.append((done, total)),
    )  # fmt: skip
    np.testing.assert_array_equal(read(folder / "inputs.npz")["1"], 2 * X)
    np.testing.assert_array_equal(read(folder / "expected.npz")["3"], [[-2, 8, 12]])
    assert steps
    folder = engine.write_reproducer(
        session, ["relu"], tmp_path / "s", reference=tmp_path / "theirs.npz",
        expected={"2": np.float32([[7, 8, 9]])},
    )  # fmt: skip
    np.testing.assert_array_equal(read(folder / "expected.npz")["2"], [[7, 8, 9]])
    np.savez(tmp_path / "less.npz", **{"0": X, "3": np.float32([[-2, 8, 12]])})
    with pytest.raises(
        ExportError, match=r"less\.npz has no tensor for operand 2; match it by"
    ):
        engine.write_reproducer(
            session, ["relu"], tmp_path / "t", reference=tmp_path / "less.npz"
        )
    assert not (tmp_path / "t").exists()


def test_weights_and_constants_come_along(make_pair, tmp_path):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    offset = np.float32([10, 20])
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "nn.ReLU relu 1 1 0 1",
        "pnnx.Attribute offset 0 1 2 @data=(2)f32 #2=(2)f32",
        "nn.Linear linear 1 1 1 3 bias=False in_features=3 out_features=2 @weight=(2,3)f32",
        "pnnx.Expression sum 2 1 3 2 4 expr=add(@0,@1)",
        "pnnx.Output out 1 0 4",
        weights={"offset.data": offset, "linear.weight": weight},
    )
    folder = engine.write_reproducer(run(param, X), ["linear", "sum"], tmp_path / "r")
    assert list(read(folder / "inputs.npz")) == ["1"]
    # relu(X) is 0 2 3; times 0 1 2 and 3 4 5
    np.testing.assert_array_equal(run_again(folder)[0], [[8 + 10, 23 + 20]])
    graph = engine.load(folder / "reproducer.pnnx.param")
    np.testing.assert_array_equal(graph.operator("linear").attributes["weight"].array, weight)
    assert check(folder, checked=("numpy", "kuiper-studio", *torch_if_installed()))[0] == 0


def test_lists_and_numbers_as_operands(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(2,4)f32",
        "torch.chunk halves 1 1 0 1 chunks=2 dim=1 $input=0",
        "Tensor.size rows 1 1 0 2 dim=0 $input=0",
        "torch.cat joined 1 1 1 3 dim=0",
        "pnnx.Expression scaled 2 1 3 2 4 expr=mul(@0,@1)",
        "pnnx.Output out 1 0 4",
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    session = run(param, x)
    assert isinstance(session.value("1"), tuple)
    folder = engine.write_reproducer(session, ["joined", "scaled"], tmp_path / "r")
    assert list(read(folder / "inputs.npz")) == ["1_0", "1_1"]
    rows = [[0, 1], [4, 5], [2, 3], [6, 7]]
    np.testing.assert_array_equal(run_again(folder)[0], 2 * np.float32(rows))
    assert check(folder, checked=("numpy", "kuiper-studio", *torch_if_installed()))[0] == 0
    folder = engine.write_reproducer(session, ["halves"], tmp_path / "halves")
    assert list(read(folder / "expected.npz")) == ["1_0", "1_1"]
    np.testing.assert_array_equal(run_again(folder)[1], x[:, 2:])
    assert check(folder)[0] == 0


def test_numpy_alone_checks_the_common_types(make_pair, tmp_path):
    random = np.random.default_rng(5)
    weights = {
        "conv.weight": random.standard_normal((4, 3, 3, 3)),
        "norm.weight": random.uniform(0.5, 2, 4), "norm.bias": random.standard_normal(4),
        "norm.running_mean": random.standard_normal(4),
        "norm.running_var": random.uniform(0.5, 2, 4),
        "anchor.data": random.standard_normal((1, 6, 16)),
    }  # fmt: skip
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(2,2) "
        "@weight=(4,3,3,3)f32",
        "nn.BatchNorm2d norm 1 1 1 2 affine=True eps=1.0e-5 num_features=4 @bias=(4)f32 "
        "@running_mean=(4)f32 @running_var=(4)f32 @weight=(4)f32",
        "nn.SiLU act 1 1 2 3",
        "torch.chunk halves 1 2 3 4 5 chunks=2 dim=1 $input=3",
        "pnnx.Expression sum 2 1 4 5 6 expr=add(mul(@0,2.0),tanh(@1))",
        "nn.MaxPool2d pool 1 1 6 7 ceil_mode=False dilation=(1,1) kernel_size=(3,3) "
        "padding=(1,1) return_indices=False stride=(2,2)",
        "nn.Upsample up 1 1 7 8 mode=nearest scale_factor=(2.0,2.0) size=None",
        "torch.cat cat 2 1 3 8 9 dim=1",
        "Tensor.reshape rows 1 1 9 10 shape=(1,6,16) $input=9",
        "torch.transpose turned 1 1 10 11 dim0=1 dim1=2 $input=10",
        "F.softmax shares 1 1 11 12 dim=-1 $input=11",
        "pnnx.Attribute anchor 0 1 13 @data=(1,6,16)f32",
        "torch.matmul product 2 1 12 13 14 $input=12 $other=13",
        "Tensor.slice first 1 1 14 15 dims=(1) ends=(8) selects=(2147483647) starts=(0) "
        "steps=(1) $input=14",
        "Tensor.permute last 1 1 15 16 dims=(2,0,1) $input=15",
        "pnnx.Output out 1 0 16",
        weights={key: value.astype(np.float32) for key, value in weights.items()},
    )
    session = run(param, random.standard_normal((1, 3, 8, 8)).astype(np.float32))
    folder = engine.write_reproducer(session, ["*"], tmp_path / "all")
    status, rows = check_with_numpy_only(folder)
    assert status == 0, rows
    assert [(row[0], row[-1]) for row in rows] == [("16", "same")]
    wanted = read(folder / "expected.npz")["16"]
    wanted[3, 0, 2] += 0.5
    np.savez(folder / "expected.npz", **{"16": wanted})
    status, rows = check_with_numpy_only(folder)
    assert status == 1
    assert rows[0][-1] == "differs"


def test_a_type_that_numpy_does_not_know_leaves_the_others_checked(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,1,4,4)f32",
        "nn.Unfold unfold 1 1 0 1 dilation=(1,1) kernel_size=(2,2) padding=(0,0) stride=(2,2)",
        "nn.ReLU after 1 1 1 2",
        "nn.ReLU relu 1 1 0 3",
        "pnnx.Output out 2 0 2 3",
    )
    session = run(param, np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) - 8)
    folder = engine.write_reproducer(session, ["*"], tmp_path / "r")
    status, rows = check_with_numpy_only(folder)
    assert status == 0
    assert " ".join(rows[0]).startswith("2 not checked: nn.Unfold 'unfold': NumPy has no")
    assert rows[1][-1] == "same"
    folder = engine.write_reproducer(session, ["unfold"], tmp_path / "alone")
    assert check_with_numpy_only(folder)[0] == 2


FUNCTIONS = [
    ("conv2d", (2, 4, 7, 6), {"stride": 2, "padding": (1, 2), "groups": 2}, (6, 2, 3, 2), 6),
    ("conv1d", (2, 4, 9), {"dilation": 2, "padding": "same"}, (3, 4, 4), 3),
    ("conv_transpose2d", (1, 4, 3, 4),
     {"stride": (2, 3), "padding": 1, "output_padding": 1, "groups": 2}, (4, 3, 3, 2), 6),
    ("linear", (2, 3, 5), {}, (4, 5), 4),
    ("max_pool2d", (1, 2, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1,
     "ceil_mode": True}),
    ("avg_pool2d", (1, 2, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1,
     "ceil_mode": True}),
    ("avg_pool2d", (1, 2, 7, 8), {"kernel_size": 3, "padding": 1, "count_include_pad": False}),
    ("adaptive_avg_pool2d", (2, 3, 7, 5), {"output_size": (3, 2)}),
    ("adaptive_max_pool1d", (2, 3, 7), {"output_size": 4}),
    ("group_norm", (2, 6, 3), {"num_groups": 3}),
    ("layer_norm", (2, 3, 4), {"normalized_shape": (3, 4)}),
    ("instance_norm", (2, 3, 5), {}), ("normalize", (3, 4), {"dim": 1}),
    *((name, (3, 4), {}) for name in (
        "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
        "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
        "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    )),
    ("gelu", (3, 4), {"approximate": "tanh"}), ("softmax", (3, 4), {"dim": 0}),
    ("log_softmax", (3, 4), {"dim": 1}), ("pad", (2, 3, 4), {"pad": (1, -1, 2, 0)}),
    ("pad", (2, 3, 4), {"pad": (1, 2), "mode": "reflect"}),
    ("pixel_shuffle", (1, 8, 2, 3), {"upscale_factor": 2}),
    ("pixel_unshuffle", (1, 2, 4, 6), {"downscale_factor": 2}),
    ("interpolate", (1, 2, 3, 4), {"scale_factor": 2.5}),
    ("interpolate", (1, 2, 3, 4), {"size": (5, 7), "mode": "bilinear"}),
    ("interpolate", (1, 2, 3), {"size": 7, "mode": "linear", "align_corners": True}),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", FUNCTIONS, ids=[f"{i}-{case[0]}" for i, case in enumerate(FUNCTIONS)]
)
def test_numpy_and_pytorch_agree(case):
    torch = pytest.importorskip("torch")
    name, shape, options, *sizes = case
    random = np.random.default_rng(1)
    x = random.standard_normal(shape).astype(np.float32)
    weights = [random.standard_normal(size).astype(np.float32) for size in sizes]
    named = dict(zip(("weight", "bias"), weights, strict=False))
    wanted = getattr(torch.nn.functional, name)(
        torch.from_numpy(x), **{k: torch.from_numpy(w) for k, w in named.items()}, **options
    )
    found = numpy_function(name)(x, **named, **options)
    assert found.shape == tuple(wanted.shape)
    np.testing.assert_allclose(found, wanted.numpy(), 1e-4, 1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_numpy_and_pytorch_agree_on_recurrent_layers(kind):
    torch = pytest.importorskip("torch")
    options = {
        "input_size": 3, "hidden_size": 4, "num_layers": 2, "bidirectional": True,
        "batch_first": True,
    }  # fmt: skip
    torch.manual_seed(2)
    layer, x = getattr(torch.nn, kind)(**options), torch.randn(2, 5, 3)
    with torch.no_grad():
        wanted, states = layer(x)
    weights = {key: value.numpy() for key, value in layer.state_dict().items()}
    found, *last = numpy_function(kind)(x.numpy(), **options, **weights)
    np.testing.assert_allclose(found, wanted.numpy(), 1e-4, 1e-5)
    for one, other in zip(last, states if kind == "LSTM" else [states], strict=True):
        np.testing.assert_allclose(one, other.numpy(), 1e-4, 1e-5)


def test_numpy_and_pytorch_agree_on_attention():
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    options = {"embed_dim": 6, "num_heads": 2}
    layer, query, key = torch.nn.MultiheadAttention(**options), *torch.randn(2, 5, 3, 6)
    mask = torch.ones(5, 5).triu(1).bool()
    with torch.no_grad():
        wanted, shares = layer(query, key, key, attn_mask=mask)
    weights = {name: value.numpy() for name, value in layer.state_dict().items()}
    found, mine = numpy_function("MultiheadAttention")(
        query.numpy(), key.numpy(), attn_mask=mask.numpy(), **options, **weights
    )
    np.testing.assert_allclose(found, wanted.numpy(), 1e-4, 1e-5)
    np.testing.assert_allclose(mine, shares.numpy(), 1e-4, 1e-5)


def test_numpy_and_pytorch_agree_on_a_query_without_keys():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    query, key, value = torch.randn(3, 1, 2, 3, 4)
    mask = torch.tensor([[True, False, False], [False, False, False], [True, True, True]])
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)
    assert not wanted[..., 1, :].any()
    found = numpy_function("scaled_dot_product_attention")(
        *(each.numpy() for each in (query, key, value, mask))
    )
    np.testing.assert_allclose(found, wanted.numpy(), 1e-5, 1e-6)


def test_an_attention_that_leaves_a_query_without_keys(make_pair, tmp_path):
    random = np.random.default_rng(4)
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,4)f32",
        "pnnx.Attribute mask 0 1 1 @data=(3,3)bool #1=(3,3)bool",
        "nn.MultiheadAttention mixed 2 1 0 1 2 add_bias_kv=False add_zero_attn=False "
        "batch_first=True bias=True embed_dim=4 kdim=4 num_heads=2 vdim=4 "
        "@in_proj_bias=(12)f32 @in_proj_weight=(12,4)f32 @out_proj.bias=(4)f32 "
        "@out_proj.weight=(4,4)f32 $input=0 $attn_mask=1",
        "pnnx.Output out 1 0 2",
        weights={
            "mask.data": np.tri(3, dtype=np.bool_),  # true for keys to ignore
            "mixed.in_proj_bias": random.standard_normal(12).astype(np.float32),
            "mixed.in_proj_weight": random.standard_normal((12, 4)).astype(np.float32),
            "mixed.out_proj.bias": random.standard_normal(4).astype(np.float32),
            "mixed.out_proj.weight": random.standard_normal((4, 4)).astype(np.float32),
        },
    )
    session = run(param, random.standard_normal((1, 3, 4)).astype(np.float32))
    folder = engine.write_reproducer(session, ["*"], tmp_path / "all")
    status, rows = check(folder, checked=("numpy", "kuiper-studio", *torch_if_installed()))
    assert status == 0, rows


def test_a_failed_operator(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "nn.ReLU relu 1 1 0 1",
        "Tensor.reshape wrong 1 1 1 2 shape=(2,2) $input=1",
        "pnnx.Output out 1 0 2",
    )
    session = engine.Session(engine.load(param), backend="numpy")
    session.feed([X])
    with pytest.raises(InferenceError):
        session.run()
    with pytest.raises(ExportError, match="operand 2 has no value; give its expected value"):
        engine.write_reproducer(session, ["wrong"], tmp_path / "r")
    assert not (tmp_path / "r").exists()
    folder = engine.write_reproducer(
        session, ["wrong"], tmp_path / "r", expected={"2": np.float32([[0, 2], [3, 0]])}
    )
    np.testing.assert_array_equal(read(folder / "inputs.npz")["1"], [[0, 2, 3]])
    status, table = check(folder, checked=("kuiper-studio",))
    assert status == 1
    assert "failed: Tensor.reshape 'wrong' failed" in table


def test_hostile_names(make_pair, tmp_path):
    param = make_pair(
        "pnnx.Input ../in 0 1 ../../a #../../a=(1,3)f32",
        "nn.ReLU ../../evil`x` 1 1 ../../a /b",
        "pnnx.Output out 1 0 /b",
    )
    folder = engine.write_reproducer(run(param, X), ["nn.ReLU"], tmp_path / "r")
    names = [*read(folder / "inputs.npz"), *read(folder / "expected.npz")]
    assert not any("/" in name or name.startswith(".") for name in names)
    graph = engine.load(folder / "reproducer.pnnx.param")
    assert not any("/" in op.name for op in graph.operators)
    np.testing.assert_array_equal(run_again(folder)[0], [[0, 2, 3]])
    assert {path.name for path in tmp_path.iterdir()} == {"r", "m.pnnx.param", "m.pnnx.bin"}


def test_the_script_calls_nothing_that_the_file_names(make_pair, tmp_path):
    pytest.importorskip("torch")
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        f"torch.load evil 1 1 0 1 f={tmp_path}/no.pt",
        "pnnx.Output out 1 0 1",
    )
    session = engine.Session(engine.load(param))
    session.feed([X])
    session.run()
    folder = engine.write_reproducer(session, ["evil"], tmp_path / "r", expected={"1": X})
    _, table = check(folder, checked=())
    assert "torch.load 'evil': this script does not know the type" in table


def test_the_script_executes_nothing():
    script = (resources.files("engine.reproducer") / "check_script.py").read_text("utf-8")
    assert "eval(" not in script.replace(".eval()", "")
    assert "exec(" not in script
    assert "allow_pickle=False" in script


def test_refused_selections(chain, make_pair, tmp_path):
    session = engine.Session(engine.load(chain), backend="numpy")
    with pytest.raises(UnknownNameError):
        engine.write_reproducer(session, ["no such"], tmp_path / "r")
    with pytest.raises(ExportError, match="operand 1, which operator 'relu' reads, has no"):
        engine.write_reproducer(session, ["relu"], tmp_path / "r")
    with pytest.raises(ExportError, match="none of the chosen operators"):
        engine.write_reproducer(session, ["in"], tmp_path / "r")
    session.feed([X])
    session.run()
    with pytest.raises(ExportError, match="operand 1 is not an output of these operators"):
        engine.write_reproducer(session, ["relu"], tmp_path / "r", expected={"1": X})
    session.override("2", X)
    session.run()
    with pytest.raises(ExportError, match="operand 2 is overridden"):
        engine.write_reproducer(session, ["relu", "sum"], tmp_path / "r")
    assert not (tmp_path / "r").exists()
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "torch.rand_like noise 1 1 0 1 $input=0",
        "pnnx.Output out 1 0 1",
        name="random",
    )
    with pytest.raises(ExportError, match="draws random numbers"):
        engine.write_reproducer(run(param, X), ["noise"], tmp_path / "r")


def test_nothing_is_replaced_without_overwrite(chain, tmp_path):
    session = run(chain, X)
    folder = engine.write_reproducer(session, ["relu"], tmp_path / "r")
    before = (folder / "expected.npz").read_bytes()
    with pytest.raises(DumpExistsError, match="already exists"):
        engine.write_reproducer(session, ["sum"], folder)
    assert (folder / "expected.npz").read_bytes() == before
    engine.write_reproducer(session, ["sum"], folder, overwrite=True)
    assert list(read(folder / "expected.npz")) == ["3"]
    (folder / "mine.txt").write_text("")
    with pytest.raises(ExportError, match="mine.txt"):
        engine.write_reproducer(session, ["sum"], folder, overwrite=True)
    assert (folder / "mine.txt").exists()


@pytest.mark.slow
def test_convolution_and_normalisation_by_pytorch(make_pair, tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    conv = torch.nn.Conv2d(2, 4, 3, padding=1, bias=False)
    norm = torch.nn.BatchNorm2d(4).eval()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,5,6)f32",
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=2 "
        "kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) "
        "@weight=(4,2,3,3)f32",
        "nn.BatchNorm2d norm 1 1 1 2 affine=True eps=1.0e-5 num_features=4 @bias=(4)f32 "
        "@running_mean=(4)f32 @running_var=(4)f32 @weight=(4)f32",
        "nn.ReLU relu 1 1 2 3",
        "pnnx.Output out 1 0 3",
        weights={
            "conv.weight": conv.weight.detach().numpy(),
            **{
                f"norm.{key}": getattr(norm, key).detach().numpy()
                for key in ("bias", "running_mean", "running_var", "weight")
            },
        },
    )
    x = torch.randn(1, 2, 5, 6)
    with torch.no_grad():
        wanted = torch.relu(norm(conv(x))).numpy()
    folder = engine.write_reproducer(run(param, x.numpy()), ["*"], tmp_path / "r")
    np.testing.assert_allclose(read(folder / "expected.npz")["3"], wanted, 1e-5, 1e-5)
    status, table = check(folder, checked=("numpy", "kuiper-studio", "torch"))
    assert status == 0, table
    np.savez(folder / "expected.npz", **{"3": wanted + np.float32(1)})
    status, table = check(folder, checked=("numpy", "kuiper-studio", "torch"))
    assert status == 1
    assert table.count("differs") >= 2
