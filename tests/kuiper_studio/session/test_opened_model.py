"""What the window knows of the open model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import engine
from engine.runtime.description import collect_notes, describe
from engine.runtime.kernel import SUPPLIED
from engine.states import SessionState
from kuiper_studio.engine_service.protocol import Model, Opened
from kuiper_studio.session.opened_model import OpenedModel

NET = (
    "pnnx.Input in 0 1 0 #0=(2,3)f32",
    "nn.Linear fc 1 1 0 1 bias=False in_features=3 out_features=4 @weight=(4,3)f32",
    "nn.ReLU relu 1 1 1 2",
    "pnnx.Output out 1 0 2",
)
KERNELS = {"in": "", "fc": "onnxruntime/gemm", "relu": SUPPLIED}
DUMP = Path("dump")


@pytest.fixture
def engine_graph(make_pair):
    weights = {"fc.weight": np.zeros((4, 3), np.float32)}
    return engine.load(make_pair(*NET, weights=weights))


@pytest.fixture
def opened(engine_graph):
    model = Model(engine_graph.param_path, None, "auto", DUMP)
    texts = {"onnxruntime/gemm": "Gemm of ONNX Runtime"}
    answer = Opened(
        1, describe(engine_graph), 0.5, SessionState.NEED_INPUT, KERNELS, texts, 7, False
    )
    return OpenedModel(model, answer, None)


def test_its_graph_has_the_operators(opened):
    assert [operator.name for operator in opened.graph.operators] == ["in", "fc", "relu", "out"]
    assert opened.graph.has_weights


def test_kernels_of_the_dump(opened):
    assert opened.kernels_from == DUMP
    assert opened.kernels_text == "1 by onnxruntime"  # what was supplied had no kernel
    assert [opened.pinned_kernel(name) for name in ("in", "fc", "relu", "unknown")] == [
        "",
        "onnxruntime/gemm",
        "",
        "",
    ]


def test_kernels_are_described_once_a_record_did(opened):
    assert opened.describe_kernel("onnxruntime/gemm") == "Gemm of ONNX Runtime"
    assert opened.describe_kernel("numpy") == "numpy"
    opened.note_kernels([SimpleNamespace(kernel="numpy", kernel_text="NumPy's layer")])
    assert opened.describe_kernel("numpy") == "NumPy's layer"


def test_the_file_may_change_when_the_weights_are_kept(opened):
    assert not opened.keeps_weights
    opened.note_weights_kept()
    assert opened.keeps_weights


def test_notes_reach_the_operators(opened, engine_graph):
    assert not opened.graph.operator("relu").note.known
    opened.add_notes(collect_notes(engine_graph))
    assert opened.graph.operator("relu").note.known
    assert "nn.ReLU" in opened.graph.operator("relu").note.type
