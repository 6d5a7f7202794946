"""Sessions with the kernels of an earlier session give the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from engine.errors import InferenceError, SessionStateError

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")


@pytest.fixture(scope="module")
def unet(samples):
    return engine.load(samples / "unet" / "unet.pnnx.param")


@pytest.fixture(scope="module")
def scene(samples):
    return np.load(samples / "unet" / "golden.npz")["0"]


def run(graph, x, backend):
    session = engine.Session(graph, backend=backend)
    session.feed([x])
    session.run()
    return session


@pytest.mark.parametrize("backend", ["auto", "numpy", "onnxruntime", "ncnn"])
def test_a_recorded_run_is_equal_bit_for_bit(unet, scene, tmp_path, backend):
    first = run(unet, scene, backend)
    engine.write_dump(first, tmp_path / "d")
    second = run(unet, scene, engine.kernels_of(tmp_path / "d"))
    assert (first.backend, second.backend) == (backend, "recorded")
    for operator in unet.operators:
        mine, theirs = second.record(operator.name), first.record(operator.name)
        assert (mine.kernel, mine.backend) == (theirs.kernel, theirs.backend)
        for name, value in mine.outputs.items():
            np.testing.assert_array_equal(value, theirs.outputs[name], strict=True)


def test_a_pinned_library_computes_what_it_supports(unet, scene):
    session = run(unet, scene, "ncnn")
    served = {r.operator.type: (r.backend, r.kernel) for r in session.records}
    assert served["nn.Conv2d"][0] == "ncnn"
    assert served["nn.Conv2d"][1] in {"ncnn/winograd", "ncnn/plain"}
    assert served["nn.ReLU"][0] == "numpy"
    assert served["pnnx.Input"] == ("", "")


CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    "nn.ReLU relu 1 1 0 1",
    "nn.Sigmoid sigmoid 1 1 1 2",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def chain(make_pair):
    return engine.load(make_pair(*CHAIN))


def test_numpy_computes_operators_that_did_not_run(chain):
    x = np.ones((1, 3, 8, 8), np.float32)
    kernels = {"in": "", "relu": "", "sigmoid": "supplied", "out": ""}
    session = run(chain, x, kernels)
    assert [r.kernel for r in session.records] == ["", "numpy", "numpy", ""]


@pytest.mark.parametrize(
    "name",
    [
        "onnxruntime/segment-9999@1-2", "ncnn/elempack-500@1-2", "onnxruntime/nchw-0@1-2",
        "onnxruntime/nchw-1@1-1", "onnxruntime/nchw-1@0-1", "onnxruntime/nchw-1@2-1",
        "onnxruntime/nchw-1@7-9",
    ],
)  # fmt: skip
def test_an_impossible_subgraph_is_refused(chain, name):
    """A damaged or malicious manifest starts no threads."""
    x = np.ones((1, 3, 8, 8), np.float32)
    session = engine.Session(
        chain, backend={"in": "", "relu": name, "sigmoid": name, "out": ""}
    )
    session.feed([x])
    present = threading_count()
    with pytest.raises(InferenceError, match="its recorded kernel .* cannot compute it here"):
        session.run()
    assert threading_count() < present + 10


def threading_count() -> int:
    """Threads of this process, those of libraries too, where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


REFUSED = [
    ({"in": "", "relu": "numpy", "out": ""}, "of another model: .* no kernel for nn.Sigmoid"),
    (
        {"in": "", "relu": "tensorrt/fast", "sigmoid": "numpy", "out": ""},
        "'relu' was computed by tensorrt, which is not installed here; choose a backend",
    ),
]


@pytest.mark.parametrize(("kernels", "sentence"), REFUSED)
def test_unusable_kernels_are_refused_at_once(chain, kernels, sentence):
    with pytest.raises(SessionStateError, match=sentence):
        engine.Session(chain, backend=kernels)


@pytest.mark.parametrize("kernel", ["onnxruntime/of-tomorrow", "ncnn/winograd"])
def test_no_other_kernel_replaces_a_recorded_one(chain, kernel):
    kernels = {"in": "", "relu": kernel, "sigmoid": "numpy", "out": ""}
    with pytest.raises(InferenceError, match=f"recorded kernel {kernel} cannot compute"):
        run(chain, np.ones((1, 3, 8, 8), np.float32), kernels)


RANDOM = (
    "pnnx.Input in 0 1 0 #0=(1,4,64,64)f32",
    "F.rrelu slope 1 1 0 1 lower=0.1 upper=0.9 training=True",
    (
        "F.scaled_dot_product_attention mix 3 1 1 1 1 2 dropout_p=0.5 is_causal=False "
        "attn_mask=None $query=1 $key=1 $value=1"
    ),
    "pnnx.Output out 1 0 2",
)


def test_random_operators_draw_the_same_on_every_backend(make_pair, tmp_path):
    """Libraries have lowerings of these types, but draw no random numbers."""
    graph = engine.load(make_pair(*RANDOM))
    x = np.random.default_rng(1).standard_normal((1, 4, 64, 64)).astype(np.float32)
    expected = run(graph, x, "numpy")
    engine.write_dump(expected, tmp_path / "d")
    for backend in ("auto", "onnxruntime", "ncnn", engine.kernels_of(tmp_path / "d")):
        session = run(graph, x, backend)
        assert [r.backend for r in session.records if r.random] == ["numpy", "numpy"]
        np.testing.assert_array_equal(session.outputs()[0], expected.outputs()[0])
