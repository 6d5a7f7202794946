"""Passes through a network: ours, and those of PyTorch, ONNX Runtime and ncnn.

Each function is called in a process of its own (`benchmarks.processes`) with the folder of
networks and a name, and gives the work: one pass over the network's own input, with an array
of what comes out. Before that the pass has run three times, and what it computes was compared
with what PyTorch computed when the network was exported.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    Pass = Callable[[], np.ndarray]

__all__ = [
    "first_pass",
    "ncnn_keeping",
    "numpy_backend",
    "onnx_runtime",
    "onnx_runtime_keeping",
    "ours",
    "pytorch",
    "pytorch_keeping",
]

_TOLERANCE = 1e-3


def ours(folder: str, name: str) -> Pass:
    """Kuiper Studio, which keeps every operand whatever it is asked to do."""
    return _session(folder, name, "auto")


def numpy_backend(folder: str, name: str) -> Pass:
    """Kuiper Studio with NumPy alone."""
    return _session(folder, name, "numpy")


def pytorch(folder: str, name: str) -> Pass:
    """PyTorch, eager."""
    return _eager(_module(folder, name), folder, name)


def pytorch_keeping(folder: str, name: str) -> Pass:
    """PyTorch, eager, with a hook on every module without children that keeps a copy.

    A copy, for PyTorch changes some of what it has computed in place afterwards.
    """
    network = _module(folder, name)
    kept = {}

    def keep(key: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            kept[key] = output.clone()

        return hook

    for key, module in network.named_modules():
        if not any(module.children()):
            module.register_forward_hook(keep(key))
    return _eager(network, folder, name)


def onnx_runtime(folder: str, name: str) -> Pass:
    """ONNX Runtime with all that it can join."""
    return _inference_session(str(_file(folder, f"{name}.onnx")), folder, name)


def onnx_runtime_keeping(folder: str, name: str) -> Pass:
    """ONNX Runtime with the output of every node among the model's outputs."""
    import onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(str(_file(folder, f"{name}.onnx"))))
    known = {value.name: value for value in model.graph.value_info}
    made = [output for node in model.graph.node for output in node.output]
    model.graph.output.extend(known[output] for output in made if output in known)
    return _inference_session(model.SerializeToString(), folder, name)


def ncnn_keeping(folder: str, name: str) -> Pass:
    """Ncnn in float32, with every blob extracted."""
    import ncnn

    param, weights = (_file(folder, f"{name}.ncnn.{suffix}") for suffix in ("param", "bin"))
    network = ncnn.Net()
    network.opt.num_threads = _threads()
    for half in (
        "use_fp16_packed",
        "use_fp16_storage",
        "use_fp16_arithmetic",
        "use_bf16_storage",
    ):
        setattr(network.opt, half, False)
    if network.load_param(str(param)) or network.load_model(str(weights)):
        raise ValueError(f"ncnn cannot load {name}")
    blobs = _blobs(param)
    image = np.ascontiguousarray(_input(folder, name)[0])

    def run() -> np.ndarray:
        with network.create_extractor() as extractor:
            extractor.set_light_mode(False)
            extractor.input("in0", ncnn.Mat(image))
            kept = {blob: np.array(extractor.extract(blob)[1]) for blob in blobs}
        return kept["out0"][None]

    return _checked(run, folder, name)


def _blobs(param: Path) -> list[str]:
    """Names of what the layers of ncnn compute, without mere references to it."""
    blobs = []
    for line in param.read_text(encoding="utf-8").splitlines()[2:]:
        kind, _, inputs, outputs, *names = line.split()
        if kind not in {"Input", "Split"}:
            blobs += names[int(inputs) : int(inputs) + int(outputs)]
    return blobs


def first_pass(folder: str, name: str, backend: str) -> float:
    """Seconds of the first pass of a new user, who has no tuning cache.

    That is making kernels and running them once. Libraries are imported before.
    """
    import engine
    from engine.backends import libraries

    for library in libraries().values():
        library.load(whole=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KUIPER_STUDIO_CACHE"] = cache
        session = engine.Session(engine.load(_file(folder, f"{name}.pnnx.param")), backend)
        image = _input(folder, name)
        started = time.perf_counter()
        session.feed([image])
        session.run()
        seconds = time.perf_counter() - started
        found = session.outputs()[0]

    def again() -> np.ndarray:
        return found

    _checked(again, folder, name)
    return seconds


def _session(folder: str, name: str, backend: str) -> Pass:
    import engine

    graph = engine.load(_file(folder, f"{name}.pnnx.param"))
    session = engine.Session(graph, backend=backend)
    image = _input(folder, name)

    def run() -> np.ndarray:
        session.feed([image])
        session.run()
        return session.outputs()[0]

    run()
    session.tune()
    return _checked(run, folder, name)


def _module(folder: str, name: str) -> nn.Module:
    import torch

    from benchmarks.networks import built

    torch.set_num_threads(_threads())
    network = built(name)
    network.load_state_dict(torch.jit.load(str(_file(folder, f"{name}.pt"))).state_dict())
    return network


def _eager(network: nn.Module, folder: str, name: str) -> Pass:
    import torch

    image = torch.from_numpy(_input(folder, name))

    def run() -> np.ndarray:
        with torch.inference_mode():
            return network(image).numpy()

    return _checked(run, folder, name)


def _inference_session(model: str | bytes, folder: str, name: str) -> Pass:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: _input(folder, name)}
    return _checked(lambda: session.run(None, feed)[0], folder, name)


def _checked(run: Pass, folder: str, name: str) -> Pass:
    with np.load(_file(folder, f"{name}.expected.npz")) as arrays:
        expected = arrays["out0"]
    for _ in range(3):
        result = run()
    if not np.allclose(result, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise ValueError(f"it computes something else than PyTorch for {name}")
    return run


def _input(folder: str, name: str) -> np.ndarray:
    with np.load(_file(folder, f"{name}.inputs.npz")) as arrays:
        return arrays["in0"]


def _file(folder: str, name: str) -> Path:
    path = Path(folder, name)
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not in the folder of networks")
    return path


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
