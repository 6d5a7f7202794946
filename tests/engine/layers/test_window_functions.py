"""Windows of signals."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

NAMES = ("hann", "hamming", "blackman", "bartlett", "kaiser")
# The modified Bessel function at the root of 3 and at 2, by its series.
BETWEEN, MIDDLE = 1.9029102, 2.2795853


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("hann", {}, [0, 0.5, 1, 0.5]),
        ("hann", {"periodic": False}, [0, 0.75, 0.75, 0]),
        ("hamming", {}, [0.08, 0.54, 1, 0.54]),
        ("hamming", {"alpha": 0.5, "beta": 0.25}, [0.25, 0.5, 0.75, 0.5]),
        ("blackman", {}, [0, 0.34, 1, 0.34]),
        ("bartlett", {}, [0, 0.5, 1, 0.5]),
        ("bartlett", {"periodic": False}, [0, 2 / 3, 2 / 3, 0]),
        ("kaiser", {"beta": 0.0}, [1, 1, 1, 1]),
        ("kaiser", {"beta": 2.0}, [1 / MIDDLE, BETWEEN / MIDDLE, 1, BETWEEN / MIDDLE]),
    ],
)
def test_values(run, name, params, expected):
    result = run(f"torch.{name}_window", window_length=4, **params)
    np.testing.assert_allclose(result, np.float32(expected), rtol=1e-6, atol=1e-7, strict=True)


def test_as_torchscript_calls_them(run):
    rest = (7, None, "cpu", False)  # float64
    np.testing.assert_allclose(run("aten::hann_window", 2, *rest), np.array([0.0, 1]))
    np.testing.assert_allclose(run("aten::hann_window", 3, False, *rest), [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(run("aten::hamming_window", 2, True, 0.5, *rest), [0.04, 0.96])
    halves = run("aten::hamming_window", 2, True, 0.5, 0.25, *rest)
    np.testing.assert_allclose(halves, np.array([0.25, 0.75]), strict=True)
    ends = run("aten::kaiser_window", 3, False, 2.0, None, None, None, None)
    np.testing.assert_allclose(ends, np.float32([1 / MIDDLE, 1, 1 / MIDDLE]), strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_short_ones(run, name):
    assert run(f"torch.{name}_window", window_length=0).shape == (0,)
    assert run(f"torch.{name}_window", window_length=1, periodic=False).tolist() == [1]
    with pytest.raises(LayerError, match="a window cannot have the length -1"):
        run(f"torch.{name}_window", window_length=-1)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_against_pytorch(run, name, periodic):
    torch = pytest.importorskip("torch")
    want = getattr(torch, f"{name}_window")(9, periodic).numpy()
    result = run(f"torch.{name}_window", window_length=9, periodic=periodic)
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6, strict=True)
