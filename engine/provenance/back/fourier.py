"""Real results of Fourier transforms, and magnitudes of frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.spectrum import spectrogram
from engine.provenance.call import NoBreakdownError
from engine.provenance.rules.fourier import (
    TO_REAL,
    order_of_samples,
    read_frames,
    read_real,
    spectrogram_scale,
)
from engine.provenance.slopes import Gradient, accumulate, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call


@passes_back(*TO_REAL)
def _transformed(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Transform the gradient: the cosines of both directions are the same."""
    found = read_real(call)
    if found.input.dtype.kind == "c":
        raise NoBreakdownError("complex numbers have no slope")
    waves = np.fft.fftn(gradient, axes=found.axes).real * found.scale
    result = np.zeros(found.input.shape)
    part = [slice(None)] * result.ndim
    for number, axis in enumerate(found.axes):
        part[axis] = slice(found.used(number))
        counts = found.counts(number)
        waves = waves.take(range(len(counts)), axis)
        waves = waves * counts.reshape([-1 if at == axis else 1 for at in range(result.ndim)])
    result[tuple(part)] = waves
    return {found.input.name: result}


@passes_back(spectrogram)
def _magnitude(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each sample its part in the directions of all frequencies that read it."""
    input, frames, given = call.array("waveform"), read_frames(call), call.arguments
    size, power, scale = len(frames.taper), float(given["power"]), spectrogram_scale(call)
    plain = {
        **given, "waveform": wide(input), "window": frames.taper, "win_length": size,
        "power": None, "normalized": False,
    }  # fmt: skip
    sums = spectrogram(**plain) * scale
    lengths = np.abs(sums)
    stretch = power * np.where(lengths > 0, lengths, 1.0) ** (power - 2) * (lengths > 0)
    waves = np.fft.fft(gradient * stretch * sums.conj(), size, axis=-2).real * scale
    waves = waves.reshape(-1, *waves.shape[-2:])  # signals, samples of a piece, pieces
    samples = order_of_samples(call)
    signals = wide(input).reshape(len(waves), -1)
    signals = np.concatenate([signals, np.zeros((len(signals), 1))], axis=1)  # read at -1
    by_signal, by_window = np.zeros(signals.shape), np.zeros(size)
    for piece in range(waves.shape[-1]):
        places = samples[piece * frames.hop :][:size]
        for signal, wave in enumerate(waves[..., piece]):
            np.add.at(by_signal[signal], places, wave * frames.taper)
            by_window += wave * signals[signal, places]
    back = {input.name: by_signal[:, :-1].reshape(input.shape)}
    if frames.window is not None:
        if given["normalized"] and given["normalized"] != "frame_length":
            by_window -= power * (gradient * lengths**power).sum() * scale**2 * frames.taper
        before = (size - frames.window.shape[0]) // 2
        accumulate(back, frames.window.name, by_window[before:][: frames.window.shape[0]])
    return back
