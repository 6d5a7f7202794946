"""Short-time Fourier transforms of signals, and spectrograms.

Frames are transformed in double precision and rounded once.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.layers.arguments import cast, require_steps
from engine.layers.registry import register
from engine.promotion import float_dtype, promote_types
from engine.values import Array

__all__ = [
    "centre_window",
    "extend_signal",
    "inverse_spectrogram",
    "istft",
    "spectrogram",
    "stft",
    "window_norm",
]

# Modes of padding by PyTorch's name
_PAD_MODES: Final[dict[str, Literal["reflect", "edge", "constant", "wrap"]]] = {
    "reflect": "reflect",
    "replicate": "edge",
    "constant": "constant",
    "circular": "wrap",
}


_COMMON: Final = "input n_fft hop_length win_length window"  # operands of both raw forms


@register(
    "aten::stft",
    operands=(
        f"{_COMMON} normalized onesided return_complex _",
        f"{_COMMON} center pad_mode normalized onesided return_complex _",
    ),
)
def raw_stft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = False,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Array:
    """Fourier transforms of overlapping pieces of a signal, as ``torch.stft``.

    The overload without `center` does not pad: PyTorch has padded the signal before.
    """
    return stft(
        input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
        return_complex,
    )  # fmt: skip


@register("torch.stft", "Tensor.stft")
def stft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:
    """Fourier transforms of overlapping pieces of a signal: ``torch.stft``.

    Parameters
    ----------
    input : ndarray of shape (B, L) or (L,)
    n_fft : int
        Length of a piece, N.
    hop_length : int, optional
        Distance of the starts of neighbouring pieces; a quarter of N by default.
    win_length : int, optional
        Length of the window, which is centred in the piece; N by default.
    window : ndarray of shape (win_length,), optional
        Ones by default.
    center : bool
        Pad the signal by N / 2 at both ends.
    pad_mode : str
        Padding: ``"reflect"``, ``"constant"`` (zeros), ``"replicate"`` or ``"circular"``.
    normalized : bool
        Divide by the root of N.
    onesided : bool, optional
        Return only the F = N / 2 + 1 frequencies that determine the others; by default for real
        signals and windows. Otherwise F = N.
    return_complex : bool
        Return complex numbers instead of pairs of real numbers.
    align_to_window : bool, optional
        No effect.

    Returns
    -------
    complex ndarray of shape (B, F, T) or (F, T); or (..., 2), real
    """
    if input.ndim not in {1, 2}:
        raise LayerError(f"a signal has 1 or 2 dimensions, not {input.ndim}")
    hop, taper = centre_window(n_fft, hop_length, win_length, window)
    wide = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    if center:
        wide = extend_signal(wide, n_fft // 2, pad_mode)
    if wide.shape[-1] < n_fft:
        raise LayerError(f"a signal of {wide.shape[-1]} elements has no piece of {n_fft}")
    pieces = np.lib.stride_tricks.sliding_window_view(wide, n_fft, axis=-1)[..., ::hop, :]
    tapered = pieces * taper
    real = tapered.dtype.kind == "f"
    if onesided and not real:
        raise LayerError("complex signals have no one-sided transform")
    half = real if onesided is None else onesided
    spectrum = np.fft.rfft(tapered) if half else np.fft.fft(tapered)
    if normalized:
        spectrum = spectrum / np.sqrt(n_fft)
    promoted = input.dtype if window is None else promote_types(input.dtype, window.dtype)
    dtype = promote_types(float_dtype(promoted), np.dtype(np.complex64))
    result = cast(np.swapaxes(spectrum, -1, -2), dtype)
    if return_complex is False:
        return np.stack([result.real, result.imag], axis=-1)
    return result


@register("torch.istft", "Tensor.istft", "aten::istft")
def istft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Array:
    """Signal of its short-time Fourier transforms: ``torch.istft``.

    Pieces are transformed back, overlapping elements are added, and each sum is divided by the
    sum of its squared windows.

    Parameters
    ----------
    input : complex ndarray of shape (B, F, T) or (F, T)
    n_fft, hop_length, win_length, window, center, normalized, onesided
        The values that ``torch.stft`` had.
    length : int, optional
        Of the signal; by default the length that the pieces cover.
    return_complex : bool
        Whether the signal was complex.

    Returns
    -------
    ndarray of shape (B, L) or (L,)

    Raises
    ------
    LayerError
        If the windows leave a gap.
    """
    if input.dtype.kind != "c" or input.ndim not in {2, 3}:
        shape = describe_shapes([input.shape])
        raise LayerError(
            f"{input.dtype} of shape {shape} is not a short-time Fourier transform"
        )
    hop, taper = centre_window(n_fft, hop_length, win_length, window)
    half = input.shape[-2] != n_fft if onesided is None else onesided
    if input.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise LayerError(f"{input.shape[-2]} frequencies do not belong to pieces of {n_fft}")
    spectrum = np.swapaxes(input.astype(np.complex128), -1, -2)
    if normalized:
        spectrum = spectrum * np.sqrt(n_fft)
    kept = spectrum if half else spectrum[..., : n_fft // 2 + 1]
    pieces: Array = np.fft.ifft(spectrum) if return_complex else np.fft.irfft(kept, n_fft)
    signal = _add_overlapping(pieces * taper, hop)
    weights = _add_overlapping(np.broadcast_to(taper**2, pieces.shape[-2:]), hop)
    first = n_fft // 2 if center else 0
    last = len(weights) - first if length is None else first + length
    signal, weights = signal[..., first:last], weights[first:last]
    if np.abs(weights).min(initial=np.inf) < 1e-11:  # PyTorch's limit
        raise LayerError("the windows leave a gap between them")
    result = signal / weights
    if length is not None and result.shape[-1] < length:
        missing = [(0, 0)] * (result.ndim - 1) + [(0, length - result.shape[-1])]
        result = np.pad(result, missing)
    real = np.dtype(np.float64 if input.dtype.itemsize == 16 else np.float32)
    return cast(result, input.dtype if return_complex else real)


@register("torchaudio.functional.spectrogram")
def spectrogram(
    waveform: Array,
    pad: int,
    window: Array,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: float | None,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Array:
    """Magnitudes of short-time Fourier transforms: ``torchaudio.functional.spectrogram``.

    Parameters
    ----------
    waveform : ndarray of shape (..., L)
    pad : int
        Number of zeros added at both ends.
    window, n_fft, hop_length, win_length, center, pad_mode, onesided
        As for ``torch.stft``.
    power : float, optional
        Exponent of the magnitudes; None returns the complex transforms.
    normalized : bool or str
        Divide by the window's norm (True, ``"window"``) or by the root of `n_fft`
        (``"frame_length"``).

    Returns
    -------
    ndarray of shape (..., F, T)
    """
    if pad:
        waveform = np.pad(waveform, [(0, 0)] * (waveform.ndim - 1) + [(pad, pad)])
    by_length = normalized == "frame_length"
    flat = waveform.reshape(-1, waveform.shape[-1])
    spectrum = stft(
        flat, n_fft, hop_length, win_length, window, center, pad_mode, by_length, onesided
    )
    spectrum = spectrum.reshape(*waveform.shape[:-1], *spectrum.shape[1:])
    if normalized and not by_length:
        spectrum = cast(spectrum / window_norm(window), spectrum.dtype)
    if power is None:
        return spectrum
    return np.asarray(np.abs(spectrum) ** power, spectrum.real.dtype)


@register("torchaudio.functional.inverse_spectrogram")
def inverse_spectrogram(
    spectrogram: Array,
    length: int | None,
    pad: int,
    window: Array,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Array:
    """Signal of its spectrogram: ``torchaudio.functional.inverse_spectrogram``.

    Parameters
    ----------
    spectrogram : complex ndarray of shape (..., F, T)
    length : int, optional
        Of the signal, without `pad`.
    pad, window, n_fft, hop_length, win_length, normalized, center, pad_mode, onesided
        The values that ``torchaudio.functional.spectrogram`` had.

    Returns
    -------
    ndarray of shape (..., L)
    """
    by_length = normalized == "frame_length"
    if normalized and not by_length:
        spectrogram = cast(spectrogram * window_norm(window), spectrogram.dtype)
    flat = spectrogram.reshape(-1, *spectrogram.shape[-2:])
    whole = None if length is None else length + 2 * pad
    signal = istft(
        flat, n_fft, hop_length, win_length, window, center, by_length, onesided, whole
    )
    if length is not None and pad:
        signal = signal[:, pad:-pad]
    return signal.reshape(*spectrogram.shape[:-2], signal.shape[-1])


def centre_window(
    n_fft: int, hop_length: int | None, win_length: int | None, window: Array | None
) -> tuple[int, Array]:
    """Return the step between pieces, and the window centred in a piece."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop < 1 or not 0 < width <= n_fft:
        raise LayerError(f"hop_length {hop} and win_length {width} do not fit n_fft {n_fft}")
    if window is not None and window.shape != (width,):
        shape = describe_shapes([window.shape])
        raise LayerError(f"a window of shape {shape} does not have win_length {width}")
    taper = np.ones(width) if window is None else window
    taper = taper.astype(np.complex128 if taper.dtype.kind == "c" else np.float64)
    before = (n_fft - width) // 2
    return hop, np.pad(taper, (before, n_fft - width - before))


def extend_signal(signal: Array, count: int, pad_mode: str) -> Array:
    """Pad a signal at both ends, by PyTorch's name of the mode."""
    if pad_mode not in _PAD_MODES:
        raise LayerError(f"pad_mode is {pad_mode!r}, not one of {', '.join(_PAD_MODES)}")
    if pad_mode == "circular" and count > signal.shape[-1]:
        raise LayerError(f"{signal.shape[-1]} elements cannot be wrapped around {count} times")
    if pad_mode == "reflect" and count >= signal.shape[-1]:
        raise LayerError(f"{signal.shape[-1]} elements cannot be reflected {count} times")
    ends = [(0, 0)] * (signal.ndim - 1) + [(count, count)]
    return np.pad(signal, ends, _PAD_MODES[pad_mode])


def _add_overlapping(pieces: Array, hop: int) -> Array:
    """Sum pieces (..., T, N); each starts `hop` after the previous one."""
    count, size = pieces.shape[-2:]
    require_steps(count, "pieces")
    total = np.zeros((*pieces.shape[:-2], size + hop * (count - 1)), pieces.dtype)
    for number in range(count):
        start = number * hop
        total[..., start : start + size] += pieces[..., number, :]
    return total


def window_norm(window: Array) -> float:
    """Return the root of the sum of a window's squares."""
    return float(np.sqrt(np.sum(np.square(window.astype(np.float64)))))
