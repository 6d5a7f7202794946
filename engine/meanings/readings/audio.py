"""Sound: a spectrogram of a wave form, or of one that the model gives."""

from __future__ import annotations

import math
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
_MOST_CHANNELS: Final = 64
_WINDOWS: Final = ("256", "512", "1024", "2048")
_FLOOR: Final = 1e-12


@register_reading
class Sound(OutputReading):
    """A wave form, (N, samples), or several, (N, channels, samples) or with sources before."""

    name: ClassVar[str] = "sound"
    title: ClassVar[str] = "Sound: spectrogram"
    options: ClassVar[tuple[Option, ...]] = (
        Option("rate", "Samples/s", "count", 16_000, "Sampling rate", low=1, high=1_000_000),
        Option("window", "Window", "choice", "512", "Samples of a spectrum", _WINDOWS),
        Option(
            "channel", "Channel", "count", 0,
            "Which one of several sources and channels, counted from 0",
            low=0, high=_MOST_CHANNELS - 1,
        ),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape, count = output.shape, _channels(output)
        is_given = any(each[-1:] >= (_SHORTEST,) and len(each) < 4 for each in ends.inputs)
        is_wave = 2 <= len(shape) <= 4 and (
            count == 1 or (count <= _MOST_CHANNELS and is_given)
        )
        if not is_wave or not output.is_real or shape[-1] < _SHORTEST:
            return Fit(0, "no output is one long series of numbers")
        reason = f"an output is a series of {shape[-1]} numbers"
        if count > 1:
            return Fit(0.8, f"{reason} for each of {count} channels, as sound is")
        audio = ("tanh", "convtranspose1d", "conv_transpose1d", "conv1d", "istft")
        if output.ends_with(*audio, among=4) or len(shape) == 3:
            return Fit(0.8, f"{reason}, as sound is")
        return Fit(0.65 if shape[-1] >= 8000 and ends.size is None else 0.2, reason)

    @override
    def options_for(self, ends: Ends) -> tuple[Option, ...]:
        has_several = any(_channels(each) > 1 for each in ends.outputs)
        return self.options if has_several else self.options[:-1]

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> Spectrogram:
        waves = values.reshape(-1, values.shape[-1])
        channel = int(context.number("channel"))
        if channel >= len(waves):
            raise MeaningError(f"the sound has {len(waves)} channels, so there is no {channel}")
        wave = np.nan_to_num(waves[channel].astype(np.float64), posinf=0, neginf=0)
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


def _channels(output: OutputEnd) -> int:
    """Return how many series a sample has."""
    return math.prod(output.shape[1:-1])
