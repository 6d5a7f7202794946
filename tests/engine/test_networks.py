"""Whole networks against PyTorch.

The environment variable KUIPER_MODELS names a folder with NAME.pnnx.param, NAME.pnnx.bin,
NAME.inputs.npz (in0, ...) and NAME.expected.npz (out0, ...), PyTorch's own outputs.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import engine

NETWORKS = [
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "encoder",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "resnet18",
    "resnet50",
    "shufflenet_v2",
    "squeezenet1_1",
    "swin_t",
    "unet",
    "vit_b_32",
]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("name", NETWORKS)
def test_equals_pytorch(name, backend):
    folder = os.environ.get("KUIPER_MODELS")
    if not folder:
        pytest.skip("KUIPER_MODELS names no folder of exported networks")
    param = Path(folder) / f"{name}.pnnx.param"
    if not param.exists():
        pytest.skip(f"{param.name} is not in KUIPER_MODELS")
    with np.load(param.with_name(f"{name}.inputs.npz")) as stored:
        inputs = [stored[f"in{i}"] for i in range(len(stored.files))]
    with np.load(param.with_name(f"{name}.expected.npz")) as stored:
        expected = [stored[f"out{i}"] for i in range(len(stored.files))]
    session = engine.Session(engine.load(param), backend=backend)
    session.feed(inputs)
    session.run()
    assert session.state is engine.SessionState.FINISHED
    for found, wanted in zip(session.outputs(), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
