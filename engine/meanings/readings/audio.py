"""Sound: a spectrogram of a wave form, or of one that the model gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Spectrogram

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["Sound"]

_SHORTEST: Final = 1024  # samples
_MOST_FRAMES: Final = 2048
_WINDOWS: Final = ("256", "512", "1024", "2048")
_FLOOR: Final = 1e-12


@register_reading
class Sound(OutputReading):
    """A wave form: (N, samples) or (N, 1, samples)."""

    name: ClassVar[str] = "sound"
    title: ClassVar[str] = "Sound: spectrogram"
    options: ClassVar[tuple[Option, ...]] = (
        Option("rate", "Samples/s", "count", 16_000, "Sampling rate", low=1, high=1_000_000),
        Option("window", "Window", "choice", "512", "Samples of a spectrum", _WINDOWS),
    )

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape = output.shape
        flat = len(shape) == 2 or (len(shape) == 3 and shape[1] == 1)
        if not flat or not output.is_real or shape[-1] < _SHORTEST:
            return Fit(0, "no output is one long series of numbers")
        reason = f"an output is a series of {shape[-1]} numbers"
        audio = ("tanh", "convtranspose1d", "conv_transpose1d", "conv1d", "istft")
        if output.ends_with(*audio, among=4) or len(shape) == 3:
            return Fit(0.8, f"{reason}, as sound is")
        return Fit(0.65 if shape[-1] >= 8000 and ends.size is None else 0.2, reason)

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> Spectrogram:
        wave = np.nan_to_num(values.reshape(-1).astype(np.float64), posinf=0, neginf=0)
        length = int(context.text("window"))
        if wave.size < length:
            raise MeaningError(f"the sound has {wave.size} samples, fewer than the window")
        hop = max(length // 4, (wave.size - length) // _MOST_FRAMES + 1)
        frames = np.lib.stride_tricks.sliding_window_view(wave, length)[::hop]
        taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
        power = np.abs(np.fft.rfft(frames * taper, axis=1)).T ** 2
        most = float(power.max())
        decibels = 10 * np.log10(np.maximum(power / (most or 1.0), _FLOOR))
        rate = int(context.number("rate"))
        pitch = int(power.sum(1).argmax()) * rate / length
        return Spectrogram(
            decibels.astype(np.float32), wave.size, rate, pitch, float(np.abs(wave).max())
        )
