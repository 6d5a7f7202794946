"""Fourier transforms against the sum that defines them."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng(4)
Z = (RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))).astype(np.complex64)
REAL = RNG.standard_normal((3, 5)).astype(np.float32)
SCALE = {  # of the forward and of the inverse transform of n points
    "backward": (lambda n: 1, lambda n: 1 / n),
    "ortho": (lambda n: n**-0.5, lambda n: n**-0.5),
    "forward": (lambda n: 1 / n, lambda n: 1),
}


def transformed(row, direction, scale=1.0):
    n = len(row)
    return [
        scale
        * sum(
            complex(x) * cmath.exp(direction * 2j * math.pi * i * k / n)
            for i, x in enumerate(row)
        )
        for k in range(n)
    ]


@pytest.mark.parametrize("norm", SCALE)
def test_forward_and_back(run, norm):
    forward, inverse = SCALE[norm]
    result = run("torch.fft.fft", Z, n=None, dim=-1, norm=norm)
    assert result.dtype == np.complex64
    np.testing.assert_allclose(result, [transformed(r, -1, forward(4)) for r in Z], atol=1e-5)
    result = run("torch.fft.ifft", Z, dim=0, norm=norm)
    np.testing.assert_allclose(
        result.T, [transformed(r, 1, inverse(3)) for r in Z.T], atol=1e-5
    )


def test_of_real_numbers(run):
    half = run("torch.fft.rfft", REAL)
    assert half.shape == (3, 3)
    np.testing.assert_allclose(half, [transformed(r, -1)[:3] for r in REAL], atol=1e-5)
    back = run("torch.fft.irfft", half, n=5)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, REAL, atol=1e-6)


def test_of_half_a_symmetric_signal(run):
    whole = run("torch.fft.hfft", Z, n=7)
    assert whole.dtype == np.float32
    symmetric = [[row[0].real, *row[1:], *row[:0:-1].conj()] for row in Z]
    np.testing.assert_allclose(
        whole, np.real([transformed(r, -1) for r in symmetric]), atol=1e-5
    )
    half = run("torch.fft.ihfft", whole)
    np.testing.assert_allclose(half[:, 1:], Z[:, 1:], atol=1e-5)


@pytest.mark.parametrize("name", ["fft2", "fftn"])
def test_in_two_dimensions(run, name):
    rows = np.array([transformed(r, -1) for r in Z])
    both = np.array([transformed(c, -1) for c in rows.T]).T
    np.testing.assert_allclose(run(f"torch.fft.{name}", Z), both, atol=1e-5)


def test_sizes_cut_and_fill_up(run):
    cut = run("torch.fft.fftn", Z, s=(2,))
    np.testing.assert_allclose(cut, [transformed(r[:2], -1) for r in Z], atol=1e-5)
    filled = run("torch.fft.fft", Z, n=6)
    np.testing.assert_allclose(filled, [transformed([*r, 0, 0], -1) for r in Z], atol=1e-5)
    assert run("torch.fft.fft2", Z, s=(-1, 2)).shape == (3, 2)


def test_precision_follows_the_input(run):
    assert run("torch.fft.fft", REAL.astype(np.float64)).dtype == np.complex128
    assert run("torch.fft.irfft", Z.astype(np.complex128)).dtype == np.float64
    assert run("torch.fft.fft", np.arange(4)).dtype == np.complex64


@pytest.mark.parametrize(
    ("name", "x", "kwargs", "reason"),
    [
        ("rfft", Z, {}, "rfft takes real numbers"),
        ("fft", Z, {"n": 0}, "a transform of 0 points"),
        ("fft", np.array(1.0), {}, "no dimensions to transform"),
        ("fftn", Z, {"s": (1, 2), "dim": (0,)}, "not as many as the 1 dimensions"),
        ("irfft", np.ones((2, 1)), {}, "a transform of 0 points"),
    ],
)
def test_what_has_no_transform(run, name, x, kwargs, reason):
    with pytest.raises(LayerError, match=reason):
        run(f"torch.fft.{name}", x, **kwargs)


def test_shifts(run):
    x = np.arange(5)
    assert run("torch.fft.fftshift", x).tolist() == [3, 4, 0, 1, 2]
    assert run("torch.fft.ifftshift", x).tolist() == [2, 3, 4, 0, 1]


def test_frequencies(run):
    result = run("torch.fft.fftfreq", n=5, d=0.5)
    np.testing.assert_allclose(result, np.float32([0, 0.4, 0.8, -0.8, -0.4]), strict=True)
    assert run("aten::fft_fftfreq", 4, 0.25, 7, None, None, None).tolist() == [0, 1, -2, -1]
    assert run("torch.fft.rfftfreq", n=4).tolist() == [0, 0.25, 0.5]
    with pytest.raises(LayerError, match="a transform cannot have the length 0"):
        run("torch.fft.rfftfreq", n=0)
