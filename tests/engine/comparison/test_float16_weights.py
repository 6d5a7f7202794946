"""A model of ncnn with float16 weights against results of the weights before rounding."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import F16, f32, tagged, write_pair

import engine
from comparison_network import make_weights
from engine.comparison import Status
from engine.comparison.references import Reference, ReferenceTensor

LINES = (
    "Input in0 0 1 in0 0=8 1=8 2=3",
    "Convolution conv 1 1 in0 1 0=4 1=3 4=1 5=1 6=108",
    "ReLU act 1 1 1 2",
    "Split twice 1 2 2 2a 2b",
    "Convolution mix 1 1 2a 3 0=4 1=1 5=1 6=16",
    "BinaryOp sum 2 1 3 2b 4 0=0",
    "ReLU last 1 1 4 5",
    "Flatten flat 1 1 5 6",
    "InnerProduct fc 1 1 6 7 0=5 1=1 2=1280",
)


def make_session(folder, image, weights):
    data = b"".join(
        tagged(weights[f"{name}.weight"].astype(np.float16), F16) + f32(weights[f"{name}.bias"])
        for name in ("conv", "mix", "fc")
    )
    session = engine.Session(engine.load(write_pair(folder, LINES, data)), backend="numpy")
    session.feed([image[0]])
    return session


def reference(arrays):
    tensors = [ReferenceTensor(f"x{k}", lambda array=a: array) for k, a in arrays.items()]
    return Reference("theirs", tensors, (), ("x0",), ("x7",))


def test_they_are_no_fault(tmp_path, image, tensors):
    session = make_session(tmp_path, image, make_weights())
    found = engine.compare(session, reference(tensors), 1e-5)
    assert (found.verdict, found.origins, found.unmatched.ours) == ("same", (), ())
    rounded = [row for row in found.rows if row.status is Status.FLOAT16_WEIGHTS]
    assert [row.operator.name for row in rounded] == ["conv", "mix", "fc"]
    assert {row.reason for row in rounded} == {"the model's weights are float16"}


def test_they_excuse_no_wrong_graph(tmp_path, image, tensors):
    """Layers without weights are not excused, whatever the others have."""
    lines = [line.replace("ReLU last 1 1 4 5", "Sigmoid last 1 1 4 5") for line in LINES]
    make_session(tmp_path, image, make_weights())
    path = tmp_path / "m.ncnn.param"
    path.write_text("\n".join(["7767517", f"{len(lines)} 99", *lines, ""]))
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([image[0]])
    found = engine.compare(session, reference(tensors), 1e-5)
    assert [origin.operator.name for origin in found.origins] == ["last"]


def changed(key, index, factor):
    """Change some numbers of a weight."""
    weights = make_weights()
    weights[key][index] *= factor
    return weights


FAULTS = [
    pytest.param("conv.weight", (1, 2, 0, 1), 1.1, id="element"),
    pytest.param("conv.weight", 3, 1.01, id="channel"),
    pytest.param("mix.bias", 2, 1.05, id="bias"),
    pytest.param("mix.weight", ..., 1.005, id="scale"),
    pytest.param("fc.weight", ..., -1, id="sign"),
    pytest.param("fc.bias", 4, 1.5, id="last bias"),
]


@pytest.mark.parametrize(("key", "index", "factor"), FAULTS)
def test_a_fault_beyond_rounding_is_named(tmp_path, image, tensors, key, index, factor):
    session = make_session(tmp_path, image, changed(key, index, factor))
    found = engine.compare(session, reference(tensors), 1e-5)
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [key.partition(".")[0]]


@pytest.mark.parametrize("seed", range(8))
def test_few_channels_are_excused(tmp_path, seed):
    """One output alone errs by more or less than the deviation of many."""
    rng = np.random.default_rng(seed)
    weight, x = (rng.standard_normal(s).astype(np.float32) for s in ((1, 64), (64,)))
    lines = ("Input in0 0 1 in0 0=64", "InnerProduct fc 1 1 in0 1 0=1 1=0 2=64")
    path = write_pair(tmp_path, lines, tagged(weight.astype(np.float16), F16))
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    exact = (weight.astype(np.float64) @ x).astype(np.float32)
    tensors = [ReferenceTensor("x", lambda: x), ReferenceTensor("y", lambda: exact)]
    found = engine.compare(session, Reference("theirs", tensors, (), ("x",), ("y",)), 1e-6)
    assert (found.verdict, found.origins) == ("same", ())
