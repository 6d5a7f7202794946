"""The working memory of ONNX Runtime: one arena, which is freed on request."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from engine.backends.heap import trim_heap, trim_libraries
from engine.backends.lowering import Operand

pytest.importorskip("onnxruntime")

from engine.backends.onnx_lowering import lower_to_onnx
from engine.backends.onnx_runtime import OnnxCompiledKernel
from engine.backends.subgraph import Subgraph

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SIDES = (1, 6_000_000)
NBYTES = 4 * SIDES[1]


def resident():
    """Return the resident bytes of this process's own memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


@pytest.fixture
def compiled():
    """A kernel that computes (2 x) (2 x) and does not return 2 x."""
    graph = Subgraph()
    value = graph.read(Operand("x", 0, SIDES, np.dtype(np.float32)))
    doubled = graph.node("Add", value, value)
    graph.give("y", graph.node("Mul", doubled, doubled), None)
    return OnnxCompiledKernel(lower_to_onnx(graph), ["x"], "basic", 1)


def test_libraries_return_spare_memory(compiled):
    x = np.arange(SIDES[1], dtype=np.float32).reshape(SIDES) % 7
    compiled.run([x])
    trim_heap()
    before = resident()
    trim_libraries()
    trim_heap()
    assert before - resident() > NBYTES / 2
    expected = 4 * x * x
    for _ in range(2):
        compiled.run([x])
        np.testing.assert_array_equal(compiled.shown(0), expected, strict=True)
        trim_libraries()


def test_a_second_run_takes_no_more_memory(compiled):
    x = np.ones(SIDES, np.float32)
    compiled.run([x])
    compiled.run([x])
    held = resident()
    for _ in range(3):
        compiled.run([x])
    assert resident() - held < NBYTES / 4
