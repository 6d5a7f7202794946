"""Signals in ONNX: windows, Fourier transforms with pairs for complex numbers, mel scales."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_int, axis_of
from engine.layers.fourier import require_room_for_points
from engine.layers.onnx.arguments import dtype_of_code
from engine.layers.registry import register
from engine.values import Array

__all__ = ["dft", "stft"]

_FLOAT: Final = 1  # ONNX's number of float32

# Coefficients of cos(0), cos(2 pi n / N), cos(4 pi n / N)
_COSINES: Final = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


def _make_window(size: Any, periodic: int, code: int, cosines: tuple[float, ...]) -> Array:
    count = as_int(size, "size")
    span = count if periodic else max(count - 1, 1)
    angles = 2 * np.pi * np.arange(count) / max(span, 1)
    total = sum(share * np.cos(place * angles) for place, share in enumerate(cosines))
    return np.asarray(total).astype(dtype_of_code(code))


@register("HannWindow")
def hann_window(size: Any, periodic: int = 1, output_datatype: int = _FLOAT) -> Array:
    """Raised cosine from 0 to 0: ONNX ``HannWindow``.

    Parameters
    ----------
    size : int
        Length.
    periodic : int
        Whether the window is one period of a periodic signal; otherwise it is symmetric.
    output_datatype : int
        ONNX's number of the dtype.

    Returns
    -------
    ndarray of shape (size,)
    """
    return _make_window(size, periodic, output_datatype, _COSINES["HannWindow"])


@register("HammingWindow")
def hamming_window(size: Any, periodic: int = 1, output_datatype: int = _FLOAT) -> Array:
    """Raised cosine that does not reach 0: ONNX ``HammingWindow``.

    Parameters
    ----------
    size, periodic, output_datatype
        As in ``HannWindow``.

    Returns
    -------
    ndarray of shape (size,)
    """
    return _make_window(size, periodic, output_datatype, _COSINES["HammingWindow"])


@register("BlackmanWindow")
def blackman_window(size: Any, periodic: int = 1, output_datatype: int = _FLOAT) -> Array:
    """Window of two cosines: ONNX ``BlackmanWindow``.

    Parameters
    ----------
    size, periodic, output_datatype
        As in ``HannWindow``.

    Returns
    -------
    ndarray of shape (size,)
    """
    return _make_window(size, periodic, output_datatype, _COSINES["BlackmanWindow"])


@register("DFT")
def dft(
    input: Array,
    dft_length: Any = None,
    axis: Any = None,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    """Discrete Fourier transform along an axis: ONNX ``DFT``.

    Parameters
    ----------
    input : ndarray of shape (..., N, ..., 1) or (..., N, ..., 2)
        Real numbers, or pairs of real and imaginary parts.
    dft_length : int, optional
        Length to crop the signal to, or to pad it to with zeros.
    axis : int
        The dimension of the signal, -2 by default.
    inverse : int
        Whether to transform back.
    onesided : int
        Whether only the half of the frequencies is present that determines the others.

    Returns
    -------
    ndarray of shape (..., N', ..., 2), or (..., 1) where a half is transformed back
    """
    if axis is None:
        # Without a length the axis follows; a length is never so small.
        given = None if dft_length is None else as_int(dft_length, "dft_length")
        is_axis = given is not None and -input.ndim <= given < input.ndim
        axis, dft_length = (given, None) if is_axis else (-2, dft_length)
    place = axis_of(axis, input.ndim, "axis")
    signal = _to_complex(input)
    length = None if dft_length is None else as_int(dft_length, "dft_length")
    require_room_for_points(length or signal.shape[place])
    if inverse and onesided:
        return np.fft.irfft(signal, length, place)[..., np.newaxis].astype(input.dtype)
    if inverse:
        return _to_pairs(np.fft.ifft(signal, length, place), input)
    spectrum = np.fft.fft(signal, length, place)
    if onesided:
        spectrum = np.take(spectrum, range(spectrum.shape[place] // 2 + 1), place)
    return _to_pairs(spectrum, input)


@register("STFT")
def stft(
    signal: Array,
    frame_step: Any,
    window: OperandOf[Any] = None,
    frame_length: Any = None,
    onesided: int = 1,
) -> Array:
    """Fourier transforms of overlapping pieces of a signal: ONNX ``STFT``.

    Parameters
    ----------
    signal : ndarray of shape (B, L, 1) or (B, L, 2)
        Real numbers, or pairs of real and imaginary parts.
    frame_step : int
        Distance of the starts of neighbouring pieces.
    window : ndarray of shape (N,), optional
        Factors of each piece.
    frame_length : int, optional
        N; that of the window, or of the signal, by default.
    onesided : int
        Whether to return only the half of the frequencies that determines the others.

    Returns
    -------
    ndarray of shape (B, T, F, 2)
    """
    if isinstance(window, int) or (isinstance(window, np.ndarray) and window.ndim == 0):
        window, frame_length = None, window  # without a window the frame length follows
    wide = _to_complex(signal.reshape(*signal.shape, 1) if signal.ndim == 2 else signal)
    if frame_length is not None:
        length = as_int(frame_length, "frame_length")
    else:
        length = wide.shape[-1] if window is None else len(window)
    if wide.shape[-1] < length:
        raise LayerError(
            f"a signal of {describe_shapes([signal.shape])} has no piece of {length}"
        )
    pieces = np.lib.stride_tricks.sliding_window_view(wide, length, axis=-1)
    pieces = pieces[..., :: as_int(frame_step, "frame_step"), :]
    spectrum = np.fft.fft(pieces if window is None else pieces * window)
    if onesided:
        spectrum = spectrum[..., : length // 2 + 1]
    return _to_pairs(spectrum, signal)


def _to_complex(array: Array) -> Array:
    """Convert pairs to complex numbers, and single numbers to real ones."""
    if array.shape[-1] not in {1, 2}:
        raise LayerError(f"{describe_shapes([array.shape])} has neither numbers nor pairs")
    wide = array.astype(np.float64)
    return wide[..., 0] if array.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _to_pairs(numbers: Array, like: Array) -> Array:
    return np.stack([numbers.real, numbers.imag], -1).astype(like.dtype)


@register("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_edge_hertz: Any,
    upper_edge_hertz: Any,
    output_datatype: int = _FLOAT,
) -> Array:
    """Triangular filters on a mel scale: ONNX ``MelWeightMatrix``.

    Parameters
    ----------
    num_mel_bins : int
        M.
    dft_length : int
        Length of the transform that the filters are for.
    sample_rate : int
        Samples per second.
    lower_edge_hertz, upper_edge_hertz : float
        Start of the first triangle and end of the last one.
    output_datatype : int
        ONNX's number of the dtype.

    Returns
    -------
    ndarray of shape (dft_length // 2 + 1, M)
    """
    bins, length = as_int(num_mel_bins, "num_mel_bins"), as_int(dft_length, "dft_length")
    edges = np.array([lower_edge_hertz, upper_edge_hertz], np.float64).reshape(2)
    low, high = 2595 * np.log10(1 + edges / 700)
    # The corners of the triangles are evenly spaced on the mel scale.
    mels = low + np.arange(bins + 2) * (high - low) / (bins + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    corners = (length + 1) * hertz // float(as_int(sample_rate, "sample_rate"))
    places = np.arange(length // 2 + 1)[:, np.newaxis]
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    with np.errstate(all="ignore"):
        rising = np.where(middle > left, (places - left) / (middle - left), places == middle)
        falling = (right - places) / (right - middle)
    rises = (places >= left) & (places <= middle)
    falls = (places >= middle) & (places < right)
    matrix = np.where(rises, rising, 0) + np.where(falls & ~rises, falling, 0)
    return matrix.astype(dtype_of_code(output_datatype))
