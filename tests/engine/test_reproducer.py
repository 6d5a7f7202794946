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


def check(folder, *arguments, checked=("kuiper-studio",)):
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
    status, table = check(folder, checked=("kuiper-studio", *torch_if_installed()))
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
    assert check(folder, checked=("kuiper-studio", *torch_if_installed()))[0] == 0


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
    assert check(folder, checked=("kuiper-studio", *torch_if_installed()))[0] == 0
    folder = engine.write_reproducer(session, ["halves"], tmp_path / "halves")
    assert list(read(folder / "expected.npz")) == ["1_0", "1_1"]
    np.testing.assert_array_equal(run_again(folder)[1], x[:, 2:])
    assert check(folder)[0] == 0


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
    status, table = check(folder)
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
    status, table = check(folder, checked=("kuiper-studio", "torch"))
    assert status == 0, table
    np.savez(folder / "expected.npz", **{"3": wanted + np.float32(1)})
    status, table = check(folder, checked=("kuiper-studio", "torch"))
    assert status == 1
    assert table.count("differs") >= 2
