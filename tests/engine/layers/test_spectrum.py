"""Short-time Fourier transforms against the sums that define them."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng(9)
SIGNAL = RNG.standard_normal(40).astype(np.float32)
HANN = np.array([0.5 - 0.5 * math.cos(2 * math.pi * i / 6) for i in range(6)], np.float32)


def slow_stft(signal, n, hop, window, frequencies):
    """Column after column, frequency after frequency."""
    before = (n - len(window)) // 2
    columns = []
    for start in range(0, len(signal) - n + 1, hop):
        piece = [0.0] * n
        for i, w in enumerate(window):
            piece[before + i] = float(signal[start + before + i]) * float(w)
        columns.append(
            [
                sum(v * cmath.exp(-2j * math.pi * i * k / n) for i, v in enumerate(piece))
                for k in range(frequencies)
            ]
        )
    return np.array(columns).T


@pytest.mark.parametrize("onesided", [True, False, None])
@pytest.mark.parametrize("normalized", [False, True])
def test_stft(run, onesided, normalized):
    result = run(
        "torch.stft", SIGNAL, HANN, names=("input", "window"), n_fft=8, hop_length=3,
        win_length=6, center=False, normalized=normalized, onesided=onesided,
        return_complex=True,
    )  # fmt: skip
    expected = slow_stft(SIGNAL, 8, 3, HANN, 8 if onesided is False else 5)
    assert result.dtype == np.complex64
    np.testing.assert_allclose(
        result, expected / (math.sqrt(8) if normalized else 1), atol=1e-5
    )


@pytest.mark.parametrize(
    ("pad_mode", "front", "back"),
    [
        ("reflect", SIGNAL[4:0:-1], SIGNAL[-2:-6:-1]),
        ("constant", np.zeros(4), np.zeros(4)),
        ("replicate", SIGNAL[[0] * 4], SIGNAL[[-1] * 4]),
        ("circular", SIGNAL[-4:], SIGNAL[:4]),
    ],
)
def test_centred(run, pad_mode, front, back):
    result = run("torch.stft", SIGNAL, n_fft=8, center=True, pad_mode=pad_mode)
    longer = np.concatenate([front, SIGNAL, back])
    np.testing.assert_allclose(result, slow_stft(longer, 8, 2, np.ones(8), 5), atol=1e-5)


def test_as_pairs_and_in_batches(run):
    batch = np.stack([SIGNAL, -SIGNAL])
    pairs = run("torch.stft", batch, n_fft=8, return_complex=False)
    alone = run("torch.stft", SIGNAL, n_fft=8, return_complex=True)
    np.testing.assert_array_equal(pairs[0, ..., 0], alone.real)
    np.testing.assert_array_equal(pairs[1, ..., 1], -alone.imag)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_there_and_back(run, center, normalized, onesided):
    window = np.hamming(8).astype(np.float32)
    common = {"n_fft": 8, "center": center, "normalized": normalized, "onesided": onesided}
    there = run("torch.stft", SIGNAL, window, names=("", "window"), **common)
    back = run("torch.istft", there, window, names=("", "window"), **common)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, SIGNAL, atol=1e-5)


@pytest.mark.parametrize("length", [30, 40, 44])
def test_istft_of_a_length(run, length):
    there = run("torch.stft", SIGNAL, n_fft=8)
    back = run("torch.istft", there, n_fft=8, length=length)
    assert back.shape == (length,)
    np.testing.assert_allclose(back[:30], SIGNAL[:30], atol=1e-5)


def test_complex_signals(run):
    z = (SIGNAL + 1j * SIGNAL[::-1]).astype(np.complex64)
    there = run("torch.stft", z, n_fft=8, return_complex=True)
    assert there.shape[0] == 8
    back = run("torch.istft", there, n_fft=8, return_complex=True)
    assert back.dtype == np.complex64
    np.testing.assert_allclose(back, z, atol=1e-5)


@pytest.mark.parametrize(
    ("power", "normalized", "scale"),
    [(2, False, 1), (1, "window", 1.5), (None, "frame_length", math.sqrt(6)), (2, True, 2.25)],
)
def test_spectrogram(run, power, normalized, scale):
    """The window's norm is 1.5: 0² + 0.25² + 0.75² + 1² + 0.75² + 0.25² = 2.25."""
    result = run(
        "torchaudio.functional.spectrogram", SIGNAL[None], HANN, names=("waveform", "window"),
        pad=2, n_fft=6, hop_length=2, win_length=6, power=power, normalized=normalized,
        center=False, pad_mode="reflect", onesided=True,
    )  # fmt: skip
    padded = np.pad(SIGNAL, 2)
    expected = slow_stft(padded, 6, 2, HANN, 4)
    expected = expected if power is None else abs(expected) ** power
    assert result.dtype == (np.complex64 if power is None else np.float32)
    np.testing.assert_allclose(result, (expected / scale)[None], atol=1e-4)


@pytest.mark.parametrize("normalized", [False, True, "window", "frame_length"])
@pytest.mark.parametrize("pad", [0, 3])
def test_spectrogram_and_back(run, normalized, pad):
    window = np.hamming(8).astype(np.float32)
    common = {
        "pad": pad, "n_fft": 8, "hop_length": 2, "win_length": 8, "normalized": normalized,
        "center": True, "pad_mode": "reflect", "onesided": True,
    }  # fmt: skip
    there = run(
        "torchaudio.functional.spectrogram", SIGNAL, window, names=("waveform", "window"),
        power=None, **common,
    )  # fmt: skip
    back = run(
        "torchaudio.functional.inverse_spectrogram", there, window,
        names=("spectrogram", "window"), length=40, **common,
    )  # fmt: skip
    np.testing.assert_allclose(back, SIGNAL, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "kwargs", "reason"),
    [
        (SIGNAL[None, None], {"n_fft": 8}, "1 or 2 dimensions, not 3"),
        (SIGNAL, {"n_fft": 8, "hop_length": 0}, "hop_length 0"),
        (SIGNAL, {"n_fft": 8, "win_length": 9}, "win_length 9 do not fit n_fft 8"),
        (SIGNAL[:5], {"n_fft": 8, "center": False}, "a signal of 5 elements has no piece of 8"),
        (SIGNAL[:3], {"n_fft": 8}, "3 elements cannot be reflected 4 times"),
        (SIGNAL, {"n_fft": 8, "pad_mode": "wavy"}, "pad_mode is 'wavy'"),
        (SIGNAL.astype(np.complex64), {"n_fft": 8, "onesided": True}, "no one-sided"),
    ],
)
def test_faults(run, x, kwargs, reason):
    with pytest.raises(LayerError, match=reason):
        run("torch.stft", x, **kwargs)


def test_faults_of_the_inverse(run):
    with pytest.raises(LayerError, match="is not a short-time Fourier transform"):
        run("torch.istft", SIGNAL, n_fft=8)
    there = run("torch.stft", SIGNAL, n_fft=8)
    with pytest.raises(LayerError, match="5 frequencies do not belong to pieces of 16"):
        run("torch.istft", there, n_fft=16, onesided=True)
    with pytest.raises(LayerError, match="leave a gap"):
        run("torch.istft", there, np.zeros(8), names=("", "window"), n_fft=8)
    with pytest.raises(LayerError, match="a window of shape 6 does not have win_length 8"):
        run("torch.istft", there, HANN, names=("", "window"), n_fft=8)
